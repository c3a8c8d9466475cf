"""A small catalogue with its whole expected site.

``content`` is written by hand and has cases that easily go wrong: markup in every field, a byte
order mark, CRLF, no final newline, front matter, other scripts. ``site`` has the files that a build
writes, byte for byte, without those that repeat a source. It has the longest page of each kind;
``pages.txt`` names the others. After an intended change, ``python -m tests.golden`` writes it
again. Read the difference before you commit it.
"""

import os
from pathlib import Path

from builder import installed_version
from builder.model.content_tree import FILE
from builder.model.matching import match_file, version_file
from builder.model.routes import BY_NAME, HTML
from builder.model.settings import Settings
from builder.render import (
    clients,
    colours,
    openapi,
)  # fmt: skip
from builder.render.colours import ASSETS
from builder.render.picture import picture
from builder.search.rules import search_rules

HERE = os.path.dirname(os.path.abspath(__file__))
CONTENT = f"{HERE}/content"
SITE = f"{HERE}/site"
PAGES = f"{HERE}/pages.txt"
HUB = BY_NAME["hub"].file


def golden_settings(out: str, state: str) -> Settings:
    """A base URL with a path, so that a link without the path is noticed."""
    return Settings(
        CONTENT, out, state, "https://example.org/prompts", "Golden Hub", search="tantivy"
    )


def from_sources(settings: Settings) -> dict[str, bytes]:
    """The files of the site that repeat a source, made from it, because a copy would test nothing
    more.
    """
    document = openapi.document(settings)
    client, checksum = clients.shell_client(settings.base_url, search_rules())
    script, types = clients.script_client(settings.base_url)
    files = {
        "stylesheet": colours.stylesheet(""),
        "icon": colours.icon(""),
        "picture": picture(settings.site_name),
        "openapi": document,
        # tests/builder/render/test_api_page.py runs its examples.
        "api_page": Path(settings.out, BY_NAME["api_page"].file).read_bytes(),
        "catalogue_script": clients.search_script(search_rules()),
        "client": client,
        "client_release": client,
        "client_checksum": checksum,
        "python_client": clients.python_client(settings.base_url),
        "script_client": script,
        "script_client_types": types,
    }
    texts = {
        BY_NAME["version_raw"].file_for(
            owner=path.parts[-3], name=path.parts[-2], version=path.stem
        ): path.read_bytes()
        for path in Path(CONTENT).glob("*/*/*.md")
    }
    for path in Path(CONTENT).glob("*/*/*.files/**/*.*"):
        owner, name, folder, *parts = path.relative_to(CONTENT).parts
        version = folder.removesuffix(FILE.entry(""))
        texts[version_file(owner, name, version, "/".join(parts)).file] = path.read_bytes()
    return (
        {
            f"assets/{path.name}": path.read_bytes()
            for path in Path(ASSETS).iterdir()
            if path.suffix == ".js"
        }
        | {BY_NAME[name].file: data for name, data in files.items()}
        | texts
    )


def without_version(hub: bytes) -> bytes:
    """``hub.json`` without the version of this installation."""
    return hub.replace(f',"version":"{installed_version()}"'.encode(), b"")


def other_pages(site: dict[str, bytes]) -> list[str]:
    """The pages of a site, sorted, without the longest one of each route."""
    by_route: dict[str, list[str]] = {}
    for file in sorted(site):
        route = match_file(file).route
        if route.media == HTML:
            by_route.setdefault(route.name, []).append(file)
    longest = {max(files, key=lambda file: len(site[file])) for files in by_route.values()}
    return sorted(file for files in by_route.values() for file in files if file not in longest)
