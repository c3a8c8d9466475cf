"""A difference for people: rows of lines, with the changed words marked. Pure.

The size of the result and the time to find it are bounded for all texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

from msgspec import Struct

from builder.text.file_diff import FileChange
from builder.text.line_diff import LineDiff, Move, Steps
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
# Equal lines that a reader can open: at most so many in one place, and so many characters in all.
FOLDED_LINES_MAX = 200
FOLDED_CHARS_MAX = 12_000


class Row(Struct, gc=False):
    """A row of a readable difference.

    A "gap" stands for ``left_out`` equal lines, which are ``folded`` unless they are too many, and
    has the numbers of the first; a "rest" for that many changed lines beyond ROWS_MAX. The
    segment of an "away" or "arrived" row says that lines from this one on moved, and to or from
    which; ``left_out`` lines are away. Other rows are a line, with its number in the old and in the
    new text, from 1. ``segments``, joined, are the line with its line feed; ``is_unended``: it has
    none. A "changed" row is a line and the one that replaces it: its segments without the added
    ones are the old line, without the removed ones the new line. A "removed" or "added" line
    without changed words, or with too little else, is one marked segment. A "moved" line has both
    numbers.
    """

    kind: Literal["same", "removed", "added", "changed", "moved", "away", "arrived", "gap", "rest"]
    old_number: int | None = None
    new_number: int | None = None
    segments: list[Piece] | None = None
    is_unended: bool = False
    left_out: int = 0
    folded: Sequence[str] = ()


class Readable(NamedTuple):
    """``rows`` show a difference; none if the texts are equal. ``removed`` and ``added`` count its
    lines as a reader sees them: neither lines that moved nor blank ones between two changes count.
    ``has_marked_all``: false if time was too short to mark the changed words of all changed lines.
    """

    rows: list[Row]
    removed: int = 0
    added: int = 0
    has_marked_all: bool = True


NO_LINES = Readable([])


def file_hunks(changes: Sequence[FileChange]) -> list[Readable]:
    """The rows that show each change of a file; none if its lines are not compared. All files
    share the limits of one text.
    """
    budget = _Budget()
    return [readable(one.lines, budget) if one.lines else NO_LINES for one in changes]


def counts(*differences: Readable) -> str:
    """The lines that were added and removed, such as ``+9 −2``; empty if there are none."""
    signs = {"+": sum(one.added for one in differences)}
    signs["−"] = sum(one.removed for one in differences)
    return " ".join([f"{sign}{count:,}" for sign, count in signs.items() if count])


def readable(diff: LineDiff, budget: "_Budget | None" = None) -> Readable:
    """The rows that show a difference."""
    budget = budget or _Budget()
    kept = budget.lines_kept
    shown = list(islice(_rows(diff, budget), budget.rows_left))
    budget.rows_left -= len(shown)
    changed = [code for group in diff.groups for code in group if code[0] != "equal"]
    moved = sum(move.size for move in diff.away.values())
    unseen = moved + budget.lines_kept - kept
    removed = sum(i2 - i1 for _, i1, i2, _, _ in changed) - unseen
    added = sum(j2 - j1 for _, _, _, j1, j2 in changed) - unseen
    if not budget.rows_left:
        lines = {"removed": 1, "added": 1, "changed": 2, "moved": 1}
        rest = removed + added + moved - sum(lines.get(row.kind, 0) for row in shown)
        if rest:
            shown.append(Row("rest", left_out=rest))
    has_marked_all = budget.has_marked_all and not budget.steps.ran_out
    return Readable(shown, removed, added, has_marked_all)


class _Budget:
    """The remaining budget for rows, and for comparing lines word by word."""

    def __init__(self) -> None:
        self.rows_left = ROWS_MAX
        self.chars_left = COMPARED_CHARS_MAX
        self.steps = Steps(WORD_STEPS_MAX)
        self.has_marked_all = True
        # Equal lines between lines that changed.
        self.lines_kept = 0
        self.folded_chars_left = FOLDED_CHARS_MAX

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


class _Lines(NamedTuple):
    """Lines of a side, without those that moved, and their numbers."""

    texts: list[str]
    numbers: Sequence[int]


def _rows(diff: LineDiff, budget: _Budget) -> Iterator[Row]:
    old = new = 0
    for group in diff.groups:
        yield from _gap(diff.old[old : group[0][1]], old, new, budget)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from _same(diff.old[i1:i2], i1, j1)
            else:
                yield from _block_rows(diff, (i1, i2), (j1, j2), budget)
        _, _, old, _, new = group[-1]
    if diff.groups:
        yield from _gap(diff.old[old:], old, new, budget)


def _gap(lines: list[str], old: int, new: int, budget: _Budget) -> Iterator[Row]:
    """The row for equal lines after these numbers of others, if there are any."""
    if not lines:
        return
    folded = lines if len(lines) <= FOLDED_LINES_MAX else ()
    chars = sum(map(len, folded))
    if chars > budget.folded_chars_left:
        folded, chars = (), 0
    budget.folded_chars_left -= chars
    yield Row("gap", old + 1, new + 1, left_out=len(lines), folded=folded)


def _same(lines: list[str], old: int, new: int) -> Iterator[Row]:
    for offset, line in enumerate(lines, 1):
        yield Row("same", old + offset, new + offset, [(line, "")])


def _block_rows(
    diff: LineDiff, old: tuple[int, int], new: tuple[int, int], budget: _Budget
) -> Iterator[Row]:
    """The rows for lines and those that replace them. Lines that moved are shown once, where they
    stand in the new text.
    """
    gone, away = _stayed(diff.old, *old, diff.away)
    come, arrived = _stayed(diff.new, *new, diff.arrived)
    for row in _changed_rows(gone, come, budget):
        while away and (row.old_number or 0) > away[0].old:
            yield _note(away.pop(0))
        while arrived and (row.new_number or 0) > arrived[0].new:
            yield from _moved_rows(diff, arrived.pop(0))
        yield row
    yield from map(_note, away)
    for move in arrived:
        yield from _moved_rows(diff, move)


def _stayed(
    lines: list[str], start: int, end: int, moves: Mapping[int, Move]
) -> tuple[_Lines, list[Move]]:
    """The lines from start to end that did not move, and the moves."""
    if not moves:
        return _Lines(lines[start:end], range(start + 1, end + 1)), []
    texts, numbers, moved = [], [], []
    at = start
    while at < end:
        if move := moves.get(at):
            moved.append(move)
            at += move.size
        else:
            at += 1
            texts.append(lines[at - 1])
            numbers.append(at)
    return _Lines(texts, numbers), moved


def _note(move: Move) -> Row:
    said = [(move.destination, "")]
    return Row("away", move.old + 1, move.new + 1, said, left_out=move.size)


def _moved_rows(diff: LineDiff, move: Move) -> Iterator[Row]:
    yield Row("arrived", move.old + 1, move.new + 1, [(move.origin, "")])
    for row in _same(diff.new[move.new : move.new + move.size], move.old, move.new):
        row.kind = "moved"
        yield row


def _changed_rows(old: _Lines, new: _Lines, budget: _Budget) -> Iterator[Row]:
    """The rows for lines and those that replace them: one for both if each line has its own, or if
    a line still has half of its words.
    """
    pieces = None
    if is_allowed := budget.allows(old.texts, new.texts):
        pieces = mark_words("".join(old.texts), "".join(new.texts), budget.steps)
    if pieces and _keeps_lines(pieces):
        lines = _marked_lines(pieces)
        if all(map(is_akin, lines)):
            for *numbers, line in zip(old.numbers, new.numbers, lines, strict=True):
                yield _marked_row(*numbers, line, budget)
            return
        pieces = [one for line in lines for one in (line if is_akin(line) else whole(line))]
    pairs = []
    if is_allowed and not (pieces and is_rewrapped(pieces)):
        pairs = pair_lines(old.texts, new.texts, budget.steps)
    chars = sum(len(old.texts[i]) + len(new.texts[j]) for i, j in pairs)
    if 0 < chars <= budget.chars_left:
        budget.chars_left -= chars
        yield from _paired_rows(old, new, pairs, budget)
        return
    removed = _side(pieces, "-", "<") if pieces else [[(line, "-")] for line in old.texts]
    added = _side(pieces, "+", ">") if pieces else [[(line, "+")] for line in new.texts]
    yield from map(partial(_row_of, "removed"), old.numbers, removed)
    yield from map(partial(_row_of, "added"), new.numbers, added)


def _paired_rows(
    old: _Lines, new: _Lines, pairs: list[tuple[int, int]], budget: _Budget
) -> Iterator[Row]:
    """The rows for lines where some became others: lines between two pairs are removed, or
    added.
    """
    at_old = at_new = 0
    ends = len(old.texts), len(new.texts)
    for i, j in [*pairs, ends]:
        while at_old < i and at_new < j and old.texts[at_old] == new.texts[at_new]:  # such as blank
            line = [(old.texts[at_old], "")]
            yield _marked_row(old.numbers[at_old], new.numbers[at_new], line, budget)
            at_old, at_new = at_old + 1, at_new + 1
        for at in range(at_old, i):
            yield _row_of("removed", old.numbers[at], [(old.texts[at], "-")])
        for at in range(at_new, j):
            yield _row_of("added", new.numbers[at], [(new.texts[at], "+")])
        at_old, at_new = i + 1, j + 1
        if (i, j) == ends:
            return
        pieces = mark_words(old.texts[i], new.texts[j], budget.steps)
        if pieces and _keeps_lines(pieces):
            [line] = _marked_lines(pieces)
            yield _marked_row(old.numbers[i], new.numbers[j], line, budget)
        else:
            yield _row_of("removed", old.numbers[i], [(old.texts[i], "-")])
            yield _row_of("added", new.numbers[j], [(new.texts[j], "+")])


def _marked_row(old: int, new: int, line: list[Piece], budget: _Budget) -> Row:
    """The row of a line that replaces one, or that both texts have."""
    if any(sign for _, sign in line):
        return Row("changed", old, new, line)
    budget.lines_kept += 1
    return Row("same", old, new, line)


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
