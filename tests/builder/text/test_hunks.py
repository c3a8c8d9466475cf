"""Readable differences: exact, marked by words, bounded."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.text import hunks
from builder.text.hunks import Row
from builder.text.line_diff import LineDiff
from builder.text.word_diff import mark_words
from tests.builder.text.test_line_diff import HOSTILE_PAIRS, limited_work, slow_pair, texts

sentences = st.builds(
    "".join,
    st.lists(
        st.sampled_from(
            ["a ", "the ", "fox", "don't", "  ", "\n", "\r\n", "\n\n", ".", "{{x}}", "检查", "é"]
        ),
        max_size=40,
    ),
)  # fmt: skip


def rows_of(old: str, new: str) -> list[Row]:
    return hunks.readable(LineDiff(old, new)).rows


def joined(row: Row, without: str = "") -> str:
    return "".join(text for text, sign in row.segments if sign != without or not sign)


def restore(old: str, rows: list[Row]) -> tuple[str, str]:
    """Both texts, from the rows and what the gaps leave out, held to the numbers of the lines."""
    left_out = LineDiff(old, "").old
    before, after = [], []
    for row in rows:
        if row.kind == "away":
            before += left_out[len(before) : len(before) + row.left_out]
            continue
        if row.kind == "arrived":
            continue
        if row.kind == "gap":
            lines = left_out[len(before) : len(before) + row.left_out]
            assert len(lines) == row.left_out > 0
            assert row.folded == lines
            before += lines
            after += lines
            continue
        if row.kind not in ("added", "moved"):
            before.append(joined(row, "+"))
            assert row.old_number == len(before)
        if row.kind != "removed":
            after.append(joined(row, "-"))
            assert row.new_number == len(after)
        assert (row.old_number is None) == (row.kind == "added")
        assert (row.new_number is None) == (row.kind == "removed")
        if row.kind in ("removed", "added"):
            assert row.is_unended is not joined(row).endswith("\n")
    return "".join(before), "".join(after)


@given(texts | sentences | st.text(), texts | sentences | st.text())
def test_rows_are_both_texts(old, new):
    rows = rows_of(old, new)
    if old == new:
        assert rows == []
    else:
        assert restore(old, rows) == (old, new)
    for row in rows:
        assert all(text for text, _ in row.segments or ())
        assert all(one[1] is not other[1] for one, other in pairwise(row.segments or ()))


def test_lines_are_paired_in_the_whole_of_a_changed_block():
    old = "## Write it\n\nUse a warm tone with the customer.\nBe brief.\n"
    new = (
        "## Write it Quote the customer\n\nAsk first.\nUse a warm, kind tone with each customer.\n"
    )
    rows = [(row.kind, row.old_number, row.new_number) for row in rows_of(old, new)]
    assert rows == [
        ("changed", 1, 1), ("same", 2, 2), ("added", None, 3), ("changed", 3, 4),
        ("removed", 4, None),
    ]  # fmt: skip
    assert rows_of(old, new)[0].segments[1] == (" Quote the customer", "+")


RULES = "".join(f"Rule {number} of the house.\n" for number in range(12))
SECTION = "## Sources\n\nRead the ticket first.\n\n"
MOVED_SECTION = f"{RULES}\n{SECTION}## End\n", f"{SECTION}{RULES}\n## End\n"


def test_a_block_that_moved_is_shown_once():
    old, new = MOVED_SECTION
    found = hunks.readable(LineDiff(old, new))
    assert (found.removed, found.added) == (0, 0)
    kinds = [row.kind for row in found.rows]
    assert kinds == ["arrived", *["moved"] * 4, *["same"] * 3, "gap", *["same"] * 3, "away", "same"]


def test_a_changed_line_beside_a_block_that_moved_keeps_its_other():
    old = f"{RULES}Be kind to the customer.\n{SECTION}## End\n"
    new = f"{SECTION}{RULES}Be very kind to the customer.\n## End\n"
    rows = [row for row in rows_of(old, new) if row.kind in ("changed", "away")]
    assert [(row.kind, row.old_number, row.new_number) for row in rows] == [
        ("changed", 13, 17), ("away", 14, 1),
    ]  # fmt: skip


def test_blank_lines_between_changes_do_not_count():
    found = hunks.readable(LineDiff("Be kind now.\n\nBe quick now.\n", "Be kind.\n\nBe quick.\n"))
    assert [row.kind for row in found.rows] == ["changed", "same", "changed"]
    assert hunks.counts(found) == "+2 −2" and hunks.counts(hunks.NO_LINES) == ""


def test_unchanged_lines_open_until_they_are_too_many():
    lines = "".join(f"{number}\n" for number in range(hunks.FOLDED_LINES_MAX + 4))
    few, many = (rows_of(f"{text}old\n", f"{text}new\n")[0] for text in (lines[2:], lines + "x\n"))
    assert (len(few.folded), few.left_out) == (hunks.FOLDED_LINES_MAX, hunks.FOLDED_LINES_MAX)
    assert (many.folded, many.left_out) == ((), hunks.FOLDED_LINES_MAX + 2)
    long = rows_of("long " * 9_000 + "\na\nb\nc\nold\n", "long " * 9_000 + "\na\nb\nc\nnew\n")
    assert long[0].folded == () and long[0].left_out == 1


def marked(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines that changed, with brackets around what is marked."""
    lines = {"-": [], "+": []}
    for row in rows_of(old, new):
        for sign, other in ("-", "+"), ("+", "-"):
            if row.kind in ("changed", {"-": "removed", "+": "added"}[sign]):
                kept = [one for one in row.segments if one[1] != other]
                lines[sign].append("".join(f"[{text}]" if mark else text for text, mark in kept))
    return lines["-"], lines["+"]


