"""Reads plain files that others may replace or damage, and detects changes of them; replaces small
files durably.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from builder.model.content_tree import FILE, Kind, in_repo
from builder.model.errors import ContentError, Fault

Record = TypeVar("Record")
MISSING = "missing; restore it from a backup"


def read_file(path: str, bytes_max: int) -> bytes:
    """The bytes of a plain file. Raises OSError for anything else, and for a file of more than
    ``bytes_max``.
    """
    # Without O_NONBLOCK, opening a pipe in a file's place would wait for a writer forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        size = status.st_size
        if size > bytes_max:
            raise OSError(errno.EFBIG, f"larger than {bytes_max:,} bytes", path)
        data = os.read(descriptor, size + 1)
        while len(data) < size:
            more = os.read(descriptor, size - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def replace_file(path: str, data: bytes) -> None:
    """Replace a file as a whole; what it has outlasts a power cut. Raises OSError."""
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def files_in(
    root: str, repo: str, inside: str, faults: list[Fault]
) -> Iterator[tuple[Kind, str, os.DirEntry[str]]]:
    """The plain files in a folder of ``repo`` (``owner/name``), or in the repo's own if ``inside``
    is empty, and the folders of versions' files; each with its kind and value as ``in_repo``. None
    if there is no folder. Links, unreadable folders and other things with such a name are noted in
    ``faults``.
    """
    folder, prefix = (f"{repo}/{inside}", f"{inside}/") if inside else (repo, "")
    path = f"{root}/{folder}"
    try:
        with os.scandir(path) as entries:
            if os.path.islink(path):
                raise NotADirectoryError
            for entry in entries:
                if not (found := in_repo(prefix + entry.name)):
                    continue
                kind, value = found
                is_file = entry.is_file(follow_symlinks=False)
                if is_file if kind is not FILE else entry.is_dir(follow_symlinks=False):
                    yield kind, value, entry
                else:
                    what = "folder" if kind is FILE else "file"
                    faults.append(Fault(f"{folder}/{entry.name}", f"not a plain {what}"))
    except (FileNotFoundError, NotADirectoryError):
        # A folder that exists now was created after the scan.
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isdir(path)):
            faults.append(Fault(folder, "not a plain folder"))
    except OSError as error:
        faults.append(Fault(folder, error.strerror or "unreadable"))


def read_record_file(
    root: str, file: str, decode: Callable[[bytes], Record], bytes_max: int
) -> Record:
    """The result of msgspec's ``decode`` for a file below ``root``. Raises ContentError, which
    names the file.
    """
    try:
        return decode(read_file(f"{root}/{file}", bytes_max))
    except FileNotFoundError:
        reason = MISSING
    except OSError as error:
        reason = error.strerror or "unreadable"
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 at byte {error.start:,}"
    except (msgspec.DecodeError, RecursionError) as error:
        reason = str(error)
    raise ContentError([Fault(file, reason)])


def read_record_if_there(
    root: str, file: str, decode: Callable[[bytes], Record], bytes_max: int
) -> Record | None:
    """As ``read_record_file``; None if there is no such file."""
    try:
        return read_record_file(root, file, decode, bytes_max)
    except ContentError:
        if not os.path.lexists(f"{root}/{file}"):
            return None
    # It may have been created after the first look: a first publication creates a profile.
    return read_record_file(root, file, decode, bytes_max)


def remove(path: str) -> None:
    """Removes a file, or a folder with all its entries, without following links. Several processes
    may remove the same one at once. Raises OSError, FileNotFoundError if the path does not exist.
    """
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return os.unlink(path)
    with os.scandir(path) as entries:
        inside = [entry.path for entry in entries]
    for one in inside:
        with contextlib.suppress(FileNotFoundError):
            remove(one)
    return os.rmdir(path)


def statuses_below(folder: str) -> Iterator[os.stat_result]:
    """The status of each entry below a folder, in the order of names; none if it does not exist.
    Links are not followed.
    """
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        yield entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield from statuses_below(entry.path)


def mark_of_files(files: Sequence[os.stat_result], settled_ns: int) -> str:
    """Changes whenever one of the files is touched. Empty if one changed after ``settled_ns``
    (epoch nanoseconds), because it could change again and keep the same mark.
    """
    # The change time cannot be set by hand, and the inode shows that another file took its place.
    if any(status.st_ctime_ns >= settled_ns for status in files):
        return ""
    return ".".join(
        f"{status.st_ctime_ns:x}.{status.st_size:x}.{status.st_ino:x}" for status in files
    )
