"""A content folder as a cache of a store's log: a node reads it, and builds its site from it.

Entries are applied in their order by a thread; a change that this node itself has committed, by
whoever waited for it, who has the prompt's lock. Applying twice changes nothing. ``.hub-store`` in
the folder says which store it follows, and up to where it is surely on the disk; after a crash,
all from there on is applied again. So nothing here waits for the disk.
"""

import contextlib
import fcntl
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from builder.model.background import Background, Failures, pause_seconds
from builder.model.errors import OperatorError, RequestError
from builder.pipeline.context import Named
from builder.store.content import STORE_FILE, check_format, list_owners
from publisher.log import log_event
from publisher.nodes.about import About
from publisher.nodes.entries import (
    Blob,
    Change,
    Entry,
    blob_key,
    hash_record,
    read_blob,
    version_of,
)
from publisher.nodes.log import Waiting, wait_for
from publisher.nodes.objects import Objects
from publisher.nodes.removal import remove_texts
from publisher.nodes.snapshots import fill, newest_snapshot, read_snapshot
from publisher.write import disk, durable

# The most entries that were read, and are not applied yet.
BACKLOG_MAX = 64
# How often it is made sure that what was applied is on the disk.
SAVE_SECONDS = 30.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.2, 10.0
_THEN = "the node tries again by itself"

log = logging.getLogger("hub.store")


class Mark(Struct, forbid_unknown_fields=True):
    """What ``.hub-store`` says: which store the folder follows, and up to which entry."""

    store: About
    applied: int


class _Due(NamedTuple):
    number: int
    entry: Entry
    own: list[Waiting]


def read_mark(root: str) -> Mark | None:
    """What a content folder follows; None: no store. Raises OperatorError."""
    try:
        with open(f"{root}/{STORE_FILE}", "rb") as file:
            return msgspec.json.decode(file.read(), type=Mark)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(
            f"{root}/{STORE_FILE} cannot be read ({error}). This folder is a copy of a store: "
            "remove the folder, and the node makes it again."
        ) from error


