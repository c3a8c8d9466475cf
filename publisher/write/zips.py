"""A ZIP with the files of a version, as the fields of a publication.

The sender is not trusted: the sizes and names that the ZIP declares are checked before anything is
extracted, and nothing is written to disk under a name from it.
"""

import io
import re
import stat
import struct
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from builder.model.errors import Detail, RequestError, cut, validation_failed
from builder.model.plural import some_of
from builder.model.records import CONTENT_BYTES_MAX
from builder.model.version_files import FILES_MAX, TEXT_NAMES
from publisher.write.folders import check_files, field_of
from publisher.write.left_out import (
    ENVIRONMENT_FILE,
    FILE,
    IGNORE_BYTES_MAX,
    IGNORE_FILE,
    LINK,
    OTHER,
    TEXT,
    WRONG_RULES,
    FolderRule,
    tell_left_out,
)

# The limit of a ZIP's central directory: enough for FILES_MAX files and their folders.
LIST_BYTES_MAX = 256 * 1024
_END, _END_BYTES, _LOCATOR_64, _LOCATOR_BYTES = b"PK\5\6", 22, b"PK\6\7", 20
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OUTSIDE = "leads out of the folder: use names with / between them"
_SHOWN = 10
_environment_of_top = re.compile(f"[^/]*/{re.escape(ENVIRONMENT_FILE)}")

# Entries with their paths.
_Entries = list[tuple[str, zipfile.ZipInfo]]


