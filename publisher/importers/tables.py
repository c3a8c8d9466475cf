"""Prompts in the rows of a CSV or TSV file. Reads; writes nothing.

Rows are counted as a spreadsheet shows them: the header is row 1.
"""

import csv
import sys
from collections.abc import Iterator
from typing import TextIO

from builder.model.errors import OperatorError
from publisher.importers.items import Columns, Item, Rejection, make_item

SUFFIXES = (".csv", ".tsv")
DELIMITERS = ",;\t|"
HEADER_CHARS_MAX = 64 * 1024


def read_table(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    """The items of a table in UTF-8; a row that is not as it should be is a rejection.

    Raises OperatorError for a table without the columns, and OSError.
    """
    # A cell may be as large as it likes: what is too large for a prompt is told with its row.
    csv.field_size_limit(sys.maxsize)
    with _open(path) as file:
        delimiter = "\t" if path.lower().endswith(".tsv") else _find_delimiter(file)
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(rows, [])
        except csv.Error as error:
            raise OperatorError(f"Cannot read the header of {path}: {error}.") from None
        found = columns.find(header)
        for number, row in _count(rows):
            where = f"row {number}"
            if isinstance(row, str):
                yield Rejection(where, row)
            elif len(row) > len(header):
                yield Rejection(where, f"it has {len(row)} cells under {len(header)} columns")
            elif not _is_text(row):
                yield Rejection(where, "it is not UTF-8. Save the table as UTF-8")
            elif row:
                cells = row + [""] * (len(header) - len(row))
                yield make_item(where, dict(zip(header, cells, strict=True)), found)


def _open(path: str) -> TextIO:
    with open(path, "rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            raise OperatorError(f"{path} is UTF-16. Save the table as UTF-8.")
    # One byte that is wrong costs its row, not the table.
    return open(path, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _find_delimiter(file: TextIO) -> str:
    """The delimiter that makes the most columns of the header."""
    lines = file.read(HEADER_CHARS_MAX).splitlines(keepends=True)
    file.seek(0)
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader(lines, delimiter=mark), [])))


def _count(rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str] | str]]:
    """Each row after the header with its number, or with what is wrong with it."""
    number = 1
    while True:
        number += 1
        try:
            yield number, next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "a quote is never closed" if "end of data" in str(error) else error
            yield number, f"not CSV: {reason}"


def _is_text(row: list[str]) -> bool:
    try:
        "".join(row).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
