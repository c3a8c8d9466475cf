"""The address of the hub, processes that fork, the single file and the wheel."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import hub_prompts
import pytest
from hub_prompts import Hub

import builder
from tests.clients.python.fake import LATEST, FakeHub, answer
from tests.support.servers import PROJECT, Server, clean_environment, nginx

PACKAGE = PROJECT / "clients/python"


def run(code: str, *arguments: str, python: str = sys.executable, **environment: str) -> str:
    done = subprocess.run(
        [python, "-W", "error", "-c", code, *arguments], capture_output=True, text=True,
        env=clean_environment(**environment), timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_address_comes_from_the_caller_the_environment_or_the_file(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch
):
    fake.has(LATEST, answer())
    with pytest.raises(ValueError, match="or set HUB_URL"):
        Hub()
    monkeypatch.setattr(hub_prompts, "BAKED_URL", "https://baked.example")
    assert Hub().addresses == ["https://baked.example"]
    monkeypatch.setenv("HUB_URL", f"{fake.url}/ https://b.example/prompts")
    assert Hub().addresses == [fake.url, "https://b.example/prompts"]
    assert Hub().get("ada/hello").version == "1.0.0"
    assert Hub("https://c.example").addresses == ["https://c.example"]


def test_a_token_goes_with_its_own_hub(fake: FakeHub, monkeypatch: pytest.MonkeyPatch):
    def sent(hub: Hub) -> str | None:
        fake.asked.clear()
        hub.get("ada/hello")
        return fake.asked[0][1].get("Authorization")

    fake.has(LATEST, answer())
    assert sent(Hub(fake.url, disk=False, token="hub_x")) == "Bearer hub_x"
    monkeypatch.setenv("HUB_TOKEN", "hub_y")
    assert sent(Hub(fake.url, disk=False)) is None, "another hub than that of the token"
    monkeypatch.setenv("HUB_URL", fake.url)
    assert sent(Hub(disk=False)) == "Bearer hub_y"
    assert sent(Hub(disk=False, token="")) is None
    monkeypatch.setenv("HUB_URL", "http://hub.example")
    monkeypatch.setenv("http_proxy", fake.url)
    fake.has(f"http://hub.example{LATEST}", answer())
    assert sent(Hub(disk=False)) is None, "others could read it"


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://hub.example", "hub_x"), ("http://127.0.0.1.evil.example", "hub_x"),
        (["https://a.example", "http://b.example"], "hub_x"), ("http://localhost.evil", "hub_x"),
        ("https://a.example", "hub_x\r\nX: 1"), ("https://a.example", "hub x"),
    ],
)  # fmt: skip
def test_a_token_that_others_would_see_is_refused(url: str | list[str], token: str):
    with pytest.raises(ValueError) as refused:
        Hub(url, token=token)
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["hub.example", "ftp://hub.example", "file:///etc", "https://", "https://a.example?x=1",
     "https://user:secret@a.example", "https://a.example/#x", "http://a example",
     ["https://a.example", ""]],
)  # fmt: skip
def test_other_addresses_are_refused(url: str | list[str]):
    with pytest.raises(ValueError):
        Hub(url)


FORK = """
import os, sys, threading, time, urllib.request
from hub_prompts import Hub
hub = Hub(sys.argv[1], timeout=60, disk=False)
waiting = threading.Thread(target=hub.get, args=("ada/hello",), daemon=True)
waiting.start()
while urllib.request.urlopen(sys.argv[1] + "/has-come").read() != b"True":
    time.sleep(0.01)
hub._lock.acquire()  # as another thread may have it at that moment
child = os.fork()
if child == 0:
    print(hub.get("ada/hello").version, flush=True)
    os._exit(0)
os._exit(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_reads_on(fake: FakeHub):
    """Also what a thread of its parent was reading."""
    fake.has(LATEST, answer())

    def send(handler: object) -> None:
        fake.has("/has-come", str(LATEST in fake.paths).encode())
        is_first = handler.path == LATEST and fake.paths.count(LATEST) == 1
        (fake.stall if is_first else fake.send)(handler)

    fake.on_request = send
    ignored = "ignore::DeprecationWarning"  # about forks with threads, which this test needs
    assert run(FORK, fake.url, PYTHONPATH=str(PACKAGE), PYTHONWARNINGS=ignored) == "1.0.0\n"


def test_the_version_is_the_hub_s():
    assert hub_prompts.__version__ == builder.VERSION


READ = """
import asyncio, sys, hub_prompts
url = sys.argv[1:] or None
async def main():
    return await hub_prompts.AsyncHub(url, disk=False).get("mara-okafor/sql-review@1.0.0")
prompt = asyncio.run(main())
assert prompt == hub_prompts.Hub(url, disk=False).get("mara-okafor/sql-review@1.0.0")
print(prompt.sha256, prompt.version, len(prompt.content))
"""


def expected(live: Server) -> str:
    record = live.get("/api/v1/repos/mara-okafor/sql-review/versions/1.0.0").json()["data"]
    return f"{record['sha256']} 1.0.0 {len(record['content'])}\n"


def test_the_file_that_a_hub_serves_knows_its_hub(live: Server, tmp_path: Path):
    answer = live.get("/clients/hub_prompts.py")
    assert (answer.status_code, answer.headers["Content-Type"]) == (
        200,
        "text/plain; charset=utf-8",
    )
    (tmp_path / "hub_prompts.py").write_bytes(answer.content)
    assert f'\nBAKED_URL = "{live.url}"\n' in answer.text
    assert run(READ, PYTHONPATH=str(tmp_path)) == expected(live)


def test_it_reads_from_a_host_of_files(live: Server, static_url: str):
    assert run(READ, static_url, PYTHONPATH=str(PACKAGE)) == expected(live)


@pytest.mark.usefixtures("installed_tools")
def test_it_reads_from_nginx(live: Server, tmp_path: Path):
    with nginx(tmp_path, f"root {live.settings.out};") as (url,):
        assert run(READ, url, PYTHONPATH=str(PACKAGE)) == expected(live)


def test_the_wheel_works_in_an_empty_environment(live: Server, tmp_path: Path):
    # Not in its own folder, where setuptools would leave build files.
    source = shutil.copytree(PACKAGE, tmp_path / "source")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", tmp_path, source],
        check=True, timeout=300,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("hub_prompts-*-py3-none-any.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv/bin/python")
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-index", "--target", site, wheel],
        check=True, timeout=300,
    )  # fmt: skip
    assert (site / "hub_prompts/py.typed").exists()
    assert run(READ, live.url, python=python) == expected(live)
    where = run("import hub_prompts; print(hub_prompts.__file__)", python=python)
    assert where.startswith(os.fspath(tmp_path))
