"""Unified diffs: they apply, and no text makes them take long."""

import difflib
import random
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder.model.records import CONTENT_BYTES_MAX
from builder.text import line_diff
from builder.text.line_diff import LineDiff, Steps, opcodes

lines = st.sampled_from(
    ["a", "b", "c", "", "a\r", "--- x", "+++ x", "@@ -1 +1 @@", "\\ No newline", " ", "é"]
)
texts = st.builds(
    lambda parts, end: "\n".join(parts) + end,
    st.lists(lines, max_size=30),
    st.sampled_from(["", "\n", "\r\n", "\r", "\n\n"]),
)


def changes(old: str, new: str) -> str:
    return LineDiff(old, new).unified("o/n/1.0.0.md", "o/n/1.1.0.md")


def apply_diff(old: str, text: str) -> str:
    """Apply a unified diff strictly: every line of context has to be where it is said to be."""
    if not text:
        return old
    source = old.split("\n")
    source = [line + "\n" for line in source[:-1]] + ([source[-1]] if source[-1] else [])
    assert text.startswith("--- o/n/1.0.0.md\n+++ o/n/1.1.0.md\n@@ ")
    result, position = [], 0
    rows = deque(text.split("\n")[2:-1])
    while rows:
        start, length, new_start, new_length = hunk_range(rows.popleft())
        begin = start - 1 if length else start
        result += source[position:begin]
        position = begin
        assert len(result) == (new_start - 1 if new_length else new_start)
        while length or new_length:
            mark, line = rows[0][0], rows.popleft()[1:] + "\n"
            if rows and rows[0].startswith("\\ No newline"):
                rows.popleft()
                line = line[:-1]
            if mark != "+":
                assert source[position] == line
                position += 1
                length -= 1
            if mark != "-":
                result.append(line)
                new_length -= 1
    return "".join(result + source[position:])


def hunk_range(row: str) -> tuple[int, int, int, int]:
    found = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: .*)?", row)
    assert found, row
    old, old_length, new, new_length = found.groups("1")
    return int(old), int(old_length), int(new), int(new_length)


@given(texts | st.text(), texts | st.text())
@example("", "a")
@example("a", "")
@example("a", "a\n")
@example("a\n", "a")
@example("a\r\nb\r\n", "a\nb\n")
@example("\n", "")
@example("a\x0bb\u2028c\rd\n", "a\x0bb\u2028c\rD\n")
def test_a_diff_turns_old_into_new(old, new):
    text = changes(old, new)
    assert apply_diff(old, text) == new and bool(text) is (old != new)


@contextmanager
def limited_work(steps: int, items: int) -> Iterator[None]:
    """Fails where difflib does more than ``steps`` allow for this many items in both texts.

    Counts the lines of Python that it runs: at most eight a step, and some for each item.
    """
    left = 8 * steps + 60 * items + 200

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != difflib.__file__:
            return None
        left -= event == "line"
        assert left >= 0, f"more than {steps} steps"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def repeats(symbols: list[int], separator: str) -> str:
    """A line for each symbol; with a separator, each is followed by a line that occurs once."""
    return "".join(
        f"{symbol}\n" + (f"{separator}{number}\n" if separator else "")
        for number, symbol in enumerate(symbols)
    )


def slow_pair(symbols: int, times: int, *, is_sorted: bool = False) -> tuple[str, str]:
    """Two texts that have the same lines in the same order, each between two lines of its own."""
    order = [*range(symbols)] * times
    if is_sorted:
        order.sort()
    return repeats(order, "old "), repeats(order, "new ")


few_symbols = st.lists(st.integers(0, 3), max_size=40) | st.builds(
    lambda symbols, times: symbols * times,
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.integers(1, 30),
)


@given(few_symbols, few_symbols, st.booleans(), st.integers(0, 5_000))
@example([*range(6)] * 30, [*range(6)] * 30, True, 10_000)
def test_no_more_steps_are_taken_than_there_are(old_symbols, new_symbols, is_separated, most):
    old = repeats(old_symbols, "old " if is_separated else "").splitlines()
    new = repeats(new_symbols, "new " if is_separated else "").splitlines()
    steps = Steps(most)
    with limited_work(most, len(old) + len(new)):
        codes = opcodes(old, new, steps)
    assert 0 <= steps.left <= most
    assert [line for _, _, _, j1, j2 in codes for line in new[j1:j2]] == new
    assert [line for _, i1, i2, _, _ in codes for line in old[i1:i2]] == old
    assert all(old[i1:i2] == new[j1:j2] for tag, i1, i2, j1, j2 in codes if tag == "equal")


