"""Puts a version on the disk so that all of it exists or none of it, whatever happens.

The order, under the repo's lock: the owner's profile (on a first publication), the files in their
folder, the text, the record. Each is written to a temporary name in the repo's folder and synced.
Then it gets its name by ``link``, which is atomic and fails where the name exists (POSIX,
https://pubs.opengroup.org/onlinepubs/9799919799/functions/link.html); the folder of files gets its
name by ``rename``. So nothing published is ever overwritten. The link of the record is the commit
point. Then the folder is synced: ``fsync`` of a file does not sync its entry in the folder
(https://man7.org/linux/man-pages/man2/fsync.2.html). The folders above are synced before the first
commit, so a power cut cannot take away the folder of a committed version.

A crash can leave a temporary file or folder (its name starts with a dot, and the next writer of
that folder removes it), a text or files without a record (not a version; they are replaced when
their number is used), or an empty folder.

The lock is ``flock`` on the repo's folder itself. It needs no file of its own in the content, and a
crash releases it. It belongs to the open file, so it excludes other threads as well as other
processes of the machine (https://man7.org/linux/man-pages/man2/flock.2.html). NFS emulates it with
``fcntl`` locks, and the exclusive one needs a file that is open for writing, which a folder never
is: publish on the machine that has the disk.

A change of a label is one file in the folder ``labels`` of the repo, written in the same way; its
link is its commit point. The repo's folder is synced before. So the change never names a version
that a power cut can take away.

A withdrawal is one file in the folder ``withdrawn`` of the repo, written in the same way; its link
is its commit point. Only then are the withdrawn text and record removed.

The file system has to keep the order of a folder's changes, as ext4, XFS and btrfs do. On one that
does not (ext2), a power cut before the answer can leave a record without its text. That blocks the
repo until an operator removes the record. What was acknowledged is safe there too.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from builder.model import content_tree as tree
from builder.model.errors import RequestError
from builder.store.content import FORMAT_NUMBER, check_format, repo_path
from builder.store.restored import check_not_restoring
from publisher.write import synced_files

_Made = tuple[str, os.stat_result]

_TEMPORARY = ".publish.tmp"
_PROFILE_TEMPORARY = ".owner.tmp"
_FILES_TEMPORARY = ".publish.files.tmp"
FORMAT_TEXT = f"{FORMAT_NUMBER}\n".encode()
_THEN = "send the same request again: nothing is saved twice"


@contextlib.contextmanager
def repo_lock(root: str, owner: str, name: str) -> Iterator[None]:
    """Holds the exclusive right to publish to a repo or to move its labels; waits for the current
    holder.

    Creates the repo's folder, and removes it if the work fails before a version is in it. Raises
    RequestError ``storage_unavailable``; OperatorError where the content is half restored, or was
    written by a newer release.
    """
    check_not_restoring(root)
    with synced_files.telling(_THEN), contextlib.ExitStack() as held:
        check_format(root)
        held.callback(os.close, _lock_folder(root, owner, name))
        try:
            yield
        except BaseException:
            remove_empty(root, owner, name)
            raise


def remove_empty(root: str, owner: str, name: str) -> None:
    """Removes a repo's folder if it is empty, and then its owner's folder if that is empty too.
    The caller holds the repo's lock.
    """
    with contextlib.suppress(OSError):
        os.rmdir(repo_path(root, owner, name))
        os.rmdir(f"{root}/{owner}")


class NewVersion(NamedTuple):
    """The stored parts of a version: its text, its record, and the bytes of its files by path."""

    text: bytes
    record: bytes
    files: Mapping[str, bytes] = MappingProxyType({})


def write_version(
    root: str,
    repo: str,
    version: str,
    new: NewVersion,
    *,
    profile: bytes | None = None,
    sync: bool = True,
) -> None:
    """Stores a new version of ``owner/name``, durably when this returns. The caller holds the
    repo's lock.

    ``profile`` comes with a repo's first version, for an owner who has nothing yet. Without
    ``sync`` nothing waits for the disk: the caller calls ``os.sync()`` before it acknowledges the
    version. POSIX lets ``sync`` return early, but Linux waits for the writes
    (https://man7.org/linux/man-pages/man2/sync.2.html). Raises RequestError
    ``storage_unavailable``, ``version_conflict``.
    """
    owner, name = repo.split("/")
    folder = repo_path(root, owner, name)
    files_path = f"{folder}/{tree.FILE.entry(version)}"
    text_path, record_path = (f"{folder}/{kind.file(version)}" for kind in (tree.TEXT, tree.RECORD))
    conflict = f"{repo} {version} was published by another process at the same time. Publish again."
    with synced_files.telling(_THEN):
        with _all_or_none(record_path, conflict) as made:
            if new.files and check_format(root) < FORMAT_NUMBER:
                _raise_format(root, folder, sync)
            if profile is not None:
                if is_alone(root, owner, name):
                    _put(folder, f"{root}/{owner}/{tree.OWNER_FILE}", profile, made, sync)
                if sync:
                    synced_files.sync_folder(f"{root}/{owner}")
            if sync and (new.files or profile is not None):
                # Another process may have raised the format, and died before it synced the root.
                synced_files.sync_folder(root)
            if not os.path.lexists(record_path):
                # A crash left these.
                synced_files.unlink(text_path)
                synced_files.remove(files_path)
            if new.files:
                _put_files(folder, files_path, new.files, made, sync)
            _put(folder, text_path, new.text, made, sync)
            _put(folder, record_path, new.record, made, sync)
        if sync:
            synced_files.sync_folder(folder)


def _raise_format(root: str, folder: str, sync: bool) -> None:
    """Raises the content's format before it has a version with files. The caller syncs the root."""
    with _temporary_file(folder, FORMAT_TEXT, sync) as (temporary, _):
        os.rename(temporary, f"{root}/{tree.FORMAT_FILE}")


def write_events(
    root: str, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
) -> None:
    """Stores changes of labels, each a number and a file, durably when this returns. The caller
    holds the repo's lock. Stores all of them or none, unless the process is killed in between.

    ``sync`` as in write_version. Raises RequestError ``storage_unavailable``, ``version_conflict``.
    """
    folder = repo_path(root, owner, name)
    paths = [f"{folder}/{tree.LABEL.file(number)}" for number, _ in events]
    conflict = (
        f"Another process changed the labels of {owner}/{name} at the same time. Send the same "
        "request again."
    )
    with synced_files.telling(_THEN):
        synced_files.make_folder(f"{folder}/{tree.LABELS}")
        if sync:
            synced_files.sync_folder(folder)
        with _all_or_none(paths[-1], conflict) as made:
            for path, (_, data) in zip(paths, events, strict=True):
                _put(f"{folder}/{tree.LABELS}", path, data, made, sync)
        if sync:
            synced_files.sync_folder(f"{folder}/{tree.LABELS}")


def write_withdrawal(
    root: str, owner: str, name: str, what: str, data: bytes, *, sync: bool = True
) -> None:
    """Stores a withdrawal of ``what`` (a version, or WHOLE), durably once ``remove_withdrawn``
    returns. The caller holds the repo's lock.

    ``sync`` as in write_version. Raises RequestError ``storage_unavailable``, ``version_conflict``.
    """
    folder = repo_path(root, owner, name)
    with synced_files.telling(_THEN):
        synced_files.make_folder(f"{folder}/{tree.WITHDRAWN}")
        if sync:
            # Without this, a disk that does not keep the order could remove the text and lose the
            # withdrawal that says why.
            synced_files.sync_folder(folder)
        path = f"{folder}/{tree.WITHDRAWAL.file(what)}"
        conflict = f"Another process withdrew it from {owner}/{name} at the same time."
        with _all_or_none(path, conflict) as made:
            _put(f"{folder}/{tree.WITHDRAWN}", path, data, made, sync)


def remove_withdrawn(
    root: str, owner: str, name: str, files: Iterable[str], *, sync: bool = True
) -> None:
    """Makes sure that withdrawals outlast a power cut, then removes the ``files`` of the repo's
    folder that they withdraw. The caller holds the repo's lock. Raises RequestError
    ``storage_unavailable``.
    """
    folder = repo_path(root, owner, name)
    with synced_files.telling("withdraw it again: it is withdrawn, and this removes its text"):
        if sync:
            synced_files.sync_folder(f"{folder}/{tree.WITHDRAWN}")
        # A crash may have left the temporary file as a second name of the text.
        for file in (_TEMPORARY, _FILES_TEMPORARY, *files):
            synced_files.remove(f"{folder}/{file}")
        if sync:
            synced_files.sync_folder(folder)


def replace_profile(
    root: str, owner: str, data: bytes, may: Callable[[], bool] = lambda: True
) -> None:
    """Replaces an owner's profile by these bytes, durably when this returns. Does so only if
    ``may``, called under the lock of the owner's folder, returns True.

    Readers find the old or the new profile, whole: ``rename`` is atomic (POSIX,
    https://pubs.opengroup.org/onlinepubs/9799919799/functions/rename.html). If two
    writers are concurrent, the last one wins. Creates the owner's folder. Raises RequestError
    ``storage_unavailable``, and what ``may`` raises.
    """
    folder = f"{root}/{owner}"
    temporary = f"{folder}/{_PROFILE_TEMPORARY}"
    with synced_files.telling("save the profile again"), contextlib.ExitStack() as held:
        descriptor = synced_files.lock_folder(folder, lambda: synced_files.make_folder(folder))
        held.callback(os.close, descriptor)
        if not may():
            return
        synced_files.unlink(temporary)  # what a crash left
        held.callback(synced_files.unlink, temporary)
        synced_files.write_new(temporary, data)
        os.rename(temporary, f"{folder}/{tree.OWNER_FILE}")
        os.fsync(descriptor)
        synced_files.sync_folder(root)  # the owner's folder may be new


def sync_repo(root: str, owner: str, name: str) -> None:
    """Makes sure that the versions and labels seen in a repo's folder outlast a power cut.

    The process that committed one may have died before it synced the folder. Raises RequestError
    ``storage_unavailable``.
    """
    folder = repo_path(root, owner, name)
    with synced_files.telling(_THEN):
        synced_files.sync_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            synced_files.sync_folder(f"{folder}/{tree.LABELS}")


def _lock_folder(root: str, owner: str, name: str) -> int:
    """Returns the descriptor of the repo's folder, locked until it is closed."""
    path = repo_path(root, owner, name)

    def make() -> None:
        synced_files.make_folder(f"{root}/{owner}")
        # Not found: another publication created the owner's folder, failed, and removed it again.
        with contextlib.suppress(FileNotFoundError):
            synced_files.make_folder(path)

    return synced_files.lock_folder(path, make)


def is_alone(root: str, owner: str, name: str) -> bool:
    """True if the owner has nothing but this repo.

    Two concurrent first repos may each see the other. Then the owner has no profile, and the site
    shows what it would have said: the handle, and the time of the first repo.
    """
    return not any(
        entry != name and not entry.startswith(".") for entry in os.listdir(f"{root}/{owner}")
    )


@contextlib.contextmanager
def _all_or_none(commit: str, conflict: str) -> Iterator[list[_Made]]:
    """Gathers the files that are put in place. Removes them again if the work fails before the file
    ``commit`` exists.

    Raises RequestError ``version_conflict`` with the message ``conflict`` where one of the files
    exists already.
    """
    made: list[_Made] = []
    try:
        yield made
    except BaseException as error:
        # A failed ``link`` may have made the name nevertheless, so only the commit point says
        # whether all files are in place.
        if not os.path.lexists(commit):
            _take_back(made)
        if isinstance(error, FileExistsError):
            raise RequestError("version_conflict", conflict) from None
        raise


def _take_back(made: list[_Made]) -> None:
    """Removes the files that were put in place, as far as the disk allows."""
    with contextlib.suppress(OSError):
        for path, status in reversed(made):
            # The owner may have written another profile meanwhile: that one stays.
            if os.path.samestat(status, os.stat(path)):
                synced_files.remove(path)


def _put(folder: str, target: str, data: bytes, made: list[_Made], sync: bool) -> None:
    with _temporary_file(folder, data, sync) as (temporary, status):
        os.link(temporary, target)
        made.append((target, status))


@contextlib.contextmanager
def _temporary_file(folder: str, data: bytes, sync: bool) -> Iterator[_Made]:
    temporary = f"{folder}/{_TEMPORARY}"
    # A crash may have left this name as a second link to a published file: never write into it.
    synced_files.unlink(temporary)
    try:
        yield temporary, synced_files.write_new(temporary, data, sync=sync)
    finally:
        with contextlib.suppress(OSError):  # the next publication removes it
            os.unlink(temporary)


def _put_files(
    folder: str, target: str, files: Mapping[str, bytes], made: list[_Made], sync: bool
) -> None:
    temporary = f"{folder}/{_FILES_TEMPORARY}"
    synced_files.remove(temporary)
    try:
        folders = {temporary: None}
        for path in files:
            above = path.split("/")[:-1]
            folders |= {"/".join((temporary, *above[:n])): None for n in range(1, len(above) + 1)}
        for one in folders:
            os.mkdir(one)
        for path, data in files.items():
            synced_files.write_new(f"{temporary}/{path}", data, sync=sync)
        for one in folders if sync else ():
            synced_files.sync_folder(one)
        if os.path.lexists(target):  # `rename` replaces an empty folder
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        status = os.stat(temporary)
        os.rename(temporary, target)
        made.append((target, status))
    finally:
        with contextlib.suppress(OSError):  # the next publication removes it
            synced_files.remove(temporary)
