"""Differences between two texts, by lines, in bounded time for any text."""

import difflib
import io
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from builder.model.plural import counted

# Most prompts take fewer than 10,000 steps. Beyond this limit, the rest of the text counts as
# replaced.
STEPS_MAX = 400_000
ITEM_STEPS = 4
CONTEXT_LINES = 3
# As ``git diff --color-moved``: a block with fewer letters and digits counts as changed, not moved.
MOVED_ALNUM_MIN = 20

# As in difflib: the tag, and old[from:to], which becomes new[from:to].
Opcode = tuple[str, int, int, int, int]


class Move(NamedTuple):
    """``size`` lines that moved from ``old`` to ``new``, positions from 0."""

    old: int
    new: int
    size: int

    @property
    def destination(self) -> str:
        return f"{counted(self.size, 'line')} moved to line {self.new + 1}"

    @property
    def origin(self) -> str:
        return f"{counted(self.size, 'line')} moved from line {self.old + 1}"


class LineDiff:
    """Two texts, compared once for all ways to show the difference.

    ``old`` and ``new`` are their lines, with their ends. Lines end only at line feeds, so that a
    diff applies to the bytes as they are. ``groups`` are the changes with lines of context,
    neighbours in one group; empty if the texts are equal. ``away`` and ``arrived`` are the blocks
    among the changes that moved, by their first line in the old and in the new text. ``is_coarse``:
    the comparison took too long, so changed lines may include lines that both texts have. Several
    comparisons may share ``steps``.
    """

    def __init__(self, old: str, new: str, steps: "Steps | None" = None) -> None:
        self.old, self.new = (io.StringIO(text).readlines() for text in (old, new))
        steps = steps or Steps(STEPS_MAX)
        found = _equal(self.old, self.new, _anchors(self.old, self.new, steps), steps)
        self.is_coarse = steps.ran_out
        self.groups: list[list[Opcode]] = list(found.get_grouped_opcodes(CONTEXT_LINES))
        moves = self._find_moves(steps)
        self.away, self.arrived = {one.old: one for one in moves}, {one.new: one for one in moves}

    def unified(self, old_label: str, new_label: str) -> str:
        """The diff from the old text to the new, as ``diff -u`` prints it; empty if they
        are equal.
        """
        return "".join(self._unified_lines(old_label, new_label))

    def _unified_lines(self, old_label: str, new_label: str) -> Iterator[str]:
        if self.groups:
            yield f"--- {old_label}\n+++ {new_label}\n"
        for group in self.groups:
            first, last = group[0], group[-1]
            ranges = f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
            yield f"{ranges}{self._heading(group)}\n"
            for tag, i1, i2, j1, j2 in group:
                if tag == "equal":
                    yield _marked(" ", self.old[i1:i2])
                else:
                    yield _marked("-", self.old[i1:i2])
                    yield _marked("+", self.new[j1:j2])

    def _heading(self, group: list[Opcode]) -> str:
        """The section heading of a hunk, which programs ignore: the first block that moved."""
        for _, i1, i2, j1, j2 in group if self.away else ():
            moved = [self.away[at].destination for at in range(i1, i2) if at in self.away]
            moved += [self.arrived[at].origin for at in range(j1, j2) if at in self.arrived]
            if moved:
                return f" {moved[0]}"
        return ""

    def _find_moves(self, steps: "Steps") -> list[Move]:
        """The blocks with a line that was removed once and added once, in the order of the old
        text. Each changed line is examined a fixed number of times.
        """
        codes = [code for group in self.groups for code in group if code[0] != "equal"]
        gone = {at: self.old[at] for _, i1, i2, _, _ in codes for at in range(i1, i2)}
        come = {at: self.new[at] for _, _, _, j1, j2 in codes for at in range(j1, j2)}
        if not gone or not come or not steps.take(len(gone) + len(come)):
            return []
        there = _once(come.items())
        moves = []
        for line, i in _once(gone.items()).items():
            j = there.get(line, -1)
            if i not in gone or j not in come:
                continue
            while i - 1 in gone and gone[i - 1] == come.get(j - 1):
                i, j = i - 1, j - 1
            move = Move(i, j, 0)
            while i in gone and gone[i] == come.get(j):
                del gone[i], come[j]
                i, j = i + 1, j + 1
            move = move._replace(size=i - move.old)
            if sum(map(str.isalnum, "".join(self.old[move.old : i]))) >= MOVED_ALNUM_MIN:
                moves.append(move)
        return moves


class Steps:
    """The steps that comparisons may still take.

    A step examines a pair of equal items. Examining one item takes ITEM_STEPS. ``ran_out``: a
    comparison needed more than were left.
    """

    def __init__(self, left: int) -> None:
        self.left = left
        self.ran_out = False

    def take(self, count: int) -> bool:
        """Take ``count`` steps; False if fewer are left."""
        if count > self.left:
            self.ran_out = True
            return False
        self.left -= count
        return True


