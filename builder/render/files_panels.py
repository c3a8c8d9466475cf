"""The changes of a version since the previous one: in its text, its files, and its abilities. Pure.

Templates of files are macros, because few versions have files.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from builder.render.hunks import Row, changes_table, file_hunks
from builder.render.pages import Pages
from builder.text.abilities import FindingChange
from builder.text.file_diff import FileChange
from builder.text.hidden_chars import Marks
from builder.text.interface import Change


class Since(NamedTuple):
    """The changes since the previous version: for callers, rows of the text, files, and findings as
    ``abilities.compare`` yields them, or None if both versions are only texts. ``metadata``: as
    ``metadata_changes`` returns it, if there are no rows.
    """

    callers: Sequence[Change]
    rows: Sequence[Row]
    files: Sequence[FileChange]
    found: Sequence[FindingChange] | None
    metadata: str = ""


def changes_since(pages: Pages, since: Since, previous: str, version: str, marks: Marks) -> Markup:
    """The changes since the previous version, as HTML."""
    parts = [
        pages.macro("callers.html", "for_applications")(since.callers, previous, version, marks)
    ]
    has_files = since.found is not None
    what = "The text and files are" if has_files and not since.files else "The text is"
    same = f"{what} unchanged. {since.metadata}".strip()
    if not has_files:
        parts.append(changes_table(since.rows, previous, version, marks, same))
    else:
        pairs = [*zip(since.files, file_hunks(since.files), strict=True)]
        parts += [
            pages.macro("can_do.html", "can_do_changes")(since.found, marks, has_note=False),
            changes_table(since.rows, previous, version, marks, same),
            pages.macro("files.html", "file_changes")(pairs, previous, version, marks),
        ]
    return Markup("".join(parts))
