"""The panels of a version with files: the list of them, and what the version can do. Pure.

Their templates are macros, because few versions have files.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from builder.model.plural import counted
from builder.model.records import File, Repo, Version
from builder.model.routes import version_file
from builder.model.version_files import is_text
from builder.render.pages import Pages
from builder.text.abilities import FINDINGS_MAX, Findings
from builder.text.hidden_chars import Marks

# With more files than these, the list is folded.
UNFOLDED_MAX = 12


class ShownFile(NamedTuple):
    """A file in the list; ``folder`` ends with a slash, if it is not empty."""

    href: str
    folder: str
    name: str
    size: str
    file: File
    is_text: bool


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
        parts.append(listed(shown, _total(one.files), one.content_sha256, is_open))
    if found is not None:
        parts.append(pages.macro("can_do.html", "can_do")(found, FINDINGS_MAX, marks))
    return Markup("").join(parts)


def _shown(pages: Pages, one: Repo | Version, number: str, file: File) -> ShownFile:
    href = f"{pages.root}/{version_file(one.owner, one.name, number, file.path).file}"
    folder, slash, name = file.path.rpartition("/")
    return ShownFile(href, folder + slash, name, human_size(file.size), file, is_text(file.path))


def _total(files: Sequence[File]) -> str:
    executable = sum(one.executable for one in files)
    total = f"{counted(len(files), 'file')}, {human_size(sum(one.size for one in files))}"
    return f"{total}, {executable} executable" if executable else total


def human_size(size: int) -> str:
    """A number of bytes for people."""
    if size < 1024:
        return f"{size} bytes" if size != 1 else "1 byte"
    return f"{size / 1024:.1f} KiB"
