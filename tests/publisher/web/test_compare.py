"""The service compares any two versions, for all readers, in bounded time."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from builder.model.service_urls import ACCOUNT_URL, is_compare_url
from builder.pipeline.build import build
from builder.text.file_diff import COMPARED_BYTES_MAX
from builder.text.hidden_chars import MARKS_MAX
from publisher.web.compare import COMPARISONS_PER_MINUTE, ONLY_ONE, STEPS_MAX
from tests.builder.render.test_changes_table import HEADING, HEADING_ROW, LONGER_HEADING, Table
from tests.site.catalogue import (
    CALLED,
    CUT,
    FOLDER,
    GONE,
    HISTORY,
    LEFT,
    MARKUP,
    RELEASED,
    write_more,
)
from tests.support.catalogues import write_version
from tests.support.clock import StopClock
from tests.support.hubs import Hub

URL = f"{ACCOUNT_URL}/compare"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("compare"))
    write_more(hub.settings.content)
    for version, text in ("1.0.0", b"git log\n"), ("1.1.0", b"curl x\n"):
        files = {"a.sh": text * (COMPARED_BYTES_MAX // 14), "b.sh": text}
        write_version(hub.settings.content, "many", "large", version, "Use them.\n", files)
    for version, text in ("1.0.0", HEADING), ("1.1.0", LONGER_HEADING):
        write_version(hub.settings.content, "many", "heading", version, text)
    build(hub.settings, index=False)
    yield hub
    hub.close()


def ask(hub: Hub, path: str, **options: object) -> TestResponse:
    return hub.app.test_client().get(f"{URL}/{path}", **options)


def words_of(page: TestResponse) -> str:
    """The text of a page, with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


def test_it_shows_what_changed(shared: Hub):
    page = ask(shared, f"{RELEASED}?from=1.0.0&to=stable")
    assert page.status_code == 200 and "Set-Cookie" not in page.headers
    assert f"<title>1.0.0 to stable · Compare versions · {RELEASED}" in page.text
    words = words_of(page)
    assert "The released prompt 1.0.0 → 1.1.0 Now Be very kind to {{whom}}. From" in words
    assert (
        "1 line removed, 1 line added. Variables and parameters are as before. "
        "Text +1 −1 Unified diff In one" in words
    )
    assert "Published by many Text 1.0.0: 311 bytes, raw text of 1.0.0 1.1.0: 316 bytes" in words
    assert "Versions 1.1.0 13 Feb 2025 Label stable 1.0.0 11 Feb 2025 All" in words
    gap, *_, changed = Table(page.text).rows[1:]
    assert (
        gap == ("gap", ["17 lines unchanged"], [])
        and "<summary>17 lines unchanged</summary>" in page.text
    )
    text = "Be very kind to {{whom}}.\n"  # once more in a hidden cell for the new side
    assert changed == ("changed", ["21", "21", "±", text, text], [" very"] * 2)
    assert 'href="?from=stable&amp;to=1.0.0">Swap</a>' in page.text
    assert "For applications major range new and required" in words_of(ask(shared, CALLED))


