"""The resource that a disk lacks: space, inodes, or permission to write."""

import errno
import os

# A publication writes some 20 files and folders.
ROOM_FILES = 100
_FULL, _READ_ONLY = "Free disk space", "Make its disk writable"
_NO_INODES = "Free inodes: remove files, or use a file system with more of them (df -i)"
_NO_ACCESS = "Give this service write access"
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "Free disk space or raise the quota",
    errno.EIO: "Check the disk",
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _NO_ACCESS,
    errno.EPERM: _NO_ACCESS,
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENFILE: "Raise this machine's limit of open files (fs.file-max)",
}


def lacks_inodes(disk: os.statvfs_result, files: int = 1) -> bool:
    """True if there is no room for so many more files. Some file systems do not count inodes."""
    return bool(disk.f_files) and disk.f_favail < files


def is_read_only(disk: os.statvfs_result) -> bool:
    """True if the disk is mounted without write access."""
    return bool(disk.f_flag & os.ST_RDONLY)


def remedy_for(error: OSError) -> str:
    """The advice after an error of the system. ENOSPC also means that a disk has no inodes; what
    failed has removed its folder by now, and so left some.
    """
    where = error.filename if isinstance(error.filename, str) else ""
    while (where := os.path.dirname(where)) and not os.path.exists(where):
        pass
    if error.errno == errno.ENOSPC and disk_remedy(where or os.curdir, ROOM_FILES) == _NO_INODES:
        return _NO_INODES
    return _REMEDIES.get(error.errno or errno.EIO, "Fix that")


def disk_remedy(path: str, files: int = 1) -> str:
    """The advice for a disk on which a program cannot write; empty if the disk has room."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return "Check the disk"
    if is_read_only(disk):
        return _READ_ONLY
    if not disk.f_bavail:
        return _FULL
    return _NO_INODES if lacks_inodes(disk, files) else ""
