"""A terminal obeys nothing that a hub sends; pipes and files get the bytes as they are."""

import json
import os
import pty
import subprocess
from pathlib import Path

from tests.client.conftest import Hub
from tests.client.fake import Fake, Request, answer, hub
from tests.client.shells import TOKEN, Client, link_tools
from tests.client.test_machine import put_tool

# Bytes that a hub may send, and their form on the terminal.
SHOWN = {
    b"\x1b[31m": " [31m", b"\a\b\v\f\r\x7f": " " * 6, b"\x9b31m": " 31m",
    "\x80\x9b\x9f".encode(): "   ", "\u061c\u200e\u200f".encode(): "   ",
    "\u202a\u202b\u202c\u202d\u202e".encode(): " " * 5,
    "\u2066\u2067\u2068\u2069".encode(): " " * 4,
    # Not UTF-8: too short, too long a form, half a pair, past the last character.
    b"\xe2\x9b": " ", b"\xf0\x9f\x9b": " ", b"\xc1\x9b": " ", b"\xe0\x80\x9b": " ",
    b"\xf0\x80\x80\x9b": " ", b"\xed\xa0\x80": " ", b"\xf4\x90\x80\x80": " ", b"\xff\x80": " ",
    "é\xa0日本\u06db\u26db 👩\u200d👩\U0010ffff".encode() + b"\x9b":
        "é\xa0日本\u06db\u26db 👩\u200d👩\U0010ffff ",
    b"\ttab": "\ttab",
}  # fmt: skip
NOISE = b"\x9b" + b"|".join(SHOWN)
PLAIN = " " + "|".join(SHOWN.values())
COMMANDS = [
    ["cat", "ann/story"], ["pull", "ann/story", "-o", "-"],
    ["pull", "ann/story", "-o", "/dev/stdout"],
]  # fmt: skip


def on_a_terminal(client: Client, *command: str) -> str:
    """The output on a terminal of 60 columns."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        client.command(*command), cwd=client.work, stdout=terminal, stderr=subprocess.PIPE,
        env=client.environment() | {"COLUMNS": "60"},
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(master, 65536):
            shown += part
    except OSError:
        pass  # the end of a terminal
    finally:
        os.close(master)
        process.communicate()
    assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


def test_texts_on_a_terminal(each: Client) -> None:
    text = b"One.\0\n" + NOISE + b"\n\nThree.\n"
    with Fake(hub(text)) as fake:
        to = each.to(fake.url)
        for command in COMMANDS:
            assert on_a_terminal(to, *command) == f"One. \n{PLAIN}\n\nThree.\n"
            assert to.run(*command).out == text


def test_texts_on_a_terminal_by_busybox(client: Client, tmp_path: Path) -> None:
    tools = link_tools(tmp_path / "tools", sed="busybox", tr="busybox")
    with Fake(hub(NOISE + b"\n")) as fake:
        assert on_a_terminal(client.having(tools).to(fake.url), "cat", "ann/story") == f"{PLAIN}\n"


def noisy(body: str, status: int = 200, **headers: str) -> bytes:
    """An answer with NOISE where it says NOISE."""
    data = answer(body, status, length=False, **headers)
    return data.replace(b"NOISE", NOISE)


def said(client: Client, sent: bytes, *command: str) -> str:
    with Fake(lambda _: sent) as fake:
        return client.to(fake.url, HUB_TOKEN=TOKEN).run(*command, stdin=b"Hi.").err


def test_messages_of_the_service(either: Client) -> None:
    refused = noisy('{"error":{"code":"x","message":"NOISE"}}', 404)
    for command in (["cat", "ann/story"], ["versions", "ann/story"], ["search", "x"]):
        assert said(either, refused, *command) == f"{PLAIN}\n"
    push = ["push", "ada/x", "-"]
    for command in (push, ["label", "ann/x", "a", "1.0.0"]):
        assert said(either, refused, *command) == f"{PLAIN}\n"
    created = noisy('{"data":{"version":"1.0.0","warnings":["NOISE","Two"]}}', 201)
    told = "standard input: warning: "
    assert said(either, created, *push) == f"{told}{PLAIN}\n{told}Two\n"


def test_where_the_service_sends_to(each: Client) -> None:
    elsewhere = noisy("", 302, Location="http://x/NOISE")
    assert PLAIN in said(each, elsewhere, "push", "ada/x", "-")


def test_words_of_curl(client: Client, tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"curl: (3) bad host " + NOISE + b"\n")
    broken = put_tool(tmp_path / "tools", "curl", f"cat {tmp_path}/words >&2; exit 3")
    done = client.having(broken).to("http://hub.example").run("cat", "ann/story")
    assert done.err == f"cannot reach http://hub.example: (3) bad host {PLAIN}\n"


def test_versions_that_are_none(each: Client) -> None:
    created = noisy('{"data":{"version":"NOISE","warnings":[]}}', 201)
    assert "is not from a hub" in said(each, created, "push", "ada/x", "-")


def test_lists_for_a_reader(client: Client, publishing: Hub) -> None:
    hub = client.to(publishing.url)
    assert on_a_terminal(hub, "search", "care") == (
        "ann/review  1.1.0\n    The review prompt\n    A careful review.\n"
    )
    assert on_a_terminal(hub, "versions", "ann/review") == (
        "1.1.0  2025-02-13  27 bytes\n    With care.\n    ann/prompts@1a2b3c4, run 812\n"
        "1.0.0  2025-02-11  17 bytes\n"
    )


# Characters in a list, and their form on the terminal: none that is invisible.
LISTED = "\x1b[31mred\x07\x7f\x9b31m \u202egnorw\u2066\u200f\U000e0041\u2028日本語"
CELL = "[31mred31m gnorw 日本語"
META = {"page": 1, "pages": 1, "total": 1, "sort": None, "tag": None, "q": "x"}
FOUND = {
    "owner": "ann", "name": "story", "title": LISTED, "description": LISTED,
    "tags": [], "latest_version": LISTED,
}  # fmt: skip
VERSION = {
    "version": LISTED, "published_at": LISTED, "size": 3, "sha256": LISTED,
    "changelog": LISTED,
}  # fmt: skip


def lists(request: Request) -> bytes:
    """A hub with one prompt of one version; not ASCII is as it is, on the wire as well."""
    if request.path.endswith("hub.json"):
        return answer('{"data":{"queries":true}}')
    data = [VERSION if "versions" in request.path else FOUND]
    return answer(json.dumps({"data": data, "meta": META}, ensure_ascii=False))


def test_lists(client: Client) -> None:
    with Fake(lists) as fake:
        hub = client.to(fake.url)
        for command in (["search", "x"], ["versions", "ann/story"]):
            shown = on_a_terminal(hub, *command)
            piped = hub.run(*command).text
            assert CELL in shown and CELL in piped
            for text in (shown, piped):
                assert text.replace("\n", "").replace("\t", "").isprintable(), text


def test_lists_that_are_none(client: Client) -> None:
    """No traceback, which would show what came."""
    nested = "[" * 100_000
    for damage in ({"size": "\x9b"}, {"size": None}, {"size": float("inf")}):
        data = json.dumps({"data": [VERSION | damage], "meta": META})
        err = said(client, answer(data), "versions", "ann/story")
        assert err.endswith("is not from a hub. Check HUB_URL\n")
    err = said(client, answer(f'{{"data":{nested}}}'), "versions", "ann/story")
    assert err.endswith("is not from a hub. Check HUB_URL\n")
