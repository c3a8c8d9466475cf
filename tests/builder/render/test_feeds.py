"""The Atom feeds: RFC 4287's rules, what they hold, and text that would break them."""

import xml.etree.ElementTree as ET
from datetime import datetime
from urllib.parse import urlsplit

import feedparser
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from builder.model import answers
from builder.render import feeds
from tests.support.catalogues import (
    BASE_URL,
    build_files,
    moment,
    settings_in,
    write_owner,
    write_version,
)

ATOM = "{http://www.w3.org/2005/Atom}"
FEED_CHILDREN = {"id", "title", "subtitle", "updated", "author", "link", "entry"}
ENTRY_CHILDREN = {
    "id", "title", "published", "updated", "author", "link", "category", "summary",
}  # fmt: skip


def check(data: bytes) -> ET.Element:
    """Compare a feed with the requirements of RFC 4287; returns its root."""
    read = feedparser.parse(
        data, response_headers={"content-type": "application/atom+xml; charset=utf-8"}
    )
    assert not read.bozo, read.get("bozo_exception")
    assert read.version == "atom10"
    root = ET.fromstring(data)
    assert root.tag == f"{ATOM}feed"
    assert {child.tag.removeprefix(ATOM) for child in root} <= FEED_CHILDREN
    check_common(root)
    (own,) = links(root, "self")
    assert own.get("type") == "application/atom+xml"
    assert own.get("href") == root.findtext(f"{ATOM}id")
    entries = root.findall(f"{ATOM}entry")
    assert len(read.entries) == len(entries) <= feeds.ENTRIES_MAX
    for entry in entries:
        assert {child.tag.removeprefix(ATOM) for child in entry} <= ENTRY_CHILDREN
        check_common(entry)
        # A reader shows nothing else of an entry without content.
        assert entry.findtext(f"{ATOM}summary").strip()
        assert entry.find(f"{ATOM}author") is not None or root.find(f"{ATOM}author") is not None
    ids = [element.text for element in root.iter(f"{ATOM}id")]
    assert len(set(ids)) == len(ids)
    times = [entry.findtext(f"{ATOM}updated") for entry in entries]
    assert root.findtext(f"{ATOM}updated") == max(times, default=root.findtext(f"{ATOM}updated"))
    return root


def check_common(element: ET.Element) -> None:
    for required in ("id", "title", "updated"):
        assert len(element.findall(ATOM + required)) == 1
        assert element.findtext(ATOM + required).strip()
    assert urlsplit(element.findtext(f"{ATOM}id")).scheme == "https"
    for time in ("updated", "published"):
        for found in element.findall(ATOM + time):
            assert datetime.fromisoformat(found.text).tzinfo
    for author in element.findall(f"{ATOM}author"):
        assert len(author.findall(f"{ATOM}name")) == 1
        assert author.findtext(f"{ATOM}name").strip()
    (page,) = links(element, "alternate")
    assert page.get("type") == "text/html"


def links(element: ET.Element, rel: str) -> list[ET.Element]:
    return [link for link in element.findall(f"{ATOM}link") if link.get("rel") == rel]


def texts(root: ET.Element, child: str) -> list[str]:
    return [entry.findtext(ATOM + child) for entry in root.findall(f"{ATOM}entry")]


def test_a_catalogue_and_an_owner_without_repos_have_feeds(empty):
    write_owner(empty.content, "zoe", name="\x7f \x02", bio="\x03")
    files = build_files(empty)
    for file, updated in (("zoe/feed.xml", moment(0)), ("feed.xml", feeds.EMPTY_UPDATED)):
        root = check(files[file])
        assert root.find(f"{ATOM}entry") is root.find(f"{ATOM}subtitle") is None
        assert root.findtext(f"{ATOM}updated") == updated


