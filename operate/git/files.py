"""The files of the content folder that are on the branch, and their bytes.

Only content is on the branch: no text that an interrupted publication left, no file that starts
with a dot, and nothing beside the owners' folders.
"""

import hashlib
import os
import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from builder.model import names
from builder.model.errors import ContentError, Fault
from builder.model.labels import event_file
from builder.model.names import Version
from builder.model.records import CONTENT_BYTES_MAX
from builder.model.version_files import BYTES_MAX, FOLDER_SUFFIX, PATH_PATTERN
from builder.model.withdrawn import WHOLE, withdrawn_file
from builder.store import content
from builder.store.content import HOME_BYTES_MAX, HOME_FILE, OWNER_FILE, RECORD_BYTES_MAX
from builder.store.label_files import EVENT_BYTES_MAX
from builder.store.plain_files import MISSING, read_file
from builder.store.withdrawn_files import FILE_BYTES_MAX, NOTHING_WITHDRAWN, WithdrawnListing

PLAIN, EXECUTABLE = "100644", "100755"

_version_file = re.compile(
    rf"[^/]+/[^/]+/({names.VERSION_PATTERN})(?:\.md|\.json|{FOLDER_SUFFIX}/({PATH_PATTERN}))"
)
_event_file = re.compile(r"[^/]+/[^/]+/labels/([1-9][0-9]{0,8})\.json")
_withdrawn_file = re.compile(rf"[^/]+/[^/]+/withdrawn/({names.VERSION_PATTERN}|{WHOLE})\.json")


class Place(NamedTuple):
    """Files that are compared together: a repo; without a name, the owner's profile; without an
    owner too, the home page.
    """

    owner: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """The path in the content folder: a repo's folder, or the single file of another place."""
        return f"{self.owner}/{self.name or OWNER_FILE}" if self.owner else HOME_FILE


HOME = Place()


class Blob(NamedTuple):
    """A file as git has it: its mode, and the name of its blob."""

    mode: str
    id: str


def place_of(path: str) -> Place | None:
    """The place of a file of the content folder; None if it is not content."""
    if path == HOME_FILE:
        return HOME
    owner, _, rest = path.partition("/")
    if not names.is_name(owner, names.OWNER_CHARS_MAX) or owner in names.RESERVED_OWNERS:
        return None
    if rest == OWNER_FILE:
        return Place(owner)
    name = rest.partition("/")[0]
    is_file = version_in(path) or event_in(path) or withdrawal_in(path)
    return Place(owner, name) if is_file and names.is_name(name, names.REPO_CHARS_MAX) else None


def version_in(path: str) -> str | None:
    """The version if the path is that of its text, its record or one of its files."""
    found = _version_file.fullmatch(path)
    return found and found[1]


def file_in(path: str) -> str | None:
    """The path of a version's file in its folder; None for other paths."""
    found = _version_file.fullmatch(path)
    return found and found[2]


def by_version(paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths of texts, records and files, by their version."""
    found: dict[str, list[str]] = {}
    for path in paths:
        if version := version_in(path):
            found.setdefault(version, []).append(path)
    return found


def event_in(path: str) -> int | None:
    """The number if the path is that of a label change."""
    found = _event_file.fullmatch(path)
    return found and int(found[1])


def withdrawal_in(path: str) -> str | None:
    """The version that the file of this path withdraws, or WHOLE."""
    found = _withdrawn_file.fullmatch(path)
    return found and found[1]


def withdrawn_in(paths: Iterable[str]) -> WithdrawnListing:
    """All versions that these files of a repo withdraw."""
    found = {what for what in map(withdrawal_in, paths) if what}
    return WithdrawnListing(frozenset(found - {WHOLE}), WHOLE in found)


def is_gone(withdrawn: WithdrawnListing, path: str) -> bool:
    """True for the text, the record or a file of a withdrawn version."""
    version = version_in(path)
    return bool(version) and withdrawn.has(version)


def bytes_max(path: str) -> int:
    """The largest size of a file of the content."""
    if path == HOME_FILE:
        return HOME_BYTES_MAX
    if file_in(path):
        return BYTES_MAX
    if path.endswith(".md"):
        return CONTENT_BYTES_MAX
    if event_in(path):
        return EVENT_BYTES_MAX
    return FILE_BYTES_MAX if withdrawal_in(path) else RECORD_BYTES_MAX


def modes_in(root: str, place: Place) -> dict[str, str]:
    """The mode of each file of a place, by its path in the content folder. The record of a version
    says which files it has. Raises ContentError, OperatorError.
    """
    if not place.name:
        return {place.path: PLAIN} if os.path.isfile(f"{root}/{place.path}") else {}
    listing = content.list_versions(root, place.owner, place.name)
    files = [f"{version}.{suffix}" for version in listing.versions for suffix in ("md", "json")]
    files += map(event_file, listing.events)
    if listing.withdrawn != NOTHING_WITHDRAWN:
        files += map(withdrawn_file, listing.withdrawn.files)
    modes = {f"{place.path}/{file}": PLAIN for file in files}
    for version in listing.versions:
        folder = f"{place.path}/{version}{FOLDER_SUFFIX}"
        if os.path.isdir(f"{root}/{folder}"):
            for one in content.read_record(root, *place, version).files or ():
                modes[f"{folder}/{one.path}"] = EXECUTABLE if one.executable else PLAIN
    return modes


def strays_in(
    root: str, place: Place, ours: Container[str], theirs: Iterable[str]
) -> frozenset[str]:
    """The paths on the branch in the folder of a version that exists here, but not in its record.
    Raises ContentError.
    """
    found = set[str]()
    for version, paths in by_version(theirs).items():
        new = {path for path in paths if file_in(path) and path not in ours}
        if new and f"{place.path}/{version}.json" in ours:
            record = content.read_record(root, *place, Version.parse(version))
            folder = f"{place.path}/{version}{FOLDER_SUFFIX}"
            found |= new - {f"{folder}/{one.path}" for one in record.files or ()}
    return frozenset(found)


def read(root: str, path: str) -> bytes:
    """The bytes of a file of the content. Raises OSError."""
    return read_file(f"{root}/{path}", bytes_max(path))


def blobs_in(root: str, place: Place) -> dict[str, Blob]:
    """The blob of each file of a place, by its path in the content folder. Raises OSError,
    ContentError, OperatorError.
    """
    blobs = {}
    for path, mode in modes_in(root, place).items():
        try:
            blobs[path] = Blob(mode, blob_id(read(root, path)))
        except FileNotFoundError:
            if file_in(path) and path in modes_in(root, place):  # else it was withdrawn meanwhile
                raise ContentError([Fault(path, MISSING)]) from None
            raise
    return blobs


def blob_id(data: bytes) -> str:
    """git's name for the blob with these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def places_in(root: str) -> Iterator[Place]:
    """All places of the content folder with valid names. Raises OSError."""
    for owner in content.named_folders(root, names.OWNER_CHARS_MAX):
        if owner not in names.RESERVED_OWNERS:
            yield Place(owner)
            for name in content.named_folders(f"{root}/{owner}", names.REPO_CHARS_MAX):
                yield Place(owner, name)
    yield HOME
