"""The changes of a version since the previous one: in its text, its files, and its abilities. Pure.

Templates of files are macros, because few versions have files.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from builder.model.answers import Version
from builder.render.changes_table import changes_table
from builder.render.pages import Pages
from builder.text.abilities import FindingChange
from builder.text.file_diff import FileChange
from builder.text.hidden_chars import Marks
from builder.text.hunks import Readable, counts, file_hunks
from builder.text.interface import Change


class Since(NamedTuple):
    """The changes since the previous version: for callers, of the text, files, and findings as
    ``abilities.compare`` yields them, or None if both versions are only texts. ``metadata``: as
    ``metadata_changes`` returns it, if the text is unchanged.
    """

    callers: Sequence[Change]
    text: Readable
    files: Sequence[FileChange]
    found: Sequence[FindingChange] | None
    metadata: str = ""


def changes_since(pages: Pages, since: Since, version: Version, marks: Marks) -> tuple[str, Markup]:
    """The number of lines changed since the previous version, and the changes as HTML."""
    previous, number = version.previous, version.version
    parts = [
        pages.macro("callers.html", "for_applications")(since.callers, previous, number, marks)
    ]
    has_files = since.found is not None
    what = "The text and files are" if has_files and not since.files else "The text is"
    same = f"{what} unchanged. {since.metadata}".strip()
    readable = file_hunks(since.files)
    if not has_files:
        parts.append(changes_table(since.text.rows, previous, number, marks, same))
    else:
        pairs = [*zip(since.files, readable, strict=True)]
        repo = version.owner, version.name
        if since.found:
            can_do = pages.macro("can_do.html", "can_do_changes")
            parts.append(can_do(since.found, marks, has_note=False))
        parts += [
            changes_table(since.text.rows, previous, number, marks, same),
            pages.macro("files.html", "file_changes")(pairs, previous, number, marks, repo=repo),
        ]
    return counts(since.text, *readable), Markup("".join(parts))
