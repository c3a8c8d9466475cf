"""Where backups are: a folder, or a bucket. What is there is private."""

import contextlib
import fcntl
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Union

from builder.model.errors import OperatorError
from builder.store.plain_files import read_file
from operate.folders import find_overlap

if TYPE_CHECKING:
    from operate.backup.bucket import BucketPlace

# Of so many new files, each is synced; of more, all that the machine has to write, at once.
SYNCED_ONE_BY_ONE_MAX = 1000

_has_scheme = re.compile(r"[a-z0-9+.-]+:/", re.IGNORECASE).match


class FolderPlace:
    """Keys and their bytes, in files that are for their user alone.

    All methods but ``close`` may raise OperatorError; ``get``, ``put`` and ``delete`` are called
    from several threads. ``checks_arrival``: whether a ``put`` that returned has stored the very
    bytes.
    """

    checks_arrival = False

    def __init__(self, name: str, apart_from: Iterable[str] = ()) -> None:
        self.name = name
        # Since the last ``sync``.
        self._written: list[str] = []
        self.root = os.path.realpath(os.path.expanduser(name))
        if folder := find_overlap(self.root, apart_from):
            raise OperatorError(
                f"The backup folder {name} and the folder {folder} overlap. Choose a folder "
                "apart from the hub's, best on another disk."
            )

    @contextlib.contextmanager
    def lock(self, on_wait: Callable[[], None], *, shared: bool = False) -> Iterator[None]:
        """Hold the right to change what is there; ``shared``: that nobody changes it."""
        with self._explained("use", self.root):
            if not shared:
                os.makedirs(self.root, mode=0o700, exist_ok=True)
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(descriptor, kind)
            except OSError:
                # A mounted share that has no locks; two backups of one hub still take turns.
                pass
            yield
        finally:
            os.close(descriptor)

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key that begins so, also of what is not ours."""
        folder, _, start = prefix.rpartition("/")
        with self._explained("read", f"{self.root}/{folder}"):
            yield from self._keys(folder, start)

    def _keys(self, folder: str, start: str = "") -> Iterator[str]:
        with (
            contextlib.suppress(FileNotFoundError),
            os.scandir(f"{self.root}/{folder}") as entries,
        ):
            for entry in entries:
                if not entry.name.startswith(start):
                    continue
                key = f"{folder}/{entry.name}".lstrip("/")
                if entry.is_dir(follow_symlinks=False):
                    yield from self._keys(key)
                else:
                    yield key

    def get(self, key: str, bytes_max: int) -> bytes | None:
        """The bytes under a key; None where there are none. More than that are an error."""
        path = f"{self.root}/{key}"
        with self._explained("read", path):
            try:
                return read_file(path, bytes_max)
            except FileNotFoundError:
                return None

    def put(self, key: str, data: bytes) -> None:
        """Store the bytes, whole or not at all."""
        path = f"{self.root}/{key}"
        folder, _, name = path.rpartition("/")
        # A killed backup leaves it; as a key that no snapshot names, the next one removes it.
        temporary = f"{folder}/.{name}.{os.getpid()}-{threading.get_ident()}"
        with self._explained("write", path):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                with open(os.open(temporary, flags, 0o600), "wb") as file:
                    file.write(data)
                os.rename(temporary, path)
                self._written.append(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise

    def delete(self, key: str) -> None:
        """Remove a key; one that is not there is none."""
        path = f"{self.root}/{key}"
        with self._explained("remove", path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def sync(self) -> None:
        """Make sure that all that was done outlasts a power cut."""
        if len(self._written) > SYNCED_ONE_BY_ONE_MAX:
            os.sync()
        else:
            folders = {os.path.dirname(path) for path in self._written}
            # A new folder has a name, too.
            for path in [*self._written, *folders, *map(os.path.dirname, folders)]:
                with self._explained("write", path):
                    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                    try:
                        os.fsync(descriptor)
                    finally:
                        os.close(descriptor)
        self._written.clear()

    def close(self) -> None:
        """Let connections go."""

    @contextlib.contextmanager
    def _explained(self, what: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OperatorError(
                f"Cannot {what} {path}: {error.strerror or error}. Fix that, and run the command "
                "again. Finished snapshots are whole."
            ) from error


Place = Union[FolderPlace, "BucketPlace"]


def open_place(
    name: str, *, endpoint_url: str | None = None, apart_from: Iterable[str] = ()
) -> Place:
    """The place that people mean by ``s3://bucket/prefix`` or a folder's path.

    ``apart_from``: folders that must not hold the place, nor lie in it. Raises OperatorError.
    """
    if name.startswith("s3://"):
        from operate.backup.bucket import BucketPlace  # an optional library, and a slow one

        return BucketPlace(name, endpoint_url)
    if not name.strip() or _has_scheme(name):
        raise OperatorError(
            f"Unknown kind of backup {name!r}. Pass a folder (/mnt/backup/hub) or "
            "s3://BUCKET/PREFIX; add --endpoint-url for a service other than AWS."
        )
    return FolderPlace(name, apart_from)
