"""Puts a version on the disk so that it is there whole or not at all, whatever happens.

The order, under the repo's lock: the owner's profile (on a first publication), the text, the
record. Each goes to a temporary name in the repo's folder, is written and synced, and gets its
name by an exclusive ``link``, so nothing published is ever overwritten. The record's link is
the commit point; then the folder is synced. The folders above are synced before the first
commit, so a committed version never hangs in a folder that a power cut can take away.

What a crash can leave: a temporary file (its name starts with a dot, and the next publication
removes it), a text without record (no version; replaced when its number is used), an empty
folder. The lock is ``flock`` on the repo's folder itself: it needs no file of its own in the
content, a crash releases it, and it holds between threads as between processes of one machine.
Over NFS a folder cannot be locked so; publish on the machine that has the disk.

The file system has to keep the order of a folder's changes, as all do that have a journal or a
log (ext4, XFS, btrfs). On one that does not (ext2), a power cut before the answer can leave a
record without its text, which stops the repo until somebody removes it; what was acknowledged
is safe there too.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from builder.content import OWNER_FILE, repo_path
from builder.errors import RequestError

_TEMPORARY = ".publish.tmp"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Each failed attempt means that another publication came or went.
_LOCK_ATTEMPTS = 1000

_REMEDIES = {
    errno.ENOSPC: "Free some space on its disk",
    errno.EDQUOT: "Free some space on its disk, or raise the quota",
    errno.EROFS: "Make its disk writable",
    errno.EACCES: "Let this service write to it",
    errno.EPERM: "Let this service write to it",
    errno.ENOENT: "Make the content folder",
}


@contextlib.contextmanager
def repo_lock(root: str, owner: str, name: str) -> Iterator[None]:
    """Hold the only right to publish to a repo; waits for another publication to end.

    Makes the repo's folder, and removes it if the work fails before a version is in it.
    Raises RequestError ``storage_unavailable``.
    """
    with _telling(), contextlib.ExitStack() as held:
        held.callback(os.close, _lock_folder(root, owner, name))
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                os.rmdir(repo_path(root, owner, name))
                os.rmdir(f"{root}/{owner}")
            raise


def write_version(
    root: str,
    owner: str,
    name: str,
    version: str,
    text: bytes,
    record: bytes,
    *,
    profile: bytes | None = None,
    sync: bool = True,
) -> None:
    """Store a new version, for good when this returns; the caller holds the repo's lock.

    ``profile`` is given with a repo's first version, for an owner of whom there is nothing
    yet. Without ``sync`` nothing waits for the disk: the caller calls ``os.sync()`` before it
    tells anybody. Raises RequestError ``storage_unavailable``, ``version_conflict``.
    """
    folder = repo_path(root, owner, name)
    text_path, record_path = f"{folder}/{version}.md", f"{folder}/{version}.json"
    made: list[str] = []
    with _telling():
        try:
            if profile is not None:
                if _is_alone(root, owner, name):
                    _put(folder, f"{root}/{owner}/{OWNER_FILE}", profile, made, sync)
                if sync:
                    _sync_folder(f"{root}/{owner}")
                    _sync_folder(root)
            if not os.path.lexists(record_path):
                _unlink(text_path)  # a crash's rest
            _put(folder, text_path, text, made, sync)
            _put(folder, record_path, record, [], sync)
        except FileExistsError:
            raise RequestError(
                "version_conflict",
                f"Somebody else wrote {owner}/{name} {version} meanwhile; publish again.",
            ) from None
        except BaseException:
            # Only the record tells whether the version is there, even if link failed.
            if not os.path.lexists(record_path):
                with contextlib.suppress(OSError):
                    for path in reversed(made):
                        os.unlink(path)
            raise
        if sync:
            _sync_folder(folder)


def sync_repo(root: str, owner: str, name: str) -> None:
    """Make sure that the versions seen in a repo's folder outlast a power cut.

    Who committed one may have died before it could. Raises RequestError
    ``storage_unavailable``.
    """
    with _telling():
        _sync_folder(repo_path(root, owner, name))


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno, "Look after its disk")
        raise RequestError(
            "storage_unavailable",
            f"Cannot write to the content folder: {os.strerror(error.errno or errno.EIO)}. "
            f"{remedy}, then publish again; the same text is never stored twice.",
        ) from error


def _lock_folder(root: str, owner: str, name: str) -> int:
    """The descriptor of the repo's folder, locked until it is closed."""
    path = repo_path(root, owner, name)
    for _ in range(_LOCK_ATTEMPTS):
        try:
            descriptor = os.open(path, _FOLDER_FLAGS | os.O_NOFOLLOW)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(f"{root}/{owner}")
            # Not found: who made the owner's folder has failed, and removed it again.
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.mkdir(path)
            continue
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # While this waited, the holder may have failed and removed the folder.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    opened.pop_all()
                    return descriptor
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _is_alone(root: str, owner: str, name: str) -> bool:
    """Whether the owner has nothing but this repo.

    Two first repos at once may each see the other; then the owner has no profile, and the
    site shows what it would have said: the handle, and the time of the first repo.
    """
    return not any(
        entry != name and not entry.startswith(".") for entry in os.listdir(f"{root}/{owner}")
    )


def _put(folder: str, target: str, data: bytes, made: list[str], sync: bool) -> None:
    temporary = f"{folder}/{_TEMPORARY}"
    # A crash may have left it as a second name of a published file: never write into it.
    _unlink(temporary)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(temporary, target)
        made.append(target)
    finally:
        with contextlib.suppress(OSError):  # the next publication removes it
            os.unlink(temporary)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, _FOLDER_FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
