"""A list as a table: aligned for a person, tab-separated for a program."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec

from cli.standard_error import say

Row = TypeVar("Row")


def echo_list(
    header: Sequence[str],
    rows: Sequence[Row],
    cells: Callable[[Row], Sequence[str]],
    *,
    is_json: bool,
    empty: str = "",
    as_json: Callable[[Row], Any] = lambda row: row,
) -> None:
    """Print rows as an array of JSON, or their ``cells`` as a table; without any, say ``empty``."""
    if is_json:
        click.echo(msgspec.json.encode([*map(as_json, rows)]))
    elif rows or not empty:
        echo_table(header, [*map(cells, rows)])
    else:
        say(empty)


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows on standard output: with the header on a terminal, without it in a pipe."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
        return
    lines = [[title.upper() for title in header], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
