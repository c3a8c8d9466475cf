"""The panels of a version with files: the list of them, what the version can do, and how both
differ from the previous version. Pure.

Their templates are macros, because few versions have files.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from builder.model.answers import File, Repo, Version
from builder.model.matching import version_file
from builder.model.plural import counted, human_size
from builder.model.routes import BY_NAME
from builder.model.version_files import PATH_PATTERN, is_text
from builder.render.hunks import Row, changes_table, file_hunks
from builder.render.pages import Pages
from builder.text.abilities import FindingChange, Findings
from builder.text.file_diff import FileChange
from builder.text.hidden_chars import Marks
from builder.text.interface import Change

# A list of more files is folded.
UNFOLDED_MAX = 12
# The target of a Markdown link, or inline code. Escaping for HTML changes neither.
_names_file = re.compile(rf"(?<=[(`])((?:\./)?({PATH_PATTERN}))(?=[)`# ])")


class ShownFile(NamedTuple):
    """A file in the list; ``folder`` ends with a slash, if it is not empty."""

    href: str
    folder: str
    name: str
    size: str
    file: File
    is_text: bool


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


def panels(
    pages: Pages, one: Repo | Version, number: str, found: Findings | None, marks: Marks
) -> Markup:
    """The panels of a version with this number; empty for a prompt that is only a text. ``found``:
    None if the rules were not applied.
    """
    parts = []
    if one.files:
        listed = pages.macro("files.html", "file_list")
        shown = [_shown(pages, one, number, file) for file in one.files]
        is_open = len(shown) <= UNFOLDED_MAX
        at = {"owner": one.owner, "name": one.name, "version": number}
        archive = f"{pages.root}/{BY_NAME['version_skill_archive'].file_for(**at)}"
        parts.append(listed(shown, _total(one.files), archive, one.content_sha256, is_open))
    if found is not None:
        parts.append(pages.macro("can_do.html", "can_do")(found, marks))
    return Markup("").join(parts)


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


def link_files(pages: Pages, one: Repo | Version, number: str, text: Markup) -> Markup:
    """A text in HTML, whose Markdown links and code lead to the files that they name."""
    if not one.files:
        return text
    paths = {file.path for file in one.files}

    def link(found: re.Match[str]) -> str:
        named, path = found.groups()
        if path not in paths:
            return found[0]
        return f'<a href="{_href(pages, one, number, path)}">{named}</a>'

    return Markup(_names_file.sub(link, text))


def _href(pages: Pages, one: Repo | Version, number: str, path: str) -> str:
    return f"{pages.root}/{version_file(one.owner, one.name, number, path).file}"


def _shown(pages: Pages, one: Repo | Version, number: str, file: File) -> ShownFile:
    href = _href(pages, one, number, file.path)
    folder, slash, name = file.path.rpartition("/")
    return ShownFile(href, folder + slash, name, human_size(file.size), file, is_text(file.path))


def _total(files: Sequence[File]) -> str:
    executable = sum(one.executable for one in files)
    total = f"{counted(len(files), 'file')}, {human_size(sum(one.size for one in files))}"
    return f"{total}, {executable} executable" if executable else total
