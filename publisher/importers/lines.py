"""Prompts in a file of JSON lines, an object each. Reads; writes nothing."""

from collections.abc import Iterator

import msgspec

from builder.model.errors import OperatorError
from publisher.importers.items import Columns, Item, Rejection, make_item

SUFFIXES = (".jsonl", ".ndjson")


def read_lines(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    """The items of the lines; the keys of an object are its columns. Raises OSError."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield _read_line(f"line {number}", line, columns)


def _read_line(where: str, line: bytes, columns: Columns) -> Item | Rejection:
    try:
        row = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        return Rejection(where, f"not JSON: {error}")
    if not isinstance(row, dict):
        return Rejection(where, "not a JSON object")
    try:
        return make_item(where, row, columns.find(row))
    except OperatorError as error:
        return Rejection(where, str(error))