def test_what_a_diff_looks_like():
    assert changes("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf") == (
        "--- o/n/1.0.0.md\n+++ o/n/1.1.0.md\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n-f\n+E\n+f\n"
        "\\ No newline at end of file\n"
    )


FULL = CONTENT_BYTES_MAX
random_words = random.Random(1)
HOSTILE_PAIRS = {
    "all lines equal": ("a\n" * (FULL // 2), "a\n" * (FULL // 2 - 1) + "b\n"),
    "equal lines, other ends": ("x\n" + "a\n" * 100_000 + "y\n", "y\n" + "a\n" * 99_000 + "x\n"),
    "two lines in turn": ("a\nb\n" * (FULL // 4), "b\na\n" * (FULL // 4)),
    "shuffled": tuple(
        "\n".join(random_words.sample([str(n) for n in range(40_000)], 40_000)) for _ in range(2)
    ),
    "shuffled below the limit of lines": tuple(
        "\n".join(random_words.sample([str(n) for n in range(2_400)], 2_400)) for _ in range(2)
    ),
    "reversed": (
        "\n".join(str(n) for n in range(2_400)),
        "\n".join(str(n) for n in reversed(range(2_400))),
    ),
    "many repeats below the limit": ("a\nb\n" * 110, "b\na\n" * 110),
    "one long line": ("a" * FULL, "b" * FULL),
    "one line of a megabyte": ("a " * 500_000, "b " * 500_000),
    "no common line": tuple(
        "".join(f"{side} {number:09}\n" for number in range(FULL // 14)) for side in "ab"
    ),
    "ten thousand equal lines": ("Be kind.\n" * 10_000, "Be kind.\n" * 9_000),
    "white space": (" \n\t\n\n" * (FULL // 5), "\t\n \n\n" * (FULL // 5)),
    "all blocks moved": tuple(
        "".join(f"This is the line number {n}\n" for n in random_words.sample(range(9_000), 9_000))
        for _ in range(2)
    ),
    "empty lines": ("\n" * FULL, "\n" * (FULL - 1)),
    "from nothing": ("", "a\n" * (FULL // 2)),
    "to nothing": ("a\n" * (FULL // 2), ""),
    "carriage returns": ("\r" * FULL, "\r" * (FULL - 1)),
    "repeats in turns": slow_pair(31, 40),
    "repeats in a row": slow_pair(31, 40, is_sorted=True),
    "repeats of full size": slow_pair(200, 90),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), HOSTILE_PAIRS.values(), ids=HOSTILE_PAIRS)
def test_hostile_texts_get_a_diff_that_applies(monkeypatch, old, new):
    # With this limit, as in production, counting takes longer than comparing.
    monkeypatch.setattr(line_diff, "STEPS_MAX", 20_000)
    with limited_work(line_diff.STEPS_MAX, old.count("\n") + new.count("\n")):
        text = changes(old, new)
    assert apply_diff(old, text) == new


def test_a_section_that_moved_is_one_block_removed_and_one_added():
    one, two, three = (f"## {name}\n\n{name} begins here.\n{name} ends here.\n\n" for name in "ABC")
    text = changes(f"# Title\n\n{one}{two}{three}", f"# Title\n\n{three}{one}{two}")
    changed = [line for line in text.splitlines()[2:] if line[:1] in "+-"]
    moved = three.splitlines()
    assert changed == [f"+{line}" for line in moved] + [f"-{line}" for line in moved]
    assert "@@ 5 lines moved from line 13\n" in text and "@@ 5 lines moved to line 3\n" in text


@pytest.mark.parametrize(
    ("moved", "is_move"),
    [
        ("Answer in the language of the question.\n", True),
        ("- one apple\n- two pears\n- nine\n", True), ("Be brief.\n", False), ("---\n", False),
        ("\n\n\n", False), ("\n" * 9 + "Be brief.\n" + "\n" * 9, False),
    ],
)  # fmt: skip
def test_a_block_moved_if_it_has_enough_letters(moved, is_move):
    rest = "".join(f"Rule {number} of the house.\n" for number in range(20))
    found = LineDiff(f"{moved}{rest}End\n", f"{rest}{moved}End\n")
    count = moved.count("\n")
    assert [*found.away.values()] == [*found.arrived.values()] == [(0, 20, count)] * is_move


def test_what_is_not_reached_does_not_spoil_the_rest():
    old, new = slow_pair(31, 40)
    text = changes(f"{old}\n== end ==\nold end\n", f"{new}\n== end ==\nnew end\n")
    assert text.endswith("\n \n == end ==\n-old end\n+new end\n")
