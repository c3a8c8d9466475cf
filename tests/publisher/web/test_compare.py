"""The service compares any two versions, for all readers, in bounded time."""

import json
import re
from collections.abc import Iterator

import msgspec
import pytest
from werkzeug.test import TestResponse

from builder.model.records import StoredFile
from builder.model.service_urls import ACCOUNT_URL, is_for_readers
from builder.model.version_files import content_sha256
from builder.pipeline.build import build
from builder.render.hunks import ROWS_MAX
from builder.text.file_diff import COMPARED_BYTES_MAX
from builder.text.hidden_chars import MARKS_MAX
from publisher.web.compare import COMPARISONS_PER_MINUTE, STEPS_MAX
from tests.builder.render.test_hunks import Table
from tests.support.catalogues import (
    edit_record,
    write_label,
    write_owner,
    write_version,
    write_withdrawn,
)
from tests.support.clock import StopClock
from tests.support.hubs import Hub

URL = f"{ACCOUNT_URL}/compare/ada"
SAME_LINES = "".join(f"Line {number} stays.\n" for number in range(20))
SKILL = "---\nname: notes\ndescription: Notes.\n---\nRead the commits.\n"
HOSTILE = "</td></tr></table><script>alert(1)</script>"


def write_kinds(root: str) -> None:
    """A prompt with labels and a withdrawn version, a skill, and hostile texts."""
    write_owner(root, "ada")
    for version, text in (
        ("1.0.0", "Be kind to {{whom}}.\n"),
        ("1.1.0", "Be very kind to {{whom}}.\n"),
        ("1.2.0", "Withdrawn.\n"),
        ("2.0.0", "Be brief.\nBe {{how}}.\n"),
    ):
        write_version(root, "ada", "note", version, SAME_LINES + text, changelog=f"Now {text}More.")
    write_version(
        root, "ada", "note", "2.0.1", f"{SAME_LINES}Be brief.\nBe {{{{how}}}}.\n",
        title="Note <b>", license="MIT",
    )  # fmt: skip
    write_withdrawn(root, "ada/note", "1.2.0")
    write_label(root, "ada/note", 1, "stable", "1.1.0")
    write_label(root, "ada/note", 2, "tested", "2.0.0")
    files = {
        "mark.png": b"\0one",
        "old.sh": b"wget x\n",
        "refs/kinds.md": b"# Kinds\n",
        "tool": b"a",
    }
    write_version(root, "ada", "skill", "1.0.0", SKILL, files)
    files |= {
        "mark.png": b"\0two",
        "refs/kinds.md": b"# Sorts\n",
        "new.sh": b"curl https://x.example\n",
    }
    del files["old.sh"]
    write_version(root, "ada", "skill", "1.1.0", SKILL, files)
    hidden = "\u200bx\u202e\n" * MARKS_MAX
    for version, text, title in (("1.0.0", "Tame.\n", "x"), ("1.1.0", HOSTILE + hidden, HOSTILE)):
        write_version(root, "ada", "hostile", version, text, title=title, changelog=HOSTILE)
    for minor in range(20):
        write_version(root, "ada", "long", f"1.{minor}.0", f"{minor}\n" * 5_000)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("compare"))
    write_kinds(hub.settings.content)
    build(hub.settings, index=False)
    yield hub
    hub.close()


@pytest.fixture(autouse=True)
def _a_minute_each(shared: Hub, stop_clock: StopClock) -> None:
    """The clock stands still, so each test of limits has a hub of its own."""


def ask(hub: Hub, path: str, **options: object) -> TestResponse:
    return hub.app.test_client().get(f"{URL}/{path}", **options)


