"""Reads a vendor's export as documents: a file, a ZIP archive, or a folder. Writes nothing.

Exports come from strangers, so everything that is read is bounded. Unreadable parts are Rejections
with their place, and the rest is read.
"""

import csv
import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from builder.model.errors import OperatorError
from builder.text.one_line import one_line
from moving.importers import tables
from moving.importers.folders import is_about
from moving.importers.items import Document, History, PassedOver, Rejection

FILE_BYTES_MAX = 128 * 1024 * 1024
TEXT_BYTES_MAX = 1024 * 1024
ZIP_BYTES_MAX = 32 * 1024 * 1024
TOTAL_BYTES_MAX = 1024 * 1024 * 1024
FILES_MAX = 200_000
DOCUMENTS_MAX = 1_000_000
NESTING_MAX = 100
PLACE_CHARS_MAX = 200

JSON_SUFFIXES = (".json",)
LINE_SUFFIXES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = tables.SUFFIXES
TEXT_SUFFIXES = (".yml", ".yaml", ".prompt", ".prompty", ".md", ".txt")
ZIP_SUFFIX = ".zip"
_READ = (*JSON_SUFFIXES, *LINE_SUFFIXES, *TABLE_SUFFIXES, *TEXT_SUFFIXES)

# A hidden folder that is read, since repositories have prompts in it.
_GITHUB = ".github"


def kind_of(path: str) -> str:
    """The suffix of a path if files of that kind are read; empty for others, and for files about a
    repository.
    """
    if _GITHUB in path.split("/"):
        return ""
    return next((suffix for suffix in _READ if path.lower().endswith(suffix)), "")


def read_documents(path: str) -> Iterator[Document | Rejection]:
    """The documents of a file, of a ZIP archive, or of all files below a folder in the order of
    their paths. Passes over names that start with a dot (except .github), texts about the others
    such as README.md, and files without a kind.

    A JSON file is one document; a list at its top is a document for each entry. A file of JSON
    lines is a document for each line, and a table one for each row, as a dict. Any other file is a
    text. Raises OperatorError if nothing can be read.
    """
    count = 0
    for one in _read_source(path):
        count += isinstance(one, Document)
        if count > DOCUMENTS_MAX:
            problem = f"more than {DOCUMENTS_MAX:,} entries in all; the rest is not read"
            yield Rejection(one.where, problem)
            return
        yield one


def read_export(module: ModuleType, path: str) -> Iterator[History | Rejection | PassedOver]:
    """The histories of a vendor's export, then its unreadable parts. Raises OperatorError."""
    rejected: list[Rejection] = []

    def read() -> Iterator[Document]:
        for one in read_documents(path):
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
    name = os.path.basename(path)
    try:
        if os.path.isdir(path):
            yield from _read_all(_walk(Path(path).resolve()))
        elif name.lower().endswith(ZIP_SUFFIX):
            yield from _read_zip(path)
        elif kind := kind_of(name):
            _read(path, 0)  # raises instead of a Rejection, since this file is all there is
            one = place_of(name), kind, os.path.getsize(path), partial(_read, path)
            yield from _read_all(iter([one]))
        else:
            raise OperatorError(
                f"{path} is neither a folder nor a file that ends in "
                f"{', '.join((*_READ, ZIP_SUFFIX))}. Pass one of these."
            )
    except OSError as error:
        raise OperatorError(f"Cannot read {path}: {error.strerror}.") from None


# A file: its place, its kind, its stated size, and a function that reads at most a given number of
# its bytes.
_File = tuple[str, str, int, Callable[[int], bytes]]


