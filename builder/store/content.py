"""Reads the content tree, the source of truth. Never writes.

    content/home.md                       what the operator says of the hub (optional)
    content/{owner}/owner.json            the owner's profile (optional)
    content/{owner}/{name}/{x.y.z}.md     the published bytes of one version
    content/{owner}/{name}/{x.y.z}.json   its record; the version exists once this file does

An ``.md`` without its ``.json`` was left by a crash and is no version. Names that start with a
dot, and other plain files beside the owners' folders, are ignored. Everything else that is out of
place is a fault: a build fails rather than silently leave out a prompt.
"""

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from builder.model import names
from builder.model.errors import ContentError, Fault, OperatorError
from builder.model.names import Version
from builder.model.records import CONTENT_BYTES_MAX, OwnerFile, VersionFile
from builder.text.prompts import parse_document, variable_names

HOME_FILE = "home.md"
HOME_BYTES_MAX = 16 * 1024
OWNER_FILE = "owner.json"
NO_FILE_MARK = "none"
RECORD_BYTES_MAX = 2 * 1024 * 1024

_version_file = re.compile(f"({names.VERSION_PATTERN})\\.(md|json)")
_decode_version = msgspec.json.Decoder(VersionFile).decode
_decode_owner = msgspec.json.Decoder(OwnerFile).decode


class RepoListing(NamedTuple):
    """What one look at a repo's folder tells: its committed versions, in version order.

    ``marks`` has one string for each version, which differs whenever one of its two files
    was touched. It is empty where a file is so young that it may change again within the
    grain of the file system's clock and look the same.
    """

    versions: list[Version]
    marks: list[str]


# The kernel stamps files by a clock that ticks every 1 to 10 ms.
CLOCK_GRAIN_NS = 20_000_000


def repo_path(root: str, owner: str, name: str) -> str:
    return f"{root}/{owner}/{name}"


def check_folder(root: str) -> None:
    """Raises OperatorError where there is no content folder."""
    if not os.path.isdir(root):
        raise _no_folder(root)


def _no_folder(path: str) -> OperatorError:
    return OperatorError(
        f"No content folder {path}. Create it with `mkdir {path}`, or pass --content DIR."
    )


def list_owners(root: str) -> list[str]:
    """The handles of all owners' folders, sorted. Raises ContentError, OperatorError."""
    return _list_folders(root, ".", names.OWNER_CHARS_MAX)


def list_repos(root: str, owner: str) -> list[str]:
    """The names of an owner's repo folders, sorted. Raises ContentError."""
    return _list_folders(f"{root}/{owner}", owner, names.REPO_CHARS_MAX)


def _list_folders(path: str, where: str, chars_max: int) -> list[str]:
    folders, faults = [], []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                inside = entry.name if where == "." else f"{where}/{entry.name}"
                if entry.is_symlink():
                    faults.append(
                        Fault(inside, "symbolic link; replace it with a plain file or folder")
                    )
                elif entry.is_dir(follow_symlinks=False):
                    if not names.is_name(entry.name, chars_max):
                        faults.append(
                            Fault(
                                inside, "invalid name; use a-z, 0-9 and single hyphens between them"
                            )
                        )
                    elif where == "." and entry.name in names.RESERVED_OWNERS:
                        faults.append(
                            Fault(inside, "reserved name; choose another name for the owner")
                        )
                    else:
                        folders.append(entry.name)
    except FileNotFoundError:
        raise _no_folder(path) from None
    except OSError as error:
        raise OperatorError(
            f"Cannot read {path}: {error.strerror}. Let the user who runs hubctl read it."
        ) from None
    if faults:
        raise ContentError(sorted(faults))
    return sorted(folders)


