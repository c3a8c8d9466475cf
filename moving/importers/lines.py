"""Prompts in JSON: an object on each line, or a list of objects. Reads; writes nothing."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import msgspec

from builder.model.errors import OperatorError, cut
from builder.text.json_keys import Pairs, load_pairs, repeated_keys
from moving.importers.items import Columns, Item, Rejection, decode_text, make_item

SUFFIXES = (".jsonl", ".ndjson")
JSON_SUFFIX = ".json"
JSON_BYTES_MAX = 64 * 1024 * 1024
# More bytes than any prompt with its metadata has. A longer line is rejected.
LINE_BYTES_MAX = 2 * 1024 * 1024
# A warning about repeated keys shows so many characters of them.
KEYS_CHARS_MAX = 200


def read_lines(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    """The items of the lines; the keys of an object are its columns. Raises OSError."""
    with open(path, "rb") as file:
        for number, line in enumerate(iter(partial(_next_line, file), b""), start=1):
            if len(line) > LINE_BYTES_MAX:
                yield Rejection(f"line {number}", f"larger than {LINE_BYTES_MAX:,} bytes")
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield _read_line(f"line {number}", line, columns)


def read_json(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    """The items of a list of objects: the whole file, or the only such list in an object.

    Raises OperatorError where there is none, and OSError.
    """
    if os.path.getsize(path) > JSON_BYTES_MAX:
        raise OperatorError(f"{path} is larger than {JSON_BYTES_MAX:,} bytes. Split it.")
    with open(path, "rb") as file:
        raw = file.read()
    try:
        text = decode_text(raw).removeprefix("\ufeff")
        value, pairs = msgspec.json.decode(text), load_pairs(text)
    except (ValueError, RecursionError) as error:
        raise OperatorError(f"{path} is not JSON: {error}.") from None
    if isinstance(pairs, Pairs) and pairs.repeated:
        raise OperatorError(f"{path} has the key {pairs.repeated[0]!r} twice. Rename one of them.")
    lists, twins = _lists_in(value), _lists_in(pairs)
    if len(lists) != 1:
        raise OperatorError(
            f"{path} has {len(lists)} lists of objects. Pass a file that is a list of prompts, or "
            "an object with one such list."
        )
    for number, (row, twin) in enumerate(zip(lists[0], twins[0], strict=True), start=1):
        yield _read_row(f"entry {number}", row, columns, twin)


def _lists_in(value: Any) -> list[list[dict[str, Any]]]:
    """The lists of objects that a document is or has."""
    lists = value.values() if isinstance(value, dict) else [value]
    return [one for one in lists if isinstance(one, list) and one and _is_of_objects(one)]


def _is_of_objects(rows: list[Any]) -> bool:
    return all(isinstance(row, dict) for row in rows)


def _next_line(file: BinaryIO) -> bytes:
    """A line, or the start of one that is too long; empty at the end."""
    line = rest = file.readline(LINE_BYTES_MAX + 1)
    while len(line) > LINE_BYTES_MAX and rest and not rest.endswith(b"\n"):
        rest = file.readline(LINE_BYTES_MAX)
    return line


def _read_line(where: str, line: bytes, columns: Columns) -> Item | Rejection:
    try:
        row, twin = msgspec.json.decode(line), load_pairs(line)
    except (ValueError, RecursionError) as error:
        return Rejection(where, f"not JSON: {error}")
    if not isinstance(row, dict):
        return Rejection(where, "not a JSON object")
    return _read_row(where, row, columns, twin)


def _read_row(where: str, row: dict[str, Any], columns: Columns, twin: Pairs) -> Item | Rejection:
    """The item of a row; ``twin`` is the same row as Pairs."""
    try:
        item = make_item(where, row, columns.find(row))
        if twice := ", ".join(dict.fromkeys(map(repr, repeated_keys(twin)))):
            note = f"Repeated keys; the last one counts: {cut(twice, KEYS_CHARS_MAX)}."
            item = item._replace(warnings=[*item.warnings, note])
        return item
    except OperatorError as error:
        return Rejection(where, str(error))
