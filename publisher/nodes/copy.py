"""A node's content folder: a copy of the history, from which it reads, decides and builds.

Rows are applied in their order, by one thread. To apply them twice changes nothing. ``.hub-store``
in the folder says up to where it is surely on the disk, and which row is the last that may be
there; after a crash, all in between is applied again. So nothing here waits for the disk.
"""

import contextlib
import fcntl
import logging
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from builder.model.errors import OperatorError, RequestError
from builder.model.labels import event_file
from builder.model.withdrawn import withdrawn_file
from builder.pipeline.background import Background, Failures, pause_seconds
from builder.pipeline.context import Named
from builder.store import content
from builder.store.content import OWNER_FILE, STORE_FILE
from publisher.log import log_event
from publisher.nodes.rows import EVENT, HUB_FILES, PROFILE, VERSION, WITHDRAWAL, Mark, Row
from publisher.write import disk, durable

# While more waits to be applied, nothing more is read.
BACKLOG_BYTES_MAX = 8 * 1024 * 1024
# How often it is made sure that what was applied is on the disk.
SAVE_SECONDS = 30.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.2, 10.0
# A repo's folder may be removed by whoever made it in vain, so often in a row.
_ATTEMPTS = 100
_THEN = "the node tries again by itself"

log = logging.getLogger("hub.nodes")


class Saved(Struct, forbid_unknown_fields=True):
    """What ``.hub-store`` says. ``applied``: all up to there is on the disk; ``serial`` and
    ``request``: of the last row that may be in the folder.
    """

    applied: int
    serial: int
    request: uuid.UUID | None


