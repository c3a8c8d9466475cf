"""Exports the content: the latest version of each prompt as Markdown or as a skill, with the files
of the version beside it.

Made for git: the same content gives the same bytes, and only changes are written. Removes nothing:
files of no prompt are listed.
"""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from builder.model import names
from builder.model.errors import ContentError, OperatorError, explained
from builder.model.names import Version
from builder.model.records import VersionFile
from builder.model.version_files import folders_of
from builder.store import content
from builder.store.locks import try_lock
from builder.store.plain_files import read_file
from builder.text.messages import parse_messages
from builder.text.prompts import body_of, parse_document
from builder.text.skill_texts import is_skill
from builder.text.skill_writer import write_skill

FORMATS = ("markdown", "skill")
_TEMPORARY = ".hub-export.tmp"
_AGAIN = "Fix that, and export again."


class ExportReport(NamedTuple):
    """The result of an export. ``losses``: the number of files that lack what their format cannot
    hold. ``others``: files in the folder that are of no prompt, without hidden ones.
    """

    files: int
    written: int
    losses: Counter[str]
    others: list[str]
    faults: list[str]


def export(
    content_root: str,
    folder: str,
    format: str,
    *,
    owner: str | None = None,
    progress: Callable[[str, int, int], None],
) -> ExportReport:
    """Write the latest version of each prompt to ``folder``, in the place of files of its paths.

    ``owner``: export only this owner's. ``progress`` gets the kind of work, the number of prompts
    done, and the total. Raises OperatorError.
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
        for done, (one, name) in enumerate(repos):
            progress("Exporting", done, len(repos))
            task.take(one, name)
        return task.report(owner)


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
    """A version in the form that ``write_skill`` takes."""
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


def _is_current(target: Path, data: bytes, executable: bool | None) -> bool:
    if target.is_symlink() or not target.is_file() or target.stat().st_size != len(data):
        return False
    is_executable = bool(target.stat().st_mode & stat.S_IXUSR)
    return executable in (None, is_executable) and read_file(str(target), len(data)) == data


class _Task:
    """One run, and its results."""

    def __init__(self, root: str, folder: str, format: str) -> None:
        self._root = root
        self._folder = folder
        self._format = format
        self._done: set[str] = set()
        self._written = 0
        self._losses: Counter[str] = Counter()
        # Prompts with faults in the content, whose files stay as they are.
        self._faulty: set[str] = set()
        self._faults: list[str] = []

    def report(self, owner: str | None) -> ExportReport:
        others = [path for path in self._list_files(owner or "") if path not in self._done]
        return ExportReport(len(self._done), self._written, self._losses, others, self._faults)

    def _list_files(self, owner: str) -> Iterator[str]:
        """The files there, without hidden ones and those of faulty prompts."""
        for name, folders, files in os.walk(f"{self._folder}/{owner}"):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for file in sorted(files):
                path = Path(name, file).relative_to(self._folder).as_posix()
                repo = "/".join(path.split("/")[:2]).removesuffix(".md")
                if not file.startswith(".") and repo not in self._faulty:
                    yield path

    def take(self, owner: str, name: str) -> None:
        """Write the files of a repo."""
        try:
            versions = content.list_versions(self._root, owner, name).versions
            if versions:
                self._export(owner, name, versions[-1])
        except ContentError as error:
            self._faulty.add(f"{owner}/{name}")
            self._faults += map(str, error.faults)

    def _export(self, owner: str, name: str, version: Version) -> None:
        """Raises ContentError."""
        stored, text = content.read_version(self._root, owner, name, version)
        data = content.read_files(self._root, owner, name, version, stored)
        text_path = f"{owner}/{name}/SKILL.md"
        if self._format == "markdown":
            text_path = f"{owner}/{name}/PROMPT.md" if stored.files else f"{owner}/{name}.md"
        elif not is_skill(name, parse_document(text).front or {}):
            text, losses = write_skill(_record(owner, name, version, stored, text))
            self._losses.update(losses)
        self._write(text_path, text.encode())
        for one, raw in zip(stored.files or (), data, strict=False):
            self._write(f"{owner}/{name}/{one.path}", raw, executable=one.executable)

    def _write(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """Write a file unless it is current. ``executable``: None if its mode does not matter."""
        self._done.add(path)
        target = Path(self._folder, path)
        with explained("write", str(target), _AGAIN):
            for folder in (f"{self._folder}/{one}" for one in folders_of(path)):
                if os.path.islink(folder):
                    raise OperatorError(f"{folder} is a link, which no export follows. Remove it.")
            if _is_current(target, data, executable):
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            self._put(target, data, executable=bool(executable))
            self._written += 1

    def _put(self, target: Path, data: bytes, *, executable: bool) -> None:
        """Write a file whole or not at all. Raises OSError."""
        temporary = f"{self._folder}/{_TEMPORARY}"
        with contextlib.ExitStack() as failing:
            failing.callback(Path(temporary).unlink, missing_ok=True)
            with open(temporary, "wb", opener=_open_no_link) as file:
                file.write(data)
                mode = os.fstat(file.fileno()).st_mode
                # Everyone who may read the file may execute it.
                executables = (mode & 0o444) >> 2 if executable else 0
                os.fchmod(file.fileno(), stat.S_IMODE(mode) & ~0o111 | executables)
            os.replace(temporary, target)
