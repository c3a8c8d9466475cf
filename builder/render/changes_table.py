"""The table of changes between two texts, as HTML. Pure.

Such tables are much of a site's HTML, so no template is run for them.
"""

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from builder.render.hunks import Row
from builder.text.hidden_chars import Marks, escape_plain, visible

# A longer text, as a line can be, is shown without its middle.
WHOLE_MAX = 2_000
START, END = 1_000, 500
_TAGS = {"": "", "-": "del", "+": "ins"}
_NO_SIDE = '<td class="to"></td>'
# What a version's metadata says, in words.
_METADATA = {
    "title": "title",
    "description": "description",
    "tags": "tags",
    "license": "licence",
    "variables": "variables",
    "parameters": "model settings",
}
_SIGNS = {"removed": "−", "added": "+", "changed": "±"}


def changes_table(
    rows: Sequence[Row],
    old_name: str,
    new_name: str,
    marks: Marks,
    same: str = "The text is unchanged.",
    rest: str = "see the unified diff",
    is_wide: bool = False,
) -> Markup:
    """The rows of a difference between texts with these names. ``marks``: those of the page;
    ``same``: the note on equal texts; ``rest``: the note on lines that are not shown; ``is_wide``:
    with a cell for the new side, which the style sheet shows on demand.
    """
    if not rows:
        return Markup(f"<p>{escape(same)}</p>\n")
    texts = [text for row in rows for text, _ in row.segments or ()]
    is_short = len(max(texts, key=len, default="")) <= WHOLE_MAX
    plain = escape_plain(texts) if is_short else None
    shown = iter(plain or _shown_texts(rows, marks))
    body = "".join([_row(row, shown, rest, is_wide) for row in rows])
    old, new = escape(old_name), escape(new_name)
    side = _NO_SIDE if is_wide else ""
    return Markup(
        '<table class="changes">\n'
        f'<caption class="unseen">What changed from {old} to {new}</caption>\n'
        f'<thead><tr><th scope="col"><span class="unseen">Line in {old}</span></th>'
        f'<th scope="col"><span class="unseen">Line in {new}</span></th>'
        '<th scope="col"><span class="unseen">Change</span></th>'
        '<th scope="col"><span class="unseen">Text</span></th>'
        f"{side}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n"
    )


def metadata_changes(old: object, new: object) -> str:
    """A sentence that names the metadata of two versions that differs; empty if none does."""
    names = [
        words for field, words in _METADATA.items() if getattr(old, field) != getattr(new, field)
    ]
    return f"The metadata differs: {', '.join(names)}." if names else ""


def _shown_texts(rows: Sequence[Row], marks: Marks) -> Iterator[str]:
    for row in rows:
        for text, sign in row.segments or ():
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


def _row(row: Row, shown: Iterator[str], rest: str, is_wide: bool) -> str:
    kind, old, new = row.kind, row.old_number, row.new_number
    if row.segments is None:
        lines = "line" if row.left_out == 1 else "lines"
        note = f"{lines} unchanged" if kind == "gap" else f"more {lines} changed; {escape(rest)}"
        columns = 5 if is_wide else 4
        return f'<tr class="gap"><td colspan="{columns}">{row.left_out} {note}</td></tr>\n'
    if is_plain := kind == "same" or _is_whole(row):
        text = next(shown)
    else:
        parts = [(_TAGS[sign], next(shown)) for _, sign in row.segments]
        text = "".join([f"<{tag}>{part}</{tag}>" if tag else part for tag, part in parts])
    if row.is_unended:
        text += " <small>no line break at the end</small>"
    cells = _wide_cells(kind, text) if is_wide else f'<td dir="auto">{text}</td>'
    if kind == "same":
        return f"<tr><td>{old}</td><td>{new}</td><td></td>{cells}</tr>\n"
    return (
        f'<tr class="{kind}{" whole" if is_plain else ""}"><td>{old or ""}</td><td>{new or ""}</td>'
        f'<td aria-label="{kind}">{_SIGNS[kind]}</td>{cells}</tr>\n'
    )


def _wide_cells(kind: str, text: str) -> str:
    """The text on both sides, or on the one that has it."""
    if kind == "added":
        return f'{_NO_SIDE}<td dir="auto">{text}</td>'
    if kind == "removed":
        return f'<td dir="auto">{text}</td>{_NO_SIDE}'
    twin = f'<td class="to" dir="auto" aria-hidden="true">{text}</td>'
    return f'<td class="was" dir="auto">{text}</td>{twin}'
