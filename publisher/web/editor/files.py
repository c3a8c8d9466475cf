"""The files of a version in the editor: the rows of its form, uploads, and their changes. Pure,
except that it reads uploads.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import zip_longest

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from werkzeug.datastructures import FileStorage, MultiDict

from builder.model.errors import RequestError
from builder.model.request_bodies import DraftFile
from builder.model.version_files import text_of
from publisher.web.editor.values import restore_line_ends, with_line_feeds
from publisher.web.pages.difference import File, Files
from publisher.write.folders import parse_files
from publisher.write.zips import read_zip

# The field of an error about a file.
_file_of = re.compile(r"^files\[(.+?)\]: ", re.DOTALL)
# The prefixes of a row's data: for a text from the editor's field, and for the bytes of an upload.
TEXT, BASE64 = "text,", "base64,"


class FileRow(Struct, frozen=True):
    """A file in the form. ``data`` is empty for the file that the base version has at ``source``.
    ``was``: the path of a renamed file there.
    """

    path: str
    data: str = ""
    executable: bool = False
    removed: bool = False
    was: str = ""

    @property
    def source(self) -> str:
        return self.was or self.path


def rows_of(files: Files, *, with_data: bool = False) -> tuple[FileRow, ...]:
    """The rows that show the files of a version; with their data for another prompt."""
    return tuple(
        FileRow(
            one.path,
            BASE64 + b64encode(one.data).decode() if with_data else "",
            executable=one.executable,
        )
        for one in files.values()
    )


def read_rows(form: MultiDict[str, str]) -> tuple[FileRow, ...]:
    """The rows of a request. Checkboxes name a row by its place."""
    executable, removed = {*form.getlist("file-executable")}, {*form.getlist("file-removed")}
    columns = [form.getlist(f"file-{name}") for name in ("path", "data", "was")]
    return tuple(
        FileRow(
            path.strip(),
            "" if str(at) in removed else with_line_feeds(data),
            str(at) in executable,
            str(at) in removed,
            was if was != path.strip() else "",
        )
        for at, (path, data, was) in enumerate(zip_longest(*columns, fillvalue=""))
        if path or data or was
    )


def add_uploads(
    rows: tuple[FileRow, ...], uploads: MultiDict[str, FileStorage], folder: str, bytes_max: int
) -> tuple[tuple[FileRow, ...], str | None, list[str]]:
    """The rows with the uploaded files; the text of an uploaded ZIP (None without one), and
    warnings about what is left out of it. A file replaces the one at the same path; a ZIP replaces
    all files.

    Raises RequestError as ``read_zip``.
    """
    found = [*rows]
    text, left_out = None, []
    for packed in _sent(uploads, "zip"):
        fields, left_out = read_zip(packed.read(), bytes_max)
        text = fields["content"]
        found = [replace(row, data="", removed=True) for row in found]
        for one in fields["files"]:
            _put(found, FileRow(one["path"], BASE64 + one["base64"], one["executable"]))
    start = "/".join(filter(None, folder.strip().split("/")))
    for one in _sent(uploads, "upload"):
        path = f"{start}/{one.filename}" if start else one.filename
        row = next((row for row in found if row.path == path), FileRow(path))
        data = BASE64 + b64encode(one.read()).decode()
        _put(found, replace(row, data=data, removed=False))
    return tuple(found), text, left_out


def _put(rows: list[FileRow], row: FileRow) -> None:
    """Put a row in the place of the one with its path, or at the end."""
    at = next((at for at, one in enumerate(rows) if one.path == row.path), len(rows))
    rows[at : at + 1] = [row]


def _sent(uploads: MultiDict[str, FileStorage], field: str) -> list[FileStorage]:
    # A browser sends an empty part for a field without a file.
    return [one for one in uploads.getlist(field) if one.filename]


def data_of(row: FileRow, base: Files) -> bytes:
    """The bytes of a row. Raises ValueError if it has none."""
    known = base.get(row.source)
    if row.data.startswith(BASE64):
        return b64decode(row.data.removeprefix(BASE64), validate=True)
    if row.data.startswith(TEXT):
        text = row.data.removeprefix(TEXT)
        return restore_line_ends(text, (known and text_of(known.data)) or "").encode()
    if known is None:
        raise ValueError("is not in the version that you began with: upload it, or remove it")
    return known.data


def to_files(
    rows: Sequence[FileRow], base: Files, errors: dict[str, list[str]], bytes_max: int
) -> list[DraftFile] | UnsetType:
    """The files to publish; UNSET if they are those of the ``base``. Faults go to ``errors``.

    A form without rows leaves the files alone. The form of a version with files has a row for each,
    including removed ones.
    """
    found, faults = [], []
    for row in rows:
        if row.removed:
            continue
        if not row.path:
            which = f"“{row.was}”" if row.was else "A file"
            faults.append(f"{which} has no path: enter one, or remove it.")
            continue
        try:
            found.append(File(row.path, data_of(row, base), row.executable))
        except ValueError as error:
            faults.append(f"“{row.path}” {error}.")
    if not rows or (not faults and len(found) == len(base) and {*found} == {*base.values()}):
        return UNSET
    try:
        files = parse_files(
            [
                {"path": path, "base64": b64encode(data).decode(), "executable": executable}
                for path, data, executable in found
            ],
            bytes_max,
        )
    except RequestError as error:
        faults += faults_of(error, "This version")
    except ValueError as error:
        faults.append(f"This version {error}.")
    if faults:
        errors["files"] = faults
        return UNSET
    return files


def faults_of(error: RequestError, what: str = "The file") -> list[str]:
    """The sentences of an error about files, with their paths."""
    sentences = (
        f"{what} {message}." if field == "files" else _file_of.sub(r"“\1” ", f"{field}: {message}.")
        for field, message in error.details
    )
    return [*sentences] or [str(error)]


def rebase_rows(
    mine: tuple[FileRow, ...], old: tuple[FileRow, ...], new: tuple[FileRow, ...]
) -> tuple[FileRow, ...]:
    """The author's changes to ``old``, applied to ``new``. Other rows become those of ``new``."""
    before = {row.path: row for row in old}
    kept = {row.path: row for row in new}
    found = dict(kept)
    for row in mine:
        found.pop(row.was, None)
    for row in mine:
        old, theirs = before.get(row.source), kept.get(row.source)
        if row == old:
            continue
        # The bytes and the executable bit merge independently.
        is_theirs = old and theirs and row.executable == old.executable
        found[row.path] = replace(row, executable=theirs.executable) if is_theirs else row
    # A row without data stands for a file of the version. If that file is gone, so is the row.
    return tuple(row for row in found.values() if row.data or row.source in kept)
