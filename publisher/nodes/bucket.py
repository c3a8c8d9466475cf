"""A store that many nodes share: publications, labels, withdrawals and profiles by way of its log.

What is published is decided by the content folder, as ever, and committed by the log. Where that
shows that the folder was behind, it is decided again (see ``publisher.write.store``).
"""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from builder.model.background import Background
from builder.model.errors import OperatorError, RequestError
from builder.model.labels import event_file
from builder.model.withdrawn import WHOLE, withdrawn_file
from builder.pipeline.context import Named
from builder.store import content
from builder.store.content import OWNER_FILE
from publisher.nodes.about import About, identify
from publisher.nodes.entries import (
    INLINE_BYTES_MAX,
    Blob,
    Change,
    Entry,
    blob_key,
    encode,
)
from publisher.nodes.log import UNAVAILABLE, Log, Overtaken, Waiting
from publisher.nodes.objects import Objects, StoreUnavailable
from publisher.nodes.replica import Replica, read_mark
from publisher.nodes.snapshots import Snapshots, read_tree
from publisher.write import durable

# How long a decision is tried again for, because others are faster.
PATIENCE_SECONDS = 30.0

_T = TypeVar("_T")


class Bucket:
    """The store at a URL, as seen by one node. While entered, ``root`` follows it. For any number
    of threads.

    ``on_applied`` is told of prompts and owners that have changed, before ``applied`` has the
    number of the entry. ``has_quotas``: owners have limits, so what they have is a matter of order.
    Raises OperatorError where the store or the folder cannot be used.
    """

    def __init__(
        self, root: str, url: str, *, node: str, has_quotas: bool = False,
        on_applied: Callable[[Iterable[Named]], None] = lambda changed: None,
        on_serial: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.root = root
        self.objects = Objects(url)
        self._has_quotas = has_quotas
        self._about = self._identify()
        self._replica = Replica(root, self.objects, self._about, on_applied, on_serial)
        self._snapshots = Snapshots(self.objects)
        self._log = Log(self.objects, node, self._begin, self._take)
        self._ready = _Ready(self._log, self._replica)
        self._turn = threading.local()
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for part in (self._replica, self._snapshots, self._log, self._ready):
            self._running.enter_context(part)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def serial(self) -> int:
        """Up to where the folder has all that was published, on any node."""
        return self._about.serial + self._replica.applied

    @property
    def decided_serial(self) -> int:
        return self._about.serial + (self._turn.number or 0)

    def wait_ready(self, seconds: float) -> bool:
        """Whether the folder has, within so many seconds, what the store had at the start."""
        return self._ready.event.wait(seconds)

    def check(self) -> None:
        """Raises OperatorError where the store cannot be read now, and says why."""
        if self._log.problem:
            raise OperatorError(str(self._log.problem)) from self._log.problem

    def status(self) -> dict[str, Any]:
        """For people and monitors."""
        log, replica = self._log.status(), self._replica.status()
        behind = log["head"] - replica["applied"]
        failures = max((log, replica), key=lambda one: one["failures"])
        return {
            "applied": replica["applied"],
            "behind": behind,
            "missing": replica["missing"],
            "failures": failures["failures"],
            "failing_since": failures["failing_since"],
            "last_error": failures["last_error"],
        }

    # The store, as ``publisher.write.store.Store``

    def has_repo(self, owner: str, name: str) -> bool:
        path = content.repo_path(self.root, owner, name)
        if not os.path.isdir(path):
            self._wait(self._log.newest(), time.monotonic() + PATIENCE_SECONDS)
        return os.path.isdir(path)

    def decide(self, owner: str, name: str, work: Callable[[], _T]) -> _T:
        keys = [f"{owner}/{name}", owner]

        def work_alone() -> _T:
            with durable.repo_lock(self.root, owner, name):
                # Whoever had the lock may have committed something.
                self._log.check_untouched(keys[:1], self._turn.seen)
                return work()

        return self._decide(keys, work_alone)

    @contextlib.contextmanager
    def repo_lock(self, owner: str, name: str) -> Iterator[None]:
        self._begin_turn()
        with durable.repo_lock(self.root, owner, name):
            yield

    def remove_empty(self, owner: str, name: str) -> None:
        durable.remove_empty(self.root, owner, name)

    def write_version(
        self, owner: str, name: str, version: str, text: bytes, record: bytes, *,
        profile: bytes | None = None, sync: bool = True
    ) -> None:  # fmt: skip
        repo, mark = f"{owner}/{name}", hashlib.sha256(record).hexdigest()
        blob = Blob(record.decode(), text.decode())
        is_small = len(text) <= INLINE_BYTES_MAX
        if not is_small:
            # If it is there, it is the same.
            self.objects.create(blob_key(repo, version, mark), encode(blob))
        keys, files = [repo], {}
        owner_file = f"{owner}/{OWNER_FILE}"
        if profile is not None and not os.path.exists(f"{self.root}/{owner_file}"):
            files[owner_file] = profile.decode()
        if files or self._has_quotas:
            keys.append(owner)
        inline = blob if is_small else None
        self._commit(Change(keys, version, mark, inline, files), blob)

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        repo = f"{owner}/{name}"
        keys = [repo, owner] if self._has_quotas else [repo]
        files = {f"{repo}/{event_file(number)}": data.decode() for number, data in events}
        self._commit(Change(keys, files=files))

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        repo = f"{owner}/{name}"
        listing = content.list_versions(self.root, owner, name)
        if not withdrawn:
            durable.remove_withdrawn(self.root, owner, name, listing.left, sync=False)
            return
        whats = {what for what, _ in withdrawn}
        all_versions = [str(version) for version in listing.versions]
        going = all_versions if WHOLE in whats else sorted(whats)
        files = {f"{repo}/{withdrawn_file(what)}": data.decode() for what, data in withdrawn}
        removes = [f"{repo}/{version}{end}" for version in going for end in (".json", ".md")]
        strips = self._entries_of(repo, going)
        self._commit(Change([repo], files=files, removes=removes, strips=strips))

    def replace_profile(
        self, owner: str, data: bytes, may: Callable[[], bool] = lambda: True
    ) -> None:
        def work() -> None:
            if may():
                path = f"{owner}/{OWNER_FILE}"
                self._commit(Change([owner], files={path: data.decode()}))

        self._decide([owner], work)

    def sync_repo(self, owner: str, name: str) -> None:
        self._confirm([f"{owner}/{name}", owner])

    # Decisions

    def _decide(self, keys: list[str], work: Callable[[], _T]) -> _T:
        if not self._ready.event.is_set():
            raise StoreUnavailable(
                "This node is still reading what the store has. Send the same request again in a "
                "moment, or to another node."
            )
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._try(keys, work)
            except Overtaken as overtaken:
                self._wait(overtaken.number, until)
            except StoreUnavailable as error:
                # Where the store is, and what it says, is for the log.
                raise StoreUnavailable(UNAVAILABLE) from error

    def _try(self, keys: list[str], work: Callable[[], _T]) -> _T:
        """What ``work`` comes to, in view of everything that is committed. Raises Overtaken."""
        self._begin_turn()
        try:
            result = work()
        except (Overtaken, StoreUnavailable):
            raise
        except RequestError:
            self._confirm(keys)
            raise
        self._confirm(keys)
        return result

    def _confirm(self, keys: list[str]) -> None:
        """Make sure that there is nothing that a decision by ``keys`` has not seen, if it was not
        made sure yet. Raises Overtaken.
        """
        if self._turn.number is None:
            self._turn.number = self._log.confirm(keys, self._turn.seen)

    def _begin_turn(self) -> None:
        self._turn.seen, self._turn.number = self._replica.applied, None

    def _commit(self, change: Change, blob: Blob | None = None) -> None:
        waiting = self._log.commit(change, self._turn.seen)
        # Its keys were not touched in between.
        self._turn.seen = self._turn.number = waiting.number
        self._replica.apply_own(waiting, blob)

    def _wait(self, number: int, until: float) -> None:
        if not self._replica.wait(number, until - time.monotonic()):
            raise StoreUnavailable(
                "This node is behind the others. Send the same request again in a moment, or to "
                "another node: with an Idempotency-Key nothing is saved twice."
            )

    def _entries_of(self, repo: str, versions: list[str]) -> list[int]:
        """The entries with the texts of versions."""
        _, tree = read_tree(self.objects, self._turn.seen)
        there = tree.versions.get(repo, {})
        # One that is not there was withdrawn after what this node has seen.
        return sorted({there[one].entry for one in versions if one in there} - {0})

    # The threads

    def _identify(self) -> About:
        try:
            return identify(self.objects)
        except StoreUnavailable as error:
            # What was read before can be served until the store is back.
            mark = read_mark(self.root)
            if mark:
                return mark.store
            raise OperatorError(str(error)) from error

    def _begin(self) -> int:
        """The number of the entry before the first that is to be read."""
        self._replica.check_store(identify(self.objects))
        self._replica.load_newest_snapshot()
        return self._replica.applied

    def _take(self, number: int, entry: Entry, own: list[Waiting]) -> None:
        self._replica.put(number, entry, own)
        if own:
            self._snapshots.note(number)


class _Ready(Background):
    """Sets ``event`` when the folder has what the store had at the start."""

    def __init__(self, log: Log, replica: Replica) -> None:
        super().__init__("catch-up")
        self.event = threading.Event()
        self._log = log
        self._replica = replica

    def _run(self) -> None:
        head: int | None = None
        while not self._is_stopping and not self.event.is_set():
            try:
                head = self._log.newest() if head is None else head
            except StoreUnavailable:
                continue  # the log says why, and tries on
            if self._replica.wait(head, 1.0):
                self.event.set()