@pytest.mark.parametrize(
    ("query", "pair"),
    [
        ("", ("2.0.0", "2.0.1")), ("?from=&to=", ("2.0.0", "2.0.1")),
        ("?from=stable&to=latest", ("stable", "latest")), ("?to=tested", ("1.1.0", "tested")),
        ("?from=1.0.0", ("1.0.0", "2.0.1")), ("?from=2.0.1&to=1.0.0", ("2.0.1", "1.0.0")),
    ],
)  # fmt: skip
def test_versions_labels_and_defaults(shared: Hub, query: str, pair: tuple[str, str]):
    page = ask(shared, RELEASED + query)
    numbers = {"stable": "1.1.0", "tested": "2.0.0", "latest": "2.0.1"}
    assert " → ".join(numbers.get(one, one) for one in pair) in words_of(page)
    assert re.findall(r'<option value="([^"]*)" selected', page.text) == [*pair]


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        (f"{RELEASED}?from=9.9.9", 404, "This prompt has no version or label “9.9.9”. Choose one"),
        (f"{RELEASED}?to=__proto__", 404, "This prompt has no version or label “__proto__”."),
        (f"{RELEASED}?to=<script>", 404, "This prompt has no such version or label. Choose one"),
        (f"{RELEASED}?to={'9' * 90}", 404, f"This prompt has no version or label “{'9' * 80}”."),
        (f"{HISTORY}?from=1.6.0", 410, "Version 1.6.0 has been withdrawn, so its text cannot"),
        (f"{RELEASED}?from=stable&to=1.1.0", 200, "Both sides are 1.1.0. Choose another version"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(shared: Hub, path: str, status: int, sentence: str):
    page = ask(shared, path)
    assert page.status_code == status and '<form id="pair"' in page.text
    assert f'<p id="told" class="told faults" role="status">{sentence}' in page.text
    assert page.text.count("aria-invalid") == (status != 200) and "Swap" not in page.text
    assert "<title>Compare versions · " in page.text
    assert "<table" not in page.text and "<script>" not in page.text
    assert "<title>Compare versions" in page.text  # nor are other words of the query in it


def test_a_heading_that_gets_words_is_one_changed_line(shared: Hub):
    (_, numbers_and_text, marked) = Table(ask(shared, "many/heading").text).rows[3]
    cells, words = HEADING_ROW
    assert (numbers_and_text, marked) == ([*cells, cells[-1]], words * 2)  # twice: side by side


def test_it_gives_the_unified_diff(shared: Hub):
    link = re.search(r'href="([^"]+)">Unified diff', ask(shared, FOLDER).text)[1]
    assert link == f"{URL}/{FOLDER}?from=1.0.0&amp;to=1.1.0&amp;diff"
    answer = shared.app.test_client().get(link.replace("&amp;", "&"))
    assert answer.content_type == "text/plain; charset=utf-8"
    published = f"api/v1/repos/{FOLDER}/versions/1.1.0.diff"
    assert answer.data == Path(shared.settings.out, published).read_bytes()


@pytest.mark.parametrize("query", ["", "?from=1.0.0&to=1.0.1", "?to=9.9.9"])
def test_one_version_has_none_to_compare_it_with(shared: Hub, query: str):
    page = ask(shared, LEFT + query)
    assert page.status_code == 200 and ONLY_ONE in page.text and "<select" not in page.text


@pytest.mark.parametrize("path", ["many/none", "many/..", "many/no%2fte", f"many/{'n' * 90}"])
def test_what_is_not_there(shared: Hub, path: str):
    program, browser = (ask(shared, path, headers={"Accept": a}) for a in ("*/*", "text/html"))
    assert program.status_code == browser.status_code == 404
    assert browser.data == Path(shared.settings.out, "404.html").read_bytes()


def test_a_withdrawn_prompt_says_why(shared: Hub):
    page = ask(shared, GONE, headers={"Accept": "text/html"})
    assert page.status_code == 410 and "was withdrawn</h1>" in page.text


def test_files_and_what_they_can_do(shared: Hub):
    words = words_of(ask(shared, FOLDER))
    assert "4 lines added. 2 files changed, 1 file added, 1 file removed." in words
    assert "curl new scripts/commits.sh:3" in words and "wget gone scripts/old.sh:2" in words
    assert "mark.png changed 1.0.0 12 bytes, SHA-256" in words
    assert "commits.sh added · executable" in words and "scripts/commits added" not in words
    words = words_of(ask(shared, "many/large"))
    assert "The files are too large to compare what the versions can do." in words
    assert "What it can do" not in words and "Not compared here" in words
    # As if nothing but the bits had changed.
    old, new = (Path(shared.settings.out, f"api/v1/repos/many/large/versions/{one}.json")
                for one in ("1.0.0", "1.1.0"))  # fmt: skip
    new.write_text(old.read_text().replace("true", "false"))
    words = words_of(ask(shared, "many/large"))
    assert "The text is unchanged. 2 files with another executable bit." in words


def test_metadata_alone(shared: Hub):
    page = ask(shared, RELEASED).text
    sentences = (
        "The text is unchanged. The metadata differs: title. "
        "Variables and parameters are as before."
    )
    assert sentences in page and 'class="sides"' not in page
    assert "<dt>Published by</dt><dd>many</dd>" in page and 'id="words"' not in page


def test_hostile_texts_are_inert_and_cut(shared: Hub):
    page = ask(shared, MARKUP).text.partition("<main")[2]
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page
    page = ask(shared, CUT).text
    assert page.count('class="invisible"') == MARKS_MAX
    assert "too many hidden characters" in page
    steps = ask(shared, f"{HISTORY}?from=1.0.0").text
    assert steps.count("#changes") == STEPS_MAX and f">{34 - STEPS_MAX} between</a>" in steps


def test_each_address_has_a_limit(shared: Hub, stop_clock: StopClock):
    one, other = ({"REMOTE_ADDR": f"192.0.2.{number}"} for number in (7, 8))
    for _ in range(COMPARISONS_PER_MINUTE):
        assert ask(shared, LEFT, environ_base=one).status_code == 200
    refused = ask(shared, LEFT, environ_base=one)
    assert refused.status_code == 429 and int(refused.headers["Retry-After"]) > 0
    assert "Too many versions were compared" in refused.text
    assert 'id="told"' not in refused.text  # by which the script knows a comparison
    assert ask(shared, LEFT, environ_base=other).status_code == 200


def test_it_is_for_reading_alone(shared: Hub):
    client = shared.app.test_client()
    assert client.head(f"{URL}/{LEFT}").status_code == 200
    assert client.post(f"{URL}/{LEFT}").status_code == 405
    assert is_compare_url(f"{URL}/{LEFT}")