def test_a_repo_has_its_versions_with_their_changes_newest_first(small):
    record = {"publisher": "bob", "published_at": moment(1100), "changelog": "In\r\ntwo lines <b>"}
    write_version(small.content, "ann", "review", "1.2.0", "Review.", **record)
    root = check(build_files(small)["ann/review/feed.xml"])
    assert texts(root, "id") == [f"{BASE_URL}/ann/review/1.{minor}.0" for minor in (2, 1, 0)]
    assert texts(root, "title") == [f"ann/review 1.{minor}.0" for minor in (2, 1, 0)]
    assert texts(root, "summary") == ["In\ntwo lines <b>", "With care.", "Version 1.0.0"]
    assert root.findtext(f"{ATOM}author/{ATOM}name") == "ann"
    newest, *older = root.findall(f"{ATOM}entry")
    # A publisher other than the owner is named, without a link to a page that may not exist.
    (publisher,) = newest.find(f"{ATOM}author")
    assert publisher.text == "bob"
    assert all(entry.find(f"{ATOM}author") is None for entry in older)


def test_a_feed_has_the_fifty_newest(empty):
    for number in range(60):
        hour = moment(number)
        write_version(empty.content, "ann", f"r{number:02}", "1.0.0", "x", published_at=hour)
        write_version(empty.content, "bob", "many", f"1.0.{number}", "x", published_at=hour)
    site = build_files(empty)
    for file in ("feed.xml", "ann/feed.xml", "bob/many/feed.xml"):
        root = check(site[file])
        assert texts(root, "updated") == [moment(number) for number in range(59, 9, -1)]
        assert root.findtext(f"{ATOM}updated") == moment(59)


# Characters that XML does not allow, ends of its sections, bidirectional controls, and all other
# text.
hostile = st.lists(
    st.text()
    | st.sampled_from(
        ["]]>", "<![CDATA[", "&amp;", "&#0;", "<script>", "-->", "\0", "\x0b", "\x1b[31m", "\x85",
         "\ufffe", "\uffff", "\U0001ffff", "\u202e", "\u2066", "\u200b", "\r\n", "\r", "\n", "\t"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


def shown(text: str) -> str:
    """The part of a text that an XML reader may see."""
    allowed = "".join(
        char
        for char in text
        if char in "\t\n\r" or (char >= " " and ord(char) not in (0xFFFE, 0xFFFF))
    )
    return allowed.strip().replace("\r\n", "\n").replace("\r", "\n")


def make_repo(title: str, description: str) -> answers.Repo:
    return answers.Repo(
        owner="ann", name="x", title=title, description=description, tags=["code"],
        latest_version="1.0.0", versions_count=1, pulls=None, created_at=moment(0),
        updated_at=moment(1), url=f"{BASE_URL}/ann/x", content="x", body="x", messages=None,
        variables=[], parameters={}, license=None, sha256="0" * 64, size=1, changelog="",
        raw_url="", versions_url="",
    )  # fmt: skip


@given(title=hostile, description=hostile, changelog=hostile)
def test_any_text_is_shown_as_it_is(tmp_path_factory, title, description, changelog):
    settings = settings_in(tmp_path_factory.getbasetemp(), site_name=title)
    repo = make_repo(title, description)
    version = answers.VersionEntry(
        version="1.0.0", previous=None, changelog=changelog, publisher="ann",
        published_at=moment(1), sha256="0" * 64, size=1, raw_url="", diff_url=None, ordinal=1,
        source=None,
    )  # fmt: skip
    root = check(feeds.repo_feed(settings, repo, [version]))
    assert root.findtext(f"{ATOM}title") == (shown(title) or "x")
    assert root.findtext(f"{ATOM}subtitle") == (shown(description) or None)
    assert texts(root, "summary") == [shown(changelog) or "Version 1.0.0"]

    root = check(feeds.catalogue_feed(settings, [msgspec.json.encode(repo)]))
    assert root.findtext(f"{ATOM}title") == f"{shown(title) or 'Prompts'}: new prompts"
    assert texts(root, "title") == [shown(title) or "x"]
    assert texts(root, "summary") == [shown(description) or "ann/x"]

    user = answers.User("ann", title, description, None, moment(0), 1, None, "person", [])
    root = check(feeds.owner_feed(settings, user, [msgspec.json.encode(repo)]))
    assert root.findtext(f"{ATOM}title") == f"Prompts of {shown(title) or 'ann'}"
    assert root.findtext(f"{ATOM}subtitle") == (shown(description) or None)
