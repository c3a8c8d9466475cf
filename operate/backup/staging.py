"""Where a restore collects what it will put in place, and how far it is.

Everything is collected beside its place, on the same file system, and verified. Only then is the
old put aside and the new put in place, by renames. The folder ``.restoring`` in the content lasts
until the end, and no command of the hub works on a content that has it. So a restore can be killed
at any moment and be run again.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from builder.model.errors import OperatorError
from builder.store import database
from builder.store.restored import RESTORING
from builder.store.state import State
from operate.backup import databases
from operate.backup.snapshots import id_of

# Collecting; adding what the snapshot does not have; all is verified, and to put the old aside; to
# put the new in place.
Stage = Literal["filling", "adding", "ready", "cleared"]
_COLLECTING = ("filling", "adding")
_ENDED = f"{RESTORING}.ended"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class _Progress(Struct):
    """``aside``: the name of the folders to which what was there goes."""

    snapshot: str
    aside: str
    stage: Stage = "filling"


_decode = msgspec.json.Decoder(_Progress).decode


class Staging:
    """The restore of a snapshot into a content and a state folder; goes on with one that was
    killed.

    Raises OperatorError, also where a restore of another snapshot must end first.
    """

    def __init__(self, content: str, state: str, snapshot: str) -> None:
        self._content, self._state = content, state
        self._root = f"{content}/{RESTORING}"
        self.files = f"{self._root}/files"
        self.databases = f"{state}/restoring"
        with self._explained():
            for folder in (content, state):
                os.makedirs(folder, exist_ok=True)
            self._remove(f"{content}/{_ENDED}")
            self._now = self._read()
            # Half of what was added cannot be told from the whole.
            if self._now.snapshot != snapshot or self._now.stage == "adding":
                if self._now.stage not in _COLLECTING:
                    raise OperatorError(
                        f"The restore of {self._now.snapshot} has begun to replace files. End it "
                        f"first: run it again with --snapshot {self._now.snapshot}."
                    )
                self._remove(self._root)
                self._now = _Progress(snapshot, self._unused())
            os.makedirs(self.files, exist_ok=True)
            if self._now.stage == "filling":
                self._remove(self.databases)
            os.makedirs(self.databases, mode=0o700, exist_ok=True)
            self._write()

    @property
    def stage(self) -> Stage:
        return self._now.stage

    def check_empty(self) -> None:
        """Raises OperatorError where the restore would meet something else."""
        there = [path for paths in self._old() for path in paths]
        if there:
            self._remove(self._root)
            self._remove(self.databases)
            raise OperatorError(
                f"{min(there)} exists. Nothing was changed. Restore into empty folders, or "
                "pass --replace: it moves what is there aside and deletes nothing."
            )

    def begin_adding(self) -> None:
        """From here on, files change that the snapshot does not have so; begins anew if killed."""
        with self._explained():
            self._go_on("adding")

    def put_in_place(self) -> list[str]:
        """Put the old aside and the new in place; returns where the old is, if anything was.

        What is collected must be verified and whole.
        """
        with self._explained():
            if self._now.stage in _COLLECTING:
                os.sync()
                self._go_on("ready")
            aside = self._aside(self._now.aside)
            if self._now.stage == "ready":
                for paths, folder in zip(self._old(), aside, strict=True):
                    for path in paths:
                        os.makedirs(folder, mode=0o700, exist_ok=True)
                        os.rename(path, f"{folder}/{os.path.basename(path)}")
                # It remembers another content.
                database.remove(State.path_in(self._state))
                self._go_on("cleared")
            for old, new in ((self.databases, self._state), (self.files, self._content)):
                for name in sorted(os.listdir(old)):
                    os.rename(f"{old}/{name}", f"{new}/{name}")
            os.sync()
            os.rmdir(self.databases)
            os.rename(self._root, f"{self._content}/{_ENDED}")
            self._remove(f"{self._content}/{_ENDED}")
            return [path for path in aside if os.path.isdir(path)]

    def give_to_owners(self) -> None:
        """Give everything to whom the folders belong, where root restores for another user."""
        if os.geteuid() != 0:
            return
        with self._explained():
            for folder, top in ((self._content, self._root), (self._state, self.databases)):
                owner = os.stat(folder)
                for path, folders, files in os.walk(top):
                    for name in (".", *folders, *files):
                        os.chown(f"{path}/{name}", owner.st_uid, owner.st_gid)

    def _read(self) -> _Progress:
        try:
            with open(f"{self._root}/restore.json", "rb") as file:
                return _decode(file.read())
        except (FileNotFoundError, msgspec.DecodeError):
            return _Progress("", "")

    def _write(self) -> None:
        path = f"{self._root}/restore.json"
        with open(f"{path}.new", "wb") as file:
            file.write(msgspec.json.encode(self._now))
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{path}.new", path)

    def _go_on(self, stage: Stage) -> None:
        self._now.stage = stage
        self._write()
        os.sync()

    def _unused(self) -> str:
        """A name of which there is no folder yet."""
        name, number = f"replaced-{id_of(datetime.now(UTC))}", 1
        while any(map(os.path.lexists, self._aside(f"{name}-{number}"))):
            number += 1
        return f"{name}-{number}"

    def _aside(self, name: str) -> tuple[str, str]:
        return f"{self._content}/.{name}", f"{self._state}/{name}"

    def _old(self) -> tuple[list[str], list[str]]:
        """The paths of what is there in the content folder, and of the databases."""
        names = (name for name in os.listdir(self._content) if not name.startswith("."))
        files = (f"{self._state}/{name}{end}" for name in databases.FILES for end in _SUFFIXES)
        return [f"{self._content}/{name}" for name in names], [*filter(os.path.lexists, files)]

    def _remove(self, folder: str) -> None:
        if os.path.lexists(folder):
            shutil.rmtree(folder)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unusable(error.filename or self._content, error) from error


def write_file(path: str, parts: Iterable[bytes], mode: int = 0o644) -> None:
    """Write a file, and the folders above it where they are missing. Raises OperatorError."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(path, _WRITE, mode), "wb") as file:
            file.writelines(parts)
    except OSError as error:
        raise unusable(path, error) from error


def unusable(path: str, error: OSError) -> OperatorError:
    return OperatorError(
        f"Cannot restore {path}: {error.strerror}. Fix that, and run the same command again: it "
        "goes on."
    )
