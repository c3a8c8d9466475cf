"""Exports the content: the latest version of each prompt as Markdown or as a skill, with the files
of the version beside it.

Made for git: the same content gives the same bytes, and only changes are written. Files that no
export wrote, and files that have changed since, are left alone and listed.
"""

import contextlib
import hashlib
import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from builder.model import names
from builder.model.errors import ContentError, OperatorError, explained
from builder.model.names import Version
from builder.model.records import VersionFile
from builder.store import content
from builder.store.locks import try_lock
from builder.store.plain_files import read_file
from builder.text.messages import parse_messages
from builder.text.prompts import body_of, parse_document
from builder.text.skill_texts import is_skill
from builder.text.skill_writer import write_skill
from moving.export.listing import LIST_BYTES_MAX, LIST_FILE, Exported, read_list

_TEMPORARY = ".hub-export.tmp"
_AGAIN = "Fix that, and export again."


class ExportReport(NamedTuple):
    """The result of an export. ``losses``: the number of files that lack what their format cannot
    hold. ``kept``: files that were not replaced or removed, because no export wrote their bytes.
    """

    files: int
    written: int
    removed: int
    losses: Counter[str]
    kept: list[str]
    faults: list[str]


def export(
    content_root: str,
    folder: str,
    format: str,
    *,
    owner: str | None = None,
    progress: Callable[[str, int, int], None],
) -> ExportReport:
    """Write the latest version of each prompt to ``folder``.

    ``owner``: export only this owner's; files of others stay. ``progress`` gets the kind of work,
    the number of prompts done, and the total. Raises OperatorError.
    """
    owners = content.list_owners(content_root)
    if owner is not None:
        names.check_owner(owner)
        if owner not in owners:
            raise OperatorError(f"No owner {owner} in {content_root}. Its folders are the owners.")
        owners = [owner]
    _check_apart(content_root, folder)
    repos = [(one, name) for one in owners for name in content.list_repos(content_root, one)]
    with _lock(folder):
        task = _Task(content_root, folder, format)
        try:
            for done, (one, name) in enumerate(repos):
                progress("Exporting", done, len(repos))
                task.take(one, name)
            task.remove_gone(owner)
        finally:
            task.write_list()
    return task.report()


def _check_apart(content_root: str, folder: str) -> None:
    inside, outside = os.path.realpath(folder), os.path.realpath(content_root)
    if inside == outside or inside.startswith(f"{outside}/"):
        raise OperatorError(f"{folder} is in the content folder. Export to another one.")


@contextlib.contextmanager
def _lock(folder: str) -> Iterator[None]:
    with explained("write to", folder, _AGAIN):
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not try_lock(descriptor):
            raise OperatorError(
                f"Another export writes to {folder}. Wait until it has ended, and try again."
            )
        yield
    finally:
        os.close(descriptor)


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _record(
    owner: str, name: str, version: Version, stored: VersionFile, text: str
) -> dict[str, Any]:
    """A version in the form that ``write_as`` takes."""
    body = body_of(text, stored.front_matter_bytes)
    return msgspec.to_builtins(
        {
            "owner": owner,
            "name": name,
            "version": str(version),
            "title": stored.title,
            "description": stored.description,
            "tags": stored.tags,
            "license": stored.license,
            "variables": stored.variables,
            "parameters": stored.parameters,
            "body": body,
            "messages": parse_messages(body),
        }
    )


