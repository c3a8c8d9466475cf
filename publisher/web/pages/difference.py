"""The difference of two texts or versions, for the account pages. For texts,
templates/difference.html shows it:

``frame.render("some.html", difference=compare(old, new, "1.0.0", "1.1.0"))``, and in the template
``{{ difference_of(difference) }}``.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from builder.model.records import VersionFile
from builder.render.hunks import Row, file_hunks, readable
from builder.text import abilities
from builder.text.abilities import FindingChange
from builder.text.file_diff import FileChange, compare_files
from builder.text.line_diff import LineDiff
from builder.text.prompts import body_of

_COARSE = (
    "These texts repeat too many lines to compare each of them. Some lines that both texts have "
    "are shown as removed and added again."
)
_UNMARKED = (
    "Too much text changed to mark every word that changed. Some lines are shown as removed and "
    "added, without marks."
)


class TextDifference(NamedTuple):
    """The changes from the text called ``old_name`` to the one called ``new_name``.

    ``rows`` is empty where the texts are equal. ``limits`` are sentences about changes that are not
    shown to the line, or to the word. ``removed`` and ``added`` count lines.
    """

    old_name: str
    new_name: str
    rows: list[Row]
    limits: list[str]
    removed: int
    added: int


def compare(old: str, new: str, old_name: str, new_name: str) -> TextDifference:
    """Compares two texts, to the word.

    For any texts, it takes no more steps than builder.text.line_diff and builder.render.hunks
    allow, plus time in proportion to their length. So callers limit only the length. A name is what
    people call a text: a version, or such as "your draft".
    """
    diff = LineDiff(old, new)
    rows, has_marked_all = readable(diff)
    limits = [_COARSE] if diff.is_coarse else [] if has_marked_all else [_UNMARKED]
    changed = [code for group in diff.groups for code in group if code[0] != "equal"]
    removed = sum(i2 - i1 for _, i1, i2, _, _ in changed)
    added = sum(j2 - j1 for _, _, _, j1, j2 in changed)
    return TextDifference(old_name, new_name, rows, limits, removed, added)


class File(NamedTuple):
    """A file of a version."""

    path: str
    data: bytes
    executable: bool

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


# By their paths.
Files = Mapping[str, File]


def files_of(record: VersionFile, data: Iterable[bytes]) -> Files:
    """The files of a version, from its record and their bytes."""
    listed = zip(record.files or (), data, strict=True)
    return {one.path: File(one.path, raw, one.executable) for one, raw in listed}


class Side(NamedTuple):
    """A version to compare, or a draft of one."""

    name: str
    text: str
    front_matter_bytes: int
    files: Files

    @property
    def is_examined(self) -> bool:
        front = self.text.removesuffix(body_of(self.text, self.front_matter_bytes))
        return abilities.is_examined(front, [*self.files])


class VersionDifference(NamedTuple):
    """The change from one version to another. ``files``: each change with its rows. ``found``: the
    changed findings; None if the versions are not examined.
    """

    text: TextDifference
    files: list[tuple[FileChange[File], list[Row]]]
    found: list[FindingChange] | None


def compare_versions(old: Side, new: Side, *, is_examined: bool = True) -> VersionDifference:
    """Compares two versions in bounded time."""
    found = None
    if is_examined and (old.is_examined or new.is_examined):
        before, after = (abilities.examine(one.text, [*one.files.values()]) for one in (old, new))
        found = [*abilities.compare(before, after)]
    changes = compare_files([*old.files.values()], [*new.files.values()], _read, _read)
    files = [*zip(changes, file_hunks(changes), strict=True)]
    return VersionDifference(compare(old.text, new.text, old.name, new.name), files, found)


def _read(file: File) -> bytes:
    return file.data
