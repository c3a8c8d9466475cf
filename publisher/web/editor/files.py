"""The files of a version in the editor: the rows of its form, uploads, and their changes. Pure, but
for reading what was uploaded.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from werkzeug.datastructures import FileStorage, MultiDict

from builder.model.errors import RequestError
from builder.model.records import DraftFile, VersionFile
from builder.model.version_files import text_of
from publisher.web.editor.line_ends import restore_line_ends, with_line_feeds
from publisher.write.folders import parse_files
from publisher.write.zips import read_zip

# How the data of a row begins: as a text of the editor's field, or as the bytes of an upload.
TEXT, BASE64 = "text,", "base64,"


class FileRow(Struct, frozen=True):
    """A file in the form. ``data`` is empty for the file that the base version has at this path."""

    path: str
    data: str = ""
    executable: bool = False
    removed: bool = False


class File(NamedTuple):
    """A file of a version."""

    data: bytes
    executable: bool


Files = Mapping[str, File]


class FileChange(NamedTuple):
    """A file that a publication adds, removes or changes; None before or after if it is absent.

    ``old_text`` and ``new_text`` are None for a binary file, and ``""`` for an absent one.
    """

    path: str
    old: File | None
    new: File | None

    @property
    def kind(self) -> str:
        return "changed" if self.old and self.new else "added" if self.new else "removed"

    @property
    def old_text(self) -> str | None:
        return text_of(self.old.data) if self.old else ""

    @property
    def new_text(self) -> str | None:
        return text_of(self.new.data) if self.new else ""


def files_of(record: VersionFile, data: Iterable[bytes]) -> dict[str, File]:
    """The files of a version by their paths."""
    listed = zip(record.files or (), data, strict=True)
    return {one.path: File(raw, one.executable) for one, raw in listed}


def rows_of(files: Files) -> tuple[FileRow, ...]:
    """The rows that show the files of a version."""
    return tuple(FileRow(path, executable=one.executable) for path, one in files.items())


def read_rows(form: MultiDict[str, str]) -> tuple[FileRow, ...]:
    """The rows of a request. Checkboxes name a row by its place."""
    executable, removed = {*form.getlist("file-executable")}, {*form.getlist("file-removed")}
    pairs = zip(form.getlist("file-path"), form.getlist("file-data"), strict=False)
    return tuple(
        FileRow(
            path.strip(),
            "" if str(at) in removed else with_line_feeds(data),
            str(at) in executable,
            str(at) in removed,
        )
        for at, (path, data) in enumerate(pairs)
        if path or data
    )


def add_uploads(
    rows: tuple[FileRow, ...], uploads: MultiDict[str, FileStorage], folder: str
) -> tuple[tuple[FileRow, ...], str | None]:
    """The rows with the uploaded files, which replace those of the same path, and the text of an
    uploaded ZIP, None without one. A ZIP replaces all files.

    Raises RequestError as ``read_zip``.
    """
    found = {row.path: row for row in rows}
    text = None
    for packed in _sent(uploads, "zip"):
        fields = read_zip(packed.read())
        text = fields.get("content")
        found = {path: replace(row, data="", removed=True) for path, row in found.items()}
        for one in fields["files"]:
            found[one["path"]] = FileRow(one["path"], BASE64 + one["base64"], one["executable"])
    start = "/".join(filter(None, folder.strip().split("/")))
    for one in _sent(uploads, "upload"):
        path = f"{start}/{one.filename}" if start else one.filename
        row = found.get(path) or FileRow(path)
        data = BASE64 + b64encode(one.read()).decode()
        found[path] = replace(row, data=data, removed=False)
    return tuple(found.values()), text


def _sent(uploads: MultiDict[str, FileStorage], field: str) -> list[FileStorage]:
    # A browser sends an empty part for a field without a file.
    return [one for one in uploads.getlist(field) if one.filename]


def data_of(row: FileRow, base: Files) -> bytes:
    """The bytes of a row. Raises ValueError if it has none."""
    known = base.get(row.path)
    if row.data.startswith(BASE64):
        return b64decode(row.data.removeprefix(BASE64), validate=True)
    if row.data.startswith(TEXT):
        text = row.data.removeprefix(TEXT)
        return restore_line_ends(text, (known and text_of(known.data)) or "").encode()
    if known is None:
        raise ValueError("is not in the version that you began with: upload it, or remove it")
    return known.data


def to_files(
    rows: Iterable[FileRow], base: Files, errors: dict[str, list[str]]
) -> list[DraftFile] | UnsetType:
    """The files to publish; UNSET if they are those of the ``base``. Faults go to ``errors``."""
    sent: list[tuple[dict[str, Any], File]] = []
    faults = []
    for row in rows:
        if row.removed:
            continue
        try:
            data = data_of(row, base)
        except ValueError as error:
            faults.append(f"files[{row.path}]: {error}.")
            continue
        one = {"path": row.path, "base64": b64encode(data).decode(), "executable": row.executable}
        sent.append((one, File(data, row.executable)))
    pairs = [(one["path"], file) for one, file in sent]
    if not faults and dict(pairs) == base and len(pairs) == len(base):
        return UNSET
    try:
        files = parse_files([one for one, _ in sent])
    except RequestError as error:
        faults += [f"{field}: {message}." for field, message in error.details] or [str(error)]
    except ValueError as error:
        faults.append(f"This version {error}.")
    if faults:
        errors["files"] = faults
        return UNSET
    return files


def changes_of(old: Files, new: Files) -> list[FileChange]:
    """The files that differ, in the order of their paths."""
    return [
        FileChange(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    ]


def rebase_rows(
    mine: tuple[FileRow, ...], old: tuple[FileRow, ...], new: tuple[FileRow, ...]
) -> tuple[FileRow, ...]:
    """The author's rows as a change of other files: rows that equal ``old`` become ``new``."""
    before = {row.path: row for row in old}
    changed = {row.path: row for row in mine if before.get(row.path) != row}
    found = {row.path: row for row in new} | changed
    kept = {row.path for row in new}
    # A row without data is gone if the file that it means is.
    return tuple(row for row in found.values() if row.data or row.path in kept)