class _Blocks(difflib.SequenceMatcher):
    """Gives the opcodes between blocks that are equal, in their order; neighbours are joined."""

    def __init__(self, blocks: list[difflib.Match]) -> None:
        self.opcodes = None
        self.matching_blocks: list[difflib.Match] = []
        a = b = size = 0
        for next_a, next_b, next_size in blocks:
            if (a + size, b + size) == (next_a, next_b):
                size += next_size
            elif next_size:
                self.matching_blocks.append(difflib.Match(a, b, size))
                a, b, size = next_a, next_b, next_size
        self.matching_blocks += [difflib.Match(a, b, size), blocks[-1]]


class _Matcher(difflib.SequenceMatcher):
    """Finds no match if the search would take more steps than are left."""

    def __init__(self, old: Sequence[str], new: Sequence[str], steps: Steps) -> None:
        # A blank line alone shows nothing of which part of a text became which.
        super().__init__(str.isspace, old, new, autojunk=False)
        self._steps = steps
        # The steps that it takes to look up all items of old before each position.
        self._before = [0, *accumulate(ITEM_STEPS + len(self.b2j.get(item, ())) for item in old)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        # difflib examines each item of old[alo:ahi], and all items of new that are equal to it.
        end = len(self.a) if ahi is None else ahi
        count = self._before[end] - self._before[alo]
        # With only ITEM_STEPS for each, no item is in new.
        if self._steps.take(count) and count > ITEM_STEPS * (end - alo):
            return super().find_longest_match(alo, ahi, blo, bhi)
        return difflib.Match(alo, blo, 0)


def opcodes(old: Sequence[str], new: Sequence[str], steps: Steps) -> list[Opcode]:
    """The opcodes that turn ``old`` into ``new``.

    When ``steps`` run out, the rest counts as replaced. An equal start and an equal end take no
    steps.
    """
    return _equal(old, new, [], steps).get_opcodes()


def _equal(
    old: Sequence[str], new: Sequence[str], anchors: list[tuple[int, int]], steps: Steps
) -> _Blocks:
    """The blocks that both sides have: equal items at the positions of ``anchors``, and those
    before, between and behind them.
    """
    blocks: list[difflib.Match] = []
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *anchors, (len(old), len(new))]):
        if (i + 1, j + 1) != (next_i, next_j):
            found = _equal_blocks(old[i + 1 : next_i], new[j + 1 : next_j], steps)
            blocks += [difflib.Match(i + 1 + a, j + 1 + b, size) for a, b, size in found]
        blocks.append(difflib.Match(next_i, next_j, 1))
    blocks[-1] = difflib.Match(len(old), len(new), 0)
    return _Blocks(blocks)


def _equal_blocks(old: Sequence[str], new: Sequence[str], steps: Steps) -> list[difflib.Match]:
    start = 0
    shortest = min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_end, new_end = len(old) - end, len(new) - end
    blocks = [difflib.Match(0, 0, start)]
    items = old_end - start + new_end - start
    if start < old_end and start < new_end and steps.take(ITEM_STEPS * items):
        matcher = _Matcher(old[start:old_end], new[start:new_end], steps)
        blocks += [
            difflib.Match(start + a, start + b, size)
            for a, b, size in matcher.get_matching_blocks()
        ]
    return [*blocks, difflib.Match(old_end, new_end, end)]


def _anchors(old: Sequence[str], new: Sequence[str], steps: Steps) -> list[tuple[int, int]]:
    """The positions of lines that each side has once and that are not blank: the most of them that
    have one order on both sides (Cohen's patience diff). None if that takes too many steps.
    """
    if old == new or not steps.take(len(old) + len(new)):
        return []
    there = _once(enumerate(new))
    pairs = [(i, there[line]) for line, i in _once(enumerate(old)).items() if line in there]
    # The longest increasing subsequence, by patience sorting: the last pair of each length, and
    # the pair before each.
    lasts: list[int] = []
    before: list[int | None] = []
    tops: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(lasts, j)
        before.append(tops[length - 1] if length else None)
        lasts[length : length + 1], tops[length : length + 1] = [j], [number]
    found = []
    at = tops[-1] if tops else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _once(lines: Iterable[tuple[int, str]]) -> dict[str, int]:
    """The lines that are not blank and stand at one position."""
    places: dict[str, int] = {}
    for at, line in lines:
        places[line] = -1 if line in places else at
    return {line: at for line, at in places.items() if at >= 0 and not line.isspace()}


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: list[str]) -> str:
    text = mark + mark.join(lines) if lines else ""
    return f"{text}\n\\ No newline at end of file\n" if text and text[-1] != "\n" else text
