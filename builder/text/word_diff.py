"""Marks the words that changed between two pieces of text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal

from builder.text.line_diff import Opcode, Steps, opcodes

# A piece of two texts: "" if both have it, "-" if it was removed, "+" if it was added. "<" and ">":
# space that only the old or the new text has, because it wraps lines elsewhere.
Piece = tuple[str, Literal["", "-", "+", "<", ">"]]

# Characters that are words by themselves: punctuation; kana, CJK ideographs and their forms of
# punctuation.
_SINGLE = (
    r"!-/:-@\[-\^`{-~\xa1-\xbf\u2010-\u205e"
    r"\u2e80-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
# Characters that change the look of the one before them, so they must not be separated.
_MARK = r"\u0300-\u036f\u200d\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OTHER = rf"[^\s{_SINGLE}]+"
_VARIABLE = r"\{\{[A-Za-z_][A-Za-z0-9_]{0,63}\}\}"
# A variable or word with the space before it, or space at the end.
_token = re.compile(rf"\s*(?:{_VARIABLE}|[{_SINGLE}][{_MARK}]*|{_OTHER}(?:['’]{_OTHER})*)|\s+")


def mark_words(old: str, new: str, steps: Steps) -> list[Piece] | None:
    """The pieces of some lines, and of the lines that replace them, as one text; None if they have
    little in common. ``steps``: as for builder.text.line_diff.opcodes.
    """
    old_tokens, new_tokens = _token.findall(old), _token.findall(new)
    old_words, new_words = ([*map(str.lstrip, one)] for one in (old_tokens, new_tokens))
    if not _have_much_in_common(old_words, new_words):
        return None
    pieces: list[Piece] = []
    codes = opcodes(old_words, new_words, steps)
    for is_kept, i1, i2, j1, j2 in _runs(codes, old_words):
        if is_kept:
            for before, after, word in zip(
                old_tokens[i1:i2], new_tokens[j1:j2], old_words[i1:i2], strict=True
            ):
                is_wrapped = ("\n" in before) != ("\n" in after)
                pieces += _spaces(before, after, "<>" if is_wrapped else "-+")
                pieces.append((word, ""))
        else:
            # The space before an inserted or removed word usually exists on both sides.
            gone, come = "".join(old_tokens[i1:i2]), "".join(new_tokens[j1:j2])
            signs = ("<" if gone.lstrip() else "-") + (">" if come.lstrip() else "+")
            pieces += _spaces(gone, come, signs)
            pieces += [(gone.lstrip(), "-"), (come.lstrip(), "+")]
    return [piece for piece in pieces if piece[0]]


def pair_lines(old: Sequence[str], new: Sequence[str], steps: Steps) -> list[tuple[int, int]]:
    """The positions of lines and of those that each became, in order: pairs of lines that end
    alike, where the longer one has half of the other's words, chosen for the most words in common;
    none if that takes too many steps.
    """
    if not steps.take(len(old) * len(new)):
        return []
    words, others = ([_words_of(line) for line in side] for side in (old, new))
    # The most that old[i:] and new[j:] have in common.
    most = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            left_out = max(most[i + 1][j], most[i][j + 1])
            most[i][j] = max(left_out, _common(words[i], others[j]) + most[i + 1][j + 1])
    pairs = []
    i = j = 0
    while i < len(old) and j < len(new):
        if most[i][j] == most[i + 1][j]:
            i += 1
        elif most[i][j] == most[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


def split_lines(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """The lines of pieces that have one sign or none; those without text are left out."""
    lines: list[list[Piece]] = [[]]
    for sign, run in groupby(pieces, key=lambda piece: piece[1]):
        first, *others = "".join(text for text, _ in run).split("\n")
        for text in others:
            lines[-1].append((first + "\n", sign))
            lines.append([])
            first = text
        if first:
            lines[-1].append((first, sign))
    return lines if lines[-1] else lines[:-1]


def is_rewrapped(pieces: Sequence[Piece]) -> bool:
    """True if a word that both texts have begins a line in one of them alone."""
    words = [one for one in pieces if one[1] in ("<", ">") or not one[0].isspace()]
    return any(sign in ("<", ">") and not after for (_, sign), (_, after) in pairwise(words))


def is_akin(line: Sequence[Piece]) -> bool:
    """False if a line keeps so little of a side that it counts as another line."""
    kept = sum(len(text) for text, sign in line if not sign and not text.isspace())
    return all(
        kept * 3 >= sum(len(text) for text, sign in line if sign in ("", side)) for side in "-+"
    )


def whole(line: Sequence[Piece]) -> list[Piece]:
    """A line that is removed, and one that is added, with no piece in common."""
    return [("".join(text for text, sign in line if sign in ("", side)), side) for side in "-+"]


def _have_much_in_common(old: list[str], new: list[str]) -> bool:
    old_set, new_set = set(old), set(new)
    return 5 * _chars(old_set & new_set) >= min(_chars(old_set), _chars(new_set)) > 0


def _words_of(line: str) -> tuple[str, set[str]]:
    """The end of a line, and its words and variables."""
    words = {
        word for word in map(str.lstrip, _token.findall(line)) if word.lstrip("{")[:1].isalnum()
    }
    return line[len(line.rstrip("\r\n")) :], words


def _common(one: tuple[str, set[str]], other: tuple[str, set[str]]) -> int:
    """The letters of the words in common; 0 if they are less than half of the shorter line's."""
    (end, words), (other_end, others) = one, other
    common = _chars(words & others)
    is_pair = end == other_end and 2 * common >= min(_chars(words), _chars(others))
    return common if is_pair else 0


def _chars(words: set[str]) -> int:
    return sum(map(len, words))


def _runs(codes: list[Opcode], old: list[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Runs of kept and changed words, in turn. Punctuation alone does not separate two changes."""

    def is_kept(numbered: tuple[int, Opcode]) -> bool:
        number, (tag, i1, i2, _, _) = numbered
        is_at_end = number in (0, len(codes) - 1)
        return tag == "equal" and (
            is_at_end or any(word.lstrip("{")[:1].isalnum() for word in old[i1:i2])
        )

    for kept, run in groupby(enumerate(codes), key=is_kept):
        together = [code for _, code in run]
        (_, i1, _, j1, _), (_, _, i2, _, j2) = together[0], together[-1]
        yield kept, i1, i2, j1, j2


def _spaces(old: str, new: str, signs: str) -> list[Piece]:
    """The white space at the start of two tokens."""
    before, after = (text[: len(text) - len(text.lstrip())] for text in (old, new))
    return [(before, "")] if before == after else [(before, signs[0]), (after, signs[1])]
