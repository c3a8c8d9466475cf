"""Checks the folders and their disks: permissions, owners, and room."""

import contextlib
import os
import stat
import subprocess
from collections.abc import Iterator

from builder.model.plural import counted, some_of
from builder.store.shortage import disk_remedy, is_read_only, lacks_inodes
from operate.doctor.findings import Finding, Subject, problem, warning

_SHOWN_MAX = 3
# A publication needs less than a megabyte; a build of the whole site as much as the site has. Space
# below the first limit is a problem; below the second, a warning.
FREE_BYTES_MIN, FREE_BYTES_WARNING = 100 * 2**20, 2**30
FREE_INODES_MIN = 1000


def folders(subject: Subject) -> Iterator[Finding]:
    """One user owns the folders with all that is in them, and no other user writes there."""
    for name, path in subject.settings.folders.items():
        try:
            yield from _folder(path, is_private=subject.settings.private)
        except FileNotFoundError:
            do = "Run this in the hub's folder, or pass --content DIR. Builds create the others."
            yield (problem if name == "content" else warning)(f"No {name} folder {path}.", do)
        except OSError as error:
            do = f"{disk_remedy(path) or 'Check the disk'}. The system's log may name the error."
            yield problem(f"{path} cannot be read: {error.strerror}.", do)


def _folder(path: str, *, is_private: bool) -> Iterator[Finding]:
    """Raises OSError."""
    os.listdir(path)
    status, me = os.stat(path), os.geteuid()
    if is_read_only(os.statvfs(path)):
        yield problem(
            f"{path} is on a file system that is mounted read-only.",
            "Mount it for writing. If the system did that, its log names an error of the disk.",
        )
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem(
            f"The user {me} may not write {path}, which belongs to the user {status.st_uid}.",
            f"Run this command as the user who runs the hub, or as root: chown -R {me} {path}",
        )
    if others := _find(path, "!", "-user", str(status.st_uid)):
        yield problem(
            f"{path} belongs to the user {status.st_uid}, but not all that is in it: {others}.",
            f"Stop the hub, and run as root: chown -R {status.st_uid} {path}",
        )
    if is_private and status.st_mode & 0o077:
        yield problem(
            f"This hub is private, and other users of this machine can enter {path}.",
            f"Run: chmod 700 {path}",
        )
    is_open = status.st_mode & stat.S_IXOTH
    if is_open and (writable := _find(path, "!", "-type", "l", "-perm", "-0002")):
        do = f"Run: chmod -R o-w {path}"
        yield problem(f"Every user of this machine may write to {writable}.", do)


def _find(path: str, *tests: str) -> str:
    """The paths that the program `find` finds; empty if it finds none."""
    command = ["find", "-H", path, *tests]
    found = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return some_of(found.stdout.splitlines(), _SHOWN_MAX)


def disks(subject: Subject) -> Iterator[Finding]:
    """The disks have room."""
    seen: dict[int, str] = {}
    for path in subject.settings.folders.values():
        with contextlib.suppress(OSError):  # `folders` says so
            seen.setdefault(os.stat(path).st_dev, path)
    for path in seen.values():
        disk = os.statvfs(path)
        free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        if free < FREE_BYTES_WARNING:
            yield (problem if free < FREE_BYTES_MIN else warning)(
                f"The disk of {path} has {free / 1e9:.1f} GB of {total / 1e9:.1f} GB left.",
                "Free space, or enlarge it. Without space, publishing stops; reads keep working.",
            )
        if lacks_inodes(disk, FREE_INODES_MIN):
            yield problem(
                f"The disk of {path} has inodes for {counted(disk.f_favail, 'more file')}.",
                "Remove files, or move the folder to a file system with more inodes (df -i).",
            )
