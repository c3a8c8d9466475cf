"""The text and the files of a version to publish, and their fields in a request.

Pure: reads no files of earlier versions.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from builder.model import version_files
from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.plural import counted
from builder.model.records import StoredFile
from builder.model.request_bodies import Draft, DraftFile
from builder.model.version_files import media_type
from publisher.accounts.token import find_token
from publisher.write.fields import decode

_file = msgspec.json.Decoder(DraftFile)
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
IS_POINTER = "is a pointer of Git LFS, not the file itself: run `git lfs pull`, and send it again"


class VersionFolder:
    """A version's text and files: the entries of its record, with their bytes."""

    def __init__(self, text: str, stored: Sequence[StoredFile], data: Sequence[bytes]) -> None:
        self.text_sha256 = _sha256(text.encode())
        self.stored = stored
        self.files = {one.path: raw for one, raw in zip(stored, data, strict=True)}

    @classmethod
    def of(cls, draft: Draft) -> Self:
        """The text and files of a draft; no files if it does not name any."""
        given = sorted(draft.files or (), key=lambda one: one.path)
        data = [one.data for one in given]
        stored = [
            StoredFile(one.path, len(raw), _sha256(raw), media_type(one.path), one.executable)
            for one, raw in zip(given, data, strict=True)
        ]
        return cls(draft.content, stored, data)

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(map(len, self.files.values()))

    @cached_property
    def content_sha256(self) -> str | UnsetType:
        """The record's field of this name; UNSET without files."""
        if not self.stored:
            return UNSET
        return version_files.content_sha256(self.text_sha256, self.stored)

    @property
    def whole_sha256(self) -> str:
        """The hash of text and files, as in ``VersionFile``."""
        return self.content_sha256 or self.text_sha256


def tell_kept(stored: Sequence[StoredFile]) -> str:
    """The warning that a version keeps the files of the previous one."""
    return (
        f"Kept {counted(len(stored), 'file')} of the previous version. To replace them, send "
        "`files` or push the folder; to remove them, send an empty list or push one without files."
    )


def parse_files(value: Any, bytes_max: int) -> list[DraftFile]:
    """The field ``files`` of a publication. Raises ValueError for a wrong list, RequestError
    ``validation_failed`` with the path of each wrong file, ``secret_detected``, and the errors of
    ``check_files``.
    """
    if not isinstance(value, list):
        raise ValueError('must be a list of files: [{"path": "run.sh", "content": "…"}]')
    found, details = [], []
    for place, one in enumerate(value):
        try:
            found.append(_parse_file(one))
        except ValueError as error:
            path = one.get("path") if isinstance(one, Mapping) else None
            details.append(Detail(field_of(path if isinstance(path, str) else place), str(error)))
    if details:
        raise validation_failed(*details)
    if pointers := [one.path for one in found if one.data.startswith(LFS_POINTER)]:
        raise validation_failed(*(Detail(field_of(path), IS_POINTER) for path in pointers))
    check_files([(one.path, len(one.data)) for one in found], bytes_max)
    for place, one in enumerate(found):
        # The message about a path with a token does not repeat it.
        shown = f"The path files[{place}]" if find_token(one.path) else f"The file {one.path}"
        if find_token(f"{one.path}\n{one.data.decode('latin-1')}"):
            raise RequestError(
                "secret_detected",
                f"{shown} contains an access token of this hub. Remove it and revoke it: anyone "
                "who has seen it can publish as its owner.",
            )
    return found


def check_files(files: Iterable[tuple[str, int]], bytes_max: int) -> None:
    """Raises RequestError with all faults of files with these paths and sizes:
    ``content_too_large`` if only their total size exceeds ``bytes_max``, else
    ``validation_failed``.
    """
    sizes = [*files]
    found = version_files.find_faults([path for path, _ in sizes])
    faults = [Detail(field_of(path), fault) for path, fault in found]
    if (total := sum(size for _, size in sizes)) > bytes_max:
        largest, size = max(sizes, key=itemgetter(1))
        too_large = (
            f"{total:,} bytes, {bytes_max:,} at most: leave some out. The largest is {largest}, "
            f"with {size:,} bytes"
        )
        if not faults:
            raise RequestError("content_too_large", f"The files have {too_large}.")
        faults.insert(0, Detail("files", f"have {too_large}"))
    if faults:
        raise validation_failed(*faults)


def field_of(path: str | int) -> str:
    """The name of a file in an error: its path, or its place in the list."""
    shown = path if isinstance(path, int) else path.encode("utf-8", "replace").decode()
    return f"files[{shown}]" if shown != "" else "files"


def _parse_file(value: Any) -> DraftFile:
    """A file of the request. Raises ValueError."""
    path = value.get("path") if isinstance(value, dict) else None
    if isinstance(path, str) and (fault := version_files.fault_of_path(path)):
        raise ValueError(fault)
    try:
        return decode(_file, "", value)
    except RequestError as error:
        place, message = error.details[0]
        raise ValueError(f"`{place[1:]}`: {message}" if place else message) from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
