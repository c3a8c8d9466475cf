"""A deployment: compare the site with the objects of a destination, and change what differs."""

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple, Protocol

from builder.model.errors import OperatorError, explained
from builder.model.matching import match_file
from builder.model.plural import counted
from builder.model.progress import Progress
from builder.pipeline.heal import lost_files
from builder.store.locks import build_lock, last_build, lock
from builder.store.site import is_built
from operate.deploy.folder import Folder
from operate.deploy.order import Step, keys_of, match_key
from operate.deploy.wanted import File, read, wanted

JOBS = 16
# A build can change files before they are uploaded. Builds wait for the last attempt.
ATTEMPTS = 4
# A URL, even if it lacks a slash. A path with ``./`` before it does not match.
_has_scheme = re.compile(r"[a-z0-9+.-]+:/", re.IGNORECASE).match
_owner_of = re.compile(r"api/v1/(?:repos|users)/([^/.]+)").match


class Destination(Protocol):
    """A place for objects. Every method may raise OperatorError; ``put`` and ``delete`` are called
    from several threads.

    A mark is a text that differs whenever the bytes of an object do. ``has_rules``: the host
    derives the file of a URL by rules, so a URL needs no key of its own.
    """

    has_rules: bool

    def objects(self) -> dict[str, str]:
        """The mark of each object by its key, including objects that are not the site's."""

    def holds(self, key: str, mark: str, file: File) -> bool:
        """True if the object with this mark has the bytes of the file."""

    def put(self, step: Step, file: File, data: bytes) -> str:
        """Upload a file; returns the object's mark."""

    def delete(self, key: str) -> None:
        """Remove an object; a missing one is no error."""


def open_destination(name: str, apart_from: Iterable[str] = ()) -> Destination:
    """The destination of a name: ``s3://bucket/prefix``, or a folder's path, which must not overlap
    with the folders ``apart_from``. Raises OperatorError.
    """
    if not name.strip() or (_has_scheme(name) and not name.startswith("s3://")):
        raise OperatorError(
            f"Unknown kind of destination {name!r}. Pass a folder (/var/www/prompts) or "
            "s3://BUCKET/PREFIX."
        )
    if name.startswith("s3://"):
        # Loaded late: an optional library, and slow to load.
        from operate.deploy.bucket import Bucket

        return Bucket(name)
    folder = Folder(name)
    for other in map(os.path.realpath, apart_from):
        if os.path.commonpath([other, folder.root]) in (other, folder.root):
            raise OperatorError(
                f"The destination {name} and the folder {other} overlap. Use three separate "
                "folders for site, state and destination."
            )
    return folder


class Options(NamedTuple):
    """``everything``: upload current objects, too. ``no_delete``: keep objects that the site no
    longer has. ``files_only``: no keys for URLs. ``dry_run``: change nothing.
    """

    everything: bool = False
    no_delete: bool = False
    files_only: bool = False
    dry_run: bool = False


class DeployReport(NamedTuple):
    """The steps of a deployment, in order, and the numbers of objects that are current, and that
    are not the site's or not to be deleted.
    """

    steps: list[Step]
    current: int
    left: int

    def counts(self) -> dict[str, int]:
        """The numbers of new, changed and deleted objects."""
        puts = [step.is_new for step in self.steps if step.file]
        new = sum(puts)
        return {"new": new, "changed": len(puts) - new, "deleted": len(self.steps) - len(puts)}


