"""The place of backups: a folder or a bucket. Everything in it is private."""

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Union

from builder.model.errors import OperatorError, explained
from builder.store.plain_files import read_file
from operate.folders import find_overlap, is_bucket
from publisher.write.synced_files import sync_folder

if TYPE_CHECKING:
    from operate.backup.bucket import BucketPlace

_AGAIN = "Fix that, and run the command again. Finished snapshots are whole."


class FolderPlace:
    """Keys and their bytes, in files that only their user can read.

    All methods may raise OperatorError, and several threads may call them. What ``put`` and
    ``delete`` have done outlasts a power cut.
    """

    def __init__(self, name: str, apart_from: Iterable[str] = ()) -> None:
        self.name = name
        self.root = os.path.realpath(os.path.expanduser(name))
        if folder := find_overlap(self.root, apart_from):
            raise OperatorError(
                f"The backup folder {name} and the folder {folder} overlap. Choose a folder "
                "apart from the hub's, best on another disk."
            )

    def keys(self, folder: str) -> Iterator[str]:
        """Every key in ``folder``, also those of other programs; empty for all."""
        top = f"{self.root}/{folder}".rstrip("/")
        with explained("read", top, _AGAIN):
            for path, _, files in os.walk(top, onerror=_raise):
                for file in files:
                    yield f"{path}/{file}".removeprefix(f"{self.root}/")

    def get(self, key: str, bytes_max: int) -> bytes | None:
        """The bytes under a key; None if there are none. More than that are an error."""
        path = f"{self.root}/{key}"
        with explained("read", path, _AGAIN), contextlib.suppress(FileNotFoundError):
            return read_file(path, bytes_max)
        return None

    def put(self, key: str, data: bytes) -> None:
        """Store the bytes, whole or not at all."""
        path = f"{self.root}/{key}"
        folder, _, name = path.rpartition("/")
        # A killed backup leaves it; the next backup removes all keys that no snapshot needs.
        temporary = f"{folder}/.{name}.{os.getpid()}-{threading.get_ident()}"
        with explained("write", path, _AGAIN):
            _make_folder(folder)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                with open(os.open(temporary, flags, 0o600), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            sync_folder(folder)

    def delete(self, key: str) -> None:
        """Remove a key; a missing one is no error."""
        path = f"{self.root}/{key}"
        with explained("remove", path, _AGAIN), contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            sync_folder(os.path.dirname(path))


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _make_folder(path: str) -> None:
    """Create a private folder and those above it, durably."""
    if not os.path.isdir(path):
        _make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):  # another thread was faster
            os.mkdir(path, 0o700)
        sync_folder(os.path.dirname(path))


Place = Union[FolderPlace, "BucketPlace"]


def open_place(
    name: str, *, endpoint_url: str | None = None, apart_from: Iterable[str] = ()
) -> Place:
    """The place with this name: ``s3://bucket/prefix``, or the path of a folder.

    ``apart_from``: folders that must not hold the place, nor lie in it. Raises OperatorError.
    """
    if is_bucket(name, "backup", "/mnt/backup/hub"):
        # loaded late: an optional library, and slow to load
        from operate.backup.bucket import BucketPlace

        return BucketPlace(name, endpoint_url)
    return FolderPlace(name, apart_from)
