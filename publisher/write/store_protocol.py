"""The protocol of a store, where everything that is published goes: a content folder on a disk, or
a database that many machines share.

With any store, published files are read from the folder ``Store.root``. Files are written through
the store's methods. When one returns, its change is committed.

A decision that depends on what a repo has is made by ``decide``, with a function without arguments,
``work``. It reads everything that it depends on, from the answer that is kept for an
``Idempotency-Key`` on, and then writes. With a shared store, a write may find that another machine
was first. The store then raises an exception of its own out of ``work``, and runs ``work`` again
from its beginning. So ``work`` lets exceptions through. It leaves nothing behind that changes the
decision of its next run, except for writes that returned, which stay. ``decide`` returns or raises
what the last run does:

- Where that run has written, at once.
- Where it returned or raised a RequestError and has written nothing, the store first makes sure
  that the folder has everything that is committed. If it had not, ``work`` runs again.
  ``sync_repo`` does so earlier, for ``work`` that keeps an answer for good.
- Any other exception passes at once.

Under ``repo_lock`` nothing runs again: where another machine was first, a write raises RequestError
``version_conflict``. ``replace_profile`` then calls ``may`` again.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from builder.model.content_tree import STORE_FILE
from builder.model.errors import OperatorError
from builder.store import content
from publisher.write import durable, synced_files
from publisher.write.durable import NewVersion
from publisher.write.idempotency import IdempotencyKey, KeptAnswer

T = TypeVar("T")


class Store(Protocol):
    """A store of published files. ``sync`` False: nothing waits for the disk, and the caller calls
    ``os.sync()`` before it acknowledges anything.

    All methods raise RequestError ``storage_unavailable``; writes also raise ``version_conflict``.
    """

    root: str
    """The content folder, where everything is read."""

    decided_serial: int | None
    """The serial up to which this thread's last decision counts; None: all that readers see."""

    def has_repo(self, owner: str, name: str) -> bool:
        """True if the repo's folder exists, in all that is committed."""

    def catch_up(self, owner: str, name: str) -> None:
        """Waits until the folder has all of the repo that is committed, for a reader."""

    def decide(self, owner: str, name: str, work: Callable[[], T]) -> T:
        """Returns what ``work`` returns, run with the only right to write to the repo; see above.

        Creates the repo's folder, and removes it if ``work`` fails before a version is in it.
        """

    def repo_lock(self, owner: str, name: str) -> AbstractContextManager[None]:
        """Holds the only right to write to the repo. Creates and removes the folder as ``decide``
        does.
        """

    def remove_empty(self, owner: str, name: str) -> None:
        """Removes the folder of a repo that has nothing, and its owner's if that is empty then. The
        caller has the right to write to it.
        """

    def find_answers(self, key: IdempotencyKey) -> list[KeptAnswer]:
        """Returns what is kept of a request; as ``IdempotencyKey.find``."""

    def keep_answer(self, key: IdempotencyKey, kept: KeptAnswer, owner: str, name: str) -> None:
        """Keeps what the request is about to write to the repo, at the latest with the next write;
        as ``IdempotencyKey.store``. The caller has the right to write to the repo.
        """

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
        """Stores a new version. The caller has the right to write to the repo.

        ``profile`` comes with a repo's first version, for an owner who has nothing yet.
        """

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        """Stores changes of labels, each a number and a file, all or none. The caller has the right
        to write to the repo.
        """

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        """Stores withdrawals, each a target (a version, or WHOLE) and a file. Then removes the
        files that these and all earlier withdrawals remove.

        Without withdrawals, it only removes what a crash has left. The caller has the right to
        write to the repo.
        """

    def replace_profile(
        self, owner: str, data: bytes, may: Callable[[], bool] = lambda: True
    ) -> None:
        """Replaces an owner's profile by these bytes, only if ``may``, called while no other writer
        can change it, returns True. Raises what ``may`` does.
        """

    def sync_repo(self, owner: str, name: str) -> None:
        """Makes sure that what is seen of a repo is complete and durable: the process that wrote it
        may have died before. The caller has the right to write to the repo.
        """


class FolderStore:
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
        """Nothing to do: the folder is the store."""

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
        new: NewVersion,
        *,
        profile: bytes | None = None,
        sync: bool = True,
    ) -> None:
        repo = f"{owner}/{name}"
        durable.write_version(self.root, repo, version, new, profile=profile, sync=sync)

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


def open_folder(content_root: str) -> FolderStore:
    """Returns a folder as a store of its own. Raises OperatorError if it is a copy of another."""
    check_is_no_copy(content_root)
    return FolderStore(content_root)


def check_is_no_copy(content_root: str) -> None:
    """Raises OperatorError where the folder is a copy: what is written to it directly would reach
    no other node.
    """
    if os.path.lexists(f"{content_root}/{STORE_FILE}"):
        raise OperatorError(
            f"{content_root} is a copy of a database that many nodes share, and what is written "
            "only there reaches none of them. Pass the database with --database and another "
            "folder with --content, or publish over HTTP."
        )
