"""`hub check`, and `hub push` with a check, publish nothing and name each file and line. No answer
makes them wait without end, or breaks the summary.
"""

import itertools
import json
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.client.conftest import Hub
from tests.client.fake import Answer, Fake, Request, Reset, Stream, answer, error
from tests.client.shells import Client
from tests.client.test_limits import BUFFERED_BYTES_MAX, limited

FOLDER = {
    "prompts/broken.md": b"---\ntitle: [x\n---\nHi.\n",
    "prompts/empty.md": b"",
    "prompts/latin.md": b"caf\xe9\n",
    "prompts/same.md": b"Review {{code}}.\n",
    "prompts/sub/below.md": b"Hi.\n",
    "prompts/tone.md": b"---\nnonsense: 1\n---\nReview {{code}} in the tone {{tone}}.\n",
    "prompts/Upper.md": b"Hi.\n",
    "prompts/young.md": b"Hi.\n",
}
NOT_NAMED = "not the file of a prompt. Call it NAME.md"
FILES_IN_A_WINDOW = 96


def written(client: Client, files: dict[str, bytes]) -> Client:
    for name, text in files.items():
        path = client.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return client


def checked(**values: Any) -> bytes:
    """An answer of the hub to a check."""
    data = {
        "owner": "ada", "name": "x", "version": "2.0.0", "previous_version": "1.2.0",
        "unchanged": False, "bump": "major", "reasons": ["tone is a new required variable."],
        "labels": [], "warnings": [], "diff_size": 0, "diff": None,
    }  # fmt: skip
    text = json.dumps({"data": data | values}, ensure_ascii=False, separators=(",", ":"))
    return answer(text)


def test_a_folder(each: Client, publishing: Hub) -> None:
    hub = written(each.to(publishing.url, HUB_OWNER="ada"), FOLDER)
    for name in ("same", "tone"):
        publish = hub.to(publishing.url, HUB_TOKEN=publishing.token)
        assert publish.run("push", f"ada/{name}", "prompts/same.md").status == 0
    done = hub.run("check", "prompts")
    assert done.status == 5
    assert done.text.splitlines() == [
        "ada/tone 1.0.0 → 2.0.0 (major: tone is a new required variable)",
        "ada/young 1.0.0 (new)",
        "1 unchanged",
    ]
    said = {line.split(": ")[0]: line for line in done.err.splitlines()}
    assert [*said] == [
        "prompts/Upper.md", "prompts/broken.md:2", "prompts/empty.md", "prompts/latin.md",
        "prompts/sub/below.md", "prompts/tone.md",
    ]  # fmt: skip
    assert f"error: {NOT_NAMED}" in said["prompts/Upper.md"]
    assert f"warning: {NOT_NAMED}" in said["prompts/sub/below.md"]
    assert "error: the file is empty" in said["prompts/empty.md"]
    assert "error: the file is not UTF-8" in said["prompts/latin.md"]
    assert "error: The front matter cannot be read" in said["prompts/broken.md:2"]
    assert "warning: Front matter: Ignored unknown" in said["prompts/tone.md"]
    assert publishing.server.get("/api/v1/repos/ada/young").status_code == 404


@pytest.mark.parametrize(
    ("words", "owner", "status", "told"),
    [
        (["ada/new-one", "prompts/young.md"], "", 0, "ada/new-one 1.0.0 (new)"),
        (["prompts/young.md", "prompts/tone.md"], "ada", 0, "ada/young 1.0.0 (new)"),
        (["prompts/tone.md", "--strict"], "ada", 5, "Ignored unknown"),
        (["prompts/young.md"], "", 2, "set HUB_OWNER"),
        (["prompts/none.md"], "ada", 5, "'prompts/none.md' is not a file"),
        (["."], "ada", 0, "prompts/broken.md: warning: not the file of a prompt"),
        (["nothing"], "ada", 2, "no file in 'nothing'"),
        (["nowhere"], "ada", 5, "'nowhere' is not a file"),
        (["con/x", "prompts/young.md"], "", 5, "prompts/young.md: error: "),
    ],
)
def test_words(
    words: list[str], owner: str, status: int, told: str, client: Client, publishing: Hub
) -> None:
    hub = written(client.to(publishing.url, HUB_OWNER=owner), FOLDER)
    (hub.work / "nothing").mkdir()
    done = hub.run("check", *words)
    assert done.status == status and told in done.text + done.err, done


def test_pushes(client: Client, publishing: Hub) -> None:
    hub = written(client.to(publishing.url, HUB_TOKEN=publishing.token), FOLDER)
    repo = "ada/push-checked"
    push = ("push", repo)
    assert hub.run(*push, "prompts/same.md", "--label", "staging", "--label=eu").text == (
        f"{repo} 1.0.0\n{repo}@staging 1.0.0\n{repo}@eu 1.0.0\n"
    )
    tone = "prompts/tone.md"
    done = hub.run("check", repo, tone)
    major = "major: tone is a new required variable"
    assert (done.status, done.text) == (0, f"{repo} 1.0.0 → 2.0.0 ({major})\n")
    text = FOLDER[tone]
    done = hub.run(*push, "-", "", "auto", "--strict", stdin=text)
    assert done.status == 5 and done.out == b""
    assert done.err.startswith("standard input: warning: ")
    assert hub.run(*push, tone, "--label", "latest").status == 2
    assert hub.run(*push, tone, "", "auto").text == f"{repo} 2.0.0\n"
    assert "standard input:2: error: The front" in (
        hub.run(*push, "-", stdin=FOLDER["prompts/broken.md"]).err
    )


