"""`hub push` and `hub check` with a folder send all that is in it but what is hidden, a link or
ignored, and refuse what no version can have before they send anything.
"""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from builder.model.version_files import BYTES_MAX
from tests.client.conftest import Hub
from tests.client.fake import Answer, Fake, Request, answer
from tests.client.shells import TOKEN, Client
from tests.client.test_check import checked, written
from tests.client.test_machine import put_tool
from tests.support.folder_cases import CASES, REFUSED

TEXT = b"---\ndescription: Runs it.\n---\nRun scripts/run.sh on {{file}}.\n"
SKILL = {
    "s/SKILL.md": TEXT,
    "s/scripts/run.sh": b"#!/bin/sh\necho hi\n",
    "s/a/b/c/empty": b"",
    "s/logo.png": bytes(range(256)) * 40 + b"\0\xff",
    "s/.env": b"SECRET=1\n",
    "s/.git/config": b"[core]\n",
}
SENT = ["a/b/c/empty", "logo.png", "scripts/run.sh"]


def skill(client: Client, files: dict[str, bytes] = SKILL) -> Client:
    """A client with these files, in which each `run.sh` is executable."""
    written(client, files)
    for path in client.work.rglob("run.sh"):
        path.chmod(0o755)
    return client


class Sent:
    """A hub that accepts all, and the last publication that it got. ``about``: its hub.json."""

    def __init__(self, about: dict[str, Any] | None = None) -> None:
        self.request: dict[str, Any] = {}
        self.about = about or {}

    def __call__(self, request: Request) -> Answer:
        if request.method == "GET":
            return answer(json.dumps({"data": self.about}, separators=(",", ":")).encode())
        self.request = json.loads(request.body)
        return checked()

    @property
    def files(self) -> dict[str, tuple[bytes, bool]]:
        return {
            one["path"]: (b64decode(one["base64"], validate=True), one["executable"])
            for one in self.request["files"]
        }


def test_a_folder_is_published_with_its_files(each: Client, publishing: Hub) -> None:
    hub = skill(each.to(publishing.url, HUB_TOKEN=publishing.token))
    (hub.work / "s/link").symlink_to("/etc/passwd")
    repo = f"ada/folder-{each.shell}"
    done = hub.run("push", repo, "s", "First")
    assert (done.status, done.text) == (0, f"{repo} 1.0.0\n"), done.err
    assert done.err.splitlines() == [
        f"sends SKILL.md, {len(TEXT)} bytes",
        "sends a/b/c/empty, 0 bytes",
        "sends logo.png, 10242 bytes",
        "sends scripts/run.sh, 18 bytes, executable",
        "leaves out .env: hidden",
        "leaves out .git/: hidden",
        "leaves out link: a symbolic link",
    ]
    record = publishing.server.get(f"/api/v1/repos/{repo}").json()["data"]
    assert record["content"].encode() == TEXT
    for one in record["files"]:
        file = one["url"].removeprefix(publishing.url)
        assert publishing.server.get(file).content == SKILL[f"s/{one['path']}"]
    assert [one["path"] for one in record["files"]] == SENT
    assert [one["executable"] for one in record["files"]] == [False, False, True]
    assert hub.run("push", repo, "s/").text == f"{repo} 1.0.0 unchanged\n"
    (hub.work / "s/logo.png").unlink()
    said = hub.run("check", repo, "s")
    assert said.text == f"{repo} 1.0.0 → 1.0.1 (patch)\n"
    assert said.err.splitlines() == [
        "leaves out s/.env: hidden", "leaves out s/.git/: hidden",
        "leaves out s/link: a symbolic link",
    ]  # fmt: skip
    assert hub.run("push", repo, "s").text == f"{repo} 1.0.1\n"


def test_a_file_keeps_the_files(client: Client, publishing: Hub) -> None:
    hub = skill(client.to(publishing.url, HUB_TOKEN=publishing.token))
    assert hub.run("push", "ada/keeps", "s").status == 0
    done = hub.run("push", "ada/keeps", "-", stdin=b"Two.")
    assert done.text == "ada/keeps 1.0.1\n" and "Kept 3 files" in done.err
    url = "/api/v1/repos/ada/keeps"
    assert [one["path"] for one in publishing.server.get(url).json()["data"]["files"]] == SENT
    written(hub, {"none/SKILL.md": b"Two."})  # a folder says what files there are
    assert hub.run("push", "ada/keeps", "none").text == "ada/keeps 1.0.2\n"
    assert "files" not in publishing.server.get(url).json()["data"]


