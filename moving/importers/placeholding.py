"""Replaces the placeholders of other sources with the hub's variables. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from builder.model.answers import Message
from builder.model.plural import counted, some_of
from builder.model.records import DESCRIPTION_CHARS_MAX, VARIABLES_MAX, Variable
from builder.text.dollars import without_code
from builder.text.foreign import NAMED_MAX, Kept, find_foreign
from builder.text.prompts import parse_document
from moving.importers.items import Item
from moving.importers.placeholders import (
    MARKED,
    argument_pattern,
    guess,
    turn,
    turn_messages,
)

GUESSED_MAX = 1_000
# In Markdown files, fences are code more often than templates.
_IN_MARKDOWN = {"dollar": "vscode", "none": "files"}
# A convention's placeholders, as the summary shows them.
_SHOWN = {
    "dollar": "${name}",
    "single": "{name}",
    "f-string": "{name}",
    "mustache": "{{{name}}}",
    "jinja": "{{ name | default(…) }}",
    "typed": "{{name | type:…}}",
    "vscode": "${input:name}, ${name}",
    "brackets": "[NAME]",
    "raycast": '{argument name="name"}',
    "arguments": "$1",
}


@dataclass
class Counts:
    """The number of prompts whose placeholders were converted, by convention. And of those that
    keep as text: possible placeholders, logic, or unreadable front matter.
    """

    turned: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    unread: int = 0

    def add(self, versions: Sequence[tuple[str, "Placed"]]) -> None:
        """Count one more prompt with these versions, each with its convention."""
        self.turned.update({convention for convention, placed in versions if placed.is_turned})
        self.kept += any(placed.is_kept for _, placed in versions)
        self.unread += any(placed.is_unread for _, placed in versions)

    def tell(self, dry_run: bool = False) -> list[str]:
        """The lines for the summary."""
        became, kept = ("would become", "would keep") if dry_run else ("became", "kept")
        parts = [
            f"{_SHOWN[one]} {became} {{{{name}}}} in {counted(count, 'prompt')} ({one})"
            for one, count in sorted(self.turned.items())
        ]
        if self.kept:
            parts.append(f"{counted(self.kept, 'prompt')} {kept} placeholders or logic as text")
        lines = [f"Placeholders: {'; '.join(parts)}"] if parts else []
        if self.unread:
            lines.append(
                f"Front matter: {counted(self.unread, 'prompt')} {kept} as text what cannot be read"
            )
        return lines


class Placed(NamedTuple):
    """A prompt with the hub's variables; ``fields`` has what is known about them. ``is_unread``:
    its front matter cannot be read.
    """

    text: str
    fields: dict[str, Any]
    warnings: list[str]
    is_turned: bool
    is_kept: bool
    is_unread: bool


class Placing:
    """Converts the placeholders of a source's items, and counts them.

    ``wanted`` is their convention. ``auto``: the convention of each file's kind, else the one that
    the first GUESSED_MAX texts of ``found`` show.
    """

    def __init__(self, found: Iterable[object], wanted: str) -> None:
        items = (one for one in found if isinstance(one, Item))
        texts = (one.text for one in items if one.convention in ("auto", "markdown"))
        self._wanted = wanted
        self._guessed = guess(islice(texts, GUESSED_MAX)) if wanted == "auto" else wanted
        self.counts = Counts()

    def turn(self, item: Item) -> Item:
        own = {
            "auto": self._guessed,
            "markdown": _IN_MARKDOWN.get(self._guessed, self._guessed),
        }.get(item.convention, item.convention)
        convention = own if self._wanted == "auto" else self._wanted
        placed = turn_prompt(item.text, item.fields, convention)
        self.counts.add([(convention, placed)])
        warnings = item.warnings + placed.warnings
        return item._replace(text=placed.text, fields=placed.fields, warnings=warnings)


def turn_prompt(prompt: str | list[Message], fields: dict[str, Any], convention: str) -> Placed:
    """A text or messages with converted placeholders, also in the description. Front matter stays
    as it is.

    Declared variables in ``fields`` win. Publishing warns of foreign syntax in the new text, so
    only the rest gets warnings here.
    """
    front, is_unread = "", False
    if isinstance(prompt, str):
        document = parse_document(prompt)
        is_unread = bool(document.fault)
        front = prompt[: len(prompt) - len(document.body)]
        turned = turn(document.body, convention)
    else:
        turned = turn_messages(prompt, convention)
    foreign = find_foreign(turned.text)
    marked = _tell_marked(turned.text)
    warnings = [*turned.notes, *marked]
    if turned.kept and not foreign:
        warnings.append(
            f"These look like placeholders or logic, and stay text: {', '.join(turned.kept)}."
        )
    if described := turn(fields.get("description", ""), convention).text:
        fields = fields | {"description": described[:DESCRIPTION_CHARS_MAX]}
    variables = _merge(fields.get("variables", []), turned.variables)
    fields = fields | ({"variables": variables} if variables else {})
    is_kept = bool(turned.kept or foreign or marked)
    return Placed(front + turned.text, fields, warnings, turned.is_turned, is_kept, is_unread)


def _tell_marked(text: str) -> list[str]:
    """A hint for each convention whose placeholders the text still has outside of code."""
    prose, hints = without_code(text), []
    for convention, pattern in MARKED.items():
        kept = Kept()
        for found in pattern.finditer(prose):
            kept.add(found[0])
        is_meant = pattern is not argument_pattern or {"$1", "$ARGUMENTS"} & {*kept.spelled}
        if kept.spelled and is_meant:
            hints.append(
                f"`hubctl import --placeholders {convention}` fills in what stays text here: "
                f"{some_of(kept.spelled, NAMED_MAX)}."
            )
    return hints


def _merge(declared: list[Variable], found: list[Variable]) -> list[Variable]:
    """The declared variables, completed from the text, then the text's other variables."""
    known = {variable.name: variable for variable in found}
    merged = []
    for variable in declared:
        text = known.pop(variable.name, None)
        if text and not variable.description:
            variable = replace(variable, description=text.description)
        is_plain = variable.default is None and variable.type == "string"
        if text and text.default is not None and is_plain:
            variable = replace(variable, default=text.default, required=False)
        merged.append(variable)
    # A record holds no more. The others remain variables of which only the name is known.
    return [*merged, *known.values()][:VARIABLES_MAX]
