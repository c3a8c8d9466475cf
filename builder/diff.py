"""Unified diffs between two versions, in time that no text can blow up."""

import difflib
from collections import Counter
from collections.abc import Iterator

# difflib's time grows with the number of pairs of equal lines, times the depth of its recursion.
# Ordinary prompts stay far below; a text made to be slow is shown as replaced.
EQUAL_PAIRS_MAX = 50_000
LINES_MAX = 5_000
CONTEXT_LINES = 3


def unified_diff(old: str, new: str, old_label: str, new_label: str) -> str:
    """What turns ``old`` into ``new``, as ``diff -u`` prints it; empty when they are equal.

    Lines end at line feeds only, so that the diff applies to the bytes as they are.
    """
    if old == new:
        return ""
    return "".join(_lines(_split(old), _split(new), old_label, new_label))


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _lines(old: list[str], new: list[str], old_label: str, new_label: str) -> Iterator[str]:
    yield f"--- {old_label}\n+++ {new_label}\n"
    for group in _grouped(_opcodes(old, new)):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_marked(" ", line) for line in old[i1:i2])
            else:
                yield from (_marked("-", line) for line in old[i1:i2])
                yield from (_marked("+", line) for line in new[j1:j2])


Opcode = tuple[str, int, int, int, int]


def _opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    start = 0
    shortest = min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_end, new_end = len(old) - end, len(new) - end
    middle_old, middle_new = old[start:old_end], new[start:new_end]
    codes: list[Opcode] = [("equal", 0, start, 0, start)] if start else []
    if middle_old and middle_new and _is_cheap(middle_old, middle_new):
        matcher = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        codes += [
            (tag, i1 + start, i2 + start, j1 + start, j2 + start)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        ]
    else:
        codes.append(("replace", start, old_end, start, new_end))
    if end:
        codes.append(("equal", old_end, len(old), new_end, len(new)))
    return codes


def _is_cheap(old: list[str], new: list[str]) -> bool:
    if len(old) + len(new) > LINES_MAX:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= EQUAL_PAIRS_MAX


def _grouped(codes: list[Opcode]) -> Iterator[list[Opcode]]:
    matcher = difflib.SequenceMatcher()
    matcher.opcodes = codes
    return matcher.get_grouped_opcodes(CONTEXT_LINES)


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