def list_versions(root: str, owner: str, name: str) -> RepoListing:
    """Look at one repo's folder; no file is opened. No folder: no versions.

    Raises ContentError for a record without text, a link, or too many versions.
    """
    texts: dict[str, os.stat_result] = {}
    records: dict[str, os.stat_result] = {}
    faults = []
    try:
        entries = os.scandir(repo_path(root, owner, name))
    except FileNotFoundError:
        return RepoListing([], [])
    except OSError as error:
        raise OperatorError(
            f"Cannot read {error.filename}: {error.strerror}. Let the user who runs hubctl read it."
        ) from None
    with entries:
        for entry in entries:
            found = _version_file.fullmatch(entry.name)
            if not found:
                continue
            if not entry.is_file(follow_symlinks=False):
                faults.append(Fault(f"{owner}/{name}/{entry.name}", "not a plain file"))
                continue
            into = texts if found[2] == "md" else records
            into[found[1]] = entry.stat(follow_symlinks=False)
    faults += [
        Fault(f"{owner}/{name}/{text}.json", f"record without text; restore {text}.md")
        for text in records.keys() - texts.keys()
    ]
    if len(records) > names.VERSIONS_PER_REPO_MAX:
        faults.append(
            Fault(f"{owner}/{name}", f"more than {names.VERSIONS_PER_REPO_MAX:,} versions")
        )
    if faults:
        raise ContentError(sorted(faults))
    versions = sorted(Version(*map(int, text.split("."))) for text in records)
    settled_ns = time.time_ns() - CLOCK_GRAIN_NS
    return RepoListing(
        versions,
        [_mark((texts[text], records[text]), settled_ns) for text in map(str, versions)],
    )


def repo_mark(root: str, owner: str, name: str) -> str:
    """One mark of all files in a repo's folder, cheaper than ``list_versions``.

    Empty where a file is too young (see RepoListing), or where there is no folder.
    """
    settled_ns = time.time_ns() - CLOCK_GRAIN_NS
    parts = []
    try:
        with os.scandir(repo_path(root, owner, name)) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if status.st_ctime_ns >= settled_ns:
                    return ""
                parts.append(
                    f"{entry.name}\0{status.st_mode}.{status.st_ctime_ns}.{status.st_size}."
                    f"{status.st_ino}"
                )
    except OSError:
        return ""  # list_versions tells why
    joined = "\0".join(sorted(parts)).encode(errors="surrogateescape")
    return hashlib.blake2b(joined, digest_size=12).hexdigest()


def owner_mark(root: str, owner: str) -> str:
    """As a version's mark, of the owner's profile; ``none`` where there is none."""
    return _file_mark(f"{root}/{owner}/{OWNER_FILE}")


def home_mark(root: str) -> str:
    """As ``owner_mark``, of what the operator says of the hub."""
    return _file_mark(f"{root}/{HOME_FILE}")


def _file_mark(path: str) -> str:
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return NO_FILE_MARK
    return _mark((status,), time.time_ns() - CLOCK_GRAIN_NS)


def _mark(files: tuple[os.stat_result, ...], settled_ns: int) -> str:
    # The change time cannot be set by hand, and the inode tells a file put in another's place.
    if any(status.st_ctime_ns >= settled_ns for status in files):
        return ""
    return ".".join(
        f"{status.st_ctime_ns:x}.{status.st_size:x}.{status.st_ino:x}" for status in files
    )


