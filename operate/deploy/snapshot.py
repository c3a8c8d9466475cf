"""Keeps a site as of one moment while it is uploaded, and builds continue.

Files of a site are replaced, never written in place, so a hard link keeps a file as it was. A file
with the same mark before and after was not touched in between. So nearly all files are kept while
builds run. If a build ran meanwhile, the files are compared again under the build lock, and
publishers wait for that. Without hard links, copies take longer, but no build waits for them.
"""

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.model.progress import Progress
from builder.model.routes import BY_NAME
from builder.store.locks import build_lock, is_building, last_build
from builder.store.site import is_built, is_hidden, mark_of
from operate.deploy.plan import Plan

# Errors of a file system that cannot create links, or not of these files.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES)
# Errors for a file that a build removed just after it was listed.
_GONE = (FileNotFoundError, NotADirectoryError)

Forgiven = tuple[type[OSError], ...]


class Kept(NamedTuple):
    """A file as it was: its mark, and the path that keeps it."""

    mark: str
    path: str


# Kept files by name; None: the file is missing.
Files = dict[str, Kept | None]


def take(
    site: str, state: str, folder: str, plan: Plan, on_wait: Callable[[], None], progress: Progress
) -> int:
    """Note every file of the site in the plan, and keep in ``folder`` those that the plan requests.

    ``state``: the folder of the builds that may have to wait. ``on_wait`` is called once if a build
    has to end first. Empties ``folder`` before. Returns the number of the last build. Raises
    OperatorError.
    """
    try:
        remove(folder)
        os.makedirs(folder)
        paths = paths_in(folder)
        before = last_build(state)  # read first: a build can begin at any moment
        if is_building(state):
            before = -1
        _look(site, paths, plan, progress, forgiven=_GONE)
        with build_lock(state, on_wait):
            if not is_built(site):
                raise OperatorError(
                    f"No site in {site}. Build it first: `hubctl build --base-url URL`."
                )
            build = last_build(state)
            if build != before:
                plan.begin_round()
                _look(site, paths, plan, progress, forgiven=())
                plan.end_round()
            return build
    except OSError as error:
        raise OperatorError(
            f"Cannot take a snapshot of the site in {folder}: {error.filename or site}: "
            f"{error.strerror}. Fix that and deploy again."
        ) from error


def paths_in(folder: str) -> Iterator[str]:
    """Yields paths for kept files in a folder."""
    return (f"{folder}/{number}" for number in itertools.count())


def keep(site: str, files: Iterable[str], paths: Iterator[str]) -> Files:
    """Keep these files of the site, each at the next of ``paths``. Raises OSError."""
    kept: Files = dict.fromkeys(files)
    for file in kept:
        with contextlib.suppress(*_GONE):
            mark = _mark(f"{site}/{file}")
            kept[file] = Kept(mark, _keep(site, file, next(paths)))
    return kept


def remove(folder: str) -> None:
    """Remove kept files."""
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def _look(
    site: str, paths: Iterator[str], plan: Plan, progress: Progress, forgiven: Forgiven
) -> None:
    """Note each file of the site. ``forgiven``: errors that only mean that a file is missing."""
    for count, file in enumerate(_walk(site, "", forgiven)):
        progress("Reading the site", count, count)
        with contextlib.suppress(*forgiven):
            plan.want(file, _mark(f"{site}/{file}"), lambda file: _keep(site, file, next(paths)))


def _mark(path: str) -> str:
    return ".".join(map(str, mark_of(os.stat(path))))


def _walk(folder: str, prefix: str, forgiven: Forgiven) -> Iterator[str]:
    with contextlib.suppress(*forgiven), os.scandir(folder) as entries:
        for entry in entries:
            if is_hidden(prefix + entry.name):
                continue
            if entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{entry.name}/", forgiven)
            elif entry.is_file():
                yield prefix + entry.name


def _keep(site: str, file: str, copy: str) -> str:
    path = f"{site}/{file}"
    if file == BY_NAME["hub"].file:
        # A link would change the file's ctime, by which builds recognize their own files.
        shutil.copy2(path, copy)
        return copy
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(path, copy)
    return copy
