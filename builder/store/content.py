"""Reads the content tree (see ``content_tree``), the source of truth. Never writes."""

import contextlib
import hashlib
import os
import time
from functools import lru_cache
from typing import NamedTuple

import msgspec

from builder.model import names
from builder.model.content_tree import (
    FILE,
    FORMAT,
    FORMAT_FILE,
    HOME,
    LABEL,
    LABELS,
    PROFILE,
    RECORD,
    TEXT,
)
from builder.model.errors import ContentError, Fault, Faults, OperatorError
from builder.model.names import Version
from builder.model.records import LabelFile, OwnerFile, StoredFile, VersionFile
from builder.store import withdrawn_files
from builder.store.plain_files import (
    files_in,
    mark_of_files,
    read_file,
    read_record_file,
    read_record_if_there,
    statuses_below,
)
from builder.store.restored import check_not_restoring
from builder.store.withdrawn_files import NOTHING_WITHDRAWN, WithdrawnListing

NO_FILE_MARK = "none"
# The newest format of the content folder that this release reads. A release that writes files which
# older ones would misread raises it, and writes it to FORMAT_FILE first. Releases up to 1.0 do not
# check it.
FORMAT_NUMBER = 2
CHANGED = (
    "changed after publication: its hash differs from the record; restore it from a backup, "
    "and publish the change as a new version"
)

_decode_version = msgspec.json.Decoder(VersionFile).decode
_decode_owner = msgspec.json.Decoder(OwnerFile).decode
_decode_event = msgspec.json.Decoder(LabelFile).decode


class RepoListing(NamedTuple):
    """One listing of a repo's folder: its committed versions, in version order, without withdrawn
    ones.

    ``events`` has a mark for each change of a label, by its number, in order (see
    ``mark_of_files``). ``left``: files of withdrawn versions, by name, that remained after a crash.
    """

    versions: list[Version]
    events: dict[int, str]
    withdrawn: WithdrawnListing = NOTHING_WITHDRAWN
    left: tuple[str, ...] = ()


# The kernel's clock for file times ticks every 1 to 10 ms.
CLOCK_GRAIN_NS = 20_000_000


def repo_path(root: str, owner: str, name: str) -> str:
    return f"{root}/{owner}/{name}"


def check_folder(root: str) -> None:
    """Raises OperatorError if the content folder is missing, half restored, or of a newer
    release.
    """
    if not os.path.isdir(root):
        raise _no_folder(root)
    check_not_restoring(root)
    try:
        check_format(root)
    except OSError as error:
        raise _unreadable(f"{root}/{FORMAT_FILE}", error) from None


def check_format(root: str) -> int:
    """The format of a content folder. Raises OperatorError if a newer release wrote it; OSError."""
    path = f"{root}/{FORMAT_FILE}"
    try:
        text = read_file(path, FORMAT.bytes_max).decode(errors="replace").strip()
    except FileNotFoundError:
        return 1
    if not (text.isascii() and text.isdecimal()):
        raise OperatorError(f"{path} must have the number of a format, and nothing else.")
    if int(text) > FORMAT_NUMBER:
        raise OperatorError(
            f"{root} was written by a newer release of hub (format {text}; this release reads up "
            f"to {FORMAT_NUMBER}). Upgrade to that release, or restore a backup from before the "
            "upgrade."
        )
    return int(text)


def _unreadable(path: str, error: OSError) -> OperatorError:
    return OperatorError(
        f"Cannot read {path}: {error.strerror}. Let the user who runs hubctl read it."
    )


def _no_folder(path: str) -> OperatorError:
    return OperatorError(
        f"No content folder {path}. Run the command in a hub's folder, pass --content DIR, or "
        "create a hub with `hubctl init DIR`."
    )


def list_owners(root: str) -> list[str]:
    """The handles of all owners' folders, sorted. Raises ContentError, OperatorError."""
    if os.path.isdir(root):
        check_folder(root)
    return _list_folders(root, "", names.OWNER_CHARS_MAX)


def list_repos(root: str, owner: str) -> list[str]:
    """The names of an owner's repo folders, sorted. Raises ContentError."""
    return _list_folders(f"{root}/{owner}", owner, names.REPO_CHARS_MAX)