class Deployment:
    """Brings a destination to the present site. Completed steps stay, and the next run continues.
    ``on_wait`` gets the name of the work that has to end first. ``check`` is called before each
    change, and prevents it by raising.
    """

    def __init__(
        self,
        site: str,
        state: str,
        destination: Destination,
        options: Options,
        progress: Progress = lambda what, done, total: None,
        on_wait: Callable[[str], None] = lambda what: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._site, self._state, self._destination = site, state, destination
        self._options = options._replace(files_only=options.files_only or destination.has_rules)
        self._progress, self._on_wait, self._check = progress, on_wait, check
        # After a run: the build that is deployed, the mark of each object, and the site's files.
        self.build: int | None = None
        self._objects: dict[str, str] = {}
        self._files: dict[str, File] = {}

    def run(self, touched: Mapping[int, frozenset[str] | None]) -> DeployReport:
        """Bring the destination up to date, without a listing if ``touched`` has the files that
        each build since the last run has changed. Raises OperatorError.
        """
        before, self.build = self.build, None
        with lock(f"{self._state}/deploy", lambda: self._on_wait("deployment")):
            if before is None:
                self._objects = self._destination.objects()
                self._files = self._wanted(None)  # most of the reading, while builds continue
            for attempt in range(ATTEMPTS):
                with contextlib.ExitStack() as held:
                    held.enter_context(build_lock(self._state, lambda: self._on_wait("build")))
                    build = last_build(self._state)
                    names = _names(before, build, touched)
                    files = self._wanted(names)
                    if not is_built(self._site):
                        raise OperatorError(
                            f"No site in {self._site}. Build it: `hubctl build --base-url URL`."
                        )
                    if names is None and (lost := lost_files(self._state, self._site)):
                        raise OperatorError(
                            f"{self._site} has lost {counted(len(lost), 'file')}, such as "
                            f"{lost[0]}. Run `hubctl build`, and deploy again."
                        )
                    if attempt < ATTEMPTS - 1:
                        held.close()
                    report = self._plan(names, files)
                    if self._options.dry_run or self._carry_out(report.steps):
                        self._files |= files
                        self.build = build
                        return report
        raise OperatorError(f"{self._site} changes all the time. Stop what writes there, not hub.")

    def _wanted(self, names: Iterable[str] | None) -> dict[str, File]:
        with explained("read", self._site, "Deploy as the user who builds it.", is_inside=True):
            return wanted(self._site, names, self._files)

    def _plan(self, names: set[str] | None, files: Mapping[str, File]) -> DeployReport:
        steps, current, left, keys = [], 0, 0, set()
        for key, name, route in self._keys(files):
            keys.add(key)
            mark = self._objects.get(key)
            is_same = mark is not None and self._destination.holds(key, mark, files[name])
            if is_same and not self._options.everything:
                current += 1
            else:
                steps.append(Step(key, name, route, files[name].md5, mark is None))
        # If URLs are no keys, an object with such a name is not the site's.
        find = match_file if self._destination.has_rules else match_key
        owners = {found[1] for key in self._objects if (found := _owner_of(key))}
        gone = self._objects if names is None else [key for key, _, _ in self._keys(names)]
        for key in (key for key in gone if key in self._objects and key not in keys):
            found = find(key)
            # A key like that of an owner's page may be any file, such as google0123.html.
            is_ours = found and (found.route.is_api or found.params.get("owner") in {None, *owners})
            if is_ours and not self._options.no_delete:
                steps.append(Step(key, None, found.route.name, "", False))
            else:
                left += 1
        return DeployReport(sorted(steps, key=lambda step: (step.place, step.key)), current, left)

    def _keys(self, files: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        for name in files:
            if match := match_file(name):
                for key in keys_of(match, files_only=self._options.files_only):
                    yield key, name, match.route.name

    def _carry_out(self, steps: list[Step]) -> bool:
        """Do these steps. Returns False if a build has changed a file meanwhile."""
        done, is_same = 0, True
        try:
            for _, group in itertools.groupby(steps, lambda step: step.place):
                for step, mark in _in_parallel(self._do, group):
                    if mark:
                        self._objects[step.key] = mark
                    elif step.file:
                        is_same = False
                    else:
                        del self._objects[step.key]
                    self._progress("Deploying", done := done + 1, len(steps))
                if not is_same:
                    break
        except OperatorError as error:
            raise OperatorError(
                f"{error}\n{done:,} of {counted(len(steps), 'object')} were updated before that. "
                "Readers see no broken links. Run `hubctl deploy` again to continue."
            ) from error
        return is_same

    def _do(self, step: Step) -> tuple[Step, str]:
        """Do a step; returns the object's mark, empty if it is deleted, or if a build has changed
        the file.
        """
        self._check()
        if not step.file:
            self._destination.delete(step.key)
        else:
            with contextlib.suppress(FileNotFoundError):
                file, data = read(self._site, step.file)
                if file.md5 == step.md5:
                    return step, self._destination.put(step, file, data)
        return step, ""


def _names(
    before: int | None, build: int, touched: Mapping[int, frozenset[str] | None]
) -> set[str] | None:
    """The files that builds have changed since ``before``; None: all, or unknown ones."""
    found = [touched.get(number) for number in range((before or 0) + 1, build + 1)]
    is_unknown = before is None or before > build or None in found
    return None if is_unknown else set().union(*found)


def _in_parallel(
    function: Callable[[Step], tuple[Step, str]], steps: Iterable[Step]
) -> Iterator[tuple[Step, str]]:
    """Yields the result for each step as it arrives. After an error nothing more begins; it is
    raised when steps under way have ended.
    """
    with ThreadPoolExecutor(JOBS) as pool:
        futures = [pool.submit(function, step) for step in steps]
        try:
            yield from (future.result() for future in as_completed(futures))
        finally:
            pool.shutdown(cancel_futures=True)
