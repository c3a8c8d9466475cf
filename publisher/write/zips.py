"""A ZIP with the files of a version, as the fields of a publication.

The sender is not trusted: the sizes and names that the ZIP declares are checked before anything is
extracted, and nothing is written to disk under a name from it.
"""

import io
import stat
import struct
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.records import CONTENT_BYTES_MAX
from builder.model.version_files import FILES_MAX, TEXT_NAMES
from publisher.write.folders import check_files, field_of

# The limit of a ZIP's central directory: enough for FILES_MAX files and their folders.
LIST_BYTES_MAX = 256 * 1024
_END, _END_BYTES, _LOCATOR_64, _LOCATOR_BYTES = b"PK\5\6", 22, b"PK\6\7", 20
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# macOS adds these to each ZIP.
_IGNORED = ("__MACOSX/", ".DS_Store")


def read_zip(data: bytes) -> dict[str, Any]:
    """The fields ``files`` and, if the text is in the ZIP, ``content``. Paths omit a folder that
    contains all entries.

    Raises RequestError ``validation_failed`` with the path of each wrong entry;
    ``content_too_large``.
    """
    _check_end(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            entries = [one for one in file.infolist() if not _is_ignored(one)]
            paths = _paths_in([one.filename for one in entries])
            _check_entries(entries, paths)
            found = [_read(file, one) for one in entries]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise _refused(f"is not a readable ZIP ({error})") from None
    fields: dict[str, Any] = {"files": []}
    for entry, path, raw in zip(entries, paths, found, strict=True):
        if path in TEXT_NAMES:
            fields["content"] = _text(path, raw)
        else:
            executable = bool(entry.external_attr >> 16 & stat.S_IXUSR)
            one = {"path": path, "base64": b64encode(raw).decode(), "executable": executable}
            fields["files"].append(one)
    return fields


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


def _is_ignored(entry: zipfile.ZipInfo) -> bool:
    name = entry.filename
    return entry.is_dir() or name.startswith(_IGNORED) or name.rpartition("/")[2] in _IGNORED


def _paths_in(names: Sequence[str]) -> list[str]:
    """The paths of entries, without a folder that contains all of them and the text."""
    folder = names[0].partition("/")[0] + "/" if names else ""
    is_inside = all(name.startswith(folder) for name in names)
    if is_inside and any(f"{folder}{text}" in names for text in TEXT_NAMES):
        return [name.removeprefix(folder) for name in names]
    return [*names]


def _check_entries(entries: Sequence[zipfile.ZipInfo], paths: Sequence[str]) -> None:
    """Checks the declarations of all entries."""
    faults = [
        Detail(field_of(path), fault)
        for entry, path in zip(entries, paths, strict=True)
        if (fault := _fault_of(entry))
    ]
    texts = [path for path in paths if path in TEXT_NAMES]
    if len(texts) > 1:
        faults.append(Detail("content", f"is in the ZIP twice, as {' and '.join(texts)}: send one"))
    if faults:
        raise validation_failed(*faults)
    sizes = [(path, entry.file_size) for entry, path in zip(entries, paths, strict=True)]
    check_files([one for one in sizes if one[0] not in TEXT_NAMES])
    if any(size > CONTENT_BYTES_MAX for path, size in sizes if path in TEXT_NAMES):
        raise RequestError(
            "content_too_large",
            f"{texts[0]} has more than {CONTENT_BYTES_MAX:,} bytes, which is the limit. Shorten "
            "it, or move parts of it into other files.",
        )


def _fault_of(entry: zipfile.ZipInfo) -> str:
    """The reason why a declared entry cannot be a file of a version; empty if it can."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.filename != entry.orig_filename:
        return "has a NUL character in its name: rename it"
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device: send plain files"
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


def _text(path: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        fault = f"{path} is not UTF-8 at byte {error.start:,}: save it as UTF-8"
        raise validation_failed(Detail("content", fault)) from None


def _refused(fault: str) -> RequestError:
    return validation_failed(Detail("files", f"{fault}: send a ZIP of the folder"))
