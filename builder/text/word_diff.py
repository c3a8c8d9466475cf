"""Marks the words that changed between two pieces of text."""

import re
from collections.abc import Iterator
from itertools import groupby

from builder.text.line_diff import Opcode, Steps, opcodes

# A piece of a line, and True if it was added or removed.
Segment = tuple[str, bool]

# Characters that are words by themselves: punctuation; kana, CJK ideographs and their forms of
# punctuation.
_SINGLE = (
    r"!-/:-@\[-\^`{-~\xa1-\xbf\u2010-\u205e"
    r"\u2e80-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
# Characters that change the look of the one before them, so they must not be separated.
_MARK = r"\u0300-\u036f\u200d\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OTHER = rf"[^\s{_SINGLE}]+"
# A word with the space before it, or space at the end.
TOKEN = rf"\s*(?:[{_SINGLE}][{_MARK}]*|{_OTHER}(?:['’]{_OTHER})*)|\s+"
_token = re.compile(TOKEN)


def mark_words(
    old: list[str], new: list[str], steps: Steps
) -> tuple[list[list[Segment]], list[list[Segment]]]:
    """The segments of some lines, and of the lines that replace them; joined, they are the lines.

    All lines of a side are one run of words, so text that only wraps differently has no mark. A
    line that keeps little of its text counts as replaced, so nothing in it is marked. ``steps``: as
    for builder.text.line_diff.opcodes.
    """
    old_tokens, new_tokens = _token.findall("".join(old)), _token.findall("".join(new))
    old_words = [token.lstrip() for token in old_tokens]
    new_words = [token.lstrip() for token in new_tokens]
    if not _have_much_in_common(old_words, new_words):
        return [[(line, False)] for line in old], [[(line, False)] for line in new]
    old_segments: list[Segment] = []
    new_segments: list[Segment] = []
    codes = opcodes(old_words, new_words, steps)
    for is_kept, i1, i2, j1, j2 in _runs(codes, old_words):
        if is_kept:
            for before, after in zip(old_tokens[i1:i2], new_tokens[j1:j2], strict=True):
                is_wrapped = ("\n" in before) != ("\n" in after)
                has_other_space = before != after and not is_wrapped
                old_segments += _split_space(before, has_other_space, False)
                new_segments += _split_space(after, has_other_space, False)
        else:
            # The space before an inserted or removed word usually exists on both sides.
            old_segments += _split_space("".join(old_tokens[i1:i2]), False, True)
            new_segments += _split_space("".join(new_tokens[j1:j2]), False, True)
    return _by_lines(old_segments), _by_lines(new_segments)


def _have_much_in_common(old: list[str], new: list[str]) -> bool:
    old_set, new_set = set(old), set(new)
    return 5 * _chars(old_set & new_set) >= min(_chars(old_set), _chars(new_set)) > 0


def _chars(words: set[str]) -> int:
    return sum(map(len, words))


def _runs(codes: list[Opcode], old: list[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Runs of kept and changed words, in turn. Punctuation alone does not separate two changes."""

    def is_kept(numbered: tuple[int, Opcode]) -> bool:
        number, (tag, i1, i2, _, _) = numbered
        is_at_end = number in (0, len(codes) - 1)
        return tag == "equal" and (is_at_end or any(word[:1].isalnum() for word in old[i1:i2]))

    for kept, run in groupby(enumerate(codes), key=is_kept):
        together = [code for _, code in run]
        (_, i1, _, j1, _), (_, _, i2, _, j2) = together[0], together[-1]
        yield kept, i1, i2, j1, j2


def _split_space(text: str, is_space_changed: bool, is_rest_changed: bool) -> list[Segment]:
    rest = text.lstrip()
    if not rest or is_space_changed == is_rest_changed:
        return [(text, is_space_changed or is_rest_changed)] if text else []
    space = text[: len(text) - len(rest)]
    segments = [(space, is_space_changed)] if space else []
    return [*segments, (rest, is_rest_changed)]


def _by_lines(segments: list[Segment]) -> list[list[Segment]]:
    lines: list[list[Segment]] = [[]]
    for is_changed, pieces in groupby(segments, key=lambda segment: segment[1]):
        first, *others = "".join(text for text, _ in pieces).split("\n")
        for text in others:
            lines[-1].append((first + "\n", is_changed))
            lines.append([])
            first = text
        if first:
            lines[-1].append((first, is_changed))
    if not lines[-1]:
        lines.pop()
    return [_marked_if_akin(line) for line in lines]


def _marked_if_akin(line: list[Segment]) -> list[Segment]:
    kept = sum(len(text) for text, is_changed in line if not is_changed and not text.isspace())
    if kept * 3 >= sum(len(text) for text, _ in line):
        return line
    return [("".join(text for text, _ in line), False)]