def _list_folders(path: str, where: str, chars_max: int) -> list[str]:
    folders, faults = [], Faults()
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if fault := _fault_of_folder(entry, where, chars_max):
                    faults.append(Fault(os.path.join(where, entry.name), fault))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    except FileNotFoundError:
        raise _no_folder(path) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    faults.check()
    return sorted(folders)


def _fault_of_folder(entry: os.DirEntry[str], where: str, chars_max: int) -> str:
    """The fault of an entry beside the folders of owners or repos; empty if it may be there."""
    if entry.is_symlink():
        return "symbolic link; replace it with a plain file or folder"
    if entry.is_dir(follow_symlinks=False):
        if not names.is_name(entry.name, chars_max):
            return "invalid name; use a-z, 0-9 and single hyphens between them"
        if not where and entry.name in names.RESERVED_OWNERS:
            return "reserved name; choose another name for the owner"
    return ""


def list_versions(root: str, owner: str, name: str) -> RepoListing:
    """The names in one repo's folder; opens no file. A missing folder has no versions.

    A listing of a folder during a write proves that a name existed, never that one was missing. So
    changes of labels are listed before the versions that they name, and withdrawals after the files
    that they remove. A text that seems to be missing is looked up by its name. Raises ContentError
    for a record without text, a link, or too many versions.
    """
    repo, path = f"{owner}/{name}", repo_path(root, owner, name)
    faults = Faults()
    events = _list_events(root, repo, faults)
    texts, records, folders = set[str](), set[str](), set[str]()
    files = {TEXT: texts, RECORD: records, FILE: folders}
    for kind, version, _ in files_in(root, repo, "", faults):
        files[kind].add(version)
    withdrawn = withdrawn_files.list_withdrawn(root, repo, faults)
    gone = texts | records | folders if withdrawn.is_whole else withdrawn.versions
    alive = records - gone
    lost = {text for text in alive - texts if not _is_there(f"{path}/{TEXT.file(text)}")}
    if not all(_is_there(f"{path}/{RECORD.file(text)}") for text in lost):
        return list_versions(root, owner, name)  # A withdrawal has removed both meanwhile.
    faults += [
        Fault(
            f"{repo}/{RECORD.file(text)}",
            f"record without text; restore {TEXT.file(text)} from a backup",
        )
        for text in lost
    ]
    if len(alive) + len(withdrawn.versions) > names.VERSIONS_PER_REPO_MAX:
        faults.append(Fault(repo, f"more than {names.VERSIONS_PER_REPO_MAX:,} versions"))
    faults.check()
    left = [kind.entry(version) for kind, found in files.items() for version in found & gone]
    versions = [*map(_parse, sorted(alive, key=_parse))]
    return RepoListing(versions, events, withdrawn, tuple(sorted(left)))


def _list_events(root: str, repo: str, faults: list[Fault]) -> dict[int, str]:
    """The mark of each change of a label (see ``mark_of_files``) by its number, in order; opens
    none. Adds to ``faults`` as ``files_in``, and for too many files.
    """
    settled_ns, marks = time.time_ns() - CLOCK_GRAIN_NS, {}
    for _, number, entry in files_in(root, repo, LABELS, faults):
        with contextlib.suppress(FileNotFoundError):  # Removed by hand meanwhile.
            status = entry.stat(follow_symlinks=False)
            marks[int(number)] = mark_of_files((status,), settled_ns)
    if len(marks) > names.LABEL_EVENTS_PER_REPO_MAX:
        limit = names.LABEL_EVENTS_PER_REPO_MAX
        faults.append(Fault(f"{repo}/{LABELS}", f"more than {limit:,} changes of labels"))
    return dict(sorted(marks.items()))


@lru_cache(2 * names.VERSIONS_PER_REPO_MAX)
def _parse(version: str) -> Version:
    return Version(*map(int, version.split(".")))


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(path, error) from None
    return True


def version_mark(root: str, owner: str, name: str, version: Version) -> str:
    """Changes whenever the text, the record or a file of a version is touched. Empty if the text or
    the record is missing, or if one is so young that another change within the grain of the file
    system's clock could leave the same mark.
    """
    folder = repo_path(root, owner, name)
    settled_ns = time.time_ns() - CLOCK_GRAIN_NS
    try:
        found = [os.lstat(f"{folder}/{kind.file(version)}") for kind in (TEXT, RECORD)]
        found += statuses_below(f"{folder}/{FILE.entry(version)}")
        return mark_of_files(found, settled_ns)
    except OSError:
        return ""  # Reading the version reports the reason.