def _read_all(files: Iterator[_File | Rejection]) -> Iterator[Document | Rejection]:
    """The documents in the files, as far as they are within the limits."""
    total = 0
    for number, file in enumerate(files, start=1):
        if isinstance(file, Rejection):
            yield file
            continue
        where, kind, size, read = file
        if number > FILES_MAX:
            yield Rejection(where, f"more than {FILES_MAX:,} files; the rest is not read")
            return
        limit = TEXT_BYTES_MAX if kind in TEXT_SUFFIXES else FILE_BYTES_MAX
        try:
            raw = read(limit + 1) if size <= limit else b""
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or error
            yield Rejection(where, f"cannot be read: {problem}")
            continue
        total += len(raw)
        if total > TOTAL_BYTES_MAX:
            problem = f"more than {TOTAL_BYTES_MAX:,} bytes in all; the rest is not read"
            yield Rejection(where, problem)
            return
        if max(len(raw), size) > limit:
            yield Rejection(where, f"larger than {limit:,} bytes")
            continue
        yield from _parse(where, kind, raw.removeprefix(b"\xef\xbb\xbf"))


def _walk(root: Path) -> Iterator[_File | Rejection]:
    waiting = [root]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        where = place_of(name)
        try:
            if path.is_symlink():
                # A link to a path inside the folder leads to files that are read anyway.
                if not path.resolve().is_relative_to(root):
                    yield Rejection(where, "a link that leads outside the folder")
            elif path.is_dir():
                entries = sorted(one for one in path.iterdir() if not _is_hidden(one.name))
                waiting += reversed(entries)
            elif path.is_file() and (kind := _kind_among(name)):
                yield where, kind, path.stat().st_size, partial(_read, path)
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            problem = getattr(error, "strerror", None) or error
            yield Rejection(where, f"cannot be read: {problem}")


def _read(path: str | Path, size: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX")) and name != _GITHUB


def _kind_among(path: str) -> str:
    kind = kind_of(path)
    return "" if kind in TEXT_SUFFIXES and is_about(path.rpartition("/")[2]) else kind


def _read_zip(path: str) -> Iterator[Document | Rejection]:
    if os.path.getsize(path) > ZIP_BYTES_MAX:
        raise OperatorError(
            f"{path} is larger than {ZIP_BYTES_MAX:,} bytes. Unpack it, and pass the folder."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _read_all(_list_zip(archive))
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise OperatorError(f"{path} is no ZIP archive that can be read: {error}.") from None


def _list_zip(archive: zipfile.ZipFile) -> Iterator[_File | Rejection]:
    for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
        parts = entry.filename.split("/")
        where, kind = place_of(entry.filename), _kind_among(entry.filename)
        is_outside = ".." in parts or "\\" in entry.filename or ":" in parts[0] or not parts[0]
        if not kind:  # folders have none
            continue
        if is_outside:
            yield Rejection(where, "its name leads outside the archive")
        elif any(map(_is_hidden, parts)):
            continue
        elif stat.S_ISLNK(entry.external_attr >> 16):
            yield Rejection(where, "a link, which is not followed in an archive")
        elif entry.flag_bits & 1:
            yield Rejection(where, "encrypted. Unpack the archive, and pass the folder")
        elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            problem = (
                "packed by another method than deflate. Unpack the archive, and pass the folder"
            )
            yield Rejection(where, problem)
        else:
            yield where, kind, entry.file_size, partial(_unpack, archive, entry)


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> bytes:
    """At most ``size`` bytes of an entry's real content, regardless of its stated size. Raises
    ValueError.
    """
    try:
        with archive.open(entry) as file:
            return file.read(size)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ValueError(f"{error}" or "the archive is cut") from None


def _parse(where: str, kind: str, raw: bytes) -> Iterator[Document | Rejection]:
    """The documents of one file."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield Rejection(where, "UTF-16. Save it as UTF-8")
    elif kind in LINE_SUFFIXES:
        for number, line in enumerate(io.BytesIO(raw), start=1):
            if line.strip():
                yield _parse_json(f"{where}, line {number:,}", line)
    elif kind in JSON_SUFFIXES:
        yield from _split(_parse_json(where, raw))
    elif kind in TABLE_SUFFIXES:
        yield from _parse_table(where, kind, raw)
    else:
        try:
            yield Document(where, raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            yield Rejection(where, f"not UTF-8 at byte {error.start:,}")


def _parse_json(where: str, raw: bytes) -> Document | Rejection:
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


def place_of(path: str) -> str:
    """A path for messages, printable for any bytes in it."""
    return one_line(os.fsencode(path).decode("utf-8", "replace"), PLACE_CHARS_MAX)
