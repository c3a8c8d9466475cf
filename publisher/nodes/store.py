"""The store in a database that many nodes share; see ``publisher.write.durable``.

A change is decided from this node's content folder, with the same code as for any folder, and
committed by the database. Where another change was committed since, it is decided again.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

import psycopg

from builder.model.content_tree import FORMAT_FILE
from builder.model.errors import OperatorError
from builder.pipeline.context import Named
from builder.store import content
from publisher.accounts.postgres_pool import Connections
from publisher.nodes import rows
from publisher.nodes.commits import OTHER_HISTORY, Commits, Overtaken, StoreUnavailable
from publisher.nodes.copy import Copy
from publisher.nodes.rows import (
    EVENT,
    PROFILE,
    VERSION,
    WITHDRAWAL,
    Answer,
    File,
    Mark,
    join,
    paths_of,
)
from publisher.write.durable import FORMAT_TEXT, FolderStore, NewVersion, T
from publisher.write.idempotency import IdempotencyKey, KeptAnswer

# A decision is tried again for so long while other nodes are faster. Then it fails with
# ``version_conflict`` or ``storage_unavailable``.
PATIENCE_SECONDS = 30.0


class Shared(FolderStore):
    """The store in a database, as seen by one node. While entered, ``root`` follows it. For any
    number of threads.

    ``on_applied`` and ``on_serial`` as in Copy. ``has_quotas``: owners have quotas, so a decision
    depends on everything that its owner has. Raises OperatorError where the folder cannot be used.
    """

    def __init__(
        self,
        root: str,
        connections: Connections,
        *,
        has_quotas: bool = False,
        on_applied: Callable[[Iterable[Named]], None] = lambda changed: None,
        on_serial: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(root)
        self._connections = connections
        self._has_quotas = has_quotas
        self._copy = Copy(root, on_applied, on_serial)
        self._commits = Commits(connections, self._copy)
        self._turn = threading.local()
        self.wait_ready = self._commits.wait_ready
        self.status = self._commits.status

    def __enter__(self) -> Self:
        self._commits.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._commits.__exit__()
        self._copy.close()

    @property
    def serial(self) -> int:
        """The serial up to which the folder has everything that was published, on any node."""
        return self._copy.mark.serial

    @property
    def decided_serial(self) -> int:
        return getattr(self._turn, "serial", None) or 0

    def check(self) -> None:
        """Raises OperatorError, with the reason, where the node cannot follow the database now."""
        if self._commits.has_other_history:
            raise OperatorError(OTHER_HISTORY)
        if self._commits.problem:
            raise OperatorError(str(self._commits.problem)) from self._commits.problem

    def has_repo(self, owner: str, name: str) -> bool:
        path = content.repo_path(self.root, owner, name)
        if not os.path.isdir(path):
            self.catch_up(owner, name)
        return os.path.isdir(path)

    def catch_up(self, owner: str, name: str) -> None:
        newest, _ = self._newer(owner, f"{owner}/{name}", self._copy.mark, by_owner=False)
        self._wait(newest, time.monotonic() + PATIENCE_SECONDS)

    def decide(self, owner: str, name: str, work: Callable[[], T]) -> T:
        def work_alone() -> T:
            with self.repo_lock(owner, name):
                return work()

        return self._decide(owner, f"{owner}/{name}", work_alone, self._has_quotas)

    @contextlib.contextmanager
    def repo_lock(self, owner: str, name: str) -> Iterator[None]:
        with super().repo_lock(owner, name):
            self._begin_turn()  # the last holder of the lock may have committed something
            yield

    def find_answers(self, key: IdempotencyKey) -> list[KeptAnswer]:
        found = key.find()
        self._turn.known = len(found)
        return found

    def keep_answer(self, key: IdempotencyKey, kept: KeptAnswer, owner: str, name: str) -> None:
        key.check_room(0 if self._turn.known else 1)
        self._turn.answer = Answer(key, kept, self._turn.known)
        if not kept.writes:
            self._commit(owner, f"{owner}/{name}", [])

    def write_version(
        self,
        owner: str,
        name: str,
        version: str,
        new: NewVersion,
        *,
        profile: bytes | None = None,
        sync: bool = True,
    ) -> None:
        repo = f"{owner}/{name}"
        if new.files:
            self._raise_format()
        texts = join(new.text, [new.files[path] for path in paths_of(new.record)])
        put = [File(repo, VERSION, version, new.record, texts)]
        if profile is not None and self.is_alone(owner, name):
            put.insert(0, _profile(owner, profile))
        self._commit(owner, repo, put, by_owner=len(put) > 1)

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        repo = f"{owner}/{name}"
        self._commit(owner, repo, [File(repo, EVENT, str(at), data) for at, data in events])

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        repo = f"{owner}/{name}"
        if withdrawn:
            files = [File(repo, WITHDRAWAL, what, data) for what, data in withdrawn]
            self._commit(owner, repo, files)
        else:
            super().write_withdrawal(owner, name, [], sync=False)

    def replace_profile(self, owner: str, data: bytes) -> None:
        def work() -> None:
            self._commit(owner, owner, [_profile(owner, data)], by_owner=True)

        self._decide(owner, owner, work, by_owner=True)

    def sync_repo(self, owner: str, name: str) -> None:
        """Nothing to do: what is seen is committed, and ``decide`` makes sure that it is all."""

    # Decisions

    def _decide(self, owner: str, repo: str, work: Callable[[], T], by_owner: bool) -> T:
        if not self.wait_ready(0) and not self._commits.has_other_history:
            raise StoreUnavailable(
                "This node is still reading what the database has. Send the same request again in "
                "a moment, or to another node."
            )
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._try(owner, repo, work, by_owner)
            except Overtaken as overtaken:
                self._wait(overtaken.serial, until)
                if time.monotonic() > until:
                    raise

    def _try(self, owner: str, repo: str, work: Callable[[], T], by_owner: bool) -> T:
        """Returns what ``work`` returns, once it has seen everything that is committed. Raises
        Overtaken.
        """
        self._begin_turn()
        try:
            result = work()
        except (Overtaken, StoreUnavailable):
            raise
        except Exception:
            # Any error may come from rows that this node did not have yet.
            if self._turn.serial is None:
                self._check_newest(owner, repo, by_owner)
            raise
        if self._turn.serial is None:
            # The state that ``work`` found may be committed on the primary alone, before the
            # standby confirmed it
            # (https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION).
            # To confirm it, an empty change is committed after it.
            self._commit(owner, repo, [], by_owner=by_owner)
        return result

    def _begin_turn(self) -> None:
        self._commits.wait_current()
        turn = self._turn
        turn.seen, turn.serial, turn.known, turn.answer = self._copy.mark, None, 0, None

    def _check_newest(self, owner: str, repo: str, by_owner: bool) -> None:
        """Raises Overtaken where a change was committed that a decision has not seen."""
        _, touched = self._newer(owner, repo, self._turn.seen, by_owner)
        if touched is not None:
            raise Overtaken(touched)

    def _newer(self, owner: str, repo: str, seen: Mark, by_owner: bool) -> tuple[int, int | None]:
        try:
            with self._connections.asking() as connection:
                return rows.newer(connection, owner, repo, seen, by_owner)
        except rows.OtherHistory:
            raise self._commits.note_other_history() from None
        except psycopg.Error as error:
            raise StoreUnavailable from error

    def _commit(
        self, owner: str, repo: str, files: Sequence[File], *, by_owner: bool = False
    ) -> None:
        turn = self._turn
        change = rows.make_change(
            owner, repo, files, turn.seen.serial, by_owner or self._has_quotas, turn.answer
        )
        turn.serial = self._commits.commit(change)
        turn.answer = None
        if files:
            # The commit proves that nothing that the decision depends on changed in between.
            turn.seen = Mark(turn.serial, change.requests[-1])

    def _raise_format(self) -> None:
        """Raise the content's format before any node has a version with files."""
        if content.check_format(self.root) < content.FORMAT_NUMBER:
            file = File("", FORMAT_FILE, os.urandom(16).hex(), FORMAT_TEXT)
            change = rows.make_change("", "", [file], self._turn.seen.serial, by_owner=False)
            self._commits.commit(change)

    def _wait(self, serial: int, until: float) -> None:
        if not self._commits.wait_applied(serial, until - time.monotonic()):
            raise StoreUnavailable


def _profile(owner: str, data: bytes) -> File:
    # A profile has no number of its own, so its row gets a random name.
    return File(owner, PROFILE, os.urandom(16).hex(), data)
