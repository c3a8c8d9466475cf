"""Finds placeholders and logic of other conventions, and explains why they stay text. Pure."""

import re
from collections.abc import Sequence

from builder.model.errors import cut
from builder.text import dollars
from builder.text.prompts import VARIABLE_NAME

KEPT_MAX = 10
KEPT_CHARS_MAX = 40
# The most examples in a warning, because a message has at most 500 characters.
NAMED_MAX = 4

_foreign = re.compile(
    r"(?P<escape>\\)?\{\{(?P<tag>[^{}]*+)\}\}|\{%[-+]?\s*+(?P<word>\w++)[^{}]*+\}?"
)
_foreign_tag = re.compile(r"[#/^>&!~=@$-]?[ \t]*[\w.]")
_JINJA_WORDS = set(
    "if elif else endif for endfor set endset block endblock include import from macro "
    "endmacro call endcall filter endfilter raw endraw extends with endwith autoescape assign "
    "unless endunless".split()
)
# Text that people take for a variable's name: words of any script, and few signs.
_name = re.compile(r"\{\{[ \t]*(?:\w|[^\x00-\x7f])(?:[\w ,'-]|[^\x00-\x7f])*+(?:\}\})?")
# Not after signs of a formula, a path or another placeholder.
_single_name = re.compile(r"(?<![\w\\{}$^/\]])\{[^\W\d]\w{0,63}\}(?!\})")
_HINTS = {
    "name": "These stay text: {found}. The name of a variable has at most 64 of a-z, A-Z, 0-9 and "
    "_, and begins with no digit.",
    "logic": "These stay text, because prompts have no logic: {found}. Write {{{{name}}}} for a "
    "variable.",
} | {
    convention: "Write {{{{name}}}} for what is to be filled in: {found}. `hubctl import "
    f"--placeholders {convention}` does so."
    for convention in ("dollar", "single")
}


class Kept:
    """Snippets that stay text, as spelled and shortened: each once, at most KEPT_MAX."""

    def __init__(self) -> None:
        self.spelled: list[str] = []

    def add(self, spelled: str) -> None:
        if len(self.spelled) < KEPT_MAX:
            # Reads no more of a huge one than can be shown.
            short = cut(" ".join(spelled[: 4 * KEPT_CHARS_MAX].split()), KEPT_CHARS_MAX)
            if short not in self.spelled:
                self.spelled.append(short)


def find_foreign(text: str) -> list[str]:
    """Snippets that look like a placeholder or logic of another convention, and are text here.

    Each once, at most KEPT_MAX, shortened. Fences and code spans are skipped.
    """
    prose = dollars.without_code(text)
    kept = Kept()
    for found in _foreign.finditer(prose):
        tag = found["tag"]
        is_logic = tag is None and found["word"] in _JINJA_WORDS
        if is_logic or (tag and not found["escape"] and _is_foreign(tag.strip())):
            kept.add(found[0])
    if dollars.find_names(text):  # Otherwise it is code.
        for found in dollars.find_names(prose):
            kept.add(found[0])
    return kept.spelled


def find_single(text: str) -> list[str]:
    """The ``{names}`` in a text, which are text in most conventions, too; otherwise as
    ``find_foreign``.
    """
    kept = Kept()
    for found in _single_name.finditer(dollars.without_code(text)):
        kept.add(found[0])
    return kept.spelled


def _is_foreign(tag: str) -> bool:
    return (
        _foreign_tag.match(tag) is not None
        and re.fullmatch(VARIABLE_NAME, tag) is None
        and re.match(r"role\s", tag) is None
    )


def tell_foreign(found: Sequence[str]) -> list[str]:
    """A warning for each kind of the snippets that ``find_foreign`` and ``find_single`` found."""
    kinds: dict[str, list[str]] = {}
    for one in found:
        kinds.setdefault(_kind_of(one), []).append(one)
    return [_HINTS[kind].format(found=_list(kinds[kind])) for kind in _HINTS if kind in kinds]


def _kind_of(spelled: str) -> str:
    if not spelled.startswith(("{{", "{%")):
        return "dollar" if spelled.startswith("$") else "single"
    is_name = _name.fullmatch(spelled) and spelled.strip("{ }").split()[0] not in _JINJA_WORDS
    return "name" if is_name else "logic"


def _list(found: Sequence[str]) -> str:
    return ", ".join(found[:NAMED_MAX]) + (" and others" if len(found) > NAMED_MAX else "")
