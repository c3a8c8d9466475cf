"""The difference of two texts, for the account pages; templates/difference.html shows it:

``frame.render("some.html", difference=compare(old, new, "1.0.0", "1.1.0"))``, and in the template
``{{ difference_of(difference) }}``.
"""

from typing import NamedTuple

from builder.render.hunks import Row, readable
from builder.text.line_diff import LineDiff

_COARSE = (
    "These texts repeat too many lines to compare each of them. Some lines that both texts have "
    "are shown as removed and added again."
)
_UNMARKED = (
    "Too much text changed to mark every word that changed. Some lines are shown as removed and "
    "added, without marks."
)


class TextDifference(NamedTuple):
    """The changes from the text called ``old_name`` to the one called ``new_name``.

    ``rows`` is empty where the texts are equal. ``limits`` are sentences about changes that are not
    shown to the line, or to the word.
    """

    old_name: str
    new_name: str
    rows: list[Row]
    limits: list[str]


def compare(old: str, new: str, old_name: str, new_name: str) -> TextDifference:
    """Compares two texts, to the word.

    For any texts, it takes no more steps than builder.text.line_diff and builder.render.hunks
    allow, plus time in proportion to their length. So callers limit only the length. A name is what
    people call a text: a version, or such as "your draft".
    """
    diff = LineDiff(old, new)
    rows, has_marked_all = readable(diff)
    limits = [_COARSE] if diff.is_coarse else [] if has_marked_all else [_UNMARKED]
    return TextDifference(old_name, new_name, rows, limits)
