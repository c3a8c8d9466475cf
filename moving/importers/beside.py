"""The files beside the text of a skill, or of another prompt in a folder of its own: those that
become files of its version, and the reasons why others are left out (`left_out`).

A folder comes whole or not at all: what exceeds the limits of a version is refused.
"""

import os
import stat
from base64 import b64encode
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from builder.model.errors import HubError, OperatorError
from builder.model.version_files import TEXT_NAMES
from builder.store.plain_files import read_file
from publisher.write.folders import check_files
from publisher.write.left_out import (
    ENVIRONMENT_FILE,
    FILE,
    FOLDER,
    IGNORE_BYTES_MAX,
    IGNORE_FILE,
    LINK,
    OTHER,
    WRONG_RULES,
    FolderRule,
)

_KINDS = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK}


class File(NamedTuple):
    """A file of a version to publish."""

    path: str
    size: int
    executable: bool


class Beside(NamedTuple):
    """The files in a folder, and what is left out: paths with their reasons."""

    folder: Path
    files: tuple[File, ...]
    left: tuple[tuple[str, str], ...]

    def read(self, bytes_max: int) -> list[dict[str, Any]]:
        """The files as in a publication. Raises OperatorError, and as ``check_files`` before it
        reads any.
        """
        check_files([(one.path, one.size) for one in self.files], bytes_max)
        return [
            {
                "path": one.path,
                "base64": b64encode(self._read(one)).decode(),
                "executable": one.executable,
            }
            for one in self.files
        ]

    def _read(self, one: File) -> bytes:
        try:
            return read_file(f"{self.folder}/{one.path}", one.size)
        except OSError as error:
            raise OperatorError(f"{one.path} cannot be read: {error.strerror}") from None


def have_same_files(one: Beside | None, other: Beside | None, bytes_max: int) -> bool:
    """True if both have the same files; False if one has a fault. Publishing reports it."""
    try:
        return (one.read(bytes_max) if one else []) == (other.read(bytes_max) if other else [])
    except HubError:
        return False


def text_in(entries: Collection[Path]) -> Path | None:
    """The text of a folder that is one prompt; None for another folder."""
    named = [one for name in TEXT_NAMES for one in entries if one.name == name]
    return next((one for one in named if one.is_symlink() or one.is_file()), None)


def find_beside(text: Path, *, has_others: bool = False) -> Beside:
    """The files beside a text, with those in folders. ``has_others``: leave out folders below that
    are prompts of their own. Raises OSError; ValueError for an invalid ignore file.
    """
    folder, left, found = text.parent, [], []
    rule = FolderRule(_read_rules(folder / IGNORE_FILE))
    for name, folders, files in os.walk(folder, onerror=_refuse):
        if has_others and Path(name) != folder and text_in([Path(name, one) for one in files]):
            folders.clear()
            continue
        for one in sorted([*folders, *files]):
            full = Path(name, one)
            path, mode = full.relative_to(folder).as_posix(), full.lstat().st_mode
            kind = _KINDS.get(stat.S_IFMT(mode), OTHER)
            is_environment = kind == FOLDER and (full / ENVIRONMENT_FILE).is_file()
            if full == text:
                continue
            if why := rule.why_not(path, kind, is_environment=is_environment):
                left.append((f"{path}/" if kind == FOLDER else path, why))
                if kind == FOLDER:
                    folders.remove(one)
            elif kind == FILE:
                found.append(File(path, full.lstat().st_size, bool(mode & stat.S_IXUSR)))
    return Beside(folder, tuple(sorted(found)), tuple(left))


def _refuse(error: OSError) -> None:
    raise error


def _read_rules(path: Path) -> str:
    try:
        return read_file(str(path), IGNORE_BYTES_MAX).decode(errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError:
        raise ValueError(WRONG_RULES) from None