def words_of(html: str) -> str:
    """The text of a page, with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def selected(html: str) -> list[str]:
    return re.findall(r'<option value="([^"]*)" selected', html)


def test_it_shows_what_changed(shared: Hub):
    page = ask(shared, "note?from=stable&to=2.0.0")
    assert page.status_code == 200 and "Set-Cookie" not in page.headers
    assert "<title>stable to 2.0.0 · Compare versions · ada/note" in page.text
    words = words_of(page.text)
    assert "The note prompt 1.1.0 → 2.0.0 Now Be brief. From" in words
    assert "1 line removed, 2 lines added. What changes For applications major" in words
    assert "how new and required: callers must send it whom gone: callers must stop" in words
    assert "Published by ada Size 316 bytes, raw text of 1.1.0 312 bytes" in words
    assert "Versions 2.0.0 2025-03-25 Label tested 1.2.0 2025-02-15 1.1.0" in words
    rows = Table(page.text).rows
    assert rows[1] == ("gap", ["17 lines unchanged"], [])
    assert [row[0] for row in rows[-3:]] == ["removed whole", "added whole", "added whole"]
    assert "script" not in page.text.partition("<main")[2]


def test_it_marks_words_and_has_a_hidden_cell_for_the_new_side(shared: Hub):
    page = ask(shared, "note?from=1.0.0&to=1.1.0").text
    text = "Be very kind to {{whom}}.\n"
    assert Table(page).rows[-1] == ("changed", ["21", "21", "±", text, text], [" very"] * 2)
    assert '<td class="was" dir="auto">Be<ins> very</ins>' in page
    assert '<td class="to" dir="auto" aria-hidden="true">Be<ins> very</ins>' in page
    assert '<p class="soft callers">Nothing changes for callers.</p>' in page
    assert 'href="?from=1.1.0&amp;to=1.0.0">Swap</a>' in page


@pytest.mark.parametrize(
    ("query", "pair", "chosen"),
    [
        ("", "2.0.0 → 2.0.1", ["2.0.0", "2.0.1"]),
        ("?from=&to=", "2.0.0 → 2.0.1", ["2.0.0", "2.0.1"]),
        ("?from=stable&to=latest", "1.1.0 → 2.0.1", ["stable", "latest"]),
        ("?to=tested", "1.1.0 → 2.0.0", ["1.1.0", "tested"]),
        ("?from=1.0.0", "1.0.0 → 2.0.1", ["1.0.0", "2.0.1"]),
        ("?from=2.0.1&to=1.0.0", "2.0.1 → 1.0.0", ["2.0.1", "1.0.0"]),
        ("?to=1.0.0", "", ["1.0.0", "1.0.0"]),
    ],
)
def test_versions_labels_and_defaults(shared: Hub, query: str, pair: str, chosen: list[str]):
    page = ask(shared, f"note{query}")
    assert page.status_code == 200 and selected(page.text) == chosen
    assert pair in words_of(page.text)


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("from=9.9.9", 404, "This prompt has no version or label “9.9.9”. Choose one"),
        ("from=1.0.0&to=__proto__", 404, "This prompt has no version or label “__proto__”."),
        ("to=<script>", 404, "This prompt has no such version or label. Choose one"),
        (f"to={'9' * 90}", 404, f"This prompt has no version or label “{'9' * 80}”."),
        ("from=1.2.0&to=1.0.0", 410, "Version 1.2.0 has been withdrawn, so its text cannot"),
        ("from=2.0.0&to=2.0.0", 200, "Both sides are 2.0.0. Choose another version on one"),
        ("from=stable&to=1.1.0", 200, "stable and 1.1.0 are the same version, 1.1.0. Choose"),
    ],
)
def test_what_cannot_be_compared(shared: Hub, query: str, status: int, sentence: str):
    page = ask(shared, f"note?{query}")
    assert page.status_code == status and '<form id="pair"' in page.text
    assert f'<p id="told" class="told faults" role="status">{sentence}' in page.text
    assert page.text.count("aria-invalid") == (status == 404)
    assert "<table" not in page.text and "<script>" not in page.text
    assert '<option value="1.2.0"' in page.text and ">1.2.0 · withdrawn</option>" in page.text


@pytest.mark.parametrize("path", ["none", "..", "no%2fte", "n" * 90])
def test_what_is_not_there(shared: Hub, path: str):
    assert ask(shared, path).status_code == 404


def test_only_one_version_is_left(hub: Hub):
    write_owner(hub.settings.content, "ada")
    for version in ("1.0.0", "1.0.1"):
        write_version(hub.settings.content, "ada", "note", version, "Say it.\n")
    write_withdrawn(hub.settings.content, "ada/note", "1.0.1")
    build(hub.settings, index=False)
    assert "Both sides are 1.0.0." in ask(hub, "note").text
    write_withdrawn(hub.settings.content, "ada/note", "1.0.0")
    build(hub.settings, index=False)
    page = ask(hub, "note", headers={"Accept": "text/html"})
    assert page.status_code == 410 and "was withdrawn</h1>" in page.text


def test_files_and_what_they_can_do(shared: Hub):
    page = ask(shared, "skill").text
    words = words_of(page)
    assert "The text is unchanged. 2 files changed, 1 file added, 1 file removed." in words
    assert "curl new new.sh:1 wget gone old.sh:1" in words and "x.example new" in words
    assert "mark.png changed Not text, so there are no lines to compare. 1.0.0 4 bytes" in words
    assert "new.sh added · executable" in words and "old.sh removed" in words
    assert "− # Kinds 1 + # Sorts" in words and "tool" not in words


def test_metadata_alone(shared: Hub):
    page = ask(shared, "note?from=2.0.0&to=2.0.1").text
    assert "The text is unchanged; only its metadata differs." in page
    assert "Note &lt;b&gt;" in page and "<dt>Licence</dt><dd><p></p><p>MIT</p></dd>" in page
    assert "<dt>Published by</dt><dd><p>ada</p></dd>" in page and 'id="words"' not in page


def test_an_executable_bit_alone(hub: Hub):
    root, file = hub.settings.content, {"a.sh": b"git log\n"}
    write_owner(root, "ada")
    write_version(root, "ada", "x", "1.0.0", SKILL, file)
    record = write_version(root, "ada", "x", "1.1.0", SKILL, file)
    fields = json.loads(record.read_text())
    plain = StoredFile(**fields["files"][0] | {"executable": False})
    sha256 = content_sha256(fields["sha256"], [plain])
    edit_record(record, files=[msgspec.to_builtins(plain)], content_sha256=sha256)
    build(hub.settings, index=False)
    words = words_of(ask(hub, "x").text)
    assert "The text is unchanged. 1 file with another executable bit." in words
    assert "a.sh executable bit · no longer executable Only the executable bit" in words


def test_large_files_are_not_examined(hub: Hub):
    write_owner(hub.settings.content, "ada")
    for version, text in (("1.0.0", b"git log\n"), ("1.1.0", b"curl x\n")):
        files = {"a.sh": text * (COMPARED_BYTES_MAX // 14), "b.sh": text}
        write_version(hub.settings.content, "ada", "x", version, SKILL, files)
    build(hub.settings, index=False)
    page = ask(hub, "x").text
    assert "The files are too large to compare what the versions can do." in page
    assert "What it can do" not in page and "Not compared here" in page


def test_hostile_texts_are_inert_and_cut(shared: Hub):
    page = ask(shared, "hostile").text
    assert "<script" not in page.partition("<main")[2] and "&lt;script&gt;" in page
    assert page.count('class="invisible"') <= 2 * MARKS_MAX
    assert "too many hidden characters" in page
    page = ask(shared, "long?from=1.0.0&to=1.19.0").text
    assert page.count("<tr") == ROWS_MAX + 2 and "more lines changed; not shown here" in page
    assert page.count("#changes") == STEPS_MAX


def test_each_address_has_a_limit(hub: Hub, stop_clock: StopClock):
    write_kinds(hub.settings.content)
    build(hub.settings, index=False)
    statuses = [ask(hub, "note").status_code for _ in range(COMPARISONS_PER_MINUTE + 1)]
    assert statuses == [200] * COMPARISONS_PER_MINUTE + [429]
    refused = ask(hub, "note")
    assert int(refused.headers["Retry-After"]) > 0 and "Too many versions" in refused.text
    assert '<form id="pair"' not in refused.text  # by which the script knows a comparison
    other = {"REMOTE_ADDR": "192.0.2.7"}
    assert ask(hub, "note", environ_base=other).status_code == 200


def test_it_is_for_reading_alone(shared: Hub):
    client = shared.app.test_client()
    assert client.head(f"{URL}/note").status_code == 200
    assert client.post(f"{URL}/note").status_code == 405
    assert is_for_readers(f"{URL}/note")
