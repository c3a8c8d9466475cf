"""The files beside the text of a skill, or of another prompt in a folder of its own: those that
become files of its version, and the reasons why others are left out.

The rules are those of ``hub push``, except for the limits: ``hub push`` refuses a folder that
exceeds them, and an import leaves out the largest files.
"""

import os
import re
import stat
from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from builder.model.errors import OperatorError
from builder.model.plural import some_of
from builder.model.version_files import BYTES_MAX, FILES_MAX, fault_of_path, find_faults
from builder.store.plain_files import read_file

SKILL_FILE, PROMPT_FILE = "skill.md", "PROMPT.md"
IGNORE_FILE = ".hubignore"
_IGNORE_BYTES_MAX = 8 * 1024
# Tools create these folders, so they are left out.
TOOL_FOLDERS = ("node_modules", "__pycache__")
# Left out without a warning, because many folders have them and no prompt needs them.
_KNOWN_HIDDEN = (IGNORE_FILE, ".git")
_SHOWN = 3
_special = re.compile(r"[\[\]\\]|\*\*")

# The paths that are left out, by reason: a verb phrase, such as "is hidden".
_Left = dict[str, list[str]]


class File(NamedTuple):
    """A file of a version to publish."""

    path: str
    size: int
    executable: bool


class Beside(NamedTuple):
    """The files in a folder, and what is left out."""

    folder: Path
    files: tuple[File, ...]
    left: _Left

    def read(self) -> list[dict[str, Any]]:
        """The files as in a publication. Raises OperatorError."""
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

    def tell(self) -> list[str]:
        """The warnings about files that are left out."""
        return [
            f"Left out what {why}: {some_of(paths, _SHOWN)}." for why, paths in self.left.items()
        ]


def have_same_files(one: Beside | None, other: Beside | None) -> bool:
    """True if both have the same files; False if one cannot be read. Publishing reports why."""
    try:
        return (one.read() if one else []) == (other.read() if other else [])
    except OperatorError:
        return False


def text_in(entries: Collection[Path]) -> Path | None:
    """The text of a folder that is one prompt; None for another folder. ``PROMPT.md`` must be in
    capitals, because many documents are called ``prompt.md``.
    """
    named = [one for one in entries if one.name.lower() == SKILL_FILE]
    named += [one for one in entries if one.name == PROMPT_FILE]
    return next((one for one in named if one.is_symlink() or one.is_file()), None)


def find_beside(text: Path, *, has_others: bool) -> Beside:
    """The files beside a text, with those in folders. ``has_others``: leave out folders below that
    are prompts of their own. Raises OSError; ValueError for an invalid ignore file.
    """
    folder, left, found = text.parent, defaultdict[str, list[str]](list), []
    rules = _read_rules(folder / IGNORE_FILE)

    def note(error: OSError) -> None:
        left["cannot be read"].append(Path(error.filename).relative_to(folder).as_posix())

    for name, folders, files in os.walk(folder, onerror=note):
        if has_others and Path(name) != folder and text_in([Path(name, one) for one in files]):
            folders.clear()
            continue
        for one in sorted([*folders, *files]):
            full = Path(name, one)
            path, status = full.relative_to(folder).as_posix(), full.lstat()
            is_folder = stat.S_ISDIR(status.st_mode)
            if why := _why_not(path, status.st_mode, rules):
                if path not in _KNOWN_HIDDEN and full != text:
                    left[why].append(f"{path}/" if is_folder else path)
                if is_folder:
                    folders.remove(one)
            elif not is_folder:
                is_executable = bool(status.st_mode & stat.S_IXUSR)
                found.append(File(path, status.st_size, is_executable))
    return Beside(folder, tuple(_within_limits(found, left)), dict(left))


def _why_not(path: str, mode: int, rules: "_Rules") -> str:
    """The reason to leave out a file or a folder; empty if it belongs to the prompt."""
    name, is_folder = path.rpartition("/")[2], stat.S_ISDIR(mode)
    if name.startswith("."):
        return "is hidden"
    if rules.has(path, is_folder):
        return f"{IGNORE_FILE} names"
    if stat.S_ISLNK(mode):
        return "is a symbolic link"
    if is_folder:
        return "is a folder of a tool" if name in TOOL_FOLDERS else ""
    if not stat.S_ISREG(mode):
        return "is no file"
    return fault_of_path(path).partition(":")[0]


def _within_limits(found: list[File], left: _Left) -> Iterator[File]:
    """The files that one version may have, in the order of their paths."""
    size, kept = 0, []
    for one in sorted(found, key=lambda one: (one.size, one.path)):
        size += one.size
        if size > BYTES_MAX:
            left[f"exceeds {BYTES_MAX:,} bytes together"].append(one.path)
        elif len(kept) == FILES_MAX:
            left[f"exceeds {FILES_MAX} files"].append(one.path)
        else:
            kept.append(one)
    kept.sort()
    faults = dict(find_faults([one.path for one in kept]))
    for one in kept:
        if one.path in faults:
            left[faults[one.path].partition(":")[0]].append(one.path)
        else:
            yield one


class _Rules:
    """The rules of an ignore file. ``*`` and ``?`` match no slash; a ``/`` at the end matches
    folders only; with any other ``/``, the path begins at the top; ``!`` makes an exception. The
    last rule that matches counts.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[bool, bool, re.Pattern[str]]] = []
        for number, line in enumerate(text.split("\n"), 1):
            rule = line.rstrip(" \t\r")
            if not rule or rule.startswith("#"):
                continue
            if _special.search(rule):
                raise ValueError(f"{IGNORE_FILE}, line {number}: only *, ?, / and ! are special")
            keeps, rule = rule.startswith("!"), rule.removeprefix("!")
            is_of_folders, rule = rule.endswith("/"), rule.removesuffix("/")
            start = "" if "/" in rule else "(?:.*/)?"
            pattern = re.compile(start + _pattern_of(rule.removeprefix("/")), re.DOTALL)
            self._rules.append((keeps, is_of_folders, pattern))

    def has(self, path: str, is_folder: bool) -> bool:
        """True if the rules ignore a path. Callers skip ignored folders first."""
        is_ignored = False
        for keeps, is_of_folders, pattern in self._rules:
            if is_folder >= is_of_folders and pattern.fullmatch(path):
                is_ignored = not keeps
        return is_ignored


def _pattern_of(rule: str) -> str:
    """A rule as a regular expression. Atomic groups prevent backtracking, as in
    ``fnmatch.translate``.
    """
    first, *rest = (re.escape(part).replace(r"\?", "[^/]") for part in rule.split("*"))
    last = [f"[^/]*{rest.pop()}"] if rest else []
    return "".join([first, *(f"(?>[^/]*?{part})" for part in rest), *last])


def _read_rules(path: Path) -> _Rules:
    try:
        return _Rules(read_file(str(path), _IGNORE_BYTES_MAX).decode(errors="surrogateescape"))
    except FileNotFoundError:
        return _Rules("")
