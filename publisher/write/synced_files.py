"""Synced files and folders, locks, and errors of the disk: ``durable`` builds on these."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator

from builder.model.errors import RequestError
from builder.store import plain_files
from builder.store.shortage import remedy_for

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Each failed attempt means that another process created or removed the folder meanwhile. After so
# many, the lock fails with EAGAIN.
_LOCK_ATTEMPTS = 1000


@contextlib.contextmanager
def telling(then: str) -> Iterator[None]:
    """Turns a failure of the disk into RequestError ``storage_unavailable``. ``then`` is the advice
    for when the disk works again.
    """
    try:
        yield
    except OSError as error:
        is_gone = error.errno == errno.ENOENT
        remedy = "Create the content folder" if is_gone else remedy_for(error)
        raise RequestError(
            "storage_unavailable",
            f"Cannot write to the content folder: {os.strerror(error.errno or errno.EIO)}. "
            f"{remedy}, or tell the operator of this hub. Then {then}.",
        ) from error


def lock_folder(path: str, make: Callable[[], None]) -> int:
    """Returns the descriptor of a folder, locked until it is closed; waits for the current holder.

    ``make`` creates the folder, which may exist, or come and go meanwhile. Raises OSError.
    """
    for _ in range(_LOCK_ATTEMPTS):
        try:
            descriptor = os.open(path, _FOLDER_FLAGS | os.O_NOFOLLOW)
        except FileNotFoundError:
            make()
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


def make_folder(path: str) -> None:
    """Creates a folder, unless it exists."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)


def write_new(path: str, data: bytes, *, sync: bool = True) -> os.stat_result:
    """Creates a file that does not exist yet, whole and on the disk; returns its state.

    Raises FileExistsError where it exists (``O_EXCL``).
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if sync:
            os.fsync(descriptor)
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Makes sure that the names in a folder outlast a power cut.

    ``fsync`` of a file does not do this: the folder needs one of its own
    (https://man7.org/linux/man-pages/man2/fsync.2.html).
    """
    descriptor = os.open(path, _FOLDER_FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unlink(path: str) -> None:
    """Removes a file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove(path: str) -> None:
    """Removes a file, or a folder with all its entries, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        plain_files.remove(path)
