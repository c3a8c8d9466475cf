"""Lists for people end after some pages with a link to search; those for programs do not."""

import json
import re

import pytest

from builder.emit import catalogue, files
from builder.model import envelopes, routes
from builder.model.settings import Settings
from tests.support.catalogues import build_files, freshly_built, write_version

PAGES = 4


@pytest.fixture
def many(empty: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Content that makes four pages, where people get two."""
    monkeypatch.setattr(catalogue, "PAGE_SIZE", 1)
    monkeypatch.setattr(envelopes, "PAGE_SIZE", 1)
    allow_pages(monkeypatch, 2)
    for number in range(PAGES):
        publish(empty, number)
    return empty


def allow_pages(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    for module in (catalogue, files):
        monkeypatch.setattr(module, "LIST_PAGES_MAX", count)


def publish(settings: Settings, number: int) -> None:
    write_version(settings.content, "ann", f"repo-{number}", "1.0.0", "Text.", tags=["code"])


def html_pages(files: dict[str, bytes], folder: str) -> set[str]:
    return {file for file in files if re.fullmatch(rf"{folder}(/\d+)?\.html", file)}


def test_the_limit():
    assert routes.LIST_PAGES_MAX == 20


@pytest.mark.parametrize(
    ("folder", "first", "api"),
    [("top", "top.html", "repos/_"), ("tags/code/new", "tags/code/new.html", "tags/code")],
)
def test_people_get_some_pages_and_programs_all(many, folder, first, api):
    files = build_files(many)
    assert html_pages(files, folder) == {first, f"{folder}/2.html"}
    sort = folder.rpartition("/")[2]
    for number in range(1, PAGES + 1):
        page = json.loads(files[f"api/v1/{api}/{sort}/{number}.json"])
        assert page["meta"]["pages"] == PAGES
        assert len(page["data"]) == 1


def test_the_last_page_leads_to_search_and_not_on(many):
    files = build_files(many)
    first, last = files["top.html"].decode(), files["top/2.html"].decode()
    assert 'rel="next" href="/top/2"' in first
    assert 'rel="next"' not in last
    assert 'rel="prev" href="/top"' in last
    main = [html.split('<main id="main">')[1].split("</main>")[0] for html in (first, last)]
    assert ['href="/search"' in html for html in main] == [False, True]


def test_a_list_that_ends_there_of_itself_is_not_cut(many, monkeypatch):
    allow_pages(monkeypatch, PAGES)
    last = build_files(many)[f"top/{PAGES}.html"].decode()
    assert 'href="/search"' not in last.split('<main id="main">')[1].split("</main>")[0]


def test_a_list_that_grows_past_the_limit_is_cut_by_the_next_build(many, monkeypatch):
    allow_pages(monkeypatch, PAGES)
    build_files(many)
    publish(many, PAGES)
    files = build_files(many)
    assert html_pages(files, "top") == {
        "top.html", *(f"top/{number}.html" for number in range(2, PAGES + 1))
    }  # fmt: skip
    assert "api/v1/repos/_/top/5.json" in files
    assert b'rel="next"' not in files[f"top/{PAGES}.html"]
    assert files == freshly_built(many)


def test_pages_from_before_the_limit_go(many, monkeypatch):
    allow_pages(monkeypatch, PAGES)
    assert "top/4.html" in build_files(many)
    allow_pages(monkeypatch, 2)
    # A new version of the hub builds everything again, as its code has another stamp.
    build_files(many, full=True)
    files = build_files(many)
    assert html_pages(files, "top") == {"top.html", "top/2.html"}
    assert "api/v1/repos/_/top/4.json" in files
