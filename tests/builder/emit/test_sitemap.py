"""The sitemap, by the rules of sitemaps.org: what is in it, and how it is cut into parts."""

import os
import re
import xml.etree.ElementTree as ET

import pytest

from builder.emit import catalogue
from builder.model import names
from builder.model.matching import match_url
from tests.support.catalogues import (
    BASE_URL,
    build_files,
    read_tree,
    settings_in,
    write_owner,
    write_small_catalogue,
    write_version,
)

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def read(data: bytes, root_tag: str, element: str) -> dict[str, str | None]:
    """The URLs of a sitemap or an index, with the times of their last change."""
    assert data.startswith(b'<?xml version="1.0" encoding="utf-8"?>\n')
    root = ET.fromstring(data)
    assert root.tag == NAMESPACE + root_tag
    urls = {}
    for child in root:
        assert child.tag == NAMESPACE + element
        assert [part.tag.removeprefix(NAMESPACE) for part in child] in (["loc"], ["loc", "lastmod"])
        url, time = child.findtext(f"{NAMESPACE}loc"), child.findtext(f"{NAMESPACE}lastmod")
        assert url not in urls and len(url) < 2048 and url.isascii()
        assert time is None or TIME.fullmatch(time)
        urls[url] = time
    return urls


def read_parts(site: dict[str, bytes], base_url: str = BASE_URL) -> list[dict[str, str | None]]:
    index = read(site["sitemap.xml"], "sitemapindex", "sitemap")
    parts = []
    for number, (url, time) in enumerate(index.items(), 1):
        file = url.removeprefix(f"{base_url}/")
        assert match_url(f"/{file}").params == {"page": str(number)}
        assert len(site[file]) <= catalogue.PART_BYTES_MAX
        part = read(site[file], "urlset", "url")
        assert time == max((time for time in part.values() if time), default=None)
        parts.append(part)
    part_files = {file for file in site if re.search(r"sitemap.\d+\.xml$", file)}
    assert part_files == {url.removeprefix(f"{base_url}/") for url in index}
    return parts


@pytest.mark.parametrize("base_url", ["https://hub.example", "https://example.org/deep/path"])
def test_every_page_that_counts_is_there_and_exists(tmp_path, base_url):
    settings = settings_in(tmp_path, base_url)
    write_small_catalogue(settings.content)
    site = build_files(settings)
    (part,) = read_parts(site, base_url)
    paths = [url.removeprefix(base_url) for url in part]
    assert paths == [
        "/", "/connect", "/docs", "/tags", "/top", "/trending", "/new",
        "/tags/careful", "/tags/code",
        "/ann", "/ann/review", "/ann/story", "/bob", "/bob/sql",
    ]  # fmt: skip
    for path in paths:
        assert match_url(path).file in site


def test_times_of_any_year_are_written_in_full(empty):
    write_version(empty.content, "ann", "old", "1.0.0", "x", published_at="0800-02-03T04:05:06Z")
    write_version(empty.content, "ann", "far", "1.0.0", "x", published_at="9999-12-31T23:59:59Z")
    (part,) = read_parts(build_files(empty))
    assert part[f"{BASE_URL}/ann/old"] == "0800-02-03T04:05:06Z"
    assert part[f"{BASE_URL}/ann/far"] == part[f"{BASE_URL}/ann"] == "9999-12-31T23:59:59Z"


def test_an_owner_without_repos_is_not_worth_a_visit(empty):
    write_owner(empty.content, "zoe")
    (part,) = read_parts(build_files(empty))
    assert f"{BASE_URL}/zoe" not in part
    assert f"{BASE_URL}/" in part


def test_names_that_begin_alike_stay_apart(empty):
    for owner in ("a", "a-b", "a1", "ab"):
        for name in ("x", "x-y"):
            write_version(empty.content, owner, name, "1.0.0", "x")
    (part,) = read_parts(build_files(empty))
    repos = [url.removeprefix(f"{BASE_URL}/") for url, time in part.items() if time]
    assert repos == [
        "a-b", "a-b/x", "a-b/x-y", "a", "a/x", "a/x-y", "a1", "a1/x", "a1/x-y",
        "ab", "ab/x", "ab/x-y",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 7, 13, 14, 15])
def test_it_is_cut_into_parts_that_hold_no_more_than_allowed(small, monkeypatch, size):
    (whole,) = read_parts(build_files(small))
    monkeypatch.setattr(catalogue, "URLS_PER_PART_MAX", size)
    parts = read_parts(build_files(small, full=True))
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert 1 <= len(parts[-1]) <= size
    assert [item for part in parts for item in part.items()] == [*whole.items()]


def test_a_part_in_which_nothing_has_changed_is_left_alone(small, monkeypatch):
    monkeypatch.setattr(catalogue, "URLS_PER_PART_MAX", 3)
    before = build_files(small)
    times = modification_times(small.out)
    write_version(small.content, "bob", "sql", "1.0.1", "Write it.")
    after = build_files(small)
    changed = {f for f in after if "sitemap" in f and after[f] != before[f]}
    touched = {f for f, time in modification_times(small.out).items() if time != times[f]}
    assert len(changed) == 2 and "sitemap.xml" in changed  # the index, and one of five parts
    assert touched == changed


def modification_times(out: str) -> dict[str, int]:
    return {f: os.stat(f"{out}/{f}").st_mtime_ns for f in read_tree(out) if "sitemap" in f}


@pytest.mark.parametrize("base_url", ["https://a.example", f"https://a.example/{'x' * 1_500}"])
def test_a_part_keeps_below_the_limit_of_bytes(tmp_path, monkeypatch, base_url):
    assert catalogue.urls_per_part("https://prompts.example.org") == 50_000
    monkeypatch.setattr(catalogue, "PART_BYTES_MAX", 20_000)
    settings = settings_in(tmp_path, base_url)
    for number in range(120):
        name = f"{number:03}".ljust(names.REPO_CHARS_MAX, "n")
        write_version(settings.content, "o" * names.OWNER_CHARS_MAX, name, "1.0.0", "x")
    assert len(read_parts(build_files(settings), base_url)) > 1