def read_version(root: str, owner: str, name: str, version: Version) -> tuple[VersionFile, str]:
    """One version's record and text, checked against each other. Raises ContentError."""
    stem = f"{owner}/{name}/{version}"
    try:
        raw_record = _read(f"{root}/{stem}.json", RECORD_BYTES_MAX)
        raw_text = _read(f"{root}/{stem}.md", CONTENT_BYTES_MAX)
    except OSError as error:
        # A read that fails halfway names no file.
        path = os.path.relpath(error.filename or f"{root}/{stem}", root)
        raise ContentError([Fault(path, error.strerror or "unreadable")]) from None
    try:
        record = _decode_version(raw_record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentError([Fault(f"{stem}.json", str(error))]) from None
    if hashlib.sha256(raw_text).hexdigest() != record.sha256:
        raise ContentError(
            [Fault(f"{stem}.md", "changed after publication: its hash differs from the record; "
                   "restore it, and publish the change as a new version")]
        )  # fmt: skip
    try:
        text = raw_text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContentError([Fault(f"{stem}.md", f"not UTF-8 at byte {error.start:,}")]) from None
    end = record.front_matter_bytes or 0
    if end > len(raw_text) or (end < len(raw_text) and raw_text[end] & 0xC0 == 0x80):
        raise ContentError(
            [
                Fault(
                    f"{stem}.json",
                    f"front_matter_bytes is {end:,}, which is not the start of a character",
                )
            ]
        )
    return record, text


def _read(path: str, bytes_max: int) -> bytes:
    # Without O_NONBLOCK, a pipe in a file's place would wait for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        size = status.st_size
        if size > bytes_max:
            raise OSError(errno.EFBIG, f"larger than {bytes_max:,} bytes", path)
        data = os.read(descriptor, size + 1)
        while len(data) < size:
            more = os.read(descriptor, size - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def read_owner(root: str, owner: str) -> OwnerFile | None:
    """An owner's profile; None if the owner has not written one. Raises ContentError."""
    path = f"{root}/{owner}/{OWNER_FILE}"
    try:
        return _decode_owner(_read(path, RECORD_BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = error.strerror or "unreadable"
    except (ValueError, msgspec.DecodeError) as error:
        reason = str(error)
    raise ContentError([Fault(f"{owner}/{OWNER_FILE}", reason)])


def read_home(root: str) -> str:
    """What the operator says of the hub, in Markdown; empty if nothing. Raises ContentError."""
    try:
        return _read(f"{root}/{HOME_FILE}", HOME_BYTES_MAX).decode()
    except FileNotFoundError:
        return ""
    except OSError as error:
        reason = error.strerror or "unreadable"
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 at byte {error.start}"
    raise ContentError([Fault(HOME_FILE, reason)])


def check(root: str) -> Iterator[Fault]:
    """Every fault of the tree, in order of path: also those that a build ignores, and warnings."""
    yield from _faults_of(read_home, root)
    try:
        owners = list_owners(root)
    except ContentError as error:
        yield from error.faults
        owners = _readable(root, names.OWNER_CHARS_MAX)
    for owner in owners:
        yield from _faults_of(read_owner, root, owner)
        yield from _strays(f"{root}/{owner}", owner, {OWNER_FILE})
        try:
            repos = list_repos(root, owner)
        except ContentError as error:
            yield from error.faults
            repos = _readable(f"{root}/{owner}", names.REPO_CHARS_MAX)
        for name in repos:
            yield from _check_repo(root, owner, name)


def _readable(path: str, chars_max: int) -> list[str]:
    with os.scandir(path) as entries:
        return sorted(
            entry.name for entry in entries
            if entry.is_dir(follow_symlinks=False) and names.is_name(entry.name, chars_max)
        )  # fmt: skip


def _check_repo(root: str, owner: str, name: str) -> Iterator[Fault]:
    where = f"{owner}/{name}"
    try:
        versions = list_versions(root, owner, name).versions
    except ContentError as error:
        yield from error.faults
        return
    known = {f"{version}.{suffix}" for version in versions for suffix in ("md", "json")}
    yield from _strays(f"{root}/{where}", where, known)
    if not versions:
        yield Fault(where, "no versions")
    before = ""
    for version in versions:
        try:
            record, text = read_version(root, owner, name, version)
        except ContentError as error:
            yield from error.faults
            continue
        file = f"{where}/{version}.json"
        if record.published_at < before:
            yield Fault(file, "published_at is earlier than that of the version before")
        before = record.published_at
        if not text.strip():
            yield Fault(f"{where}/{version}.md", "no text")
        if "\0" in text:
            yield Fault(f"{where}/{version}.md", "contains a NUL character")
        over_limit = parse_document(text).over_limit
        if over_limit:
            told = f"the front matter is too large, so the site shows it as text: {over_limit}"
            yield Fault(f"{where}/{version}.md", told, is_warning=True)
        declared = {variable.name for variable in record.variables}
        missing = [found for found in variable_names(text) if found not in declared]
        if missing:
            yield Fault(file, f"undeclared variables of the text: {', '.join(missing)}")


def _faults_of(read, *args: str) -> Iterable[Fault]:
    try:
        read(*args)
    except ContentError as error:
        return error.faults
    return ()


def _strays(path: str, where: str, known: set[str]) -> Iterator[Fault]:
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.name in known:
                continue
            found = _version_file.fullmatch(entry.name)
            if found and found[2] == "md":
                yield Fault(
                    f"{where}/{entry.name}",
                    f"text without record {found[1]}.json, so not a version; "
                    "publish it again, or remove it",
                )
            elif not entry.is_dir(follow_symlinks=False):
                yield Fault(f"{where}/{entry.name}", "unexpected file; move it away")
            elif where.count("/") == 1:
                yield Fault(f"{where}/{entry.name}", "unexpected folder; move it away")
