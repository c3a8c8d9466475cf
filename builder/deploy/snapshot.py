"""A site as it is at one moment, for as long as it takes to upload: builds go on meanwhile.

Files of a site are replaced, never written in place, so a hard link keeps one as it was, and one
whose mark is the same before and after was not touched in between. So nearly all is kept while
builds go on; then, for a look at each file, none runs: publishers wait for that. Where there are
no links, copies take long, but nobody waits for them.
"""

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.store.locks import build_lock
from builder.store.site import is_built, mark_of


class Taken(NamedTuple):
    """A site's files. ``marks`` has each one's; ``copies`` where those are that were asked for."""

    marks: dict[str, str]
    copies: dict[str, str]


# What a file system says that cannot link, or not these files.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES)
# A build may remove what was listed a moment ago.
_GONE = (FileNotFoundError, NotADirectoryError)


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
        paths = (f"{folder}/{number}" for number in itertools.count())
        early = _keep_all(site, paths, known, Taken({}, {}), forgiven=_GONE)
        with build_lock(state, on_wait):
            if not is_built(site):
                raise OperatorError(
                    f"No site in {site}. Build it first: `hubctl build --base-url URL`."
                )
            return _keep_all(site, paths, known, early, forgiven=())
    except OSError as error:
        raise OperatorError(
            f"Cannot take a snapshot of the site in {folder}: {error.filename or site}: "
            f"{error.strerror}. Fix that and deploy again."
        ) from error


def remove(folder: str) -> None:
    """Let the kept files go."""
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def _keep_all(
    site: str,
    paths: Iterator[str],
    known: Mapping[str, str],
    early: Taken,
    forgiven: tuple[type[OSError], ...],
) -> Taken:
    """Keep what is neither as in ``known`` nor as in ``early``, each file at the next of ``paths``.

    ``forgiven``: errors that only mean that a file is not there.
    """
    taken = Taken({}, {})
    for file in _walk(site, "", forgiven):
        with contextlib.suppress(*forgiven):
            mark = ".".join(map(str, mark_of(os.stat(f"{site}/{file}"))))
            if known.get(file) != mark:
                if early.marks.get(file) == mark:
                    taken.copies[file] = early.copies[file]
                else:
                    path = next(paths)
                    _keep(f"{site}/{file}", path)
                    taken.copies[file] = path
            taken.marks[file] = mark
    return taken


def _walk(folder: str, prefix: str, forgiven: tuple[type[OSError], ...]) -> Iterator[str]:
    with contextlib.suppress(*forgiven), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{entry.name}/", forgiven)
            elif entry.is_file():
                yield prefix + entry.name


def _keep(path: str, copy: str) -> None:
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(path, copy)
