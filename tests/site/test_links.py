"""Every address of the site that the built site links to exists, with its fragment."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree

import pytest

from builder.model.matching import match_url
from builder.model.settings import Settings
from tests.site.conftest import StaticHosts
from tests.site.markup import Markup

ELSEWHERE = re.compile(r"https?://")
# Pages that read their query in the browser.
READ_QUERIES = ("search.html", "compare.html")
# Folders of files for programs, which contain addresses.
JSON_LINKS = ("url", "base_url", "raw_url", "versions_url", "diff_url", "@id")
XML_LINKS = ("loc", "uri", "id", "icon", "logo")
TEXT_LINK = re.compile(r"\]\((https?://[^){}]+)\)|^Sitemap: (\S+)$", re.MULTILINE)


@pytest.fixture(params=["hub", "golden"])
def settings(request: pytest.FixtureRequest, hosts: StaticHosts, golden: Settings) -> Settings:
    """Settings of a built site whose base URL has a path."""
    return hosts.settings if request.param == "hub" else golden


class Links:
    """Resolves addresses of a built site."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = Path(settings.out)
        self._pages: dict[Path, Markup] = {}

    def markup(self, file: Path) -> Markup:
        if file not in self._pages:
            self._pages[file] = Markup.read(file)
        return self._pages[file]

    def url_of(self, file: Path) -> str:
        """The address of a page."""
        path = file.relative_to(self.root).as_posix().removesuffix(".html")
        # Sent where the page was that has been withdrawn.
        path = path.removesuffix("/withdrawn") if path.count("/") > 1 else path
        return f"{self.settings.base_url}/{'' if path == 'index' else path}"

    def fault(self, link: str, source: str) -> str | None:
        """The fault of an address on the page; None if it is right, or leads to another site."""
        url = urljoin(source, link)
        if not ELSEWHERE.match(url):
            return "not an address of the web"
        base = self.settings.base_url
        parts = urlsplit(url)
        if parts.netloc != urlsplit(base).netloc:
            return None
        if not f"{parts.path}/".startswith(f"{self.settings.base_path}/"):
            # Others may link to all of the host, but a path alone is ours and lacks the base path.
            return None if ELSEWHERE.match(link) else "outside of the base URL"
        below = parts.path.removeprefix(self.settings.base_path)
        file = self._file(unquote(below) or "/")
        if not file or not file.is_file():
            # The address of a withdrawn version answers that it was withdrawn.
            is_withdrawn = file and [*file.with_suffix("").glob("withdrawn.*")]
            return None if is_withdrawn else "nothing there"
        if parts.query and file.name not in READ_QUERIES:
            return "a host of files ignores queries"
        if parts.fragment:
            ids = self.markup(file).ids
            # The page of a file that is no text has no lines.
            is_line = "/files/" in below and re.fullmatch(r"L[0-9]+", parts.fragment)
            if unquote(parts.fragment) not in ids and not (is_line and "L1" not in ids):
                return "no such fragment"
        return None

    def _file(self, path: str) -> Path | None:
        found = match_url(path)
        # An address may also be that of the file.
        file = self.root / (found.file if found else path.lstrip("/"))
        # Or that of the page of a published file `x.html`, which is `x.html.html`.
        page = self.root / f"{path.lstrip('/')}.html"
        return page if page.is_file() and not file.is_file() else file


def linked(value: Any) -> Iterator[str]:
    """The addresses in JSON, but for what a prompt says and for templates."""
    if isinstance(value, list):
        for one in value:
            yield from linked(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in JSON_LINKS:
                yield from linked(one)
            elif isinstance(one, str) and ELSEWHERE.match(one) and "{" not in one:
                yield one


def test_of_pages(settings):
    """Also that ids are unique, and that nothing is inline."""
    links = Links(settings)
    faults = {}
    for page in sorted(links.root.rglob("*.html")):
        markup = links.markup(page)
        source = links.url_of(page)
        assert len(markup.links) > 5, page
        assert len(markup.ids) == len({*markup.ids}) and markup.inline == [], page
        for link in markup.links:
            fault = links.fault(link, source)
            if fault:
                faults[link] = f"{fault}, on {source}"
    assert faults == {}


@pytest.mark.parametrize("pattern", ["*.xml", "*.json", "llms.txt", "robots.txt"])
def test_of_files_for_programs(settings, pattern):
    links = Links(settings)
    files = sorted(links.root.rglob(pattern))
    assert files
    count, faults = 0, {}
    for file in files:
        for link in addresses(file):
            count += 1
            fault = links.fault(link, settings.base_url)
            if fault:
                faults[link] = f"{fault}, in {file.relative_to(links.root)}"
    assert faults == {}
    assert count


def addresses(file: Path) -> Iterator[str]:
    """The addresses that a file for programs names."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        yield from linked(json.loads(text))
    elif file.suffix == ".txt":
        for found in TEXT_LINK.finditer(text):
            yield found[1] or found[2]
    else:
        for element in ElementTree.fromstring(text).iter():
            name = element.tag.rpartition("}")[2]
            if name in XML_LINKS and ELSEWHERE.match(element.text or ""):
                # The id of a move is not the address of its row.
                yield element.text.partition("#move-")[0] if name == "id" else element.text
            if "href" in element.attrib:
                yield element.attrib["href"]
