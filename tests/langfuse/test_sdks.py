"""Langfuse's SDKs read prompts from the embedded server, from nginx, and from plain files."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from builder.hosts.configuration import HostedSite
from builder.model.settings import Settings
from tests.conformance.nginx import started_nginx
from tests.support.catalogues import write_label, write_version
from tests.support.depth import rotating
from tests.support.servers import (
    HUBCTL,
    Server,
    add_team,
    clean_environment,
    file_host,
    free_port,
    serving,
    wait_until,
)

ROOT = Path(__file__).resolve().parents[2]
PYTHON_LINES = ("2", "3", "4", "5")
NODE_PACKAGES = ("langfuse", "langfuse-client-4", "langfuse-client-5")
SDKS = [*(f"python-{line}" for line in PYTHON_LINES), *NODE_PACKAGES]
# Those that forget a prompt when the server says that it is not there.
FORGETFUL = ("python-3", "python-4", "python-5")
# SDKs that send traces as well, and their number of tries.
TRACING = {"python-2": 1, "python-3": 1, "python-4": 1, "python-5": 1, "langfuse": 4}
HOSTS = ("embedded", "nginx", "files")
# A team: what its writers publish is read like all prompts.
OWNER = "movers"

pytestmark = pytest.mark.usefixtures("installed_tools")


class Sdk:
    """An SDK in a process of its own, which answers one request after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        is_python = name.startswith("python-")
        # The fewest tries that each SDK allows.
        self.hasty = {"max_retries" if is_python else "maxRetries": 1}
        if is_python:
            place = ROOT / "build" / f"langfuse-{name.removeprefix('python-')}"
            command = [str(place / "bin/python"), str(ROOT / "tests/langfuse/sdk.py")]
        else:
            command = ["node", str(ROOT / "tests/node/langfuse-sdk.mjs"), name]
        # No proxy and no address of Langfuse's from the environment of the tests.
        kept = clean_environment()
        environ = {key: kept[key] for key in kept if not key.startswith("LANGFUSE_")}
        self._process = subprocess.Popen(
            command, env=environ, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def get(
        self, base_url: str, name: str, variables: dict[str, str] | None = None, **options: object
    ) -> dict[str, Any]:
        """The prompt as the SDK returns it, or its ``error``."""
        return self._ask(base_url=base_url, name=name, variables=variables or {}, options=options)

    def list(self, base_url: str, **options: object) -> dict[str, Any]:
        """The list of prompts as the SDK returns it, or its ``error``."""
        return self._ask(base_url=base_url, list=options)

    def trace(self, base_url: str) -> dict[str, Any]:
        """Have the SDK send a trace; returns when it has nothing left to send."""
        return self._ask(base_url=base_url, trace=True)

    def _ask(self, **request: object) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> int:
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(60)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("langfuse")
    settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/state")
    root = Path(settings.content)
    write_version(root, "ada", "greet", "1.0.0", "Hi {{name}}!\n", tags=["short"])
    write_version(
        root, "ada", "greet", "1.1.0", "Good day {{ name }}, é 語!\n", tags=["short"],
        parameters={"model": "m-1", "temperature": 0.2}, changelog="More polite",
    )  # fmt: skip
    write_version(
        root, "ada", "greet", "2.0.0", "---\ntitle: Hello\n---\nHello {{name}}.\n", tags=["short"]
    )  # fmt: skip
    write_label(root, "ada/greet", 1, "production", "1.1.0")
    write_label(root, "ada/greet", 2, "canary", "2.0.0")
    chat = '{{role "system"}}\nYou speak {{language}}.\n{{role "user"}}\n{{question}}\n'
    write_version(root, "ada", "chat", "1.0.0", chat)
    with serving(settings, "--langfuse", "--access-log", f"{folder}/access.log") as server:
        yield server


@pytest.fixture(scope="module")
def addresses(
    hub: Server, tmp_path_factory: pytest.TempPathFactory, installed_tools: None
) -> Iterator[dict[str, str]]:
    """The base URL for the SDKs, by host."""
    site = HostedSite(
        hub.settings.out, listen=f"127.0.0.1:{free_port()}",
        upstream=f"127.0.0.1:{hub.port}", reads_per_minute=0,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("nginx")
    with started_nginx(site, folder) as nginx_url, file_host(hub.settings.out) as files_url:
        urls = {"embedded": hub.url, "nginx": nginx_url, "files": files_url}
        yield {host: f"{url}/langfuse" for host, url in urls.items()}


@pytest.fixture(scope="module")
def token(hub: Server) -> str:
    return add_team(hub.settings, OWNER)


@pytest.fixture(scope="module", params=rotating(SDKS))
def sdk(request: pytest.FixtureRequest, installed_tools: None) -> Iterator[Sdk]:
    started = Sdk(request.param)
    yield started
    # They stop with nothing left to send.
    assert started.close() == 0


each_host = pytest.mark.parametrize("host", HOSTS)


@each_host
def test_default_is_production(sdk: Sdk, addresses: dict[str, str], host: str) -> None:
    found = sdk.get(addresses[host], "ada/greet", {"name": "Bo"})
    assert found == {
        "name": "ada/greet", "version": 2, "prompt": "Good day {{ name }}, é 語!\n",
        "config": {"model": "m-1", "temperature": 0.2}, "labels": ["production"],
        "tags": ["short"], "is_fallback": False, "kind": "TextPromptClient",
        "compiled": "Good day Bo, é 語!\n",
    }  # fmt: skip


@each_host
@pytest.mark.parametrize(
    ("ref", "version", "text"),
    [("1.0.0", 1, "Hi Bo!\n"), ("canary", 3, "Hello Bo.\n"), ("latest", 3, "Hello Bo.\n"),
     ("1", 1, "Hi Bo!\n")],
)  # fmt: skip
def test_refs_in_names(
    sdk: Sdk, addresses: dict[str, str], host: str, ref: str, version: int, text: str
) -> None:
    found = sdk.get(addresses[host], f"ada/greet@{ref}", {"name": "Bo"})
    shown = (found["name"], found["version"], found["compiled"])
    assert shown == ("ada/greet", version, text)
    assert found["labels"] == (["canary", "latest"] if version == 3 else [])


@pytest.mark.parametrize("host", ["embedded", "nginx"])
@pytest.mark.parametrize(
    ("options", "version"),
    [({"version": 1}, 1), ({"version": 3}, 3), ({"label": "production"}, 2),
     ({"label": "canary"}, 3), ({"label": "latest"}, 3)],
    ids=str,
)  # fmt: skip
def test_versions_and_labels(
    sdk: Sdk, addresses: dict[str, str], host: str, options: dict[str, object], version: int
) -> None:
    assert sdk.get(addresses[host], "ada/greet", **options)["version"] == version


@each_host
def test_roles_make_a_chat(sdk: Sdk, addresses: dict[str, str], host: str) -> None:
    found = sdk.get(
        addresses[host], "ada/chat", {"language": "Welsh", "question": "Why?"}, type="chat"
    )
    assert found["kind"] == "ChatPromptClient"
    messages = [(one["role"], one["content"]) for one in found["compiled"]]
    assert messages == [("system", "You speak Welsh."), ("user", "Why?")]


@pytest.mark.parametrize("host", ["embedded", "nginx"])
@pytest.mark.parametrize(
    ("name", "options"),
    [("ada/nothing", {}), ("ada/greet@9.9.9", {}), ("ada/greet", {"version": 99}),
     ("ada/greet", {"label": "staging"}), ("ada/greet", {"label": "Not a label/é"}),
     ("no-slash", {})],
    ids=str,
)  # fmt: skip
def test_what_is_not_there(
    sdk: Sdk, addresses: dict[str, str], host: str, name: str, options: dict[str, object]
) -> None:
    found = sdk.get(addresses[host], name, **options, **sdk.hasty)
    if sdk.name == "langfuse":
        # Its errors differ in the message alone.
        assert found["error"] == "Error"
        assert found["told"].startswith(("No prompt 'ada/", "Nothing at this address."))
    else:
        assert found["error"] == "NotFoundError"


def test_moves_and_withdrawals_arrive(
    sdk: Sdk, hub: Server, addresses: dict[str, str], token: str
) -> None:
    name = f"{OWNER}/for-{sdk.name}"
    repo = f"{hub.url}/api/v1/repos/{name}"
    headers = {"Authorization": f"Bearer {token}"}
    for text in ("One", "Two"):
        draft = {"content": text}
        assert requests.post(f"{repo}/versions", json=draft, headers=headers).status_code == 201
    release(repo, headers, "1.0.0")

    def cached() -> dict[str, Any]:
        return sdk.get(addresses["embedded"], name, label="production", cache_ttl_seconds=1)

    assert cached()["prompt"] == "One"
    release(repo, headers, "1.0.1")
    wait_until(lambda: cached().get("prompt") == "Two", "the label's other version")
    withdraw(hub.settings, name, "1.0.1")
    if sdk.name in FORGETFUL:
        # Until they fetch it again, they keep it; then it is gone.
        wait_until(lambda: "error" in cached(), "an error instead of what was withdrawn")
    # The others keep the cached prompt at any error, unless their cache is off.
    fresh = sdk.get(addresses["embedded"], name, label="production", cache_ttl_seconds=0)
    assert fresh.keys() == {"error", "told"}
    assert sdk.get(addresses["embedded"], f"{name}@1.0.1").keys() == {"error", "told"}
    assert sdk.get(addresses["embedded"], f"{name}@latest")["prompt"] == "One"


def release(repo: str, headers: dict[str, str], version: str) -> None:
    url = f"{repo}/labels/production"
    answer = requests.put(url, json={"version": version}, headers=headers)
    assert answer.status_code in (200, 201), answer.text


def withdraw(settings: Settings, name: str, version: str) -> None:
    command = [
        HUBCTL, "withdraw", f"{name}@{version}", "--reason", "error",
        "--yes", "--content", settings.content, "--out", settings.out, "--state", settings.state,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("host", ["embedded", "nginx"])
def test_lists(sdk: Sdk, addresses: dict[str, str], host: str) -> None:
    everything = sdk.list(addresses[host])
    (greet,) = [row for row in everything["data"] if row["name"] == "ada/greet"]
    assert greet["versions"] == [1, 2, 3]
    assert greet["labels"] == ["canary", "production", "latest"]
    assert everything["meta"]["totalPages"] == 1
    found = sdk.list(addresses[host], tag="short", page=1, limit=10)
    assert [row["name"] for row in found["data"]] == ["ada/greet"]
    # The SDK reports what it cannot do.
    refused = sdk.list(addresses[host], name="ada/greet")
    assert refused["error"] == ("Response" if sdk.name == "langfuse" else "Error")


@pytest.mark.parametrize("sdk", TRACING, indirect=True, scope="module")
def test_traces_are_not_sent_for_ever(sdk: Sdk, hub: Server, addresses: dict[str, str]) -> None:
    log = Path(hub.settings.content).parent / "access.log"

    def sent() -> list[str]:
        lines = log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if '"POST /langfuse/' in line]

    before = len(sent())
    assert sdk.trace(addresses["embedded"]) == {}
    wait_until(lambda: len(sent()) > before, "a trace in the access log")
    lines = sent()[before:]
    assert len(lines) <= TRACING[sdk.name]
    assert all(" 405 " in line for line in lines)


def test_keys_reach_no_log(hub: Server) -> None:
    folder = Path(hub.settings.content).parent
    log = (folder / "access.log").read_text(encoding="utf-8")
    assert "/langfuse/api/public/v2/prompts/ada" in log
    assert "lf-unused" not in log and "pk-lf" not in log and "Basic" not in log
    assert "lf-unused" not in hub.process.text