@pytest.mark.parametrize(
    ("old", "new", "removed", "added"),
    [
        ("Be kind to all.\n", "Be very kind to all.\n",
         ["Be kind to all.\n"], ["Be[ very] kind to all.\n"]),
        ("A slow query is bad.\n", "A slow query is an annoyance.\n",
         ["A slow query is [bad].\n"], ["A slow query is [an annoyance].\n"]),
        # CJK has no spaces to find words by.
        ("请检查这段代码的错误。\n", "请检查这段程序的错误。\n",
         ["请检查这段[代码]的错误。\n"], ["请检查这段[程序]的错误。\n"]),
        # A variable is one word.
        ("Use {{name}} for it.\n", "Use {{title}} for it.\n",
         ["Use [{{name}}] for it.\n"], ["Use [{{title}}] for it.\n"]),
        # Wrapped elsewhere, each line is another one.
        ("The quick brown fox jumps\nover the lazy dog.\n",
         "The quick brown\nfox jumps over the lazy dog.\n",
         ["[The quick brown fox jumps\n]", "[over the lazy dog.\n]"],
         ["[The quick brown\n]", "[fox jumps over the lazy dog.\n]"]),
        # White space alone.
        ("if x:\n  go on\n", "if x:\n    go on\n", ["[  ]go on\n"], ["[    ]go on\n"]),
        ("Say so.\r\nNow.\n", "Say so.\nNow.\n", ["Say so.[\r\n]"], ["Say so.[\n]"]),
        # Another line altogether, and one that is new beside one that is not.
        ("foo bar\n", "completely different thing\n",
         ["[foo bar\n]"], ["[completely different thing\n]"]),
        # A line that keeps a third of the one before marks words; with less, neither does.
        ("Alpha beta gamma deltas\n", "Alpha beta omega sigmas\n",
         ["Alpha beta [gamma deltas]\n"], ["Alpha beta [omega sigmas]\n"]),
        ("Be very kind to {{whom}}.\n", "Be brief.\n",
         ["[Be very kind to {{whom}}.\n]"], ["[Be brief.\n]"]),
        # A line with another before it, and words after those it had, is removed as a whole.
        ("Say what it costs.\n", "Check the data.\n\nSay what it costs, also for reads.\n",
         ["[Say what it costs.\n]"],
         ["[Check the data.\n]", "[\n]", "Say what it costs[, also for reads].\n"]),
        ("Answer in one line.\n", "Answer in two lines.\nNever guess; ask for what is missing.\n",
         ["Answer in [one line].\n"],
         ["Answer in [two lines].\n", "[Never guess; ask for what is missing.\n]"]),
        # Punctuation that both have does not tear two changes apart.
        ("Keep this order: alpha, beta and all\n", "Keep this order: gamma, delta and all\n",
         ["Keep this order: [alpha, beta] and all\n"],
         ["Keep this order: [gamma, delta] and all\n"]),
        # No mark is parted from what it belongs to.
        ("Cafe\u0301 one two three\n", "Cafe one two three\n",
         ["[Cafe\u0301] one two three\n"], ["[Cafe] one two three\n"]),
    ],
)  # fmt: skip
def test_words_that_changed_are_marked(old, new, removed, added):
    assert marked(old, new) == (removed, added)


