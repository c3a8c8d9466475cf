"""Prompts in the rows of a CSV or TSV file. Reads; writes nothing.

Rows are counted as a spreadsheet shows them: the header is row 1.
"""

import csv
import sys
from collections.abc import Iterator
from typing import TextIO

from builder.model.errors import OperatorError
from publisher.importers.items import UTF_16_MARKS, Columns, Item, Rejection, make_item

SUFFIXES = (".csv", ".tsv")
DELIMITERS = ",;\t|"
HEADER_CHARS_MAX = 64 * 1024


def read_table(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    """The items of a table in UTF-8, or in UTF-16 with a byte order mark. A row that is not as it
    should be is a rejection.

    Raises OperatorError for a table without the columns, and OSError.
    """
    with _open(path) as file:
        try:
            header, rows = read_rows(file, "\t" if path.lower().endswith(".tsv") else None)
        except UnicodeDecodeError:
            raise OperatorError(f"{path} is broken UTF-16. Save the table as UTF-8.") from None
        except csv.Error as error:
            raise OperatorError(f"Cannot read the header of {path}: {error}.") from None
        found = columns.find(header)
        for number, row in rows:
            where = f"row {number}"
            if isinstance(row, str):
                yield Rejection(where, row)
            else:
                yield make_item(where, dict(zip(header, row, strict=True)), found)


def read_rows(
    file: TextIO, delimiter: str | None
) -> tuple[list[str], Iterator[tuple[int, list[str] | str]]]:
    """The header of a table, and each row after it with its number: as many cells as the header
    has, or what is wrong with it. ``file`` is opened with newline="" and errors="surrogateescape".
    Without ``delimiter``, it is the one that makes the most columns. Raises csv.Error for the
    header.
    """
    # A cell may be as large as it likes: what is too large for a prompt is told with its row.
    csv.field_size_limit(sys.maxsize)
    rows = csv.reader(file, delimiter=delimiter or _find_delimiter(file), strict=True)
    header = next(rows, [])
    if not _is_text(header):
        raise csv.Error("it is not UTF-8. Save the table as UTF-8")
    return header, _check_rows(header, rows)


def _check_rows(
    header: list[str], rows: Iterator[list[str]]
) -> Iterator[tuple[int, list[str] | str]]:
    for number, row in _count(rows):
        if isinstance(row, str):
            yield number, row
        elif len(row) > len(header):
            yield number, f"it has {len(row)} cells under {len(header)} columns"
        elif not _is_text(row):
            yield number, "it is not UTF-8. Save the table as UTF-8"
        elif row:
            yield number, row + [""] * (len(header) - len(row))


def _open(path: str) -> TextIO:
    with open(path, "rb") as file:
        is_utf_16 = file.read(2) in UTF_16_MARKS
    # One byte that is wrong costs its row, not the table.
    if is_utf_16:
        return open(path, encoding="utf-16", errors="surrogatepass", newline="")
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
        except UnicodeDecodeError as error:  # only of UTF-16 in this way
            yield number, f"not UTF-16 ({error.reason}). Save the table as UTF-8"
            return


def _is_text(row: list[str]) -> bool:
    try:
        "".join(row).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
