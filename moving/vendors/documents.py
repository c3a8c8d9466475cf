"""Reads a vendor's export as documents: a file or a folder. Writes nothing.

Exports come from strangers, so everything that is read is bounded. Unreadable parts are Rejections
with their place, and the rest is read.
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from builder.model.errors import OperatorError
from builder.text.one_line import one_line
from moving.importers import tables
from moving.importers.items import Document, History, Rejection

FILE_BYTES_MAX = 128 * 1024 * 1024
TOTAL_BYTES_MAX = 1024 * 1024 * 1024
FILES_MAX = 200_000
DOCUMENTS_MAX = 1_000_000
NESTING_MAX = 100
PLACE_CHARS_MAX = 200

JSON_SUFFIXES = (".json",)
LINE_SUFFIXES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = tables.SUFFIXES
_READ = (*JSON_SUFFIXES, *LINE_SUFFIXES, *TABLE_SUFFIXES)


def kind_of(path: str) -> str:
    """The suffix of a path if files of that kind are read; empty for others."""
    return next((suffix for suffix in _READ if path.lower().endswith(suffix)), "")


def read_documents(path: str) -> Iterator[Document | Rejection]:
    """The documents of a file, or of all files below a folder in the order of their paths. Passes
    over names that start with a dot, and files without a kind.

    A JSON file is one document; a list at its top is a document for each entry. A file of JSON
    lines is a document for each line, and a table one for each row, as a dict. Raises OperatorError
    if nothing can be read.
    """
    count = 0
    for one in _read_source(path):
        count += isinstance(one, Document)
        if count > DOCUMENTS_MAX:
            problem = f"more than {DOCUMENTS_MAX:,} entries in all; the rest is not read"
            yield Rejection(one.where, problem)
            return
        yield one


def read_export(
    module: ModuleType, documents: Iterable[Document | Rejection]
) -> Iterator[History | Rejection]:
    """The histories of a vendor's documents, then their unreadable parts. Raises OperatorError."""
    rejected: list[Rejection] = []

    def read() -> Iterator[Document]:
        for one in documents:
            if isinstance(one, Rejection):
                rejected.append(one)
            else:
                yield one

    yield from module.read_histories(read())
    yield from rejected


def load_json(raw: bytes | str) -> Any:
    """JSON of at most NESTING_MAX levels. Raises ValueError, whose message is one line.

    Also for JSON inside a document's text.
    """
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError(f"nested deeper than {NESTING_MAX} levels") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}") from None
    except UnicodeEncodeError:
        raise ValueError("has half of a surrogate pair") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    _check_nesting(value)
    return value


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(NESTING_MAX + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"nested deeper than {NESTING_MAX} levels")


def _read_source(path: str) -> Iterator[Document | Rejection]:
    try:
        if os.path.isdir(path):
            root = Path(path).resolve()
            yield from _read_all(_walk(root), root)
        elif kind_of(path):
            Path(path).open("rb").close()  # raises, since this file is all there is
            yield from _read_all(iter([Path(path)]), Path(path).parent)
        else:
            raise OperatorError(
                f"{path} is neither a folder nor a file that ends in {', '.join(_READ)}. "
                "Pass one of these."
            )
    except OSError as error:
        raise OperatorError(f"Cannot read {path}: {error.strerror}.") from None


def _read_all(files: Iterator[Path | Rejection], root: Path) -> Iterator[Document | Rejection]:
    """The documents in the files, as far as they are within the limits."""
    total = 0
    for number, file in enumerate(files, start=1):
        if isinstance(file, Rejection):
            yield file
            continue
        where = _place(file, root)
        if number > FILES_MAX:
            yield Rejection(where, f"more than {FILES_MAX:,} files; the rest is not read")
            return
        try:
            with file.open("rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                raw = opened.read(FILE_BYTES_MAX + 1) if size <= FILE_BYTES_MAX else b""
        except OSError as error:
            yield Rejection(where, f"cannot be read: {error.strerror}")
            continue
        total += len(raw)
        if total > TOTAL_BYTES_MAX:
            problem = f"more than {TOTAL_BYTES_MAX:,} bytes in all; the rest is not read"
            yield Rejection(where, problem)
            return
        if max(len(raw), size) > FILE_BYTES_MAX:
            yield Rejection(where, f"larger than {FILE_BYTES_MAX:,} bytes")
            continue
        yield from _parse(where, kind_of(file.name), raw.removeprefix(b"\xef\xbb\xbf"))


def _walk(root: Path) -> Iterator[Path | Rejection]:
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            if path.is_symlink():
                # A link to a path inside the folder leads to files that are read anyway.
                if not path.resolve().is_relative_to(root):
                    yield Rejection(_place(path, root), "a link that leads outside the folder")
            elif path.is_dir():
                entries = sorted(one for one in path.iterdir() if not one.name.startswith("."))
                waiting += reversed(entries)
            elif path.is_file() and kind_of(path.name):
                yield path
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            problem = getattr(error, "strerror", None) or error
            yield Rejection(_place(path, root), f"cannot be read: {problem}")


def _parse(where: str, kind: str, raw: bytes) -> Iterator[Document | Rejection]:
    """The documents of one file."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield Rejection(where, "UTF-16. Save it as UTF-8")
    elif kind in LINE_SUFFIXES:
        for number, line in enumerate(io.BytesIO(raw), start=1):
            if line.strip():
                yield parse_json(f"{where}, line {number:,}", line)
    elif kind in JSON_SUFFIXES:
        yield from _split(parse_json(where, raw))
    else:
        yield from _parse_table(where, kind, raw)


def parse_json(where: str, raw: bytes) -> Document | Rejection:
    """JSON as ``load_json`` takes it."""
    try:
        return Document(where, load_json(raw))
    except ValueError as error:
        return Rejection(where, str(error))


def _split(document: Document | Rejection) -> Iterator[Document | Rejection]:
    if isinstance(document, Document) and isinstance(document.value, list):
        for number, value in enumerate(document.value, start=1):
            yield Document(f"{document.where}, entry {number:,}", value)
    else:
        yield document


def _parse_table(where: str, kind: str, raw: bytes) -> Iterator[Document | Rejection]:
    file = io.StringIO(raw.decode("utf-8", "surrogateescape"), newline="")
    try:
        header, rows = tables.read_rows(file, "\t" if kind == ".tsv" else None)
    except csv.Error as error:
        yield Rejection(where, f"its header cannot be read: {error}")
        return
    for number, row in rows:
        place = f"{where}, row {number:,}"
        if isinstance(row, str):
            yield Rejection(place, row)
        else:
            yield Document(place, dict(zip(header, row, strict=True)))


def _place(path: Path, root: Path) -> str:
    """The path of a file in the export, printable for any bytes in it."""
    name = os.fsencode(path.relative_to(root)).decode("utf-8", "replace")
    return one_line(name, PLACE_CHARS_MAX)
