"""Netlify: the two files that tell it which URL is which file, and with which headers."""

import re
from collections.abc import Iterator
from itertools import combinations

from builder.hosts.rules import LIST_DEFAULTS, HostedSite, header_lines
from builder.model.answer_headers import CORS, PAGE_SAFETY, SAFETY
from builder.model.routes import ASKED_TEXTS, BY_NAME, CACHE_CONTROL, READ_ROUTES, Route

# Netlify tells these by their extension as we do.
_KNOWN_EXTENSIONS = (".html", ".json", ".txt", ".css", ".svg")

_PLACE = """\
# Put this file into the folder that you publish{where}.
# Write it again after each update of hub.
"""

_REDIRECTS = """\
# Maps URLs to files, for Netlify. Written by `hubctl hosts netlify` for
# {base_url}
{place}#
# The first matching rule applies; a file that exists wins over all rules. All errors get the page
# 404.html, also below /api and for values that name no file, such as sort=best. Netlify cannot
# answer searches or filter by several tags; catalogue.jsonl lists all prompts.
#
# {count} rules; Netlify accepts thousands. Do not use this file on Cloudflare Pages, which ignores
# queries and applies rules before files: run `hubctl hosts cloudflare` instead.

# Lists by query, with any of these parameters, in any order.
{lists}

# The texts of one version, or of the one that a label names.
{texts}

# For Langfuse's SDKs: the text with the number of a publication, or the one that a label names.
{langfuse}

# URLs that are a file without its extension.
{rest}
"""

_HEADERS = """\
# Sets the headers of all answers, for Netlify. Written by `hubctl hosts netlify` for
# {base_url}
{place}#
# All matching rules apply; later rules override earlier ones. Netlify adds ETags, answers 304 and
# compresses.

{blocks}
"""


def files(site: HostedSite) -> dict[str, str]:
    """`_redirects` and `_headers`, by file name."""
    base = site.base_path
    where = f", with the site in its {base[1:]}/" if base else ""
    place = _PLACE.format(where=where)
    lists, texts, rest = (
        [f"{base}{source} {base}/{target} 200" for source, target in rules]
        for rules in (_lists(), _texts(), _rest())
    )
    # There is a file at the URL without a query, too.
    langfuse = [f"{base}{source} {base}/{target} 200!" for source, target in _langfuse()]
    redirects = _REDIRECTS.format(
        base_url=site.base_url, place=place, count=len(lists + texts + langfuse + rest),
        lists="\n".join(lists), texts="\n".join(texts), langfuse="\n".join(langfuse),
        rest="\n".join(rest),
    )  # fmt: skip
    blocks = "\n\n".join(
        "\n".join([f"{base}{path}", *(f"  {name}: {value}" for name, value in headers)])
        for path, headers in _blocks()
    )
    headers = _HEADERS.format(base_url=site.base_url, place=place, blocks=blocks)
    return {"_redirects": redirects, "_headers": headers}


def _lists() -> Iterator[tuple[str, str]]:
    """Queries of lists, those with most parameters first, since others in a query do not matter."""
    for count in (3, 2, 1):
        for given in combinations(("tag", "sort", "page"), count):
            route = BY_NAME["tag_list" if "tag" in given else "list"]
            values = LIST_DEFAULTS | {key: f":{key}" for key in given}
            query = " ".join(f"{key}=:{key}" for key in given)
            yield f"{BY_NAME['repos'].url} {query}", route.file_for(**values)


def _texts() -> Iterator[tuple[str, str]]:
    for name in ASKED_TEXTS:
        url = _placeholders(BY_NAME[name].url)
        yield f"{url} version=:version", _placeholders(BY_NAME[f"version_{name}"].file)
        yield f"{url} label=:label", _placeholders(BY_NAME[f"label_{name}"].file)


def _langfuse() -> Iterator[tuple[str, str]]:
    url, file = (_placeholders(path) for path in (
        BY_NAME["langfuse_prompt"].url, BY_NAME["langfuse_ref"].file
    ))  # fmt: skip
    for key in ("version", "label"):
        yield f"{url} {key}=:{key}", file.replace(":ref", f":{key}")
    for given in (("tag", "page"), ("tag",), ("page",)):
        values = {"page": "1"} | {key: f":{key}" for key in given}
        query = " ".join(f"{key}=:{key}" for key in given)
        route = BY_NAME["langfuse_tag_page" if "tag" in given else "langfuse_page"]
        yield f"{BY_NAME['langfuse_list'].url} {query}", route.file_for(**values)


def _rest() -> Iterator[tuple[str, str]]:
    seen = set()
    for route in sorted(READ_ROUTES, key=lambda route: "{" in route.url):
        source, target = _placeholders(route.url), _placeholders(route.file)
        shape = re.sub(r":\w+", ":", f"{source} {target}")
        if source not in ("/", f"/{target}") and shape not in seen:
            seen.add(shape)
            yield source, target


def _blocks() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Paths and their headers."""
    every = SAFETY + CORS + PAGE_SAFETY
    yield "/*", header_lines(every)
    done: list[tuple[str, str]] = []
    # The general before the special, which may be an exception to it.
    for path, route in sorted(_paths(), key=lambda one: _speciality(one[0])):
        cache = CACHE_CONTROL[route.cache]
        if not any(_covers(other, path) and its == cache for other, its in done):
            done.append((path, cache))
            yield path, [("Cache-Control", cache)]
    odd = {
        path: route.media for path, route in _paths() if not route.file.endswith(_KNOWN_EXTENSIONS)
    }
    for path, media in odd.items():
        if any(other != path and _covers(other, path) for other in odd):
            continue
        yield path, [("Content-Type", media)]


def _paths() -> Iterator[tuple[str, Route]]:
    """The paths of each route's URL and file, as `_headers` says them."""
    for route in READ_ROUTES:
        for path in dict.fromkeys((route.url, f"/{route.file}")):
            # A placeholder is a whole segment.
            yield _placeholders(re.sub(r"\{\w+\}(?=[^/])", "*", path)), route


def _speciality(pattern: str) -> tuple[bool, bool, int]:
    """Grows from patterns of many paths to those of few."""
    segments = pattern.split("/")
    named = [segment for segment in segments if not segment.startswith(":")]
    return "*" in pattern, len(named) == len(segments), len(named)


def _covers(general: str, special: str) -> bool:
    """Whether all paths of one pattern are of another, segment by segment."""
    pairs = list(zip(general.split("/"), special.split("/"), strict=False))
    return general.count("/") == special.count("/") and all(
        a == b or (a.startswith(":") and b) for a, b in pairs
    )


def _placeholders(template: str) -> str:
    return re.sub(r"\{(\w+)\}", r":\1", template)
