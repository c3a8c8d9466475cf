"""A folder as the destination: of a web server on this machine, or mounted from another.

Files are replaced whole: written under a temporary name, synced to the disk, then renamed. They are
readable for everyone regardless of the umask, since the web server runs as another user.
"""

import contextlib
import hashlib
import os
import stat

from builder.model.errors import explained
from builder.store.site import ONE_SECOND_NS, Site
from operate.deploy.order import File, Step

_TEMPORARY = ".hubctl-deploy"
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_AGAIN = "Fix that and deploy again."


class Folder:
    """See ``Destination``. A mark is made of a file's time, size and kind."""

    has_rules = True

    def __init__(self, name: str) -> None:
        self.root = os.path.realpath(os.path.expanduser(name))

    def objects(self) -> dict[str, str]:
        if not os.path.lexists(self.root):
            return {}
        with explained("read", self.root, _AGAIN, is_inside=True):
            return {key: _mark(os.lstat(f"{self.root}/{key}")) for key in Site(self.root).files()}

    def holds(self, key: str, mark: str, file: File) -> bool:
        time_ns, size, _ = file.mark
        if mark == f"{time_ns}.{size}" or not mark.endswith(f".{size}"):
            return mark == f"{time_ns}.{size}"
        path = f"{self.root}/{key}"
        with explained("read", path, _AGAIN), open(path, "rb") as opened:
            return hashlib.file_digest(opened, "md5").hexdigest() == file.md5

    def put(self, step: Step, file: File, data: bytes) -> str:
        target = f"{self.root}/{step.key}"
        folder, _, name = target.rpartition("/")
        temporary = f"{folder}/.{name}{_TEMPORARY}"
        time_ns = file.mark[0]
        with explained("write", target, _AGAIN), contextlib.ExitStack() as failed:
            self._make(folder)
            with contextlib.suppress(FileNotFoundError):
                # nginx and Caddy derive the ETag from whole seconds and the size. Different bytes
                # must not get the ETag of the old ones, even if the site's file is older than the
                # destination's.
                time_ns = max(time_ns, os.lstat(target).st_mtime_ns + ONE_SECOND_NS)
            with open(temporary, "wb") as opened:
                failed.callback(os.unlink, temporary)
                opened.write(data)
                opened.flush()
                os.fchmod(opened.fileno(), _FILE_MODE)
                os.utime(opened.fileno(), ns=(time_ns, time_ns))
                os.fsync(opened.fileno())
            os.rename(temporary, target)
            failed.pop_all()
        return f"{time_ns}.{len(data)}"

    def delete(self, key: str) -> None:
        path = f"{self.root}/{key}"
        with explained("write", path, _AGAIN), contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with contextlib.suppress(OSError):  # most folders are in use, and not empty
            while (path := os.path.dirname(path)) != self.root:
                os.rmdir(path)

    def _make(self, folder: str) -> None:
        """Create a folder, and those above it. Another thread may do so at the same time."""
        if not os.path.isdir(folder):
            self._make(os.path.dirname(folder))
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
                os.chmod(folder, _FOLDER_MODE)


def _mark(status: os.stat_result) -> str:
    is_right = stat.S_ISREG(status.st_mode) and status.st_mode & _FILE_MODE == _FILE_MODE
    return f"{status.st_mtime_ns}.{status.st_size}" if is_right else "other"
