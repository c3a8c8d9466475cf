"""Puts a version on the disk so that all of it exists or none of it, whatever happens.

The order, under the repo's lock: the owner's profile (on a first publication), the files in their
folder, the text, the record. Each is written to a temporary name in the repo's folder and synced.
Then it gets its name by ``link``, which is atomic and fails where the name exists (POSIX,
https://pubs.opengroup.org/onlinepubs/9799919799/functions/link.html); the folder of files gets its
name by ``rename``. So nothing published is ever overwritten. The link of the record is the commit
point. Then the folder is synced: ``fsync`` of a file does not sync its entry in the folder
(https://man7.org/linux/man-pages/man2/fsync.2.html). The folders above are synced before the first
commit, so a power cut cannot take away the folder of a committed version.

A crash can leave a temporary file or folder (its name starts with a dot, and the next writer of
that folder removes it), a text or files without a record (not a version; they are replaced when
their number is used), or an empty folder.

The lock is ``flock`` on the repo's folder itself. It needs no file of its own in the content, and a
crash releases it. It belongs to the open file, so it excludes other threads as well as other
processes of the machine (https://man7.org/linux/man-pages/man2/flock.2.html). NFS emulates it with
``fcntl`` locks, and the exclusive one needs a file that is open for writing, which a folder never
is: publish on the machine that has the disk.

A change of a label is one file in the folder ``labels`` of the repo, written in the same way; its
link is its commit point. The repo's folder is synced before. So the change never names a version
that a power cut can take away.

A withdrawal is one file in the folder ``withdrawn`` of the repo, written in the same way; its link
is its commit point. Only then are the withdrawn text and record removed.

The file system has to keep the order of a folder's changes, as ext4, XFS and btrfs do. On one that
does not (ext2), a power cut before the answer can leave a record without its text. That blocks the
repo until an operator removes the record. What was acknowledged is safe there too.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from builder.model import content_tree as tree
from builder.model.errors import OperatorError, RequestError
from builder.store import content
from builder.store.content import FORMAT_NUMBER, check_format
from builder.store.restored import check_not_restoring
from publisher.write import synced_files
from publisher.write.idempotency import IdempotencyKey, KeptAnswer

T = TypeVar("T")
_Made = tuple[str, os.stat_result]

_TEMPORARY = ".publish.tmp"
_PROFILE_TEMPORARY = ".owner.tmp"
_FILES_TEMPORARY = ".publish.files.tmp"
FORMAT_TEXT = f"{FORMAT_NUMBER}\n".encode()
_THEN = "send the same request again: nothing is saved twice"


def render(record: Struct) -> bytes:
    """Returns a record as JSON that a person can read and diff: indented by two spaces, with a
    newline at the end.
    """
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


class NewVersion(NamedTuple):
    """The stored parts of a version: its text, its record, and the bytes of its files by path."""

    text: bytes
    record: bytes
    files: Mapping[str, bytes] = MappingProxyType({})


class FolderStore:
    """A store of published files: a content folder on a disk of this machine. ``nodes.store`` has
    another one, a database that many nodes share, which keeps to the same rules.

    Published files are read from ``root``, and written through the store's methods. When one
    returns, its change is committed.

    A decision that depends on what a repo has is made by ``decide``, with a function without
    arguments, ``work``. It reads everything that it depends on, from the answer that is kept for an
    ``Idempotency-Key`` on, and then writes. With a shared store, a write may find that another
    machine was first. The store then raises an exception of its own out of ``work``, and runs
    ``work`` again from its beginning. So ``work`` lets exceptions through. It leaves nothing behind
    that changes the decision of its next run, except for writes that returned, which stay.
    ``decide`` returns or raises what the last run does:

    - Where that run has written, at once.
    - Where it returned or raised a RequestError and has written nothing, the store first makes sure
      that the folder has everything that is committed. If it had not, ``work`` runs again.
      ``sync_repo`` does so earlier, for ``work`` that keeps an answer for good.
    - Any other exception passes at once.

    Under ``repo_lock`` nothing runs again: where another machine was first, a write raises
    RequestError ``version_conflict``.

    Without ``sync`` nothing waits for the disk: the caller calls ``os.sync()`` before it
    acknowledges anything. POSIX lets ``sync`` return early, but Linux waits for the writes
    (https://man7.org/linux/man-pages/man2/sync.2.html).

    All methods raise RequestError ``storage_unavailable``; writes also raise ``version_conflict``.
    """

    decided_serial: int | None = None
    """The serial up to which this thread's last decision counts; None: all that readers see."""

    def __init__(self, root: str) -> None:
        self.root = root

    def has_repo(self, owner: str, name: str) -> bool:
        """True if the repo's folder exists, in all that is committed."""
        with synced_files.telling("send the same request again"):
            try:
                os.stat(self._path(owner, name))
            except FileNotFoundError:
                return False
        return True

    def catch_up(self, owner: str, name: str) -> None:
        """Waits until the folder has all of the repo that is committed, for a reader."""

    def decide(self, owner: str, name: str, work: Callable[[], T]) -> T:
        """Returns what ``work`` returns, run with the only right to write to the repo; see above.

        Creates the repo's folder, and removes it if ``work`` fails before a version is in it.
        """
        with self.repo_lock(owner, name):
            return work()

    @contextlib.contextmanager
    def repo_lock(self, owner: str, name: str) -> Iterator[None]:
        """Holds the only right to write to the repo; waits for the current holder. Creates and
        removes the folder as ``decide`` does.

        Raises OperatorError where the content is half restored, or was written by a newer release.
        """
        path = self._path(owner, name)

        def make() -> None:
            synced_files.make_folder(f"{self.root}/{owner}")
            # Not found: another publication created the owner's folder, failed, and removed it
            # again.
            with contextlib.suppress(FileNotFoundError):
                synced_files.make_folder(path)

        check_not_restoring(self.root)
        with synced_files.telling(_THEN), contextlib.ExitStack() as held:
            check_format(self.root)
            held.callback(os.close, synced_files.lock_folder(path, make))
            try:
                yield
            except BaseException:
                self.remove_empty(owner, name)
                raise

    def remove_empty(self, owner: str, name: str) -> None:
        """Removes the folder of a repo that has nothing, and its owner's if that is empty then. The
        caller has the right to write to it.
        """
        with contextlib.suppress(OSError):
            os.rmdir(self._path(owner, name))
            os.rmdir(f"{self.root}/{owner}")

    def find_answers(self, key: IdempotencyKey) -> list[KeptAnswer]:
        """Returns what is kept of a request; as ``IdempotencyKey.find``."""
        return key.find()

    def keep_answer(self, key: IdempotencyKey, kept: KeptAnswer, owner: str, name: str) -> None:
        """Keeps what the request is about to write to the repo, at the latest with the next write;
        as ``IdempotencyKey.store``. The caller has the right to write to the repo.
        """
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
        """Stores a new version. The caller has the right to write to the repo.

        ``profile`` comes with a repo's first version, for an owner who has nothing yet.
        """
        root, folder = self.root, self._path(owner, name)
        files_path = f"{folder}/{tree.FILE.entry(version)}"
        text_path, record_path = (
            f"{folder}/{kind.file(version)}" for kind in (tree.TEXT, tree.RECORD)
        )
        conflict = (
            f"{owner}/{name} {version} was published by another process at the same time. Publish "
            "again."
        )
        with synced_files.telling(_THEN):
            with _all_or_none(record_path, conflict) as made:
                if new.files and check_format(root) < FORMAT_NUMBER:
                    # Before there is a version with files. The root is synced below.
                    with _temporary_file(folder, FORMAT_TEXT, sync) as (temporary, _):
                        os.rename(temporary, f"{root}/{tree.FORMAT_FILE}")
                if profile is not None:
                    if self.is_alone(owner, name):
                        _put(folder, f"{root}/{owner}/{tree.OWNER_FILE}", profile, made, sync)
                    if sync:
                        synced_files.sync_folder(f"{root}/{owner}")
                if sync and (new.files or profile is not None):
                    # Another process may have raised the format, and died before it synced the
                    # root.
                    synced_files.sync_folder(root)
                if not os.path.lexists(record_path):
                    # A crash left these.
                    synced_files.unlink(text_path)
                    synced_files.remove(files_path)
                if new.files:
                    _put_files(folder, files_path, new.files, made, sync)
                _put(folder, text_path, new.text, made, sync)
                _put(folder, record_path, new.record, made, sync)
            if sync:
                synced_files.sync_folder(folder)

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        """Stores changes of labels, each a number and a file: all of them or none, unless the
        process is killed in between. The caller has the right to write to the repo.
        """
        folder = self._path(owner, name)
        paths = [f"{folder}/{tree.LABEL.file(number)}" for number, _ in events]
        conflict = (
            f"Another process changed the labels of {owner}/{name} at the same time. Send the same "
            "request again."
        )
        with synced_files.telling(_THEN):
            synced_files.make_folder(f"{folder}/{tree.LABELS}")
            if sync:
                synced_files.sync_folder(folder)
            with _all_or_none(paths[-1], conflict) as made:
                for path, (_, data) in zip(paths, events, strict=True):
                    _put(f"{folder}/{tree.LABELS}", path, data, made, sync)
            if sync:
                synced_files.sync_folder(f"{folder}/{tree.LABELS}")

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        """Stores withdrawals, each a target (a version, or WHOLE) and a file. Then removes the
        files that these and all earlier withdrawals remove.

        Without withdrawals, it only removes what a crash has left. The caller has the right to
        write to the repo.
        """
        folder = self._path(owner, name)
        for what, data in withdrawn:
            with synced_files.telling(_THEN):
                synced_files.make_folder(f"{folder}/{tree.WITHDRAWN}")
                if sync:
                    # Without this, a disk that does not keep the order could remove the text and
                    # lose the withdrawal that says why.
                    synced_files.sync_folder(folder)
                path = f"{folder}/{tree.WITHDRAWAL.file(what)}"
                conflict = f"Another process withdrew it from {owner}/{name} at the same time."
                with _all_or_none(path, conflict) as made:
                    _put(f"{folder}/{tree.WITHDRAWN}", path, data, made, sync)
        left = content.list_versions(self.root, owner, name).left
        with synced_files.telling("withdraw it again: it is withdrawn, and this removes its text"):
            if sync:
                synced_files.sync_folder(f"{folder}/{tree.WITHDRAWN}")
            # A crash may have left the temporary file as a second name of the text.
            for file in (_TEMPORARY, _FILES_TEMPORARY, *left):
                synced_files.remove(f"{folder}/{file}")
            if sync:
                synced_files.sync_folder(folder)

    def replace_profile(self, owner: str, data: bytes) -> None:
        """Replaces an owner's profile by these bytes. Creates the owner's folder.

        Readers find the old or the new profile, whole: ``rename`` is atomic (POSIX,
        https://pubs.opengroup.org/onlinepubs/9799919799/functions/rename.html). The last of
        concurrent writers wins.
        """
        folder = f"{self.root}/{owner}"
        temporary = f"{folder}/{_PROFILE_TEMPORARY}"
        with synced_files.telling("save the profile again"), contextlib.ExitStack() as held:
            descriptor = synced_files.lock_folder(folder, lambda: synced_files.make_folder(folder))
            held.callback(os.close, descriptor)
            synced_files.unlink(temporary)  # what a crash left
            held.callback(synced_files.unlink, temporary)
            synced_files.write_new(temporary, data)
            os.rename(temporary, f"{folder}/{tree.OWNER_FILE}")
            os.fsync(descriptor)
            synced_files.sync_folder(self.root)  # the owner's folder may be new

    def sync_repo(self, owner: str, name: str) -> None:
        """Makes sure that what is seen of a repo is complete, and outlasts a power cut: the process
        that wrote it may have died before. The caller has the right to write to the repo.
        """
        folder = self._path(owner, name)
        with synced_files.telling(_THEN):
            synced_files.sync_folder(folder)
            with contextlib.suppress(FileNotFoundError):
                synced_files.sync_folder(f"{folder}/{tree.LABELS}")

    def is_alone(self, owner: str, name: str) -> bool:
        """True if the owner has nothing but this repo.

        Two concurrent first repos may each see the other. Then the owner has no profile, and the
        site shows what it would have said: the handle, and the time of the first repo.
        """
        return not any(
            entry != name and not entry.startswith(".")
            for entry in os.listdir(f"{self.root}/{owner}")
        )

    def _path(self, owner: str, name: str) -> str:
        return content.repo_path(self.root, owner, name)


def open_folder(content_root: str) -> FolderStore:
    """Returns a folder as a store of its own. Raises OperatorError if it is a copy of a database:
    what is written to it directly would reach no other node.
    """
    if os.path.lexists(f"{content_root}/{tree.STORE_FILE}"):
        raise OperatorError(
            f"{content_root} is a copy of a database that many nodes share, and what is written "
            "only there reaches none of them. Pass the database with --database and another "
            "folder with --content, or publish over HTTP."
        )
    return FolderStore(content_root)


@contextlib.contextmanager
def _all_or_none(commit: str, conflict: str) -> Iterator[list[_Made]]:
    """Gathers the files that are put in place. Removes them again if the work fails before the file
    ``commit`` exists.

    Raises RequestError ``version_conflict`` with the message ``conflict`` where one of the files
    exists already.
    """
    made: list[_Made] = []
    try:
        yield made
    except BaseException as error:
        # A failed ``link`` may have made the name nevertheless, so only the commit point says
        # whether all files are in place.
        if not os.path.lexists(commit):
            _take_back(made)
        if isinstance(error, FileExistsError):
            raise RequestError("version_conflict", conflict) from None
        raise


def _take_back(made: list[_Made]) -> None:
    """Removes the files that were put in place, as far as the disk allows."""
    with contextlib.suppress(OSError):
        for path, status in reversed(made):
            # The owner may have written another profile meanwhile: that one stays.
            if os.path.samestat(status, os.stat(path)):
                synced_files.remove(path)


def _put(folder: str, target: str, data: bytes, made: list[_Made], sync: bool) -> None:
    with _temporary_file(folder, data, sync) as (temporary, status):
        os.link(temporary, target)
        made.append((target, status))


@contextlib.contextmanager
def _temporary_file(folder: str, data: bytes, sync: bool) -> Iterator[_Made]:
    temporary = f"{folder}/{_TEMPORARY}"
    # A crash may have left this name as a second link to a published file: never write into it.
    synced_files.unlink(temporary)
    try:
        yield temporary, synced_files.write_new(temporary, data, sync=sync)
    finally:
        with contextlib.suppress(OSError):  # the next publication removes it
            os.unlink(temporary)


def _put_files(
    folder: str, target: str, files: Mapping[str, bytes], made: list[_Made], sync: bool
) -> None:
    temporary = f"{folder}/{_FILES_TEMPORARY}"
    synced_files.remove(temporary)
    try:
        folders = {temporary: None}
        for path in files:
            above = path.split("/")[:-1]
            folders |= {"/".join((temporary, *above[:n])): None for n in range(1, len(above) + 1)}
        for one in folders:
            os.mkdir(one)
        for path, data in files.items():
            synced_files.write_new(f"{temporary}/{path}", data, sync=sync)
        for one in folders if sync else ():
            synced_files.sync_folder(one)
        if os.path.lexists(target):  # `rename` replaces an empty folder
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        status = os.stat(temporary)
        os.rename(temporary, target)
        made.append((target, status))
    finally:
        with contextlib.suppress(OSError):  # the next publication removes it
            synced_files.remove(temporary)