def test_markdown_shows_any_text(awk: Client) -> None:
    told = "Ignored <script>: `|*_x_* [a](b) | @ada &amp; ![x](y)"
    page = checked(warnings=[told])
    with Fake(lambda _: page) as fake:
        done = written(awk.to(fake.url, HUB_OWNER="ada"), {"x.md": b"Hi."}).run(
            "check", "x.md", "--markdown"
        )
    assert done.status == 0
    tokens = MarkdownIt("commonmark").enable("table").parse(done.text)
    inner = [one for token in tokens for one in token.children or []]
    tags = {one.content for one in [*tokens, *inner] if one.type.startswith("html")}
    assert tags == {"<code>", "</code>"}
    assert not [
        one for one in inner if one.type in ("image", "link_open", "em_open", "code_inline")
    ]
    cells = [
        "".join(one.content for one in token.children if one.type.startswith("text"))
        for token in tokens
        if token.type == "inline"
    ]
    assert told in cells and "major: tone is a new required variable" in cells


def test_more_files_than_a_minute_allows_come_through(client: Client) -> None:
    """Each wait of the client begins a new minute of the hub."""
    taken: list[int] = []

    def limit(_: Request) -> Answer:
        window = len(client.sleeps)
        if taken.count(window) >= FILES_IN_A_WINDOW:
            return error(429, Retry_After="57")
        taken.append(window)
        return checked(previous_version=None)

    files = {f"p/x{number}.md": b"Hi." for number in range(120)}
    with Fake(limit) as fake:
        done = written(client.to(fake.url, HUB_OWNER="ada"), files).run("check", "p")
    assert done.status == 0 and done.text.splitlines() == [
        f"ada/{name[2:-3]} 2.0.0 (new)" for name in sorted(files)
    ]
    assert client.sleeps == ["57"]
    assert done.err == "waiting 57 s before trying again, as the server asks\n"


ENDLESS = Stream(itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n{"], itertools.repeat(b" " * 65536)))


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (ENDLESS, 6),
        (Reset(), 6),
        (answer("<!doctype html>"), 6),
        (answer('{"data":{}}'), 6),
        (checked(version="1.0"), 6),
        (checked(previous_version="1.0.0</summary>![x](y)"), 6),
        (checked(version="1.0.0\t\x1b[31m"), 6),
        (error(401), 4),
        (error(404), 3),
        (error(409), 5),
        (error(503), 6),
        (error(429, Retry_After="99999"), 7),
    ],
)  # fmt: skip
def test_answers_that_are_none(said: Answer, status: int, client: Client, released: str) -> None:
    small = limited(client, released, answer_bytes_max=100_000)
    files = {f"p/x{number}.md": b"Hi." for number in range(3)}
    with Fake(lambda _: said) as fake:
        done = written(small.to(fake.url, HUB_OWNER="ada"), files).run("check", "p")
        assert (done.status, done.out) == (status, b""), done.err
        assert done.err and fake.sent_bytes < 4 * BUFFERED_BYTES_MAX
    assert done.err.startswith("p/x0.md: ") or status in (5, 6)


def test_the_rights_of_a_token_are_checked(each: Client, publishing: Hub) -> None:
    hub = written(each.to(publishing.url, HUB_OWNER="bob"), {"x.md": b"Hi."})
    assert hub.run("check", "x.md").status == 0
    done = hub.to(publishing.url, HUB_OWNER="bob", HUB_TOKEN=publishing.token).run("check", "x.md")
    assert done.status == 4 and done.err.startswith("x.md: "), done


def test_links_and_folders_are_not_read(client: Client, publishing: Hub) -> None:
    hub = written(
        client.to(publishing.url, HUB_OWNER="ada"), {"secret": b"S", "p/a.md/b.md": b"Hi."}
    )
    (hub.work / "p/link.md").symlink_to(hub.work / "secret")
    done = hub.run("check", "p")
    assert done.status == 5 and "p/link.md: error: a symbolic link" in done.err
    assert "p/a.md: " not in done.err and done.out == b""


def test_control_characters_are_not_printed(either: Client) -> None:
    page = checked(warnings=["a\x1b[31m\u202e\nb"], reasons=["c\x9b\x07d."])
    with Fake(lambda _: page) as fake:
        hub = written(either.to(fake.url, HUB_OWNER="ada"), {"x.md": b"Hi."})
        done = hub.run("check", "x.md")
        on_github = hub.to(fake.url, HUB_OWNER="ada", GITHUB_ACTIONS="true").run("check", "x.md")
    assert done.err.startswith("x.md: warning: a") and done.err.count("\n") == 1
    assert on_github.err.startswith("::warning file=x.md,line=1::x.md: warning: a")
    for text in (done.text, done.err, on_github.err):
        assert not any(char in text for char in "\x1b\x07\x9b\u202e")
