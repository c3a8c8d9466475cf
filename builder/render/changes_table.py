"""The table of a readable difference, as HTML. Pure.

Tables of changes are much of a site's HTML, so no template is run for them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from builder.model.plural import counted
from builder.text.hidden_chars import Marks, escape_plain, visible
from builder.text.hunks import Row
from builder.text.word_diff import Piece

# A longer text, as a line can be, is shown without its middle.
WHOLE_MAX = 2_000
START, END = 1_000, 500
_TAGS = {"": "", "-": "del", "+": "ins"}
_NO_SIDE = '<td class="to"></td>'
_TITLES = "".join(
    f'<th scope="col"><span class="unseen">{title}</span></th>'
    for title in ("Old line", "New line", "Change", "Text")
)
_HEAD = f"<thead><tr>{_TITLES}</tr></thead>\n"
_WIDE_HEAD = f"<thead><tr>{_TITLES}{_NO_SIDE}</tr></thead>\n"
# What a version's metadata says, in words.
_METADATA = {
    "title": "title",
    "description": "description",
    "tags": "tags",
    "license": "licence",
    "variables": "variables",
    "parameters": "model settings",
}
_SIGNS = {"removed": "−", "added": "+", "changed": "±", "moved": "↷"}


def changes_table(
    rows: Sequence[Row],
    old_name: str,
    new_name: str,
    marks: Marks,
    same: str = "The text is unchanged.",
    is_wide: bool = False,
    at: str = "",
) -> Markup:
    """The rows of a difference between texts with these names. ``marks``: those of the page;
    ``same``: the note on equal texts; ``is_wide``: with a cell for the new side, which the style
    sheet shows on demand; ``at``: the start of the addresses of its lines, if the page has several
    tables.
    """
    if not rows:
        return Markup(f"<p>{escape(same)}</p>\n")
    texts = [text for row in rows for text, _ in _pieces(row)]
    is_short = len(max(texts, key=len, default="")) <= WHOLE_MAX
    plain = escape_plain(texts) if is_short else None
    shown = iter(plain or _shown_texts(rows, marks))
    table = _Table(shown, is_wide, at)
    body = "".join([table.row(row) for row in rows])
    between = escape(f"{old_name} to {new_name}")
    return Markup(
        f'<table class="changes">\n<caption class="unseen">Changes from {between}</caption>\n'
        f"{_WIDE_HEAD if is_wide else _HEAD}<tbody>\n{body}</tbody>\n</table>\n"
    )


def metadata_changes(old: object, new: object) -> str:
    """A sentence that names the metadata of two versions that differs; empty if none does."""
    names = [
        words for field, words in _METADATA.items() if getattr(old, field) != getattr(new, field)
    ]
    return f"The metadata differs: {', '.join(names)}." if names else ""


def _pieces(row: Row) -> Sequence[Piece]:
    return row.segments or [(line, "") for line in row.folded]


def _shown_texts(rows: Sequence[Row], marks: Marks) -> Iterator[str]:
    for row in rows:
        for text, sign in _pieces(row):
            is_return_shown = sign != "" and not _is_whole(row)
            if len(text) <= WHOLE_MAX:
                yield visible(text, marks, is_return_shown)
                continue
            parts = text[:START], text[-END:]
            start, end = (visible(part, marks, is_return_shown) for part in parts)
            yield f"{start} <em>… {len(text) - START - END:,} characters not shown …</em> {end}"


def _is_whole(row: Row) -> bool:
    """True if all of a line was removed or added, so that no part of it is marked."""
    return len(row.segments) == 1 and row.segments[0][1] != ""


class _Table(NamedTuple):
    """Renders rows. ``shown``: the texts of their segments in order, as HTML; the others as in
    changes_table.
    """

    shown: Iterator[str]
    is_wide: bool
    at: str

    def row(self, row: Row) -> str:
        kind, old, new = row.kind, row.old_number, row.new_number
        if kind in ("gap", "rest", "away", "arrived"):
            address = f' id="{self.at}L{old}"' if kind == "away" else ""
            columns = 5 if self.is_wide else 4
            return f'<tr class="gap"><td colspan="{columns}"{address}>{self._said(row)}</td></tr>\n'
        if is_plain := kind in ("same", "moved") or _is_whole(row):
            text = next(self.shown)
        else:
            parts = [(_TAGS[sign], next(self.shown)) for _, sign in row.segments]
            text = "".join([f"<{tag}>{part}</{tag}>" if tag else part for tag, part in parts])
        if row.is_unended:
            text += " <small>no line break at the end</small>"
        cells = _wide_cells(kind, text) if self.is_wide else f'<td dir="auto">{text}</td>'
        address, numbers = self._address(old, new)
        if kind == "same":
            return f"<tr{address}>{numbers}<td></td>{cells}</tr>\n"
        return (
            f'<tr class="{kind}{" whole" if is_plain else ""}"{address}>{numbers}'
            f'<td aria-label="{kind}">{_SIGNS[kind]}</td>{cells}</tr>\n'
        )

    def _said(self, row: Row) -> str:
        if row.kind in ("away", "arrived"):
            line = f"R{row.new_number}" if row.kind == "away" else f"L{row.old_number}"
            return f'<a href="#{self.at}{line}">{next(self.shown)}</a>'
        if row.kind == "rest":
            return f"{counted(row.left_out, 'more line')} changed, not shown here"
        said = f"{counted(row.left_out, 'line')} unchanged"
        if not row.folded:
            return said
        # The list counts them: cells of numbers would triple the weight of these lines. It cannot
        # count both sides at once, so old numbers that differ are given.
        old, first = row.old_number, row.new_number
        items = [
            "<li>" if old == first else f"<li data-old={number}>"
            for number in range(old, old + len(row.folded))
        ]
        lines = "".join([f"{item}{next(self.shown)}" for item in items])
        return (
            f"<details><summary>{said}</summary>"
            f'<ol class="changes" start="{first}">{lines}</ol></details>'
        )

    def _address(self, old: int | None, new: int | None) -> tuple[str, str]:
        """The ``id`` of a row, and the cells of its numbers: the new one or the only one links."""
        name = f"{self.at}R{new}" if new else f"{self.at}L{old}"
        if not new:
            return f' id="{name}"', f'<td><a href="#{name}">{old}</a></td><td></td>'
        cells = f'<td>{old or ""}</td><td><a href="#{name}">{new}</a></td>'
        return f' id="{name}"', cells


def _wide_cells(kind: str, text: str) -> str:
    """The text on both sides, or on the one that has it."""
    if kind == "added":
        return f'{_NO_SIDE}<td dir="auto">{text}</td>'
    if kind == "removed":
        return f'<td dir="auto">{text}</td>{_NO_SIDE}'
    twin = f'<td class="to" dir="auto" aria-hidden="true">{text}</td>'
    return f'<td class="was" dir="auto">{text}</td>{twin}'
