"""Where everything that is published goes: a content folder on a disk, or behind the same protocol
something else that many machines share.

What is published is read from the folder ``Store.root``, whatever the store. What is written goes
through the store's methods, each of which has committed when it returns.

A decision that depends on what a repo has is made by ``decide``, with a function without arguments,
``work``: it looks at everything that it depends on, from the answer that is kept for an
``Idempotency-Key`` on, and then writes. A store that many machines share may find, at a write,
that another machine was first: it raises an exception of its own out of ``work``, and runs ``work``
again from its beginning. So ``work`` lets exceptions through, and leaves nothing behind that
changes what its next run decides, except for writes that returned, which stay. ``decide`` returns
or raises what the last run does:

- Where that has written, at once.
- Where it returned or raised a RequestError and has written nothing, the store first makes sure
  that the folder has everything that is committed. If it had not, ``work`` runs again.
  ``sync_repo`` does so earlier, for ``work`` that keeps an answer for good.
- Any other exception passes at once.

Under ``repo_lock`` nothing runs again: where another machine was first, a write raises RequestError
``version_conflict``. ``replace_profile`` then asks ``may`` again.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from builder.model.errors import OperatorError
from builder.store import content
from publisher.write import durable, synced_files
from publisher.write.idempotency import IdempotencyKey, KeptAnswer

T = TypeVar("T")


class Store(Protocol):
    """``sync`` False: nothing waits for the disk, and the caller calls ``os.sync()`` before it
    tells anybody.

    All raise RequestError ``storage_unavailable``; writes ``version_conflict``, too.
    """

    root: str
    """The content folder, where everything is read."""

    decided_serial: int | None
    """Up to which serial this thread's last decision counts; None: as many as readers see."""

    def has_repo(self, owner: str, name: str) -> bool:
        """Whether the folder of the repo is there, in all that is committed."""

    def catch_up(self, owner: str, name: str) -> None:
        """Wait until the folder has all of the repo that is committed, for a reader."""

    def decide(self, owner: str, name: str, work: Callable[[], T]) -> T:
        """What ``work`` comes to, with the only right to write to the repo; see above. Makes the
        repo's folder, and removes it if ``work`` fails before a version is in it.
        """

    def repo_lock(self, owner: str, name: str) -> AbstractContextManager[None]:
        """The only right to write to the repo. The folder is made and removed as by ``decide``."""

    def remove_empty(self, owner: str, name: str) -> None:
        """Remove the folder of a repo that has nothing, and its owner's; the caller has the right
        to write to it.
        """

    def find_answers(self, key: IdempotencyKey) -> list[KeptAnswer]:
        """What is kept of a request; as ``IdempotencyKey.find``."""

    def keep_answer(self, key: IdempotencyKey, kept: KeptAnswer, owner: str, name: str) -> None:
        """Keep what the request is about to write to the repo, at the latest with the next write;
        as ``IdempotencyKey.store``. The caller has the right to write to the repo.
        """

    def write_version(
        self,
        owner: str,
        name: str,
        version: str,
        text: bytes,
        record: bytes,
        *,
        profile: bytes | None = None,
        sync: bool = True,
    ) -> None:
        """Store a new version; the caller has the right to write to the repo. ``profile``: with a
        repo's first version, for an owner of whom there is nothing yet.
        """

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        """Store changes of labels, each a number and a file, all or none; the caller has the right
        to write to the repo.
        """

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        """Store withdrawals, each what it withdraws (as in ``withdrawn_file``) and a file; then
        remove what they and all before them take away. Of none: only remove what a crash has left.
        The caller has the right to write to the repo.
        """

    def replace_profile(
        self, owner: str, data: bytes, may: Callable[[], bool] = lambda: True
    ) -> None:
        """Put the bytes of a profile in the place of the one before, only if it ``may`` once nobody
        else writes it. Raises what ``may`` does.
        """

    def sync_repo(self, owner: str, name: str) -> None:
        """Make sure that what is seen of a repo is all there is, and stays; who wrote it may have
        died before. The caller has the right to write to the repo.
        """


class Folder:
    """A folder on a disk of this machine (see ``durable``)."""

    decided_serial = None

    def __init__(self, root: str) -> None:
        self.root = root

    def has_repo(self, owner: str, name: str) -> bool:
        with synced_files.telling("send the same request again"):
            try:
                os.stat(content.repo_path(self.root, owner, name))
            except FileNotFoundError:
                return False
        return True

    def catch_up(self, owner: str, name: str) -> None:
        """Nothing to do: the folder is all there is."""

    def decide(self, owner: str, name: str, work: Callable[[], T]) -> T:
        with self.repo_lock(owner, name):
            return work()

    def repo_lock(self, owner: str, name: str) -> AbstractContextManager[None]:
        return durable.repo_lock(self.root, owner, name)

    def remove_empty(self, owner: str, name: str) -> None:
        durable.remove_empty(self.root, owner, name)

    def find_answers(self, key: IdempotencyKey) -> list[KeptAnswer]:
        return key.find()

    def keep_answer(self, key: IdempotencyKey, kept: KeptAnswer, owner: str, name: str) -> None:
        key.store(kept)

    def write_version(
        self,
        owner: str,
        name: str,
        version: str,
        text: bytes,
        record: bytes,
        *,
        profile: bytes | None = None,
        sync: bool = True,
    ) -> None:
        durable.write_version(
            self.root, f"{owner}/{name}", version, text, record, profile=profile, sync=sync
        )

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        durable.write_events(self.root, owner, name, events, sync=sync)

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        for what, data in withdrawn:
            durable.write_withdrawal(self.root, owner, name, what, data, sync=sync)
        left = content.list_versions(self.root, owner, name).left
        durable.remove_withdrawn(self.root, owner, name, left, sync=sync)

    def replace_profile(
        self, owner: str, data: bytes, may: Callable[[], bool] = lambda: True
    ) -> None:
        durable.replace_profile(self.root, owner, data, may)

    def sync_repo(self, owner: str, name: str) -> None:
        durable.sync_repo(self.root, owner, name)


def open_folder(content_root: str) -> Folder:
    """A folder as a store of its own. Raises OperatorError where it is a copy of another."""
    check_is_no_copy(content_root)
    return Folder(content_root)


def check_is_no_copy(content_root: str) -> None:
    """Raises OperatorError where what is written to a folder directly would reach no other node."""
    if os.path.lexists(f"{content_root}/{content.STORE_FILE}"):
        raise OperatorError(
            f"{content_root} is a copy of a database that many nodes share, and what is written "
            "only there reaches none of them. Pass the database with --database and another "
            "folder with --content, or publish over HTTP."
        )
