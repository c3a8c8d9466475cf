"""Puts a version on the disk so that it is there whole or not at all, whatever happens.

The order, under the repo's lock: the owner's profile (on a first publication), the text, the
record. Each goes to a temporary name in the repo's folder, is written and synced, and gets its
name by an exclusive ``link``, so nothing published is ever overwritten. The record's link is
the commit point; then the folder is synced. The folders above are synced before the first
commit, so a committed version never hangs in a folder that a power cut can take away.

What a crash can leave: a temporary file (its name starts with a dot, and the next one who writes
there removes it), a text without record (no version; replaced when its number is used), an empty
folder. The lock is ``flock`` on the repo's folder itself: it needs no file of its own in the
content, a crash releases it, and it holds between threads as between processes of one machine.
Over NFS a folder cannot be locked so; publish on the machine that has the disk.

A change of a label is one file in the folder ``labels`` of the repo, and gets there the same way;
its link is its commit point. The repo's folder is synced before, so it never names a version that
a power cut can take away.

A withdrawal is one file in the folder ``withdrawn`` of the repo, and gets there the same way; its
link is its commit point. Only then the text and the record that it takes away are removed.

The file system has to keep the order of a folder's changes, as all do that have a journal or a
log (ext4, XFS, btrfs). On one that does not (ext2), a power cut before the answer can leave a
record without its text, which stops the repo until somebody removes it; what was acknowledged
is safe there too.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from builder.model.errors import RequestError
from builder.model.labels import FOLDER, event_file
from builder.model.withdrawn import FOLDER as WITHDRAWN
from builder.model.withdrawn import withdrawn_file
from builder.store.content import OWNER_FILE, check_format, repo_path
from builder.store.restored import check_not_restoring
from publisher.write import synced_files

_Made = tuple[str, os.stat_result]

_TEMPORARY = ".publish.tmp"
_PROFILE_TEMPORARY = ".owner.tmp"
_THEN = "send the same request again: nothing is saved twice"


@contextlib.contextmanager
def repo_lock(root: str, owner: str, name: str) -> Iterator[None]:
    """Hold the only right to publish to a repo or to move its labels; waits for who has it.

    Makes the repo's folder, and removes it if the work fails before a version is in it.
    Raises RequestError ``storage_unavailable``; OperatorError where the content is half restored,
    or that of a newer release.
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
    """Remove the folder of a repo that has nothing, and that of its owner; the caller holds the
    repo's lock.
    """
    with contextlib.suppress(OSError):
        os.rmdir(repo_path(root, owner, name))
        os.rmdir(f"{root}/{owner}")


def write_version(
    root: str,
    repo: str,
    version: str,
    text: bytes,
    record: bytes,
    *,
    profile: bytes | None = None,
    sync: bool = True,
) -> None:
    """Store a new version of ``owner/name``, for good when this returns; the caller holds the
    repo's lock.

    ``profile`` is given with a repo's first version, for an owner of whom there is nothing
    yet. Without ``sync`` nothing waits for the disk: the caller calls ``os.sync()`` before it
    tells anybody. Raises RequestError ``storage_unavailable``, ``version_conflict``.
    """
    owner, name = repo.split("/")
    folder = repo_path(root, owner, name)
    text_path, record_path = f"{folder}/{version}.md", f"{folder}/{version}.json"
    conflict = f"{repo} {version} was published by another process at the same time. Publish again."
    with synced_files.telling(_THEN):
        with _all_or_none(record_path, conflict) as made:
            if profile is not None:
                if is_alone(root, owner, name):
                    _put(folder, f"{root}/{owner}/{OWNER_FILE}", profile, made, sync)
                if sync:
                    synced_files.sync_folder(f"{root}/{owner}")
                    synced_files.sync_folder(root)
            if not os.path.lexists(record_path):
                synced_files.unlink(text_path)  # a crash's rest
            _put(folder, text_path, text, made, sync)
            _put(folder, record_path, record, made, sync)
        if sync:
            synced_files.sync_folder(folder)


def write_events(
    root: str, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
) -> None:
    """Store changes of labels, each a number and a file, for good when this returns; the caller
    holds the repo's lock. All of them or none, unless the process is killed in between.

    ``sync`` as in write_version. Raises RequestError ``storage_unavailable``, ``version_conflict``.
    """
    folder = repo_path(root, owner, name)
    paths = [f"{folder}/{event_file(number)}" for number, _ in events]
    conflict = (
        f"Another process changed the labels of {owner}/{name} at the same time. Send the same "
        "request again."
    )
    with synced_files.telling(_THEN):
        synced_files.make_folder(f"{folder}/{FOLDER}")
        if sync:
            synced_files.sync_folder(folder)
        with _all_or_none(paths[-1], conflict) as made:
            for path, (_, data) in zip(paths, events, strict=True):
                _put(f"{folder}/{FOLDER}", path, data, made, sync)
        if sync:
            synced_files.sync_folder(f"{folder}/{FOLDER}")


