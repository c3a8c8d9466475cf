"""A site as it is at one moment, for as long as it takes to upload: builds go on meanwhile.

Files of a site are replaced, never written in place, so a hard link keeps one as it was. No build
runs while the links are made, and no longer: publishers wait for that.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from builder.errors import OperatorError
from builder.site import is_built, mark_of
from builder.state import build_lock


class Taken(NamedTuple):
    """A site's files. ``marks`` has each one's; ``copies`` where those are that were asked for."""

    marks: dict[str, str]
    copies: dict[str, str]


# What a file system says that cannot link, or not these files.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES)


def take(
    site: str, state: str, folder: str, known: Mapping[str, str], on_wait: Callable[[], None]
) -> Taken:
    """Take note of every file of the site, and keep those in ``folder`` that are not as ``known``
    (mark by file).

    ``state``: whose builds have to wait; ``on_wait`` is called once when one has to end first.
    Whatever is in ``folder`` from before is removed. Raises OperatorError.
    """
    try:
        remove(folder)
        os.makedirs(folder)
        with build_lock(state, on_wait):
            if not is_built(site):
                raise OperatorError(
                    f"There is no site in {site}. Run `hubctl build` with your --base-url first."
                )
            taken = Taken({}, {})
            for file, mark in _walk(site, ""):
                taken.marks[file] = mark
                if known.get(file) != mark:
                    copy = f"{folder}/{len(taken.copies)}"
                    _keep(f"{site}/{file}", copy)
                    taken.copies[file] = copy
    except OSError as error:
        raise OperatorError(
            f"Cannot keep the site's files in {folder}: {error.filename or site}: "
            f"{error.strerror}. Mend that and deploy again."
        ) from error
    return taken


def remove(folder: str) -> None:
    """Let the kept files go."""
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                yield prefix + entry.name, ".".join(map(str, mark_of(entry.stat())))


def _keep(path: str, copy: str) -> None:
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(path, copy)