class Replica(Background):
    """While entered, applies what it is given. ``on_applied`` is told of prompts and owners that
    have changed, before ``applied`` says so, and ``on_serial`` afterwards. For one process: raises
    OperatorError where another has the folder, or it is no copy of this store.
    """

    def __init__(
        self, root: str, objects: Objects, about: About,
        on_applied: Callable[[Iterable[Named]], None] = lambda changed: None,
        on_serial: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__("replica")
        self._root = root
        self._objects = objects
        self._about = about
        self._on_applied = on_applied
        self._on_serial = on_serial
        self._due: deque[_Due] = deque()
        self._failures = Failures()
        # Versions whose text is gone from the store, until an entry says that they were withdrawn.
        self._gone: set[str] = set()
        self._lock = _lock(root)
        try:
            self.applied = self._saved = self._begin()
        except BaseException:
            os.close(self._lock)
            raise
        self._save_at = time.monotonic() + SAVE_SECONDS

    def __exit__(self, *_: object) -> None:
        self._stop()
        with contextlib.suppress(RequestError):  # then it is applied again
            self._save(self.applied)
        os.close(self._lock)

    def load_newest_snapshot(self) -> None:
        """Bring an empty folder up to the newest snapshot; before entries are applied. Raises
        StoreUnavailable, OperatorError.
        """
        # What an earlier process has left may be withdrawn since, and only entries say that.
        if self.applied or list_owners(self._root):
            return
        number = newest_snapshot(self._objects)
        if not number:
            return
        tree = read_snapshot(self._objects, number)
        for _ in self.apply_changes(fill(self._objects, tree, tree.changes())):
            pass
        self.applied = number
        self._save(number)

    def apply_changes(self, changes: Iterable[Change]) -> Iterator[int]:
        """Apply changes; yields how many are done. Raises StoreUnavailable, OperatorError, and
        RequestError ``storage_unavailable``.
        """
        for done, (change, blob) in enumerate(self._objects.each(self._fetch, changes), 1):
            owner, _, name = change.keys[0].partition("/")
            lock = durable.repo_lock(self._root, owner, name) if name else None
            with lock or contextlib.nullcontext():
                self._write(change, blob)
            yield done

    def check_store(self, about: About) -> None:
        """Raises OperatorError where the folder follows another store."""
        if about.id != self._about.id:
            raise OperatorError(
                f"{self._root} is a copy of another store than {self._objects.url} is now. Pass "
                "another folder with --content, or remove this one."
            )

    def put(self, number: int, entry: Entry, own: list[Waiting]) -> None:
        """Take the next entry; waits while too many are not applied yet."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or len(self._due) < BACKLOG_MAX)
            self._due.append(_Due(number, entry, own))
            self._changed.notify_all()

    def wait(self, number: int, seconds: float) -> bool:
        """Whether all up to an entry is applied within so many seconds, or few if it fails."""
        with self._changed:
            return wait_for(self._changed, lambda: self.applied >= number, seconds, self._failures)

    def apply_own(self, waiting: Waiting, blob: Blob | None) -> None:
        """Apply a change that was committed here; the caller holds the prompt's lock. If it fails,
        the thread does it later. Raises RequestError ``storage_unavailable``.
        """
        try:
            self._write(waiting.change, blob)
            self._on_applied([_named(waiting.change)])
            waiting.is_applied = True
        finally:
            waiting.is_over.set()

    def status(self) -> dict[str, Any]:
        """For people and monitors."""
        with self._changed:
            return {
                "applied": self.applied,
                "waiting": len(self._due),
                "missing": len(self._gone),
                **self._failures.status(),
            }

    # The thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopping or self._due, SAVE_SECONDS)
                if self._is_stopping:
                    return
                due = self._due[0] if self._due else None
            self._save_if_due()
            if not due:
                continue
            if not self._apply(due):
                return
            with self._changed:
                self._due.popleft()
                self.applied = due.number
                self._changed.notify_all()
            self._on_serial()

    def _apply(self, due: _Due) -> bool:
        """Apply an entry, however often that takes; False: the node stops."""
        others = []
        for change, waiting in zip(due.entry.changes, _own_of(due), strict=True):
            if waiting:
                waiting.is_over.wait()
            if not (waiting and waiting.is_applied):
                others.append(change)
        while True:
            try:
                for _ in self.apply_changes(others):
                    pass
            except Exception as error:
                # The edge of the thread: whatever it was, it is told, and tried again.
                if not self._pause(error):
                    return False
            else:
                self._failures.clear()
                self._on_applied(map(_named, others))
                return True

    def _pause(self, error: Exception) -> bool:
        """Wait after a failure; False: the node stops."""
        with self._changed:
            self._failures.add("An entry of the store cannot be applied; the log has the cause.")
            log_event(log, logging.ERROR, "replica", error, failures=self._failures.count)
            self._changed.notify_all()  # patience is shorter now
            pause = pause_seconds(self._failures.count, PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX)
            return not self._changed.wait_for(lambda: self._is_stopping, pause)

    def _fetch(self, change: Change) -> tuple[Change, Blob | None]:
        blob = read_blob(self._objects, change) if change.version else None
        if change.version and blob is None:
            with self._changed:
                self._gone.add(f"{change.keys[0]}/{change.version}")
        return change, blob

    # The folder

    def _write(self, change: Change, blob: Blob | None) -> None:
        with disk.telling(_THEN):
            if blob:
                # The record last: it says that there is a version.
                path = f"{change.keys[0]}/{change.version}"
                self._put(f"{path}.md", blob.text)
                self._put(f"{path}.json", blob.record)
            for path, text in change.files.items():
                self._put(path, text)
            for path in change.removes:
                disk.unlink(self._path(path))
        if change.removes:
            with self._changed:
                self._gone -= change.withdrawn
            remove_texts(self._objects, change, self._is_used)

    def _is_used(self, key: str) -> bool:
        """Whether a version in the folder has the blob at a key."""
        repo, _, version = version_of(key).rpartition("/")
        with contextlib.suppress(FileNotFoundError):
            return blob_key(repo, version, hash_record(self._root, repo, version)) == key
        return False

    def _put(self, path: str, text: str) -> None:
        target, data = self._path(path), text.encode()
        with contextlib.suppress(FileNotFoundError), open(target, "rb") as file:
            if file.read(len(data) + 1) == data:
                return
        folder = os.path.dirname(target)
        os.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.store.tmp"
        disk.unlink(temporary)  # a crash's rest
        disk.write_new(temporary, data, sync=False)
        os.replace(temporary, target)

    def _path(self, path: str) -> str:
        if not all(part.strip(".") for part in path.split("/")):
            raise OperatorError(f"An entry of the store {self._objects.url} names {path!r}.")
        return f"{self._root}/{path}"

    def _begin(self) -> int:
        """Up to where the folder has what the store has."""
        mark = read_mark(self._root)
        if mark:
            self.check_store(mark.store)
        if not mark and os.path.isdir(self._root) and list_owners(self._root):
            raise OperatorError(
                f"{self._root} has prompts, and is no copy of the store {self._objects.url}. Copy "
                f"them with `hubctl store copy {self._root} {self._objects.url}`, then pass "
                "another folder with --content."
            )
        check_format(self._root)
        if mark:
            return mark.applied
        self._save(0)  # before there is anything that could be taken for a folder of its own
        return 0

    def _save_if_due(self) -> None:
        if self._saved < self.applied and self._save_at <= time.monotonic():
            try:
                self._save(self.applied)
            except RequestError as error:
                log_event(log, logging.ERROR, "replica", error)
            self._save_at = time.monotonic() + SAVE_SECONDS

    def _save(self, applied: int) -> None:
        with disk.telling(_THEN):
            os.sync()
            self._put(STORE_FILE, msgspec.json.encode(Mark(self._about, applied)).decode())
        self._saved = applied


def _own_of(due: _Due) -> Iterator[Waiting | None]:
    """For each change of an entry, who waited for it here."""
    own = {waiting.change.keys[0]: waiting for waiting in due.own}
    return (own.get(change.keys[0]) for change in due.entry.changes)


def _named(change: Change) -> Named:
    owner, _, name = change.keys[0].partition("/")
    return owner, name or None


def _lock(root: str) -> int:
    """Hold a folder for this process."""
    os.makedirs(root, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise OperatorError(
            f"Another process has {root}, and follows the store into it. Stop that, or pass "
            "another folder with --content."
        ) from None
    return descriptor
