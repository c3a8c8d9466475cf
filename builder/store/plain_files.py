"""Reads plain files that others may replace or damage, and tells whether they were touched."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from builder.model.errors import ContentError, Fault

Record = TypeVar("Record")
Matched = TypeVar("Matched")


def read_file(path: str, bytes_max: int) -> bytes:
    """The bytes of a plain file. Raises OSError where it is none, or has more than that."""
    # Without O_NONBLOCK, a pipe in a file's place would wait for a writer for ever.
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


def files_in(
    root: str, folder: str, match: Callable[[str], Matched | None], faults: list[Fault]
) -> Iterator[tuple[Matched, os.DirEntry[str]]]:
    """The plain files in a folder below ``root`` whose names match; none where there is no folder.
    Adds to ``faults`` for other things with such a name, a link, or a folder that cannot be read.
    """
    path = f"{root}/{folder}"
    try:
        with os.scandir(path) as entries:
            if os.path.islink(path):
                raise NotADirectoryError
            for entry in entries:
                found = match(entry.name)
                if found and entry.is_file(follow_symlinks=False):
                    yield found, entry
                elif found:
                    faults.append(Fault(f"{folder}/{entry.name}", "not a plain file"))
    except (FileNotFoundError, NotADirectoryError):
        # A folder that is there now came after the look.
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isdir(path)):
            faults.append(Fault(folder, "not a plain folder"))
    except OSError as error:
        faults.append(Fault(folder, error.strerror or "unreadable"))


def read_record_file(
    root: str, file: str, decode: Callable[[bytes], Record], bytes_max: int
) -> Record:
    """What msgspec's ``decode`` makes of a file below ``root``. Raises ContentError, which names
    the file.
    """
    try:
        return decode(read_file(f"{root}/{file}", bytes_max))
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
    """As ``read_record_file``; None where there is no such file."""
    try:
        return read_record_file(root, file, decode, bytes_max)
    except ContentError:
        if os.path.lexists(f"{root}/{file}"):
            raise
        return None


def mark_of_files(files: tuple[os.stat_result, ...], settled_ns: int) -> str:
    """Differs whenever one of the files was touched. Empty where one changed after ``settled_ns``
    (epoch nanoseconds), and so may change again and look the same.
    """
    # The change time cannot be set by hand, and the inode tells a file put in another's place.
    if any(status.st_ctime_ns >= settled_ns for status in files):
        return ""
    return ".".join(
        f"{status.st_ctime_ns:x}.{status.st_size:x}.{status.st_ino:x}" for status in files
    )
