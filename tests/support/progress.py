"""Output of commands without the progress that a terminal or a busy machine shows."""

import re

_line = re.compile(r"^[\w ]+: [\d,]+ of [\d,]+\n", re.MULTILINE)


def without_progress(printed: str) -> str:
    """``printed`` without its lines of progress."""
    return _line.sub("", printed)
