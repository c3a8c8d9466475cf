"""A pushed text is pulled byte by byte, and files that are no prompt are not sent."""

import hashlib
import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.model.records import CONTENT_BYTES_MAX
from tests.client.conftest import Hub
from tests.client.fake import Fake, answer, error
from tests.client.shells import AWKS, TOKEN, Client, Done

TEXTS = {
    "no final newline": b"One.",
    "newlines at the end": b"One.\n\n\n",
    "CRLF": b"One.\r\nTwo.\r\rThree.\n\r\n",
    "tabs": b"\tOne.\t\n\t",
    "backslashes": b"\\ \\\\ \\n \\u0041 \\\n\\",
    "quotes": b'"\'`""',
    "JSON": b'{"message":"no","version":"9.9.9","sha256":"0"}',
    "percents": b"%s %d %% %c &amp; $HOME $(id) `id` !! *",
    "controls": bytes(range(1, 32)) + b"\x7f",
    "C1": "a\x80\x9b\x9fb".encode(),
    "a BOM": b"\xef\xbb\xbfOne.\n",
    "edges": "\u007f\u0080\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff".encode(),
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 e\u0301 日本語 עברית \u2028\u2029".encode(),
}
# All that RFC 3629 rules out.
NOT_UTF8 = (
    b"ab\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xc3\xc3\xa9", b"\xe0\x9f\xbf",
    b"\xe2\x82", b"\xe2\x82a", b"\xe2\xc3\xa9\x82\xac", b"\xed\xa0\x80", b"\xed\xbf\xbf",
    b"\xf0\x8f\xbf\xbf", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff\xfe",
)  # fmt: skip


_numbers = itertools.count()


def there_and_back(client: Client, hub: Hub, content: bytes) -> bytes:
    to = client.to(hub.url, HUB_TOKEN=hub.token)
    repo = f"ada/text-{next(_numbers)}"
    done = to.run("push", repo, "-", stdin=content)
    assert done == Done(0, f"{repo} 1.0.0\n".encode(), done.err), done.err
    assert to.run("pull", repo, "--force").status == 0
    return (to.work / "PROMPT.md").read_bytes()


def test_a_text_with_everything(pair: Client, publishing: Hub) -> None:
    content = b"\n".join(TEXTS.values())
    assert there_and_back(pair, publishing, content) == content


@pytest.mark.parametrize("name", ["no final newline", "newlines at the end", "a BOM", "CRLF"])
def test_what_begins_and_ends_a_text(name: str, client: Client, publishing: Hub) -> None:
    assert there_and_back(client, publishing, TEXTS[name]) == TEXTS[name]


