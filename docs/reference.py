"""Writes the parts of the documents that follow from the code, between their markers.

    python docs/reference.py            rewrite them
    python docs/reference.py --check    exit status 1 if one is not as the code says

A part stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from builder import errors, names
from builder.routes import CACHE_CONTROL, ROUTES
from cli.hubctl import main as hubctl

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "docs/hubctl.md", "docs/read-api.md", "docs/content-format.md"]


def endpoints() -> str:
    """The public rows of the table of routes."""
    rows = ["| endpoint | file of the site | what it returns |", "|---|---|---|"]
    for route in ROUTES:
        if route.summary:
            url = f"`{route.query or route.url}`"
            rows.append(f"| {url} | `{route.file}` | {route.summary} |")
    return "\n".join(rows)


def caching() -> str:
    """Which cache rule each public endpoint has."""
    rows = ["| `Cache-Control` | endpoints |", "|---|---|"]
    for cache, header in CACHE_CONTROL.items():
        urls = [f"`{r.query or r.url}`" for r in ROUTES if r.summary and r.cache == cache]
        if urls:
            rows.append(f"| `{header}` | {', '.join(urls)} |")
    return "\n".join(rows)


def pages() -> str:
    """The rows of the table that are pages for people."""
    rows = ["| page | file of the site |", "|---|---|"]
    rows += [f"| `{r.url}` | `{r.file}` |" for r in ROUTES if not r.is_api]
    return "\n".join(rows)


def statuses() -> str:
    """Every error code with its HTTP status."""
    rows = ["| status | codes |", "|---|---|"]
    for status in sorted(set(errors.STATUS.values())):
        codes = [f"`{code}`" for code, of in errors.STATUS.items() if of == status]
        rows.append(f"| {status} | {', '.join(codes)} |")
    return "\n".join(rows)


def reserved() -> str:
    """The owners' names that the site uses itself."""
    return ", ".join(f"`{name}`" for name in sorted(names.RESERVED_OWNERS))


def commands() -> str:
    """The help of every command, as it prints it."""
    return "\n\n".join(_helps(hubctl, "hubctl", None))


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command, info_name=name, parent=parent,
        max_content_width=90, terminal_width=90, help_option_names=["-h", "--help"],
    )  # fmt: skip
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _helps(command.get_command(context, each), each, context)


PARTS = {part.__name__: part for part in (endpoints, caching, pages, statuses, reserved, commands)}


def rewritten(text: str) -> str:
    """``text`` with each part as the code says."""

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- begin {name} -->\n{PARTS[name]()}\n<!-- end {name} -->"

    return re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", replace, text, flags=re.DOTALL)


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    stale = []
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text()
        if rewritten(text) != text:
            stale.append(document)
            if not is_check:
                path.write_text(rewritten(text))
    if is_check and stale:
        print(f"Not as the code says: {', '.join(stale)}. Run: python docs/reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
