"""A list as a table: aligned for a person, tab-separated for a program."""

import sys
from collections.abc import Sequence

import click

from cli.standard_error import say


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "") -> None:
    """Print rows on standard output: with the header on a terminal, without it in a pipe. Without
    rows, say ``empty``.
    """
    if not rows and empty:
        say(empty)
    elif not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
    else:
        lines = [[title.upper() for title in header], *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            click.echo("  ".join(cells).rstrip())
