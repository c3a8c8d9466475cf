"""Links that a reader of a destination can follow, and checks of their targets.

A tree is what a destination has: bytes by key.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from builder.model.matching import match_file, match_url
from builder.model.routes import GZIP, ZIP
from tests.support.catalogues import BASE_URL

HOME = "index.html"
# The addresses at which readers and programs start.
ENTRIES = (
    HOME, "api/v1/repos.json", "api/v1/tags.json", "api/v1/hub.json", "api/v1/catalogue.jsonl",
    "sitemap.xml", "feed.xml", "llms.txt",
)  # fmt: skip
JSON_LINKS = ("url", "raw_url", "versions_url", "diff_url")
HTML_LINK = re.compile(r'\b(?:href|src)="([^"#]+)')
XML_LINK = re.compile(r'\bhref="([^"]+)"|<loc>([^<]+)</loc>')
TEXT_LINK = re.compile(r"\]\((https?://[^){}]+)\)")

Find = Callable[[str], str]


@cache
def by_rules(url_path: str) -> str:
    """The key that a host with rewriting answers a URL's path from."""
    found = match_url(url_path)
    return found.file if found else url_path.removeprefix("/")


def by_key(url_path: str) -> str:
    """The key that a bare bucket with an index document answers a URL's path from."""
    return url_path.removeprefix("/") or HOME


def broken(tree: Mapping[str, bytes], find: Find, entries: Iterable[str] = ENTRIES) -> list[str]:
    """Every link to nothing that can be reached from these entries, as "from: to"."""
    seen = {entry for entry in entries if entry in tree}
    waiting = list(seen)
    found = []
    while waiting:
        key = waiting.pop()
        for path in links(key, tree[key]):
            target = find(path)
            if target not in tree:
                found.append(f"{key}: {path}")
            elif target not in seen:
                seen.add(target)
                waiting.append(target)
    return found


def broken_records(tree: Mapping[str, bytes], find: Find) -> list[str]:
    """Every broken link in any existing record, even if no link leads to the record."""
    return [
        f"{key}: {path}"
        for key in tree
        if key.startswith("api/") and key.endswith(".json")
        for path in links(key, tree[key])
        if find(path) not in tree
    ]


@cache
def links(key: str, data: bytes) -> list[str]:
    """The paths on the own site that a file leads to."""
    return [
        urlsplit(link).path or "/"
        for link in _links(key, data)
        if link.startswith((f"{BASE_URL}/", "/")) or link == BASE_URL
    ]


def _links(key: str, data: bytes) -> Iterator[str]:
    if key.startswith("api/v1/openapi"):
        return  # it describes links, and has none
    found = match_file(key) or match_url(f"/{key}")
    if found and (found.route.scope == "files" or found.route.media in (GZIP, ZIP)):
        return  # of others, whatever is in it
    text = data.decode()
    kind = key.rpartition(".")[2] if "." in key.rpartition("/")[2] else text[:1]
    if kind in ("html", "<"):
        yield from HTML_LINK.findall(text)
    elif kind == "xml":
        yield from ("".join(groups) for groups in XML_LINK.findall(text))
    elif kind == "json" or (kind == "{" and key.startswith("api/")):
        yield from _json_links(json.loads(text))
    elif kind == "jsonl":
        for line in text.splitlines():
            yield from _json_links(json.loads(line))
    elif key == "llms.txt":
        yield from TEXT_LINK.findall(text)


def _json_links(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in JSON_LINKS and isinstance(inner, str):
                yield inner
            else:
                yield from _json_links(inner)
        if "latest_version" in value:
            repo = f"/api/v1/repos/{value['owner']}/{value['name']}"
            yield f"{repo}.json"
            yield f"{repo}/versions/{value['latest_version']}.json"
            yield f"{repo}/versions/{value['latest_version']}.txt"
    elif isinstance(value, list):
        for inner in value:
            yield from _json_links(inner)