def the_largest(piece: str) -> bytes:
    unit = piece.encode()
    content = unit * (CONTENT_BYTES_MAX // len(unit))
    return content + b"x" * (CONTENT_BYTES_MAX - len(content))


def test_the_largest(awk: Client, publishing: Hub) -> None:
    content = the_largest("a b\n\x01👩")
    assert there_and_back(awk, publishing, content) == content


@pytest.mark.parametrize("piece", ["x", "\x01"])
def test_the_largest_line_and_the_largest_request(
    piece: str, client: Client, publishing: Hub
) -> None:
    content = the_largest(piece)
    assert there_and_back(client, publishing, content) == content


def test_the_request_is_json(pair: Client) -> None:
    """By a strict parser, not only the hub's."""
    content = b"\n".join(TEXTS.values())
    changelog = 'It\'s "new"\\\n\t\x01 👩 é'
    created = answer('{"data":{"owner":"ada","name":"x","version":"1.0.0","warnings":[]}}', 201)
    with Fake(lambda _: created) as fake:
        done = pair.to(fake.url, HUB_TOKEN=TOKEN).run(
            "push", "ada/x", "-", changelog, "auto", stdin=content
        )
    assert done.out == b"ada/x 1.0.0\n", done.err
    (request,) = fake.requests
    assert json.loads(request.body) == {
        "content": content.decode(), "changelog": changelog, "bump": "auto",
    }  # fmt: skip
    assert (request.method, request.path) == ("POST", "/api/v1/repos/ada/x/versions")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == f"hub/1.0.0 (+{fake.url})"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"


def refusals(client: Client, content: bytes, *more: str) -> str:
    """Why it is not sent."""
    with Fake(lambda _: error(500)) as fake:
        to = client.to(fake.url, HUB_TOKEN=TOKEN)
        (to.work / "text").write_bytes(content)
        done = to.run("push", "ada/x", "text", *more)
    assert (done.status, done.out, fake.requests) == (5, b"", []), done.err
    return done.err


def test_no_prompts(awk: Client) -> None:
    assert refusals(awk, b"") == "text is empty. A prompt needs at least one character\n"
    assert refusals(awk, b"a\0b") == "text has a NUL character. Remove it\n"
    assert refusals(awk, b"x" * (CONTENT_BYTES_MAX + 1)) == (
        f"text has {CONTENT_BYTES_MAX + 1} bytes. A prompt has at most {CONTENT_BYTES_MAX}\n"
    )


@pytest.mark.parametrize("content", NOT_UTF8, ids=repr)
def test_what_is_not_utf_8(content: bytes, client: Client) -> None:
    with pytest.raises(UnicodeDecodeError):
        content.decode()
    for around in (b"", b"x", "é\n".encode()):
        err = refusals(client, around + content + around)
        assert err == "text is not UTF-8. Save it as UTF-8\n"


def test_a_changelog_that_is_not_utf_8(client: Client) -> None:
    assert "the changelog is not UTF-8." in refusals(client, b"x", "a\udcff")


@settings(max_examples=12)
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.sampled_from([text.decode() for text in TEXTS.values()]),
        ),
        min_size=1,
    ).map("".join).filter(str.strip),
    st.sampled_from(AWKS),
)  # fmt: skip
def test_any_text(
    publishing: Hub, tools: Path, awks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory,
    text: str, awk: str,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("any")
    client = Client(folder, tools=(str(awks[awk]), str(tools))).make_folders()
    assert there_and_back(client, publishing, text.encode()) == text.encode()


@pytest.mark.parametrize("message", [
    'Say "please" \\ to C:\\new, line\\nend.', "Ünïcödé 👩 日本語", "A\ttab, a\nnewline.",
    "x" * 5000,
])  # fmt: skip
def test_the_message_of_the_service(message: str, awk: Client) -> None:
    with Fake(lambda _: error(422, message)) as fake:
        done = awk.to(fake.url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
    assert done.status == 5
    # json.dumps writes non-ASCII characters as \u escapes, which are shown as question marks.
    expected = message.replace("\t", " ").replace("\n", " ")
    if expected.isascii():
        assert done.err == f"standard input: error: {expected}\n"
    else:
        assert "?" in done.err and done.err.isascii()


def test_warnings_of_a_publication(awk: Client) -> None:
    warnings = ['Key "a" is \\ left out.', "Another, too."]
    data = {"owner": "ada", "version": "1.0.0", "warnings": warnings, "serial": 1}
    created = answer(json.dumps({"data": data}, separators=(",", ":")), 201)
    with Fake(lambda _: created) as fake:
        done = awk.to(fake.url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
    told = "".join(f"standard input: warning: {warning}\n" for warning in warnings)
    assert done.err == told
    assert done.out == b"ada/x 1.0.0\n"


def test_keys_in_texts_are_no_keys(awk: Client) -> None:
    """A prompt about a hub's JSON does not confuse the client."""
    noise = random.Random(7).choices(TEXTS["JSON"].decode() + '\\",:{}[]', k=2000)
    content = TEXTS["JSON"] + b'\n,"sha256":"1","latest_version":"2"' + "".join(noise).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    data = {
        "owner": "ann", "name": "story", "title": TEXTS["JSON"].decode(),
        "latest_version": "1.2.3", "content": content.decode(),
        "variables": [{"name": "sha256", "default": '"sha256":"3"'}],
        "parameters": {"sha256": "4", "latest_version": "5", "size": 6},
        "sha256": sha256, "size": len(content), "changelog": ',"sha256":"7"',
    }  # fmt: skip
    record = json.dumps({"data": data}, ensure_ascii=False, separators=(",", ":"))
    with Fake(lambda asked: answer(record if ".json" in asked.path else content)) as fake:
        done = awk.to(fake.url).run("cat", "ann/story")
    assert done.out == content, done.err
    assert fake.requests[-1].path == "/api/v1/repos/ann/story/versions/1.2.3.txt"
