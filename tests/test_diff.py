"""Unified diffs: they apply, and no text makes them take long."""

import difflib
import random
import re
import subprocess
from collections import deque

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builder import diff
from builder.diff import LineDiff
from builder.records import CONTENT_BYTES_MAX

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
    found = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", row)
    assert found, row
    old, old_length, new, new_length = found.groups("1")
    return int(old), int(old_length), int(new), int(new_length)


@given(texts, texts)
@example("", "a")
@example("a", "")
@example("a", "a\n")
@example("a\n", "a")
@example("a\r\nb\r\n", "a\nb\n")
@example("\n", "")
def test_a_diff_turns_old_into_new(old, new):
    assert apply_diff(old, changes(old, new)) == new


@given(st.text(), st.text())
def test_any_characters_pass(old, new):
    assert apply_diff(old, changes(old, new)) == new


@given(texts, texts)
def test_the_fallback_for_slow_texts_applies_too(old, new):
    limit, diff.EQUAL_PAIRS_MAX = diff.EQUAL_PAIRS_MAX, -1
    try:
        assert apply_diff(old, changes(old, new)) == new
    finally:
        diff.EQUAL_PAIRS_MAX = limit


@settings(max_examples=30)
@given(old=texts, new=texts)
def test_git_agrees(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("patch")
    (folder / "prompt").write_bytes(old.encode())
    (folder / "diff").write_bytes(LineDiff(old, new).unified("prompt", "prompt").encode())
    if old != new:
        command = ["git", "apply", "-p0", "--unidiff-zero", "--whitespace=nowarn", "diff"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        assert (folder / "prompt").read_bytes() == new.encode()


def test_equal_texts_have_an_empty_diff():
    assert changes("a\n", "a\n") == changes("", "") == ""


def test_what_a_diff_looks_like():
    assert changes("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf") == (
        "--- o/n/1.0.0.md\n+++ o/n/1.1.0.md\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n-f\n+E\n+f\n"
        "\\ No newline at end of file\n"
    )


def test_lines_end_at_line_feeds_only():
    assert changes("a\x0bb\u2028c\rd\n", "a\x0bb\u2028c\rD\n").count("\n") == 5


@given(texts, texts)
def test_ordinary_texts_get_the_diff_of_difflib(old, new):
    theirs = list(
        difflib.unified_diff(old.split("\n"), new.split("\n"), "a", "b", lineterm="", n=3)
    )
    ours = changes(old, new).splitlines()
    assert bool(theirs) is bool(ours)


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
    "empty lines": ("\n" * FULL, "\n" * (FULL - 1)),
    "from nothing": ("", "a\n" * (FULL // 2)),
    "to nothing": ("a\n" * (FULL // 2), ""),
    "carriage returns": ("\r" * FULL, "\r" * (FULL - 1)),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), HOSTILE_PAIRS.values(), ids=HOSTILE_PAIRS)
def test_hostile_texts_get_a_diff_that_applies(old, new):
    assert apply_diff(old, changes(old, new)) == new