@pytest.mark.parametrize("case", CASES)
def test_what_a_push_and_a_check_take_and_leave_out(case: str, awk: Client) -> None:
    one = CASES[case]
    with Fake(sent := Sent()) as fake:
        hub = awk.to(fake.url, HUB_TOKEN=TOKEN, HUB_OWNER="ann")
        one.write(hub.work / "s=1")
        done = hub.run("push", "ann/x", "s=1")
        assert done.status == 0, done.err
        assert {*sent.files} == one.kept
        assert left_out(done.err) == one.whole
        sent.request = {}
        assert left_out(hub.run("check", "ann/x", "s=1").err) == {
            f"s=1/{path}": why for path, why in one.whole.items()
        }
        assert {*sent.files} == one.kept


def left_out(said: str) -> dict[str, str]:
    start = "leaves out "
    lines = (line for line in said.splitlines() if line.startswith(start))
    return dict(line.removeprefix(start).split(": ") for line in lines)


def test_any_bytes_are_sent_as_they_are(awk: Client) -> None:
    data = {f"f{size}": bytes(range(256))[-size:] if size else b"" for size in range(20)}
    files = {f"-s/{name}": raw for name, raw in data.items()} | {"-s/PROMPT.md": b"x"}
    with Fake(sent := Sent()) as fake:
        done = skill(awk.to(fake.url, HUB_TOKEN=TOKEN), files).run("push", "a/x", "--", "-s")
    assert done.status == 0, done.err
    assert sent.files == {name: (raw, False) for name, raw in data.items()}


@pytest.mark.parametrize("case", [one for one in REFUSED if "pointer" not in one])
def test_a_folder_is_refused_before_it_is_sent(case: str, awk: Client) -> None:
    one = REFUSED[case]
    with Fake(Sent()) as fake:
        hub = awk.to(fake.url, HUB_TOKEN=TOKEN, HUB_OWNER="ann")
        one.write(hub.work / "s")
        for words in (("push", "ann/x", "s"), ("check", "s")):
            done = hub.run(*words)
            assert done.status == 5 and "\x01" not in done.err
            assert one.not_told(done.err) == []
    assert {one.path for one in fake.requests} <= {"/api/v1/hub.json"}


@pytest.mark.parametrize("limit", [None, BYTES_MAX + 3])
def test_sizes_at_the_limit_of_the_hub_and_above(client: Client, limit: int | None) -> None:
    most = limit or BYTES_MAX
    files = {"s/SKILL.md": b"x", "s/a": bytes(most - 1), "s/b": b"1"}
    with Fake(sent := Sent({"file_bytes": limit} if limit else {})) as fake:
        hub = skill(client.to(fake.url, HUB_TOKEN=TOKEN), files)
        assert hub.run("push", "ann/x", "s").status == 0
        assert sum(len(raw) for raw, _ in sent.files.values()) == most
        (hub.work / "s/b").write_bytes(b"12")
        done = hub.run("push", "ann/x", "s")
    says = f"s: {most + 1} bytes, {most} at most: the largest is a, with {most - 1}"
    assert done.status == 5 and says in done.err
    assert [one.method for one in fake.requests].count("POST") == 1
    if not limit:  # where the hub does not answer, its limit is the usual one
        assert says in hub.to("http://127.0.0.1:9", HUB_TOKEN=TOKEN).run("push", "a/x", "s").err


def test_more_faults_are_counted(client: Client) -> None:
    hub = skill(client.to("http://127.0.0.1:9", HUB_TOKEN=TOKEN), {"s/SKILL.md": b"x"})
    skill(hub, {f"s/{n} x": b"" for n in range(22)})
    assert hub.run("push", "ann/x", "s").err.endswith("; 12 more\n")
    (hub.work / "s/a\nb").touch()
    assert "s: a name has a line break: './a b '" in hub.run("push", "ann/x", "s").err


def test_two_sources_of_one_prompt_are_refused(client: Client) -> None:
    files = {"p/x.md": b"x", "p/x/SKILL.md": b"y", "p/x-y.md": b"z"}
    with Fake(Sent()) as fake:
        done = skill(client.to(fake.url, HUB_OWNER="ann"), files).run("check", "p")
    assert done.status == 5 and "ann/x-y" in done.text
    assert "p/x.md: error: p/x.md and p/x are two sources of ann/x. Remove one" in done.err


