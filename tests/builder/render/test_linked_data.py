"""Data of pages for search engines and link previews: the macro ``described``, and JSON-LD."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder.model.links import Links
from builder.model.settings import Settings
from builder.render import linked_data
from builder.render.pages import SHORTENED_CHARS, Pages
from builder.text.one_line import one_line
from tests.builder.render.test_feeds import hostile, make_repo
from tests.support.catalogues import BASE_URL, build_files, moment, settings_in, write_version

TEMPLATE = '{% from "meta.html" import described %}{{ described(**values) }}'
DATA_TYPE = "application/ld+json"


class Head(HTMLParser):
    """The meta, link and data elements of a page, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.meta: dict[str, str] = {}
        self.links: list[dict[str, str]] = []
        self.data: list[Any] = []
        self.tags: list[str] = []
        self.is_in_data = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.is_in_data = tag == "script" and values.get("type") == DATA_TYPE
        if tag == "meta" and "content" in values:
            key = values.get("name") or values.get("property") or values.get("http-equiv")
            assert key not in self.meta
            self.meta[key] = values["content"]
        elif tag == "link":
            self.links.append(values)

    def handle_data(self, data: str) -> None:
        if self.is_in_data:
            self.data.append(json.loads(data))

    def handle_endtag(self, tag: str) -> None:
        self.is_in_data = False

    def hrefs(self, rel: str) -> list[str]:
        return [link["href"] for link in self.links if link["rel"] == rel]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """The pages of a site, and two more: one of each macro."""
    folder = tmp_path_factory.mktemp("templates")
    (folder / "head.html").write_text(TEMPLATE)
    (folder / "plain.html").write_text("{% extends 'base.html' %}")
    return Pages(Settings(base_url=BASE_URL, site_name="A <Hub>"), str(folder))


def head_of(pages: Pages, **values: Any) -> Head:
    values = {"title": "A title", "description": "Words.", "url": f"{BASE_URL}/a"} | values
    return Head(pages.render("head.html", values=values).decode())


def test_every_page_names_its_site(pages):
    head = Head(pages.render("plain.html").decode())
    assert head.meta["og:site_name"] == "A <Hub>"
    assert head.meta["twitter:card"] == "summary_large_image"
    assert head.meta["og:image"] == f"{BASE_URL}/assets/picture.png"


def test_a_page_is_described(pages):
    head = head_of(pages, kind="article", feeds=[("New & more", f"{BASE_URL}/feed.xml")])
    assert head.meta == {
        "description": "Words.", "og:description": "Words.", "og:title": "A title",
        "og:type": "article", "og:url": f"{BASE_URL}/a",
    }  # fmt: skip
    assert head.hrefs("canonical") == [f"{BASE_URL}/a"]
    (feed,) = [link for link in head.links if link["rel"] == "alternate"]
    assert feed == {
        "rel": "alternate", "type": "application/atom+xml", "title": "New & more",
        "href": f"{BASE_URL}/feed.xml",
    }  # fmt: skip
    assert head.data == []


def test_what_is_not_known_is_not_said(pages):
    head = head_of(pages, description=" \n\x00")
    assert not {"description", "og:description"} & head.meta.keys()
    assert head.meta["og:type"] == "website"
    assert head.hrefs("alternate") == []


def test_a_long_description_is_cut(pages):
    cut = head_of(pages, description="a word " * 300).meta["description"]
    assert len(cut) <= SHORTENED_CHARS and cut.endswith("…")


@given(title=hostile, description=hostile)
@example(title="</script><script>alert(1)</script>", description="<!--<script>\u2028]]>&lt;")
def test_hostile_text_stays_text(pages, title, description):
    repo = make_repo(title, description)
    repo.license = description or None
    data = linked_data.creative_work(repo, Links(BASE_URL))
    head = head_of(pages, title=title, description=description, feeds=[(title, "x")], data=data)
    assert set(head.tags) == {"meta", "link", "script"} and head.tags.count("script") == 1
    assert head.meta["og:title"] == one_line(title, SHORTENED_CHARS)
    assert head.meta.get("description", "") == one_line(description, SHORTENED_CHARS)
    assert head.data == [data]


@given(st.dictionaries(hostile, hostile, max_size=3))
def test_a_data_block_is_json_and_has_no_character_that_ends_it(value):
    block = linked_data.data_block(value)
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == value


def test_a_repo_page_says_what_the_repo_is(empty):
    record = {"tags": ["code"], "license": "MIT", "title": "A </script> title"}
    write_version(empty.content, "ann", "x", "1.0.0", "One.", published_at=moment(0))
    path = write_version(empty.content, "ann", "x", "1.1.0", "Two.", description="Says.", **record)
    site = build_files(empty)
    head = Head(site["ann/x.html"].decode())
    assert head.data == [
        {
            "@context": "https://schema.org",
            "@type": "CreativeWork",
            "name": "A </script> title",
            "description": "Says.",
            "url": f"{BASE_URL}/ann/x",
            "version": "1.1.0",
            "dateCreated": moment(0),
            "dateModified": moment(1050),
            "keywords": ["code"],
            "author": {"@type": "Person", "name": "ann", "url": f"{BASE_URL}/ann"},
            "isAccessibleForFree": True,
            "encoding": {
                "@type": "MediaObject",
                "contentUrl": f"{BASE_URL}/api/v1/repos/ann/x/raw.txt",
                "encodingFormat": "text/plain",
                "sha256": json.loads(path.read_text())["sha256"],
            },
            "license": {"@type": "CreativeWork", "name": "MIT"},
        }
    ]
    assert head.hrefs("canonical") == [f"{BASE_URL}/ann/x"]
    assert head.hrefs("alternate") == [f"{BASE_URL}/ann/x/feed.xml"]


def test_the_front_page_says_how_to_search(tmp_path):
    settings = settings_in(tmp_path, "https://example.org/p", site_name="Ours")
    (site,) = Head(build_files(settings)["index.html"].decode()).data
    assert (site["@type"], site["name"], site["url"]) == (
        "WebSite",
        "Ours",
        "https://example.org/p/",
    )
    action = site["potentialAction"]
    assert action["@type"] == "SearchAction"
    assert action["target"]["urlTemplate"] == "https://example.org/p/search?q={search_term_string}"
    assert action["query-input"] == "required name=search_term_string"


def test_every_page_has_one_canonical_link_to_itself(small):
    site = build_files(small)
    for file, data in site.items():
        if file.endswith(".html") and file not in ("404.html", "503.html"):
            head = Head(data.decode())
            (url,) = head.hrefs("canonical")
            path = url.removeprefix(BASE_URL).strip("/")
            assert file in (f"{path}.html", f"{path}/index.html".lstrip("/")), file
            assert head.meta["og:url"] == url
            for feed in head.hrefs("alternate"):
                assert feed.removeprefix(f"{BASE_URL}/") in site
