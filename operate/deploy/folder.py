"""A folder as the destination: of a web server on this machine, or mounted from another.

Files are replaced whole: written under a temporary name, synced to the disk, then renamed. They are
readable for everyone regardless of the umask, since the web server runs as another user.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterable

from builder.model.errors import OperatorError, explained
from builder.store.site import ONE_SECOND_NS, is_hidden
from operate.deploy.order import Step
from operate.folders import find_overlap

_TEMPORARY = ".hubctl-deploy"
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_AGAIN = "Fix that and deploy again."
_UNREADABLE = "Nothing was changed. Deploy as a user who may read it, or to another folder."


class Folder:
    """See ``Destination``. A mark is made of a file's time, size and kind."""

    has_rules = True

    def __init__(self, name: str, apart_from: Iterable[str] = ()) -> None:
        self.root = os.path.realpath(os.path.expanduser(name))
        if folder := find_overlap(self.root, apart_from):
            raise OperatorError(
                f"The destination {name} and the folder {folder} overlap. Use three separate "
                "folders for site, state and destination."
            )
        self.identity = f"folder {self.root}"
        # Folders to sync, and temporary files of deployments that were killed.
        self._touched: set[str] = set()
        self._leftovers: set[str] = set()

    async def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        prefixes = [""] if os.path.lexists(self.root) else []
        while prefixes:
            with explained("read", self.root, _UNREADABLE, is_inside=True):
                page, folders = self._list(prefixes.pop())
            prefixes += folders
            yield page

    async def holds(self, step: Step) -> bool:
        return await asyncio.to_thread(self._holds, step)

    async def put(self, step: Step) -> str:
        return await asyncio.to_thread(self._put, step)

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._delete, key)

    async def end_group(self) -> None:
        await asyncio.to_thread(self._sync)

    def _list(self, prefix: str) -> tuple[list[tuple[str, str]], list[str]]:
        """The files in one folder, and the prefixes of its subfolders."""
        page, folders = [], []
        with os.scandir(f"{self.root}/{prefix}") as entries:
            for entry in entries:
                if is_hidden(prefix + entry.name):
                    if entry.name.endswith(_TEMPORARY):
                        self._leftovers.add(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{prefix}{entry.name}/")
                else:
                    page.append((prefix + entry.name, _mark(entry.stat(follow_symlinks=False))))
        return page, folders

    def _holds(self, step: Step) -> bool:
        path = f"{self.root}/{step.key}"
        with explained("write", path, _AGAIN), contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if _mark(status).endswith(f".{step.size}") and not _lacks(status, _FILE_MODE):
                with open(path, "rb") as file:
                    return hashlib.file_digest(file, "md5").digest() == step.md5
        return False

    def _put(self, step: Step) -> str:
        target = f"{self.root}/{step.key}"
        folder, _, name = target.rpartition("/")
        temporary = f"{folder}/.{name}{_TEMPORARY}"
        with explained("write", target, _AGAIN):
            self._make_folder(folder)
            times_ns = [os.stat(step.copy).st_mtime_ns]
            with contextlib.suppress(FileNotFoundError):
                # nginx and Caddy derive the ETag from whole seconds and the size. Different bytes
                # must not get the ETag of the old ones, even if the site's file is older than the
                # destination's.
                times_ns.append(os.lstat(target).st_mtime_ns + ONE_SECOND_NS)
            try:
                status = _copy(step, temporary, max(times_ns))
                os.rename(temporary, target)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise
        self._touched.add(folder)
        return _mark(status)

    def _delete(self, key: str) -> None:
        path = f"{self.root}/{key}"
        with explained("write", path, _AGAIN):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            with contextlib.suppress(OSError):  # most folders are in use, and not empty
                while (path := os.path.dirname(path)) != self.root:
                    os.rmdir(path)
        self._touched.add(path)

    def _sync(self) -> None:
        for path in self._leftovers:
            with explained("write", path, _AGAIN), contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        # A rename of a later group must not reach the disk before the renames of this group.
        for folder in self._touched:
            with explained("write", folder, _AGAIN), contextlib.suppress(FileNotFoundError):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        self._leftovers.clear()
        self._touched.clear()

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
        with contextlib.suppress(FileExistsError):  # another thread created it
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
        self._touched.add(parent)


def _copy(step: Step, path: str, time_ns: int) -> os.stat_result:
    """Copy the kept file of a step to the disk, with this time."""
    with open(step.copy, "rb") as source, open(path, "wb") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        _allow(file.fileno(), _FILE_MODE)
        os.utime(file.fileno(), ns=(time_ns, time_ns))
        os.fsync(file.fileno())
        return os.fstat(file.fileno())


def _mark(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "other"
    return f"{status.st_mtime_ns}.{status.st_size}"


def _lacks(status: os.stat_result, mode: int) -> bool:
    return status.st_mode & mode != mode


def _allow(descriptor: int, mode: int) -> None:
    """Add permissions to the existing ones, such as those of the folder's group."""
    status = os.fstat(descriptor)
    if _lacks(status, mode):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | mode)
