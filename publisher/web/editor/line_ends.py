"""Line ends: a browser's text field has only one kind. Pure.

A form turns every line end into CR LF
(https://html.spec.whatwg.org/#convert-to-a-list-of-name-value-pairs).
Here, all texts of a form have LF. The published text gets the line ends of the version that the
author began with, line by line, so that an edit changes nothing else.
"""

import re

from builder.text.line_diff import Steps, opcodes

# Most prompts take fewer than 10,000 steps. Beyond this limit, all further lines get the first
# line's end.
STEPS_MAX = 400_000

_end = re.compile(r"\r\n|\r|\n")


def with_line_feeds(text: str) -> str:
    """Returns ``text`` as a form has it, with LF as its only line end."""
    return _end.sub("\n", text)


def restore_line_ends(text: str, base: str) -> str:
    """Returns ``text`` with the line ends that the same lines have in ``base``. A new line gets
    that of the first line there.
    """
    if "\r" not in base:
        return text
    known = _end.findall(base)
    usual = known[0]
    if all(end == usual for end in known):
        return text.replace("\n", usual)
    old, new = with_line_feeds(base).split("\n"), text.split("\n")
    # The last line has no end.
    ends = [usual] * len(new)
    for tag, i1, i2, j1, j2 in opcodes(old, new, Steps(STEPS_MAX)):
        # A line that replaces another one gets its end.
        if tag in ("equal", "replace"):
            for old_line, new_line in zip(range(i1, i2), range(j1, j2), strict=False):
                ends[new_line] = known[old_line] if old_line < len(known) else usual
    ends[-1] = ""
    return "".join(line + end for line, end in zip(new, ends, strict=True))