def test_what_rows_look_like():
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("10\n", "ten\n").removesuffix("\n")
    rows = rows_of(old, new)
    assert [(row.kind, row.old_number, row.new_number, row.left_out) for row in rows] == [
        ("gap", 1, 1, 6),
        ("same", 7, 7, 0), ("same", 8, 8, 0), ("same", 9, 9, 0),
        ("removed", 10, None, 0), ("added", None, 10, 0),
        ("same", 11, 11, 0), ("same", 12, 12, 0), ("same", 13, 13, 0),
        ("gap", 14, 14, 3),
        ("same", 17, 17, 0), ("same", 18, 18, 0), ("same", 19, 19, 0),
        ("removed", 20, None, 0), ("added", None, 20, 0),
    ]  # fmt: skip
    assert [row.is_unended for row in rows[-2:]] == [False, True]


def test_a_line_and_the_one_that_replaces_it_are_one_row():
    rows = rows_of("Say {{a}} so.\nBe kind.\nEnd", "Say so at once.\nBe very kind.\nEnd")
    assert [row.segments for row in rows[:2]] == [
        [("Say", ""), (" {{a}}", "-"), (" so", ""), (" at once", "+"), (".\n", "")],
        [("Be", ""), (" very", "+"), (" kind.\n", "")],
    ]
    numbers = [(row.kind, row.old_number, row.new_number) for row in rows[:2]]
    assert numbers == [("changed", 1, 1), ("changed", 2, 2)]


chance = random.Random(2)


def some_words(count: int, kinds: int) -> str:
    return " ".join(f"w{chance.randrange(kinds)}" for _ in range(count))


SLOW_WORDS = {
    "few kinds of words": (some_words(5_000, 2), some_words(5_000, 2)),
    "many kinds of words": (some_words(900, 300), some_words(900, 300)),
    "many blocks": tuple(
        "\n".join(f"line {number}\n{some_words(30, 5)}" for number in range(300)) for _ in range(2)
    ),
    "repeats": tuple(text.replace("\n", " ") for text in slow_pair(12, 40)),
    "repeats in many places": tuple(
        "".join(f"line {number}\n{text.replace(chr(10), ' ')}\n" for number in range(20))
        for text in slow_pair(4, 5)
    ),
    "CJK": tuple(
        "".join(chr(0x4E00 + chance.randrange(300)) for _ in range(9_000)) for _ in range(2)
    ),
    "a line of 144 KB": ("x" * 144_000, "x" * 143_999 + "y"),
    "spaces": (" " * 9_000 + "a", " " * 9_000 + "b a"),
}


@pytest.mark.parametrize(
    ("old", "new"), (HOSTILE_PAIRS | SLOW_WORDS).values(), ids=HOSTILE_PAIRS | SLOW_WORDS
)
def test_no_text_makes_it_long(monkeypatch, old, new):
    line_diff = LineDiff(old, new)
    chars = []

    def watched_marks(before, after, steps):
        chars.append(len(before + after))
        return mark_words(before, after, steps)

    monkeypatch.setattr(hunks, "mark_words", watched_marks)
    with limited_work(hunks.WORD_STEPS_MAX, hunks.COMPARED_CHARS_MAX):
        rows, removed, added, _ = hunks.readable(line_diff)
    assert sum(chars) <= hunks.COMPARED_CHARS_MAX
    assert len(rows) <= hunks.ROWS_MAX + 1
    weights = {"removed": 1, "added": 1, "changed": 2, "moved": 1}
    changed = sum(weights.get(row.kind, 0) for row in rows)
    rest = rows[-1].left_out if rows[-1].kind == "rest" else 0
    moved = sum(one.size for one in line_diff.away.values())
    assert changed + rest == removed + added + moved
    lines = [line for line in line_diff.unified("", "").split("\n")[2:] if line[:1] in ("-", "+")]
    assert removed + added + 2 * moved <= len(lines)
