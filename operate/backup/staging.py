"""The folders in which a restore collects files before it puts them in place, and its progress.

Everything is collected beside its place, on the same file system, and verified. Only then does the
restore move the old files aside and the new ones in place, by renames. The folder ``.restoring`` in
the content exists until the end, and no command of the hub works on a content that has it. So a
restore can be killed at any moment and run again.
"""

import functools
import os
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from builder.model import errors
from builder.model.errors import OperatorError
from builder.store import database
from builder.store.restored import RESTORING
from builder.store.state import State
from operate.backup import databases

_ENDED = f"{RESTORING}.ended"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


# Explains errors at a path that is being restored.
explained = functools.partial(
    errors.explained,
    "restore",
    then="Fix that, and run the same command again: it continues.",
    is_inside=True,
)


class _Progress(Struct):
    """``aside``: the name of the folders to which the old files move. ``stage``: collecting;
    everything is verified, and old files move aside; new files move in place.
    """

    snapshot: str
    aside: str
    stage: Literal["filling", "ready", "cleared"] = "filling"


class Staging:
    """The restore of a snapshot into a content and a state folder; continues a killed one.

    Raises OperatorError, also if a restore of another snapshot must end first.
    """

    def __init__(self, content: str, state: str, snapshot: str) -> None:
        self._content, self._state = content, state
        self._root = f"{content}/{RESTORING}"
        self.files = f"{self._root}/files"
        self.databases = f"{state}/restoring"
        with explained(content):
            for folder in (content, state):
                os.makedirs(folder, exist_ok=True)
            _remove(f"{content}/{_ENDED}")
            self._now = self._read()
            if self._now.snapshot != snapshot:
                if not self.is_filling:
                    raise OperatorError(
                        f"The restore of {self._now.snapshot} has begun to replace files. End it "
                        f"first: run it again with --snapshot {self._now.snapshot}."
                    )
                _remove(self._root)
                self._now = _Progress(snapshot, f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
            os.makedirs(self.files, exist_ok=True)
            if self.is_filling:
                _remove(self.databases)
            os.makedirs(self.databases, mode=0o700, exist_ok=True)
            self._write()

    @property
    def is_filling(self) -> bool:
        return self._now.stage == "filling"

    def check_empty(self) -> None:
        """Raises OperatorError if the folders hold anything that the restore would replace."""
        there = [path for paths in self._old() for path in paths]
        if there:
            _remove(self._root)
            _remove(self.databases)
            raise OperatorError(
                f"{min(there)} exists. Nothing was changed. Restore into empty folders, or "
                "pass --replace: it moves the old files aside and deletes nothing."
            )

    def put_in_place(self) -> list[str]:
        """Move the old files aside and the new ones in place; returns the paths of the old ones, if
        there were any.

        What is collected must be verified and whole.
        """
        with explained(self._content):
            if self.is_filling:
                os.sync()
                self._enter("ready")
            aside = f"{self._content}/.{self._now.aside}", f"{self._state}/{self._now.aside}"
            if self._now.stage == "ready":
                for paths, folder in zip(self._old(), aside, strict=True):
                    for path in paths:
                        os.makedirs(folder, mode=0o700, exist_ok=True)
                        os.rename(path, f"{folder}/{os.path.basename(path)}")
                database.remove(State.path_in(self._state))  # a cache of the old content
                self._enter("cleared")
            for old, new in ((self.databases, self._state), (self.files, self._content)):
                for name in sorted(os.listdir(old)):
                    os.rename(f"{old}/{name}", f"{new}/{name}")
            os.sync()
            os.rmdir(self.databases)
            os.rename(self._root, f"{self._content}/{_ENDED}")
            _remove(f"{self._content}/{_ENDED}")
            return [path for path in aside if os.path.isdir(path)]

    def give_to_owners(self) -> None:
        """Give everything to the owners of the folders, if root restores for another user."""
        if os.geteuid() != 0:
            return
        with explained(self._content):
            for folder, top in ((self._content, self._root), (self._state, self.databases)):
                owner = os.stat(folder)
                for path, folders, files in os.walk(top):
                    for name in (".", *folders, *files):
                        os.chown(f"{path}/{name}", owner.st_uid, owner.st_gid)

    def _read(self) -> _Progress:
        try:
            with open(f"{self._root}/restore.json", "rb") as file:
                return msgspec.json.decode(file.read(), type=_Progress)
        except (FileNotFoundError, msgspec.DecodeError):
            return _Progress("", "")

    def _write(self) -> None:
        path = f"{self._root}/restore.json"
        with open(f"{path}.new", "wb") as file:
            file.write(msgspec.json.encode(self._now))
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{path}.new", path)

    def _enter(self, stage: Literal["ready", "cleared"]) -> None:
        self._now.stage = stage
        self._write()
        os.sync()

    def _old(self) -> tuple[list[str], list[str]]:
        """The paths of the entries of the content folder, and of the databases."""
        names = (name for name in os.listdir(self._content) if not name.startswith("."))
        files = (f"{self._state}/{name}{end}" for name in databases.FILES for end in _SUFFIXES)
        return [f"{self._content}/{name}" for name in names], [*filter(os.path.lexists, files)]


def _remove(folder: str) -> None:
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def write_file(path: str, parts: Iterable[bytes], mode: int = 0o644) -> None:
    """Write a file, and the folders above it. Raises OperatorError."""
    with explained(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(path, _WRITE, mode), "wb") as file:
            file.writelines(parts)