def repo_mark(root: str, owner: str, name: str) -> str:
    """One mark of all files in a repo's folder, cheaper than ``list_versions``.

    Empty if a file is too young (see version_mark), or if there is no folder.
    """
    settled_ns = time.time_ns() - CLOCK_GRAIN_NS
    try:
        mark = mark_of_files([*statuses_below(repo_path(root, owner, name))], settled_ns)
    except OSError:
        return ""  # list_versions reports the reason.
    return mark and hashlib.blake2b(mark.encode(), digest_size=12).hexdigest()


def owner_mark(root: str, owner: str) -> str:
    """As a version's mark, of the owner's profile; ``none`` if there is none."""
    return _file_mark(f"{root}/{owner}/{PROFILE.file()}")


def home_mark(root: str) -> str:
    """As ``owner_mark``, of the operator's text on the home page."""
    return _file_mark(f"{root}/{HOME.path}")


def _file_mark(path: str) -> str:
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return NO_FILE_MARK
    return mark_of_files((status,), time.time_ns() - CLOCK_GRAIN_NS)


def read_record(root: str, owner: str, name: str, version: Version) -> VersionFile:
    """One version's record, without its text. Raises ContentError."""
    file = f"{owner}/{name}/{RECORD.file(version)}"
    return read_record_file(root, file, _decode_version, RECORD.bytes_max)


def read_version(root: str, owner: str, name: str, version: Version) -> tuple[VersionFile, str]:
    """One version's record and text, checked against each other. Raises ContentError."""
    record = read_record(root, owner, name, version)
    front = record.front_matter_bytes or 0
    return record, read_text(root, owner, name, version, record.sha256, front)


def read_text(
    root: str, owner: str, name: str, version: Version, sha256: str, front_matter_bytes: int = 0
) -> str:
    """One version's text, checked against the values of its record. Raises ContentError."""
    file = f"{owner}/{name}/{TEXT.file(version)}"
    raw_text = read_record_file(root, file, bytes, TEXT.bytes_max)
    if hashlib.sha256(raw_text).hexdigest() != sha256:
        raise ContentError([Fault(file, CHANGED)])
    try:
        text = raw_text.decode()
    except UnicodeDecodeError as error:
        raise ContentError([Fault(file, f"not UTF-8 at byte {error.start:,}")]) from None
    end = front_matter_bytes
    if end > len(raw_text) or (end < len(raw_text) and raw_text[end] & 0xC0 == 0x80):
        reason = f"front_matter_bytes is {end:,}, which is not the start of a character"
        raise ContentError([Fault(f"{owner}/{name}/{RECORD.file(version)}", reason)])
    return text


def read_files(
    root: str, owner: str, name: str, version: Version, record: VersionFile
) -> list[bytes]:
    """The bytes of a version's files, in the order of its record. Raises ContentError if one is
    missing or has another hash.
    """
    found, faults = [], Faults()
    for one in record.files or ():
        with faults:
            found.append(read_version_file(root, owner, name, version, one))
    faults.check()
    return found


def read_version_file(
    root: str, owner: str, name: str, version: Version, stored: StoredFile
) -> bytes:
    """The bytes of one of a version's files. Raises ContentError if it is missing or has another
    hash.
    """
    file = f"{owner}/{name}/{FILE.file(version, stored.path)}"
    data = read_record_file(root, file, bytes, FILE.bytes_max)
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise ContentError([Fault(file, CHANGED)])
    return data


def read_event(root: str, repo: str, number: int) -> LabelFile:
    """One change of a label of ``repo`` (``owner/name``). Raises ContentError."""
    return read_record_file(root, f"{repo}/{LABEL.file(number)}", _decode_event, LABEL.bytes_max)


def read_owner(root: str, owner: str) -> OwnerFile | None:
    """An owner's profile; None if the owner has not written one. Raises ContentError."""
    return read_record_if_there(root, f"{owner}/{PROFILE.file()}", _decode_owner, PROFILE.bytes_max)


def read_home(root: str) -> str:
    """The operator's text on the home page, in Markdown; empty if there is none. Raises
    ContentError.
    """
    return read_record_if_there(root, HOME.path, bytes.decode, HOME.bytes_max) or ""
