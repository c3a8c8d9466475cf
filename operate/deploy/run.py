"""A deployment: compare the site with the objects of a destination, and change what differs."""

import contextlib
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from builder.model.errors import OperatorError, explained
from builder.model.matching import match_file
from builder.model.plural import counted
from builder.model.progress import Progress
from builder.model.routes import Route
from builder.pipeline.heal import lost_files
from builder.store.locks import build_lock, last_build, lock
from builder.store.site import Site, mark_of, read_serial
from operate.deploy.folder import Folder
from operate.deploy.order import File, Step, keys_of, match_key

JOBS = 16
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
    if name.startswith("s3://"):
        # Loaded late: an optional library, and slow to load.
        from operate.deploy.bucket import Bucket

        return Bucket(name)
    # A URL, even if it lacks a slash. For a path, write `./` before it.
    if not name.strip() or name.partition("/")[0].endswith(":"):
        raise OperatorError(
            f"Unknown kind of destination {name!r}. Pass a folder or s3://BUCKET/PREFIX."
        )
    folder = Folder(name)
    for other in map(os.path.realpath, apart_from):
        if os.path.commonpath([other, folder.root]) in (other, folder.root):
            raise OperatorError(
                f"The destination {name} and the folder {other} overlap. Use separate folders."
            )
    return folder


@dataclass
class Deployment:
    """Brings a destination to the present site. Completed steps stay, and the next run continues.

    ``everything``: upload current objects, too. ``no_delete``: keep objects that the site no longer
    has. ``files_only``: no keys for URLs. ``dry_run``: change nothing. ``on_wait`` gets the name of
    the work that has to end first. ``check`` is called before each change, and prevents it by
    raising. After a run, ``build`` is the build that is deployed, and ``serial`` the site's.
    """

    site: str
    state: str
    destination: Destination
    everything: bool = False
    no_delete: bool = False
    files_only: bool = False
    dry_run: bool = False
    progress: Progress = lambda what, done, total: None
    on_wait: Callable[[str], None] = lambda what: None
    check: Callable[[], None] = lambda: None
    build: int | None = None
    serial: int | None = None
    # After a run: the mark of each object, and the site's files.
    _objects: dict[str, str] = field(default_factory=dict, init=False)
    _files: dict[str, File] = field(default_factory=dict, init=False)

    def run(self, touched: Mapping[int, frozenset[str] | None]) -> list[Step]:
        """Bring the destination up to date, without a listing if ``touched`` has the files that
        each build since the last run has changed; returns the steps in order. Raises OperatorError.
        """
        before, self.build = self.build, None
        with lock(f"{self.state}/deploy", lambda: self.on_wait("deployment")):
            if before is None:
                self._objects = self.destination.objects()
                self._files = self._wanted(None)  # most of the reading, while builds continue
            # A build can change files before they are uploaded. Builds wait for the last attempt.
            for is_last in (False, False, False, True):
                with contextlib.ExitStack() as held:
                    held.enter_context(build_lock(self.state, lambda: self.on_wait("build")))
                    build = last_build(self.state)
                    names = _names(before, build, touched)
                    files = self._wanted(names)
                    serial = read_serial(self.site)
                    if serial is None:
                        raise OperatorError(
                            f"No site in {self.site}. Build it: `hubctl build --base-url URL`."
                        )
                    # What is lost here would be deleted there.
                    if names is None and (lost := lost_files(self.state, self.site)):
                        raise OperatorError(
                            f"{self.site} has lost {counted(len(lost), 'file')}, such as "
                            f"{lost[0]}. Run `hubctl build`, and deploy again."
                        )
                    if not is_last:
                        held.close()
                    steps = self._plan(names, files)
                    if self.dry_run or self._carry_out(steps):
                        self._files |= files
                        self.build, self.serial = build, serial
                        return steps
        raise OperatorError(f"{self.site} changes all the time. Stop what writes there, not hub.")

    def _wanted(self, names: Iterable[str] | None) -> dict[str, File]:
        """The files that the destination must have: all, or those of ``names`` that exist."""
        found = {}
        with explained("read", self.site, "Deploy as the user who builds it.", is_inside=True):
            for name in Site(self.site).files() if names is None else names:
                with contextlib.suppress(FileNotFoundError):
                    file = self._files.get(name)
                    is_same = file and file.mark == mark_of(os.stat(f"{self.site}/{name}"))
                    found[name] = file if is_same else self._read(name)[0]
        return found

    def _read(self, name: str) -> tuple[File, bytes]:
        """A file of the site as it is now, and its bytes. Raises OSError."""
        with open(f"{self.site}/{name}", "rb") as file:
            data, mark = file.read(), mark_of(os.fstat(file.fileno()))
        return File(hashlib.md5(data, usedforsecurity=False).hexdigest(), mark), data

    def _plan(self, names: set[str] | None, files: Mapping[str, File]) -> list[Step]:
        steps, keys = [], set()
        for key, name, route in self._keys(files):
            keys.add(key)
            mark, file = self._objects.get(key), files[name]
            is_same = mark is not None and self.destination.holds(key, mark, file)
            if not is_same or self.everything:
                steps.append(Step(key, name, route, file.md5, mark is None))
        # If URLs are no keys, an object with such a name is not the site's.
        find = match_file if self.destination.has_rules else match_key
        owners = {None, *(found[1] for key in self._objects if (found := _owner_of(key)))}
        gone = self._objects if names is None else [key for key, _, _ in self._keys(names)]
        for key in () if self.no_delete else gone:
            found = find(key) if key in self._objects and key not in keys else None
            # A key like that of an owner's page may be any file, such as google0123.html.
            if found and (found.route.is_api or found.params.get("owner") in owners):
                steps.append(Step(key, None, found.route, "", False))
        return sorted(steps, key=lambda step: (step.place, step.key))

    def _keys(self, files: Iterable[str]) -> Iterator[tuple[str, str, Route]]:
        files_only = self.files_only or self.destination.has_rules
        for name in files:
            if match := match_file(name):
                for key in keys_of(match, files_only=files_only):
                    yield key, name, match.route

    def _carry_out(self, steps: list[Step]) -> bool:
        """Do these steps. Returns False if a build has changed a file meanwhile."""
        done, is_same = 0, True
        for _, group in itertools.groupby(steps, lambda step: step.place):
            with ThreadPoolExecutor(JOBS) as pool:
                # After an error, no step begins that waits.
                for step, mark in pool.map(self._do, group):
                    if mark:
                        self._objects[step.key] = mark
                    elif step.file:
                        is_same = False
                    else:
                        del self._objects[step.key]
                    self.progress("Deploying", done := done + 1, len(steps))
            if not is_same:
                break
        return is_same

    def _do(self, step: Step) -> tuple[Step, str]:
        """Do a step; returns the object's mark, empty if it is deleted, or if a build has changed
        the file.
        """
        self.check()
        if not step.file:
            self.destination.delete(step.key)
        else:
            with contextlib.suppress(FileNotFoundError):
                file, data = self._read(step.file)
                if file.md5 == step.md5:
                    return step, self.destination.put(step, file, data)
        return step, ""


def _names(
    before: int | None, build: int, touched: Mapping[int, frozenset[str] | None]
) -> set[str] | None:
    """The files that builds have changed since ``before``; None: all, or unknown ones."""
    found = [touched.get(number) for number in range((before or 0) + 1, build + 1)]
    is_unknown = before is None or before > build or None in found
    return None if is_unknown else set().union(*found)
