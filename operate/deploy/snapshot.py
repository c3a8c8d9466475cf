"""A site as it is at one moment, for as long as it takes to upload: builds go on meanwhile.

Files of a site are replaced, never written in place, so a hard link keeps one as it was, and one
whose mark is the same before and after was not touched in between. So nearly all is kept while
builds go on. If one did, each file is looked at again while none runs: publishers wait for that.
Where there are no links, copies take long, but nobody waits for them.
"""

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.model.routes import BY_NAME
from builder.store.locks import build_lock, is_building, last_build
from builder.store.site import is_built, mark_of


class Taken(NamedTuple):
    """A site's files. ``marks`` has each one's; ``copies`` where those are that were asked for.
    ``build``: the number of the last build that is in it.
    """

    marks: dict[str, str]
    copies: dict[str, str]
    build: int = 0


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
        paths = paths_in(folder)
        before = last_build(state)  # first: a build may begin at any moment
        if is_building(state):
            before = None
        early = _keep_all(site, paths, known, Taken({}, {}), forgiven=_GONE)
        with build_lock(state, on_wait):
            if not is_built(site):
                raise OperatorError(
                    f"No site in {site}. Build it first: `hubctl build --base-url URL`."
                )
            build = last_build(state)
            if build != before:
                early = _keep_all(site, paths, known, early, forgiven=())
            return early._replace(build=build)
    except OSError as error:
        raise OperatorError(
            f"Cannot take a snapshot of the site in {folder}: {error.filename or site}: "
            f"{error.strerror}. Fix that and deploy again."
        ) from error


def paths_in(folder: str) -> Iterator[str]:
    """Names for what is kept in a folder."""
    return (f"{folder}/{number}" for number in itertools.count())


def keep(site: str, files: Iterable[str], paths: Iterator[str]) -> Taken:
    """Keep these files of the site as they are, each at the next of ``paths``; those that are not
    there are in neither of its dictionaries. Raises OSError.
    """
    taken = Taken({}, {})
    for file in files:
        try:
            status = os.stat(f"{site}/{file}")
        except _GONE:
            continue
        taken.marks[file] = _told(status)
        taken.copies[file] = next(paths)
        _keep(site, file, taken.copies[file])
    return taken


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
            mark = _told(os.stat(f"{site}/{file}"))
            if known.get(file) != mark:
                if early.marks.get(file) == mark:
                    taken.copies[file] = early.copies[file]
                else:
                    path = next(paths)
                    _keep(site, file, path)
                    taken.copies[file] = path
            taken.marks[file] = mark
    return taken


def _told(status: os.stat_result) -> str:
    return ".".join(map(str, mark_of(status)))


def _walk(folder: str, prefix: str, forgiven: tuple[type[OSError], ...]) -> Iterator[str]:
    with contextlib.suppress(*forgiven), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{entry.name}/", forgiven)
            elif entry.is_file():
                yield prefix + entry.name


def _keep(site: str, file: str, copy: str) -> None:
    path = f"{site}/{file}"
    if file == BY_NAME["hub"].file:
        # A link would change its ctime, by which builds know that the site is still theirs.
        shutil.copy2(path, copy)
        return
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(path, copy)
