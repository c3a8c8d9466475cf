"""The files of a folder that are published, and why others are left out. Pure.

The rule is the same for ``hub push``, ``hub check``, ZIPs, ``hubctl publish`` and imports. The
shell client has it a second time, since it runs without Python; `tests/support/folder_cases.py`
has the cases that both pass.
"""

import re
from collections.abc import Iterable, Mapping

from builder.model.errors import cut
from builder.model.plural import some_of
from builder.model.version_files import folders_of

IGNORE_FILE = ".hubignore"
IGNORE_BYTES_MAX = 8 * 1024
WRONG_RULES = f"{IGNORE_FILE} must be a plain file of at most {IGNORE_BYTES_MAX:,} bytes"
# The kinds of entries. The text always belongs to the version.
FILE, FOLDER, LINK, OTHER, TEXT = "file", "folder", "link", "other", "text"
# A folder with this file is an environment of Python.
ENVIRONMENT_FILE = "pyvenv.cfg"
HIDDEN, OF_A_TOOL, IS_LINK, NO_FILE = "hidden", "made by a tool", "a symbolic link", "not a file"
TOOL_FOLDERS = ("node_modules", "__pycache__", "__MACOSX")
_TOOL_FILES = ("Thumbs.db", "desktop.ini")
_SHOWN = 3
_special = re.compile(r"[\[\]\\]|\*\*")


class FolderRule:
    """The rule for a folder of a prompt, and the text of its ignore file.

    In it, ``*`` and ``?`` match no slash; a ``/`` at the end matches folders only; with any other
    ``/``, the path begins at the top; ``!`` makes an exception. The last line that matches counts.
    Raises ValueError for other marks of .gitignore.
    """

    def __init__(self, ignored: str = "") -> None:
        self._lines: list[tuple[bool, bool, re.Pattern[str]]] = []
        for number, line in enumerate(ignored.split("\n"), 1):
            rule = line.rstrip(" \t\r")
            if not rule or rule.startswith("#"):
                continue
            if _special.search(rule):
                raise ValueError(f"{IGNORE_FILE}, line {number}: only *, ?, / and ! are special")
            keeps, rule = rule.startswith("!"), rule.removeprefix("!")
            is_of_folders, rule = rule.endswith("/"), rule.removesuffix("/")
            start = "" if "/" in rule else "(?:.*/)?"
            pattern = re.compile(start + _pattern_of(rule.removeprefix("/")), re.DOTALL)
            self._lines.append((keeps, is_of_folders, pattern))

    def why_not(self, path: str, kind: str, *, is_environment: bool = False) -> str:
        """The reason to leave out an entry of a folder that is not left out; empty if it belongs to
        the version.
        """
        name, is_folder = path.rpartition("/")[2], kind == FOLDER
        if name.startswith("."):
            return HIDDEN
        if is_environment or (is_folder and name in TOOL_FOLDERS):
            return OF_A_TOOL
        if not is_folder and name in _TOOL_FILES:
            return OF_A_TOOL
        if self._ignores(path, is_folder):
            return IGNORE_FILE
        return {LINK: IS_LINK, OTHER: NO_FILE}.get(kind, "")

    def _ignores(self, path: str, is_folder: bool) -> bool:
        is_ignored = False
        for keeps, is_of_folders, pattern in self._lines:
            if is_folder >= is_of_folders and pattern.fullmatch(path):
                is_ignored = not keeps
        return is_ignored

    def sort_out(self, kinds: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """The paths that belong to the version; and what is left out, with the reason: a path, or
        a folder with a slash at its end. ``kinds``: of all paths that are no folders.
        """
        end = f"/{ENVIRONMENT_FILE}"
        environments = {path[: -len(ENVIRONMENT_FILE)] for path in kinds if path.endswith(end)}
        kept: list[str] = []
        left: dict[str, str] = {}
        for path, kind in kinds.items():
            why = {
                folder: self.why_not(folder[:-1], FOLDER, is_environment=folder in environments)
                for folder in (f"{one}/" for one in folders_of(path))
            } | {path: self.why_not(path, kind)}
            first = next((part for part, reason in why.items() if reason), None)
            if first and kind != TEXT:
                left[first] = why[first]
            else:
                kept.append(path)
        return kept, left


def tell_left_out(left: Iterable[tuple[str, str]]) -> list[str]:
    """A warning for each reason, from paths with their reasons."""
    reasons: dict[str, list[str]] = {}
    for path, why in left:
        reasons.setdefault(why, []).append(cut(path, 200))
    return [f"Left out {some_of(paths, _SHOWN)}: {why}." for why, paths in reasons.items()]


def _pattern_of(rule: str) -> str:
    """A rule as a regular expression. Atomic groups prevent backtracking, as in
    ``fnmatch.translate``.
    """
    first, *rest = (re.escape(part).replace(r"\?", "[^/]") for part in rule.split("*"))
    last = [f"[^/]*{rest.pop()}"] if rest else []
    return "".join([first, *(f"(?>[^/]*?{part})" for part in rest), *last])
