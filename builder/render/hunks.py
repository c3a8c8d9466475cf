"""A difference for people: rows of lines, with the changed words marked.

The size of the result and the time to find it are bounded for all texts. The tables of changes are
much of a site's HTML, so no template is run for them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from markupsafe import Markup, escape
from msgspec import Struct

from builder.text.file_diff import FileChange
from builder.text.hidden_chars import Marks, escape_plain, visible
from builder.text.line_diff import LineDiff, Steps
from builder.text.word_diff import (
    Piece,
    is_akin,
    is_rewrapped,
    mark_words,
    pair_lines,
    split_lines,
    whole,
)

ROWS_MAX = 1_000
# The limit for all lines that replace others. Beyond it, lines are shown without marked words.
COMPARED_CHARS_MAX = 12_000
WORD_STEPS_MAX = 50_000


class Row(Struct, gc=False):
    """A row of a readable difference.

    A "gap" stands for ``left_out`` equal lines, a "rest" for that many changed lines beyond
    ROWS_MAX. Other rows are a line, with its number in the old and in the new text, from 1.
    ``segments``, joined, are the line with its line feed; ``is_unended``: it has none. A "changed"
    row is a line and the one that replaces it: its segments without the added ones are the old
    line, without the removed ones the new line. A "removed" or "added" line without changed words,
    or with too little else, is one marked segment.
    """

    kind: Literal["same", "removed", "added", "changed", "gap", "rest"]
    old_number: int | None = None
    new_number: int | None = None
    segments: list[Piece] | None = None
    is_unended: bool = False
    left_out: int = 0


class Readable(NamedTuple):
    """``rows`` show a difference. ``has_marked_all``: false if time was too short to mark the
    changed words of all changed lines.
    """

    rows: list[Row]
    has_marked_all: bool


def hunks(diff: LineDiff) -> list[Row]:
    """The rows that show a difference; empty if the texts are equal."""
    return readable(diff).rows


def file_hunks(changes: Sequence[FileChange]) -> list[list[Row]]:
    """The rows that show each change of a file; empty if its lines are not compared. All files
    share the limits of one text.
    """
    budget = _Budget()
    return [_readable(change.lines, budget) if change.lines else [] for change in changes]


def readable(diff: LineDiff) -> Readable:
    """The rows that show a difference, and whether all changed words are marked."""
    budget = _Budget()
    rows = _readable(diff, budget)
    return Readable(rows, budget.has_marked_all and not budget.steps.ran_out)


def _readable(diff: LineDiff, budget: "_Budget") -> list[Row]:
    kept = budget.lines_kept
    shown = list(islice(_rows(diff, budget), budget.rows_left))
    budget.rows_left -= len(shown)
    if budget.rows_left:
        return shown
    lines = {"removed": 1, "added": 1, "changed": 2}
    rest = _count_changed(diff) - sum(lines.get(row.kind, 0) for row in shown)
    rest -= budget.lines_kept - kept
    return [*shown, Row("rest", left_out=rest)] if rest else shown


class _Budget:
    """The remaining budget for rows, and for comparing lines word by word."""

    def __init__(self) -> None:
        self.rows_left = ROWS_MAX
        self.chars_left = COMPARED_CHARS_MAX
        self.steps = Steps(WORD_STEPS_MAX)
        self.has_marked_all = True
        # Equal lines between lines that changed, on both sides.
        self.lines_kept = 0

    def allows(self, old: list[str], new: list[str]) -> bool:
        """True if these lines may be compared with those that replace them; then the budget is
        charged.
        """
        if not old or not new:
            return False
        chars = sum(map(len, old)) + sum(map(len, new))
        # A block with more rows than are shown is not worth the comparison.
        if len(old) + len(new) > ROWS_MAX or chars > self.chars_left:
            self.has_marked_all = False
            return False
        self.chars_left -= chars
        return True


def _count_changed(diff: LineDiff) -> int:
    return sum(
        i2 - i1 + j2 - j1
        for group in diff.groups
        for tag, i1, i2, j1, j2 in group
        if tag != "equal"
    )


def _rows(diff: LineDiff, budget: _Budget) -> Iterator[Row]:
    reached = 0
    for group in diff.groups:
        if group[0][1] > reached:
            yield Row("gap", left_out=group[0][1] - reached)
        for tag, i1, i2, j1, j2 in group:
            old, new = diff.old[i1:i2], diff.new[j1:j2]
            if tag == "equal":
                for offset, line in enumerate(old, 1):
                    yield Row("same", i1 + offset, j1 + offset, [(line, "")])
            else:
                yield from _changed_rows(old, new, i1 + 1, j1 + 1, budget)
        reached = group[-1][2]
    if diff.groups and reached < len(diff.old):
        yield Row("gap", left_out=len(diff.old) - reached)


def _changed_rows(
    old: list[str], new: list[str], old_number: int, new_number: int, budget: _Budget
) -> Iterator[Row]:
    """The rows for lines and those that replace them: one for both if each line has its own, or if
    a line still has half of its words.
    """
    pieces = None
    if is_allowed := budget.allows(old, new):
        pieces = mark_words("".join(old), "".join(new), budget.steps)
    if pieces and _keeps_lines(pieces):
        lines = _marked_lines(pieces)
        if all(map(is_akin, lines)):
            for offset, line in enumerate(lines):
                yield Row("changed", old_number + offset, new_number + offset, line)
            return
        pieces = [one for line in lines for one in (line if is_akin(line) else whole(line))]
    pairs = []
    if is_allowed and not (pieces and is_rewrapped(pieces)):
        pairs = pair_lines(old, new, budget.steps)
    chars = sum(len(old[i]) + len(new[j]) for i, j in pairs)
    if 0 < chars <= budget.chars_left:
        budget.chars_left -= chars
        yield from _paired_rows(old, new, old_number, new_number, pairs, budget)
        return
    removed = _side(pieces, "-", "<") if pieces else [[(line, "-")] for line in old]
    added = _side(pieces, "+", ">") if pieces else [[(line, "+")] for line in new]
    for number, line in enumerate(removed, old_number):
        yield _row_of("removed", number, line)
    for number, line in enumerate(added, new_number):
        yield _row_of("added", number, line)


def _paired_rows(
    old: list[str],
    new: list[str],
    old_number: int,
    new_number: int,
    pairs: list[tuple[int, int]],
    budget: _Budget,
) -> Iterator[Row]:
    """The rows for lines where some became others: lines between two pairs are removed, or
    added.
    """
    at_old = at_new = 0
    for i, j in [*pairs, (len(old), len(new))]:
        while at_old < i and at_new < j and old[at_old] == new[at_new]:  # such as a blank line
            yield Row("same", old_number + at_old, new_number + at_new, [(old[at_old], "")])
            at_old, at_new = at_old + 1, at_new + 1
            budget.lines_kept += 2
        for at in range(at_old, i):
            yield _row_of("removed", old_number + at, [(old[at], "-")])
        for at in range(at_new, j):
            yield _row_of("added", new_number + at, [(new[at], "+")])
        at_old, at_new = i + 1, j + 1
        if i == len(old):
            return
        pieces = mark_words(old[i], new[j], budget.steps)
        if pieces and _keeps_lines(pieces):
            [line] = _marked_lines(pieces)
            yield Row("changed", old_number + i, new_number + j, line)
        else:
            yield _row_of("removed", old_number + i, [(old[i], "-")])
            yield _row_of("added", new_number + j, [(new[j], "+")])


def _row_of(kind: Literal["removed", "added"], number: int, line: list[Piece]) -> Row:
    numbers = (number, None) if kind == "removed" else (None, number)
    return Row(kind, *numbers, line, not line[-1][0].endswith("\n"))


def _keeps_lines(pieces: list[Piece]) -> bool:
    """True if each line is still one line."""
    return not any("\n" in text for text, sign in pieces if sign)


def _marked_lines(pieces: list[Piece]) -> list[list[Piece]]:
    """The lines of pieces that keep them, with the space that one side alone has as a change."""
    shown = {"<": "-", ">": "+"}
    return split_lines((text, shown.get(sign, sign)) for text, sign in pieces)


def _side(pieces: list[Piece], sign: Literal["-", "+"], unmarked: str) -> list[list[Piece]]:
    """The lines of one side of the pieces, each with a mark."""
    side = [(text, "") if one == unmarked else (text, one) for text, one in pieces]
    lines = split_lines(one for one in side if one[1] in ("", sign))
    return [
        line
        if is_akin(line) and any(mark for _, mark in line)
        else [("".join(text for text, _ in line), sign)]
        for line in lines
    ]


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