def read_zip(data: bytes, bytes_max: int) -> tuple[dict[str, Any], list[str]]:
    """The fields ``content`` and ``files``, and warnings that name what is left out. Paths omit a
    folder that contains all entries. ``bytes_max``: of the files.

    Raises RequestError ``validation_failed`` with the path of each wrong entry;
    ``content_too_large``.
    """
    _check_end(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            entries = [(one.filename, one) for one in file.infolist()]
            if not any("/" in name for name, _ in entries):  # some programs of Windows write this
                entries = [(name.replace("\\", "/"), one) for name, one in entries]
            entries = [one for one in entries if not one[0].endswith("/")]
            entries, left = _sort_out(file, entries)
            _check_entries(entries, bytes_max)
            found = [(path, one, _read(file, one)) for path, one in entries]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise _refused(f"is not a readable ZIP ({error})") from None
    fields: dict[str, Any] = {"files": []}
    for path, entry, raw in found:
        if path in TEXT_NAMES:
            try:
                fields["content"] = raw.decode()
            except UnicodeDecodeError as error:
                fault = f"{path} is not UTF-8 at byte {error.start:,}: save it as UTF-8"
                raise validation_failed(Detail("content", fault)) from None
        else:
            executable = bool(entry.external_attr >> 16 & stat.S_IXUSR)
            one = {"path": path, "base64": b64encode(raw).decode(), "executable": executable}
            fields["files"].append(one)
    return fields, tell_left_out(left.items())


def _check_end(data: bytes) -> None:
    """Checks the size of the central directory that the record at the ZIP's end declares."""
    at = data.rfind(_END)
    if at < 0 or len(data) - at < _END_BYTES:
        raise _refused("is not a whole ZIP")
    size, _, comment = struct.unpack("<IIH", data[at + 12 : at + _END_BYTES])
    if at + _END_BYTES + comment != len(data):
        raise _refused("is not a whole ZIP")
    if data[max(at - _LOCATOR_BYTES, 0) : at].startswith(_LOCATOR_64) or size > LIST_BYTES_MAX:
        raise _refused(f"has too many files: {FILES_MAX} is the limit")


def _sort_out(file: zipfile.ZipFile, entries: _Entries) -> tuple[_Entries, dict[str, str]]:
    """The entries of the version, by their paths in its folder; and what is left out."""
    if outside := [name for name, _ in entries if {"..", ""} & {*name.split("/")}]:
        raise validation_failed(*(Detail(field_of(name), _OUTSIDE) for name in outside))
    kinds = {name: _kind_of(one) for name, one in entries}
    # Beside the text, the file of an environment does not make its folder one.
    kept, left = FolderRule().sort_out(
        {name: one for name, one in kinds.items() if not _environment_of_top.fullmatch(name)}
    )
    text = _text_of(kept)
    folder = text.rpartition("/")[0] + "/" if "/" in text else ""
    rule = _read_rules(file, entries, folder + IGNORE_FILE)
    here = [(name.removeprefix(folder), one) for name, one in entries if name.startswith(folder)]
    inside = {name: kinds[folder + name] for name, _ in here}
    found, more = rule.sort_out(inside | {text.removeprefix(folder): TEXT})
    left = {name: why for name, why in left.items() if not name.startswith(folder)} | more
    belongs = {*found}
    return [one for one in here if one[0] in belongs], left


def _read_rules(file: zipfile.ZipFile, entries: _Entries, path: str) -> FolderRule:
    for name, one in entries:
        if name != path and not name.startswith(f"{path}/"):
            continue
        is_right = name == path and _kind_of(one) == FILE and one.file_size <= IGNORE_BYTES_MAX
        if not is_right or _fault_of(one):
            raise validation_failed(Detail("files", f"{WRONG_RULES}: replace it"))
        try:
            return FolderRule(_read(file, one).decode(errors="surrogateescape"))
        except ValueError as error:
            raise validation_failed(Detail("files", f"{error}: correct it")) from None
    return FolderRule()


def _kind_of(entry: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    return {0: FILE, stat.S_IFREG: FILE, stat.S_IFLNK: LINK}.get(kind, OTHER)


def _text_of(names: Sequence[str]) -> str:
    """The path of the text."""
    first = names[0].partition("/")[0] + "/" if names else ""
    folder = first if first and all(name.startswith(first) for name in names) else ""
    texts = [name for name in names if name.rpartition("/")[2] in TEXT_NAMES]
    here = [name for name in texts if name.removeprefix(folder) in TEXT_NAMES]
    if len(here) == 1:
        return here[0]
    shown = some_of([cut(one, 200) for one in here or texts], _SHOWN) or "none"
    raise validation_failed(
        Detail(
            "content",
            "needs one SKILL.md or PROMPT.md at the top of the ZIP or in its only folder, and the "
            f"ZIP has {shown}: send a ZIP of the prompt's own folder",
        )
    )


def _check_entries(entries: _Entries, bytes_max: int) -> None:
    """Checks the declarations of all entries."""
    faults = [Detail(field_of(path), fault) for path, one in entries if (fault := _fault_of(one))]
    if faults:
        raise validation_failed(*faults)
    sizes = [(path, one.file_size) for path, one in entries if path not in TEXT_NAMES]
    check_files(sizes, bytes_max)
    for path, one in entries:
        if path in TEXT_NAMES and one.file_size > CONTENT_BYTES_MAX:
            raise RequestError(
                "content_too_large",
                f"{path} has {one.file_size:,} bytes, but {CONTENT_BYTES_MAX:,} is the limit. "
                "Shorten it, or move parts of it into other files.",
            )


def _fault_of(entry: zipfile.ZipInfo) -> str:
    """The reason why a declared entry cannot be a file of a version; empty if it can."""
    if entry.filename != entry.orig_filename:
        return "has a NUL character in its name: rename it"
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted: send a ZIP without a password"
    if entry.compress_type not in _METHODS:
        return "is compressed with a method other than Deflate: use Deflate"
    return ""


def _read(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of an entry, at most as many as it declares. Raises the errors of zipfile."""
    with file.open(entry) as opened:
        # zipfile extracts no more than this, and compares the checksum at its end.
        data = opened.read(entry.file_size)
        if len(data) != entry.file_size:
            raise zipfile.BadZipFile(f"{entry.filename} does not have the size that it declares")
    return data


def _refused(fault: str) -> RequestError:
    return validation_failed(Detail("files", f"{fault}: send a ZIP of the folder"))
