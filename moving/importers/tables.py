"""Prompts in the rows of a CSV or TSV file. Reads; writes nothing.

Rows are counted as a spreadsheet shows them: the header is row 1.
"""

import csv
from collections.abc import Iterator
from typing import TextIO

from builder.model.errors import OperatorError
from moving.importers.items import UTF_16_MARKS, Columns, Item, Rejection, make_item

SUFFIXES = (".csv", ".tsv")
DELIMITERS = ",;\t|"
HEADER_CHARS_MAX = 64 * 1024
# More characters than any prompt with its metadata has. A longer row is rejected.
ROW_CHARS_MAX = 2 * 1024 * 1024
_TOO_LARGE = f"larger than {ROW_CHARS_MAX:,} characters"


def read_table(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    """The items of a table in UTF-8, or in UTF-16 with a byte order mark. A malformed row is a
    rejection.

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
    has, or the fault. ``file`` is opened with newline="" and errors="surrogateescape". Without
    ``delimiter``, uses the one that gives the most columns. Raises csv.Error for the header.
    """
    csv.field_size_limit(ROW_CHARS_MAX)
    delimiter = delimiter or _find_delimiter(file)
    lines = _Lines(file)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header = next(rows, [])
    if lines.is_row_too_large():
        raise csv.Error(f"it is {_TOO_LARGE}")
    if not _is_text(header):
        raise csv.Error("it is not UTF-8. Save the table as UTF-8")
    return header, _check_rows(header, _count(rows, lines))


class _Lines:
    """The lines of a table for csv. For a row that is too large, it remembers only whether
    quotes are open: enough to find the next row without keeping this one.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._chars = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(ROW_CHARS_MAX + 1)
        if not line:
            raise StopIteration
        self._chars += len(line)
        if self._chars <= ROW_CHARS_MAX:
            return line
        quotes = line.count('"')
        while not line.endswith(("\n", "\r")) and (line := self._file.readline(ROW_CHARS_MAX)):
            quotes += line.count('"')
        return '"' * (quotes % 2)

    def is_row_too_large(self) -> bool:
        """True if the row that csv has just read is; the next line begins another row."""
        chars, self._chars = self._chars, 0
        return chars > ROW_CHARS_MAX


def _check_rows(
    header: list[str], rows: Iterator[tuple[int, list[str] | str]]
) -> Iterator[tuple[int, list[str] | str]]:
    for number, row in rows:
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
    # An invalid byte costs its row, not the table.
    if is_utf_16:
        return open(path, encoding="utf-16", errors="surrogatepass", newline="")
    return open(path, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _find_delimiter(file: TextIO) -> str:
    """The delimiter that gives the most columns in the header."""
    lines = file.read(HEADER_CHARS_MAX).splitlines(keepends=True)
    file.seek(0)
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader(lines, delimiter=mark), [])))


def _count(rows: Iterator[list[str]], lines: _Lines) -> Iterator[tuple[int, list[str] | str]]:
    """Each row after the header with its number, or its fault."""
    number = 1
    while True:
        number += 1
        try:
            row: list[str] | str = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "a quote is never closed" if "end of data" in str(error) else error
            row = f"not CSV: {reason}"
        except UnicodeDecodeError as error:  # only UTF-16 raises it here
            yield number, f"not UTF-16 ({error.reason}). Save the table as UTF-8"
            return
        yield number, _TOO_LARGE if lines.is_row_too_large() else row


def _is_text(row: list[str]) -> bool:
    try:
        "".join(row).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