class _Task:
    """One run: the files that existed, and the results."""

    def __init__(self, root: str, folder: str, format: str) -> None:
        self._root = root
        self._folder = folder
        self._format = format
        listed = read_list(folder)
        # By path, the SHA-256 of each file as an export wrote it last.
        self._files = listed.files if listed else {}
        # The same paths, by repo.
        self._listed: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for path in self._files:
            self._listed[*re.split("[/.]", path)[:2]].add(path)
        self._done: set[str] = set()
        # Prompts with faults in the content, whose files stay as they are.
        self._faulty: set[tuple[str, str]] = set()
        self._written = self._removed = 0
        self._losses: Counter[str] = Counter()
        self._kept: dict[str, None] = {}  # ordered, without duplicates
        self._faults: list[str] = []

    def report(self) -> ExportReport:
        return ExportReport(
            len(self._done),
            self._written,
            self._removed,
            self._losses,
            [*self._kept],
            self._faults,
        )

    def take(self, owner: str, name: str) -> None:
        """Write the files of a repo."""
        try:
            versions = content.list_versions(self._root, owner, name).versions
            if versions:
                self._export(owner, name, versions[-1])
        except ContentError as error:
            self._faulty.add((owner, name))
            self._faults += map(str, error.faults)

    def _export(self, owner: str, name: str, version: Version) -> None:
        """Raises ContentError."""
        stored, text = content.read_version(self._root, owner, name, version)
        data = content.read_files(self._root, owner, name, version, stored)
        text_path = f"{owner}/{name}/SKILL.md"
        losses: list[str] = []
        if self._format == "markdown":
            text_path = f"{owner}/{name}/PROMPT.md" if stored.files else f"{owner}/{name}.md"
        elif not is_skill(name, parse_document(text).front or {}):
            text, losses = write_skill(_record(owner, name, version, stored, text))
        paths = [f"{owner}/{name}/{one.path}" for one in stored.files or ()]
        # Removes gone files first, because a new folder may have the name of an old file.
        for path in self._listed[owner, name] - {text_path, *paths}:
            self._drop(path)
        if self._write(text_path, text.encode()):
            self._losses.update(losses)
        for path, one, raw in zip(paths, stored.files or (), data, strict=False):
            self._write(path, raw, executable=one.executable)

    def _write(self, path: str, data: bytes, *, executable: bool | None = None) -> bool:
        """Write a file unless it is current. Returns False if it keeps a file that no export wrote.
        ``executable``: None if the file's mode does not matter.
        """
        wanted = hashlib.sha256(data).hexdigest()
        there = self._hash(path)
        if there not in (None, wanted, self._files.get(path)):
            self._kept[path] = None
            return False
        if there != wanted or executable not in (None, self._is_executable(path)):
            self._put(path, data, executable=executable)
            self._written += 1
        self._files[path] = wanted
        self._done.add(path)
        return True

    def _hash(self, path: str) -> str | None:
        """The SHA-256 of the existing file; empty if no export wrote it."""
        folder = os.path.dirname(path)
        while folder:
            if os.path.islink(f"{self._folder}/{folder}"):
                return ""
            folder = os.path.dirname(folder)
        try:
            return hashlib.sha256(read_file(f"{self._folder}/{path}", LIST_BYTES_MAX)).hexdigest()
        except FileNotFoundError:
            return None
        except OSError:
            return ""

    def _is_executable(self, path: str) -> bool:
        return bool(os.stat(f"{self._folder}/{path}").st_mode & stat.S_IXUSR)

    def _put(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """Write a file whole or not at all."""
        target, temporary = f"{self._folder}/{path}", f"{self._folder}/{_TEMPORARY}"
        with explained("write", target, _AGAIN), contextlib.ExitStack() as failing:
            failing.callback(Path(temporary).unlink, missing_ok=True)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(temporary, "wb", opener=_open_no_link) as file:
                file.write(data)
                mode = os.fstat(file.fileno()).st_mode
                # Everyone who may read the file may execute it.
                executables = (mode & 0o444) >> 2 if executable else 0
                os.fchmod(file.fileno(), stat.S_IMODE(mode) & ~0o111 | executables)
            os.replace(temporary, target)

    def remove_gone(self, owner: str | None) -> None:
        """Remove files of prompts, versions and formats that no longer exist."""
        for repo, paths in self._listed.items():
            is_other = owner is not None and repo[0] != owner
            if not is_other and repo not in self._faulty:
                for path in (paths - self._done) & self._files.keys():
                    self._drop(path)

    def _drop(self, path: str) -> None:
        """Remove a file that an export wrote, unless it has changed since."""
        there = self._hash(path)
        if there not in (None, self._files[path]):
            self._kept[path] = None
            return
        if there:
            self._remove(path)
        del self._files[path]

    def _remove(self, path: str) -> None:
        with explained("remove", f"{self._folder}/{path}", "Remove it by hand."):
            os.unlink(f"{self._folder}/{path}")
        self._removed += 1
        with contextlib.suppress(OSError):  # stops at a folder that is not empty
            os.removedirs(os.path.dirname(f"{self._folder}/{path}"))

    def write_list(self) -> None:
        """Write the list of files, also after an interruption."""
        listed = Exported(dict(sorted(self._files.items())))
        data = msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n"
        if self._hash(LIST_FILE) != hashlib.sha256(data).hexdigest():
            self._put(LIST_FILE, data)