class Copy(Background):
    """While entered, applies the rows that it is given. ``on_applied`` is told of prompts and
    owners that have changed, before ``applied`` says so, and ``on_serial`` afterwards. For one
    process: raises OperatorError where another has the folder, or it is no copy.
    """

    def __init__(
        self, root: str, on_applied: Callable[[Iterable[Named]], None],
        on_serial: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__("copy")
        self._root = root
        self._on_applied = on_applied
        self._on_serial = on_serial
        self._rows: deque[Row] = deque()
        self._rows_bytes = 0
        self._failures = Failures()
        self._lock = lock_folder(root)
        try:
            saved = _read_saved(root)
        except BaseException:
            os.close(self._lock)
            raise
        # The last row that may be in the folder, the last that was read, and the last that is
        # applied for sure.
        self.highest = Mark(saved.serial, saved.request)
        is_whole = saved.applied == saved.serial
        self.head = self.applied = self.highest if is_whole else Mark(saved.applied, None)
        self._on_disk = saved.applied
        self._save_at = time.monotonic() + SAVE_SECONDS

    def __exit__(self, *_: object) -> None:
        self._stop()
        with contextlib.suppress(RequestError):  # then it is applied again
            self._sync()
        os.close(self._lock)

    def put(self, rows: Sequence[Row]) -> None:
        """Take the rows after the head; waits while too many are not applied yet."""
        if not rows:
            return
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_stopping or self._rows_bytes < BACKLOG_BYTES_MAX
            )
        # Before the folder has any of them: it must not follow a history that has none.
        self._save(self._on_disk, rows[-1].mark)
        with self._changed:
            self.head = rows[-1].mark
            self._rows.extend(rows)
            self._rows_bytes += sum(row.size for row in rows)
            self._changed.notify_all()

    def wait(self, serial: int, seconds: float) -> bool:
        """Whether all up to a row is applied within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.applied.serial >= serial, max(seconds, 0))

    def status(self) -> dict[str, Any]:
        """For people and monitors."""
        with self._changed:
            return {"applied": self.applied.serial, **self._failures.status()}

    # The thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopping or self._rows, SAVE_SECONDS)
                if self._is_stopping:
                    return
                rows = [*self._rows]
            for row in rows:
                if not self._apply(row):
                    return
                with self._changed:
                    self._rows.popleft()
                    self._rows_bytes -= row.size
                    self.applied = row.mark
                    self._changed.notify_all()
                self._on_serial()
            self._sync_now_and_then()

    def _apply(self, row: Row) -> bool:
        """Apply a row, however often that takes; False: the node stops."""
        while True:
            try:
                apply_row(self._root, row)
            except Exception as error:
                # The edge of the thread: whatever it was, it is logged, and tried again.
                if not self._pause(error):
                    return False
            else:
                self._failures.clear()
                # A build looks at the hub's own files each time.
                self._on_applied([_named(row)] if row.owner else [])
                return True

    def _pause(self, error: Exception) -> bool:
        """Wait after a failure; False: the node stops."""
        with self._changed:
            self._failures.add("A change cannot be written to the content folder. See the log.")
            log_event(log, logging.ERROR, "copy", error, failures=self._failures.count)
            pause = pause_seconds(self._failures.count, PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX)
            return not self._changed.wait_for(lambda: self._is_stopping, pause)

    def _sync_now_and_then(self) -> None:
        if self._save_at <= time.monotonic():
            try:
                self._sync()
            except RequestError as error:
                log_event(log, logging.ERROR, "copy", error)
            self._save_at = time.monotonic() + SAVE_SECONDS

    def _sync(self) -> None:
        applied = self.applied.serial
        if applied == self._on_disk:
            return
        with disk.telling(_THEN):
            os.sync()
        self._save(applied, self.highest)

    def _save(self, on_disk: int, highest: Mark) -> None:
        with self._changed, disk.telling(_THEN):
            self._on_disk = max(on_disk, self._on_disk)
            self.highest = max(highest, self.highest, key=lambda mark: mark.serial)
            saved = Saved(self._on_disk, self.highest.serial, self.highest.request)
            _put(f"{self._root}/{STORE_FILE}", msgspec.json.encode(saved))


def apply_row(root: str, row: Row) -> None:
    """Write the files of a row as the folder of a single machine has them. Raises RequestError
    ``storage_unavailable``, OperatorError.
    """
    if row.kind in HUB_FILES:
        with disk.telling(_THEN):
            return _put(f"{root}/{row.kind}", row.record)
    if not all(part.strip(".") for part in f"{row.repo}/{row.name}".split("/")):
        raise OperatorError(f"The change {row.serial} names {row.repo!r} and {row.name!r}.")
    folder = f"{root}/{row.repo}"
    with disk.telling(_THEN):
        if row.kind == VERSION and row.text is None:
            return  # it was withdrawn later
        if row.kind == VERSION:
            # The record last: it says that there is a version.
            _put(f"{folder}/{row.name}.md", row.text)
            _put(f"{folder}/{row.name}.json", row.record)
        elif row.kind == EVENT:
            _put(f"{folder}/{event_file(int(row.name))}", row.record)
        elif row.kind == PROFILE:
            _put(f"{folder}/{OWNER_FILE}", row.record)
        elif row.kind == WITHDRAWAL:
            _put(f"{folder}/{withdrawn_file(row.name)}", row.record)
            remove_left(root, row.repo)
        else:
            raise OperatorError(
                f"The change {row.serial} is of a kind that this release does not know, "
                f"{row.kind!r}. Upgrade this node."
            )


def remove_left(root: str, repo: str) -> None:
    """Remove the files of withdrawn versions. Raises RequestError ``storage_unavailable``."""
    owner, _, name = repo.partition("/")
    left = content.list_versions(root, owner, name).left
    durable.remove_withdrawn(root, owner, name, left, sync=False)


def _named(row: Row) -> Named:
    owner, _, name = row.repo.partition("/")
    return owner, name or None


def _put(target: str, data: bytes) -> None:
    with contextlib.suppress(FileNotFoundError), open(target, "rb") as file:
        if file.read(len(data) + 1) == data:
            return
    folder = os.path.dirname(target)
    temporary = f"{folder}/.store.tmp"
    for attempt in range(_ATTEMPTS):
        try:
            os.makedirs(folder, exist_ok=True)
            disk.unlink(temporary)  # a crash's rest
            disk.write_new(temporary, data, sync=False)
            os.replace(temporary, target)
        except FileNotFoundError:
            # Who made the folder in vain has just removed it.
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _read_saved(root: str) -> Saved:
    """What a folder has, which is made a copy if it has nothing. Raises OperatorError."""
    content.check_format(root)
    path = f"{root}/{STORE_FILE}"
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Saved)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(
            f"{path} cannot be read ({error}). This folder is a copy of a database: run `hubctl "
            "store renew`, and the node makes it again."
        ) from error
    if content.list_owners(root):
        raise OperatorError(
            f"{root} has prompts, and is no copy of the database. Pass another folder with "
            "--content. To copy these prompts into a database that has none, run `hubctl store "
            "copy --to database`."
        )
    # Before there is anything that could be taken for a hub's folder.
    return mark_as_copy(root, Mark(0, None))


def mark_as_copy(root: str, mark: Mark) -> Saved:
    """Say of a folder that it is a copy up to a row. Raises RequestError
    ``storage_unavailable``.
    """
    saved = Saved(mark.serial, *mark)
    with disk.telling(_THEN):
        _put(f"{root}/{STORE_FILE}", msgspec.json.encode(saved))
    return saved


def lock_folder(root: str) -> int:
    """Hold a folder for this process."""
    os.makedirs(root, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise OperatorError(
            f"Another process has {root}, and follows the database into it. Stop that, or pass "
            "another folder with --content."
        ) from None
    return descriptor