def write_withdrawal(
    root: str, owner: str, name: str, what: str, data: bytes, *, sync: bool = True
) -> None:
    """Store a withdrawal (``what`` as in ``withdrawn_file``), for good once ``remove_withdrawn``
    returns; the caller holds the repo's lock.

    ``sync`` as in write_version. Raises RequestError ``storage_unavailable``, ``version_conflict``.
    """
    folder = repo_path(root, owner, name)
    with synced_files.telling(_THEN):
        synced_files.make_folder(f"{folder}/{WITHDRAWN}")
        if sync:
            # Or a disk that does not keep the order could remove the text, and have no reason why.
            synced_files.sync_folder(folder)
        path = f"{folder}/{withdrawn_file(what)}"
        conflict = f"Another process withdrew it from {owner}/{name} at the same time."
        with _all_or_none(path, conflict) as made:
            _put(f"{folder}/{WITHDRAWN}", path, data, made, sync)


def remove_withdrawn(
    root: str, owner: str, name: str, files: Iterable[str], *, sync: bool = True
) -> None:
    """Make sure that withdrawals outlast a power cut, then remove the ``files`` of the repo's
    folder that they take away; the caller holds the repo's lock. Raises RequestError
    ``storage_unavailable``.
    """
    folder = repo_path(root, owner, name)
    with synced_files.telling("withdraw it again: it is withdrawn, and this removes its text"):
        if sync:
            synced_files.sync_folder(f"{folder}/{WITHDRAWN}")
        # A crash may have left the temporary file as a second name of the text.
        for file in (_TEMPORARY, *files):
            synced_files.unlink(f"{folder}/{file}")
        if sync:
            synced_files.sync_folder(folder)


def replace_profile(
    root: str, owner: str, data: bytes, may: Callable[[], bool] = lambda: True
) -> None:
    """Put the bytes of a profile in the place of the one before, for good when this returns; only
    if it ``may`` once no one else writes it.

    Readers find the one or the other, whole; of two at once the last one stays. Makes the owner's
    folder. Raises RequestError ``storage_unavailable``, and what ``may`` raises.
    """
    folder = f"{root}/{owner}"
    temporary = f"{folder}/{_PROFILE_TEMPORARY}"
    with synced_files.telling("save the profile again"), contextlib.ExitStack() as held:
        descriptor = synced_files.lock_folder(folder, lambda: synced_files.make_folder(folder))
        held.callback(os.close, descriptor)
        if not may():
            return
        synced_files.unlink(temporary)  # a crash's rest
        held.callback(synced_files.unlink, temporary)
        synced_files.write_new(temporary, data)
        os.rename(temporary, f"{folder}/{OWNER_FILE}")
        os.fsync(descriptor)
        synced_files.sync_folder(root)  # the owner's folder may be new


def sync_repo(root: str, owner: str, name: str) -> None:
    """Make sure that the versions and labels seen in a repo's folder outlast a power cut.

    Who committed one may have died before it could. Raises RequestError
    ``storage_unavailable``.
    """
    folder = repo_path(root, owner, name)
    with synced_files.telling(_THEN):
        synced_files.sync_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            synced_files.sync_folder(f"{folder}/{FOLDER}")


def _lock_folder(root: str, owner: str, name: str) -> int:
    """The descriptor of the repo's folder, locked until it is closed."""
    path = repo_path(root, owner, name)

    def make() -> None:
        synced_files.make_folder(f"{root}/{owner}")
        # Not found: who made the owner's folder has failed, and removed it again.
        with contextlib.suppress(FileNotFoundError):
            synced_files.make_folder(path)

    return synced_files.lock_folder(path, make)


def is_alone(root: str, owner: str, name: str) -> bool:
    """Whether the owner has nothing but this repo.

    Two first repos at once may each see the other; then the owner has no profile, and the
    site shows what it would have said: the handle, and the time of the first repo.
    """
    return not any(
        entry != name and not entry.startswith(".") for entry in os.listdir(f"{root}/{owner}")
    )


@contextlib.contextmanager
def _all_or_none(commit: str, conflict: str) -> Iterator[list[_Made]]:
    """Gathers what is put in place, and takes it back if that fails before the file ``commit`` is
    there. Raises RequestError ``version_conflict`` with this message where one of the files is.
    """
    made: list[_Made] = []
    try:
        yield made
    except BaseException as error:
        # Only the commit point tells whether all is there, even if link failed.
        if not os.path.lexists(commit):
            _take_back(made)
        if isinstance(error, FileExistsError):
            raise RequestError("version_conflict", conflict) from None
        raise


def _take_back(made: list[_Made]) -> None:
    """Remove what was put in place, as far as the disk lets."""
    with contextlib.suppress(OSError):
        for path, status in reversed(made):
            # Unless its owner has written another profile meanwhile.
            if os.path.samestat(status, os.stat(path)):
                os.unlink(path)


def _put(folder: str, target: str, data: bytes, made: list[_Made], sync: bool) -> None:
    temporary = f"{folder}/{_TEMPORARY}"
    # A crash may have left it as a second name of a published file: never write into it.
    synced_files.unlink(temporary)
    try:
        status = synced_files.write_new(temporary, data, sync=sync)
        os.link(temporary, target)
        made.append((target, status))
    finally:
        with contextlib.suppress(OSError):  # the next publication removes it
            os.unlink(temporary)
