"""The difference of two texts or versions, for the account pages. For texts,
templates/difference.html shows it:

``frame.render("some.html", difference=compare(old, new, "1.0.0", "1.1.0"))``, and in the template
``{{ difference_of(difference) }}``.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from builder.model.records import VersionFile
from builder.text import abilities
from builder.text.abilities import FindingChange
from builder.text.file_diff import FileChange, compare_files, unified
from builder.text.hunks import Readable, counts, file_hunks, readable
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

    ``limits`` are sentences about changes that are not shown to the line, or to the word.
    """

    old_name: str
    new_name: str
    shown: Readable
    limits: list[str]


def compare(old: str, new: str, old_name: str, new_name: str) -> TextDifference:
    """Compares two texts, to the word.

    For any texts, it takes no more steps than builder.text.line_diff and builder.text.hunks
    allow, plus time in proportion to their length. So callers limit only the length. A name is what
    people call a text: a version, or such as "your draft".
    """
    diff = LineDiff(old, new)
    shown = readable(diff)
    limits = [_COARSE] if diff.is_coarse else [] if shown.has_marked_all else [_UNMARKED]
    return TextDifference(old_name, new_name, shown, limits)


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
    """The change from one version to another. ``files``: each change, as shown. ``found``: the
    changed findings; None if the versions are not examined.
    """

    text: TextDifference
    files: list[tuple[FileChange[File], Readable]]
    found: list[FindingChange] | None

    @property
    def counts(self) -> str:
        return counts(self.text.shown, *(shown for _, shown in self.files))


def compare_versions(old: Side, new: Side, *, is_examined: bool = True) -> VersionDifference:
    """Compares two versions in bounded time."""
    found = None
    if is_examined and (old.is_examined or new.is_examined):
        before, after = (abilities.examine(one.text, [*one.files.values()]) for one in (old, new))
        found = [*abilities.compare(before, after)]
    changes = compare_files([*old.files.values()], [*new.files.values()], _read, _read)
    files = [*zip(changes, file_hunks(changes), strict=True)]
    return VersionDifference(compare(old.text, new.text, old.name, new.name), files, found)


def unified_diff(old: Side, new: Side, old_name: str, new_name: str) -> str:
    """The change from one version to another, for ``git apply``; the text has these names."""
    changes = compare_files([*old.files.values()], [*new.files.values()], _read, _read)
    return LineDiff(old.text, new.text).unified(old_name, new_name) + unified(changes)


def _read(file: File) -> bytes:
    return file.data
