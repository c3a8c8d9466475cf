"""Checks the folders: permissions, the kind of disk, and free space."""

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator

from builder.model.errors import OperatorError
from builder.model.plural import counted, some_of
from builder.model.settings import check_folders
from operate.doctor.findings import Finding, Subject, problem, warning

# The levels of folders that are checked: owners and prompts; databases and the index; the top of a
# site, which can have hundreds of thousands of files.
_LEVELS = {"--content": 2, "--state": 2, "--out": 1}
_SHOWN_MAX = 3
# A publication needs less than a megabyte; a build of the whole site as much as the site has. Space
# below the first limit is a problem; below the smaller of the others, a warning.
FREE_BYTES_MIN, FREE_BYTES_WARNING, FREE_SHARE_WARNING = 100 * 2**20, 2**30, 0.05
FREE_INODES_MIN = 1000
_NETWORK = ("nfs", "cifs", "smb2", "smb", "v9fs", "ceph", "lustre", "afs", "gpfs")
_LASTING = {"--content": "prompts", "--state": "accounts and pull counts"}


def folders(subject: Subject) -> Iterator[Finding]:
    """The folders are separate, and one user reads and writes everything in them."""
    try:
        check_folders(subject.settings)
    except OperatorError as error:
        yield problem(str(error))
    user = _name_of(os.geteuid())
    for option, path in subject.folders.items():
        if not os.path.exists(path):
            yield _missing(option, path)
        elif not os.path.isdir(path):
            yield problem(
                f"{path} is not a folder.", f"Move it away, or pass another folder with {option}."
            )
        elif os.statvfs(path).f_flag & os.ST_RDONLY:
            yield problem(
                f"{path} is on a file system that is mounted read-only.",
                "Mount it for writing. If the system did that, its log names an error of the disk.",
            )
        elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            yield problem(
                f"{user} may not read and write {path}, which belongs to "
                f"{_name_of(os.stat(path).st_uid)}.",
                f"Run as root: chown -R {user} {path}. Or run this command as the user who runs "
                "the hub.",
            )
        else:
            yield from _owners(path, _LEVELS[option])
            if subject.is_private and os.stat(path).st_mode & 0o077:
                yield problem(
                    f"This hub is private, and other users of this machine can enter {path}.",
                    f"Run: chmod 700 {path}",
                )


def _missing(option: str, path: str) -> Finding:
    if option == "--content":
        return problem(
            f"No content folder {path}.",
            f"Run the command in a hub's folder, pass {option} DIR, or create a hub with "
            "`hubctl init DIR`.",
        )
    return warning(f"No folder {path} yet.", f"The first build creates it. Or pass {option} DIR.")


def _owners(path: str, levels: int) -> Iterator[Finding]:
    """Files of other users, which the hub cannot replace, and folders that everyone can write."""
    status = os.stat(path)
    user = _name_of(status.st_uid)
    command = ["find", "-H", path, "-maxdepth", str(levels), "!", "-user", str(status.st_uid)]
    found = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if others := found.stdout.splitlines():
        yield problem(
            f"{path} belongs to {user}, but not all that is in it: {some_of(others, _SHOWN_MAX)}.",
            f"Stop the hub, and run as root: chown -R {user} {path}",
        )
    if status.st_mode & stat.S_IWOTH:
        yield problem(f"Every user of this machine may write to {path}.", f"Run: chmod o-w {path}")


def _name_of(user: int) -> str:
    """The name of a user id, or the number if it has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def disks(subject: Subject) -> Iterator[Finding]:
    """The folders are on disks of this machine that survive a restart, with free space."""
    seen = set()
    for option, path in subject.existing.items():
        if option in _LASTING:
            yield from _kind(option, path)
        if (device := os.stat(path).st_dev) not in seen:
            seen.add(device)
            yield from _space(path)


def _kind(option: str, path: str) -> Iterator[Finding]:
    kind, holds = kind_of(path), _LASTING[option]
    for kinds, what in (
        (("tmpfs", "ramfs"), f"in memory ({kind}): a restart of the machine loses the {holds}"),
        (
            ("overlayfs", "overlay"),
            f"in a container's own layer: the {holds} go with the container",
        ),
        (_NETWORK, f"on a network file system ({kind}), which may ignore locks of other machines"),
    ):
        if kind in kinds:
            yield problem(
                f"{path} is {what}.",
                f"Move it to a disk of this machine, and pass the new folder with {option}. In a "
                "container, mount a volume: docs/operate/containers.md.",
            )


def kind_of(path: str) -> str:
    """The type of a path's file system, as GNU's and busybox's `stat` call it; empty if unknown."""
    command = ["stat", "-f", "-c", "%T", "--", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def _space(path: str) -> Iterator[Finding]:
    """Space and inodes that are left for this user."""
    found = os.statvfs(path)
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    what = f"The disk of {path} has {free / 1e9:.1f} GB of {total / 1e9:.1f} GB left."
    do = "Free space or enlarge the disk. Without space, publishing stops; reads keep working."
    if free < FREE_BYTES_MIN:
        yield problem(what, do)
    elif free < min(FREE_BYTES_WARNING, total * FREE_SHARE_WARNING):
        yield warning(what, do)
    # Some file systems do not count inodes.
    elif found.f_files and found.f_favail < FREE_INODES_MIN:
        yield problem(
            f"The disk of {path} can hold only {counted(found.f_favail, 'more file')}: its inodes "
            "are used up.",
            "Remove files, or move the folder to a file system with more inodes. A site has about "
            "ten files for each version.",
        )