def test_folders_without_a_text_or_with_a_link_as_text(client: Client) -> None:
    hub = skill(client.to("http://127.0.0.1:9", HUB_TOKEN=TOKEN), {"s/prompt.md": b"x", "t/x": b""})
    done = hub.run("push", "ann/x", "s")
    assert done.status == 1 and "'s' has no SKILL.md or PROMPT.md" in done.err
    (hub.work / "t/SKILL.md").symlink_to("../s/prompt.md")
    done = hub.run("push", "ann/x", "t")
    assert done.status == 5 and "t/SKILL.md is a symbolic link" in done.err


def test_a_check_takes_a_folder_with_a_text_as_one_prompt(each: Client, publishing: Hub) -> None:
    files = ("one.md", "two/SKILL.md", "two/notes.md", "two/a/SKILL.md", "sub/four/SKILL.md")
    files += (
        "sub/five.md",
        "a b/SKILL.md",
        "six/SKILL.md",
        "six/a b",
        "README.md",
        "sub/README.md",
    )
    folder = {f"p/{name}": b"x" for name in files} | {"p/three/PROMPT.md": b"caf\xe9"}
    hub = skill(each.to(publishing.url, HUB_OWNER="ada"), folder)
    done = hub.run("check", "p")
    assert done.status == 5
    assert done.text.splitlines() == ["ada/one 1.0.0 (new)", "ada/two 1.0.0 (new)"]
    said = dict(line.split(": ", 1) for line in done.err.splitlines())
    assert {place: text.split(".")[0] for place, text in said.items()} == {
        "p/a b/SKILL.md": "error: not the file of a prompt",
        "p/six/SKILL.md": "error: a b is not a portable path",
        "p/sub/five.md": "warning: not the file of a prompt",
        "p/sub/four/SKILL.md": "warning: not the file of a prompt",
        "p/three/PROMPT.md": "error: the file is not UTF-8",
    }
    for words in (["p/two", "p/one.md"], ["p/one.md", "p/two/"], ["p/two", "p/two"]):
        assert "ada/two 1.0.0 (new)" in hub.run("check", *words).text
    assert hub.run("check", "ada/other", "p/one.md").status == 0
    named = hub.to(publishing.url, HUB_OWNER="").run("check", "ada/other", "p/two")
    assert named.text == "ada/other 1.0.0 (new)\n"


def test_a_check_names_a_line_break_in_a_name(each: Client, publishing: Hub) -> None:
    hub = skill(each.to(publishing.url, HUB_OWNER="ada"), {"p/a\nb.md": b"x", "q/c.md": b"x"})
    for words in (["p"], ["p/a\nb.md"]):
        done = hub.run("check", *words, "q")
        assert (done.status, done.text) == (5, "ada/c 1.0.0 (new)\n")
        assert done.err == "p/a b.md : error: a line break or tab in a name. Rename it\n"


def test_a_folder_that_is_named_as_the_current_one(client: Client, publishing: Hub) -> None:
    hub = skill(client.to(publishing.url, HUB_OWNER="ada"))
    (hub.work / "SKILL.md").write_bytes(b"x")
    assert hub.run("check", ".").text == "ada/work 1.0.0 (new)\n"


def test_a_file_that_cannot_be_read_is_not_sent_empty(client: Client, tmp_path: Path) -> None:
    broken = put_tool(tmp_path / "base64", "base64", "exit 1")
    with Fake(Sent()) as fake:
        hub = skill(client.to(fake.url, HUB_TOKEN=TOKEN)).having(broken)
        done = hub.run("push", "ann/x", "s")
    assert (done.status, done.out) == (1, b"") and "cannot read ./s/" in done.err
    assert not fake.requests


def test_standard_input_beside_a_folder_of_its_name(client: Client) -> None:
    with Fake(sent := Sent()) as fake:
        hub = skill(client.to(fake.url, HUB_TOKEN=TOKEN), {"-/SKILL.md": b"x"})
        assert hub.run("push", "ann/x", "-", stdin=b"Hi.").status == 0
    assert sent.request["content"] == "Hi." and "files" not in sent.request


def test_a_check_names_what_is_left_out_of_a_folder_with_a_fault(client: Client) -> None:
    files = {"s/SKILL.md": b"x", "s/a b": b"", "s/.env": b"", "s/Thumbs.db": b""}
    done = skill(client.to("http://127.0.0.1:9", HUB_OWNER="ann"), files).run("check", "s")
    assert done.status == 5 and "a b is not a portable path" in done.err
    assert {*left_out(done.err)} == {"s/.env", "s/Thumbs.db"}
