"""A folder as the destination: of a web server on this machine, or mounted from another.

Files are replaced whole, by a temporary name and a rename, and are on the disk before that. They
can be read by everybody, whatever the umask: the web server is somebody else.
"""

import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator

from builder.model.errors import OperatorError
from builder.store.site import ONE_SECOND_NS
from operate.deploy.order import Put
from operate.folders import find_overlap

_TEMPORARY = ".hubctl-deploy"
_CHUNK_BYTES = 1 << 20
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


class Folder:
    """See ``Destination``. A mark is time, size and kind of a file."""

    has_rules = True

    def __init__(
        self, name: str, apart_from: Iterable[str] = (), check: Callable[[], None] = lambda: None
    ) -> None:
        self._check = check
        self.root = os.path.realpath(os.path.expanduser(name))
        if folder := find_overlap(self.root, apart_from):
            raise OperatorError(
                f"The destination {name} and the folder {folder} overlap. Use three separate "
                "folders for site, state and destination."
            )
        self.identity = f"folder {self.root}"
        self._touched: set[str] = set()
        self._leftovers: set[str] = set()
        self._lock = threading.Lock()

    def list(self) -> Iterator[tuple[str, str]]:
        if not os.path.lexists(self.root):
            return
        try:
            yield from self._list(self.root, "")
        except OSError as error:
            raise OperatorError(
                f"Cannot read {error.filename or self.root}: {error.strerror}. Nothing was "
                "changed. Deploy as a user who may read it, or to another folder."
            ) from None

    def _list(self, folder: str, prefix: str) -> Iterator[tuple[str, str]]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    if entry.name.endswith(_TEMPORARY):
                        self._leftovers.add(entry.path)  # of a deployment that was killed
                elif entry.is_dir(follow_symlinks=False):
                    yield from self._list(entry.path, f"{prefix}{entry.name}/")
                else:
                    yield prefix + entry.name, _mark(entry.stat(follow_symlinks=False))

    def holds(self, put: Put) -> bool:
        path = f"{self.root}/{put.key}"
        with _explained(path), contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if _mark(status).endswith(f".{put.size}") and not _lacks(status, _FILE_MODE):
                with open(path, "rb") as file:
                    return hashlib.file_digest(file, "md5").digest() == put.md5
        return False

    def put(self, put: Put, path: str) -> str:
        target = f"{self.root}/{put.key}"
        folder, _, name = target.rpartition("/")
        temporary = f"{folder}/.{name}{_TEMPORARY}"
        with _explained(target):
            self._make_folder(folder)
            times_ns = [os.stat(path).st_mtime_ns]
            with contextlib.suppress(FileNotFoundError):
                # nginx and Caddy make the ETag from whole seconds and the size: bytes that differ
                # must not look like the old ones, also where the site is older than what is there.
                times_ns.append(os.lstat(target).st_mtime_ns + ONE_SECOND_NS)
            try:
                with open(path, "rb") as source, open(temporary, "wb") as file:
                    hasher = hashlib.md5(usedforsecurity=False)
                    while chunk := source.read(_CHUNK_BYTES):
                        hasher.update(chunk)
                        file.write(chunk)
                    file.flush()
                    _allow(file.fileno(), _FILE_MODE)
                    os.utime(file.fileno(), ns=(max(times_ns), max(times_ns)))
                    os.fsync(file.fileno())
                    status = os.fstat(file.fileno())
                if hasher.digest() != put.md5 or status.st_size != put.size:
                    raise OperatorError(
                        f"{put.file} changed during the deployment. Let only `hubctl` write to "
                        "the site and the state, and deploy again."
                    )
                self._check()
                os.rename(temporary, target)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise
        with self._lock:
            self._touched.add(folder)
        return _mark(status)

    def delete(self, key: str) -> None:
        path = f"{self.root}/{key}"
        with _explained(path):
            self._check()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            with contextlib.suppress(OSError):  # a folder that is in use, as most are
                while (path := os.path.dirname(path)) != self.root:
                    os.rmdir(path)
        with self._lock:
            self._touched.add(path)

    def end_group(self) -> None:
        for path in self._leftovers:
            with _explained(path), contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        # A rename of a later group must not reach the disk before one of this.
        for folder in self._touched:
            with _explained(folder), contextlib.suppress(FileNotFoundError):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        self._leftovers.clear()
        self._touched.clear()

    def close(self) -> None:
        pass

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            if os.path.realpath(folder) != folder:
                raise OperatorError(
                    f"{folder} is below a symbolic link. Replace the link by a folder, or deploy "
                    "to the folder that it points to."
                )
            return
        parent = os.path.dirname(folder)
        self._make_folder(parent)
        with contextlib.suppress(FileExistsError):  # another thread was faster
            os.mkdir(folder)
        if not os.path.isdir(folder):
            raise OperatorError(
                f"Cannot create the folder {folder}: a file of that name exists, which is not part "
                "of the site. Move the file away and deploy again."
            )
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _allow(descriptor, _FOLDER_MODE)
        finally:
            os.close(descriptor)
        with self._lock:
            self._touched.add(parent)


def _mark(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "other"
    return f"{status.st_mtime_ns}.{status.st_size}"


def _lacks(status: os.stat_result, mode: int) -> bool:
    return status.st_mode & mode != mode


def _allow(descriptor: int, mode: int) -> None:
    """Add rights; those that are there stay, as a group's whose folder it is."""
    status = os.fstat(descriptor)
    if _lacks(status, mode):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | mode)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"Cannot write {path}: {error.strerror}. Fix that and deploy again."
        ) from error
