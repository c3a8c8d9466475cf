"""The text of a prompt on its pages, the form that fills in its variables, and the short prompt on
the home page that visitors can fill in. Pure, like builder.render.pages.
"""

from itertools import accumulate, islice
from typing import NamedTuple

from markupsafe import Markup, escape

from builder.model.answers import Message, Repo, Version
from builder.model.plural import counted
from builder.model.records import Variable
from builder.render.file_pages import Files
from builder.render.pages import Pages, lines, shortened
from builder.text.abilities import Findings
from builder.text.hidden_chars import MARKS_MAX, Marks, called, hidden_characters, visible
from builder.text.prompts import mark_variables, variable_names
from builder.text.readable import Heading, readable
from builder.text.summary import is_data
from builder.text.values import as_text

# The most messages and characters that a page shows as a conversation. The page also has the whole
# text.
MESSAGES_SHOWN_MAX = 200
MESSAGES_CHARS_MAX = 50_000
# The most kinds of hidden characters that a page names.
HIDDEN_KINDS_MAX = 5
# The most headings in the outline of a text, from its start.
OUTLINE_MAX = 40


class Shown(NamedTuple):
    """A text as its pages show it, with the outline, the form, the files and their panel.
    ``found``: what it can do, None if it is only a text; ``marks``: those left for the rest of a
    page.
    """

    text: Markup
    outline: Markup | str
    form: Markup | str
    files: Files
    panel: Markup | str
    found: Findings | None
    marks: Marks


def shown(pages: Pages, one: Repo | Version, number: str, found: Findings | None) -> Shown:
    """The text for the page of its version, and for the page of its prompt if it is the latest."""
    marks = Marks()
    files = Files(pages, one, number)
    text, outline = _shown_text(pages, one, number, marks, files)
    fields = form(pages, one.variables, marks)
    return Shown(text, outline, fields, files, files.panel(), found, marks)


def _shown_text(
    pages: Pages, one: Repo | Version, number: str, marks: Marks, files: Files
) -> tuple[Markup, Markup | str]:
    """The text, and the list of its headings if it has several."""
    front = one.content[: len(one.content) - len(one.body)]
    body = one.body.lstrip("\r\n") if front else one.body
    shown_front = visible(front, marks)
    shown_body = files.linked(_marked(body, marks))
    hidden = _hidden(one.content) if marks.left < MARKS_MAX else ""
    headings: list[Heading] = []
    messages = _shown_messages(one.messages or [])
    shown_messages = [
        _message(pages, index, message, marks, headings) for index, message in enumerate(messages)
    ]
    # Beside its messages, the text is as programs read it.
    is_code = bool(messages) or is_data(body)
    if not is_code:
        shown_body = readable(shown_body, headings)
    left = len(one.messages or []) - len(messages)
    shown = pages.fill(
        "prompt_text.html",
        owner=one.owner,
        name=one.name,
        version=number,
        is_code=is_code,
        is_titled=bool(headings) and headings[0].title == one.title,
        has_signs=not is_code and "<u>" in shown_body,
        is_cut=marks.is_cut,
        hidden=hidden,
        front=shown_front,
        skip=str(utf16_length(front)),
        body=shown_body,
        messages=lines(shown_messages),
        messages_left=counted(left, "more message is", "more messages are") if left else "",
    )
    titled = (one for one in headings if any(map(str.isalnum, one.title)))
    outline = [
        f'<li><a href="#{one.id}">{escape(one.title)}</a></li>'
        for one in islice(titled, OUTLINE_MAX)
    ]
    return shown, lines(outline) if len(outline) > 1 else ""


def _hidden(text: str) -> str:
    """The number of hidden characters in a text, and what the most frequent are."""
    counts = hidden_characters(text)
    kinds = [f"{called(one)} ×{count:,}" for one, count in counts.most_common(HIDDEN_KINDS_MAX)]
    kinds += ["others"] if len(counts) > len(kinds) else []
    return f"{counted(counts.total(), 'hidden character')}: {', '.join(kinds)}"


def _message(
    pages: Pages, index: int, message: Message, marks: Marks, headings: list[Heading]
) -> Markup:
    is_code = is_data(message.content)
    text = _marked(message.content, marks)
    return pages.fill(
        "message.html",
        title=message.role.capitalize(),
        index=str(index),
        number=str(index + 1),
        is_code=is_code,
        text=text if is_code else readable(text, headings, level=3),
    )


def form(pages: Pages, variables: list[Variable], marks: Marks) -> Markup | str:
    """The form that fills in the variables of a version; empty without any."""
    if not variables:
        return ""
    fields: dict[bool, list[Markup]] = {True: [], False: []}
    for at, variable in enumerate(variables, 1):
        field = _variable(pages, variable, f"fill-{at}", marks)
        fields[bool(variable.required)].append(field)
    asked, others = fields[True], fields[False]
    return pages.fill(
        "fill.html",
        is_open=not asked,
        asked=lines(asked),
        others=lines(others),
        has_empty=any(not each.required and each.default in (None, "") for each in variables),
        others_count=f"{len(others)} optional" if asked else "Optional",
    )


def _variable(pages: Pages, variable: Variable, id: str, marks: Marks) -> Markup:
    options = one_of = Markup()
    default = "" if variable.default is None else as_text(variable.default)
    if variable.enum or variable.type == "boolean":
        values = [*map(as_text, variable.enum or (True, False))]
        options = Markup(pages.render("options.html", values=values, default=default).decode())
        if variable.enum:
            one_of = Markup(", ").join(Markup('<code dir="auto">%s</code>') % one for one in values)
    return pages.fill(
        "variable.html",
        id=id,
        name=variable.name,
        type=variable.type if variable.type != "string" else "",
        is_required=bool(variable.required),
        is_number=variable.type in ("integer", "number"),
        description=visible(variable.description, marks),
        has_default=variable.default is not None,
        default=default,
        shown_default=shortened(default),
        example="" if variable.example is None else shortened(as_text(variable.example)),
        one_of=one_of,
        options=options,
    )


def _shown_messages(messages: list[Message]) -> list[Message]:
    """The first messages, within the limits of a page."""
    lengths = accumulate(len(message.content) for message in messages[:MESSAGES_SHOWN_MAX])
    return messages[: sum(length <= MESSAGES_CHARS_MAX for length in lengths)]


def _marked(text: str, marks: Marks) -> Markup:
    r"""A prompt with its variables marked; ``\{{`` is shown as it is."""
    return Markup(mark_variables(str(visible(text, marks)), mark_variable))


def mark_variable(name: str, placeholder: str) -> str:
    return f'<mark class="variable" data-name="{name}">{placeholder}</mark>'


def utf16_length(text: str) -> int:
    """The length as JavaScript counts it."""
    return len(text.encode("utf-16-le")) // 2


# Visitors would miss the fields of a longer text.
CHARS_MAX = 2_500
VARIABLES_MAX = 4
# The part of a text that is in sight before its box scrolls: lines, and characters of a line.
SEEN_LINES, LINE_CHARS = 10, 48
EARLY_CHARS = 200
# Long enough to say something, and short enough to be read by the way.
TELLING_CHARS = range(150, 1_000)


def trial_rank(repo: Repo) -> int:
    """The rank of a prompt as an example for visitors: greater is better, 0 does not suit.

    Pulls do not count here; they decide among equals.
    """
    if not _suits_trial(repo):
        return 0
    body = repo.body.strip()
    parts = (
        line[at : at + LINE_CHARS]
        for line in body.splitlines()
        for at in range(0, len(line) or 1, LINE_CHARS)
    )
    lines = [*islice(parts, SEEN_LINES + 1)]
    seen = variable_names("".join(lines[:SEEN_LINES]))
    is_all_in_sight = len(seen) == len(repo.variables)
    is_asking = any(one.required for one in repo.variables)
    others = (
        body.find("{{") < EARLY_CHARS,
        len(repo.variables) > 1,
        len(body) in TELLING_CHARS,
        len(body) in TELLING_CHARS and len(lines) <= SEEN_LINES,
        repo.title != repo.name,
        # Code, and placeholders that no field fills.
        not ("[" in body or "```" in body or is_data(body)),
    )
    return 1 + 3 * (is_all_in_sight + is_asking) + sum(others)


def _suits_trial(repo: Repo) -> bool:
    """True for a short text with a few string variables, no messages and no hidden characters."""
    names = {one.name for one in repo.variables}
    return (
        0 < len(names) <= VARIABLES_MAX
        and len(repo.body) <= CHARS_MAX
        and names == {*variable_names(repo.body)}
        and all(one.type == "string" and not one.enum for one in repo.variables)
        and not hidden_characters(repo.body)
        and repo.messages is None
    )


def trial(pages: Pages, repo: Repo) -> Markup:
    """The text, with a field where each variable first appears."""
    left = {one.name: one for one in repo.variables}

    def mark(name: str, placeholder: str) -> str:
        if name not in left:
            return mark_variable(name, placeholder)
        one = left.pop(name)
        default = "" if one.default is None else as_text(one.default)
        return pages.macro("macros.html", "hole")(name, default, one.required)

    at = {"owner": repo.owner, "name": repo.name}
    page = pages.render(
        "trial.html",
        **at,
        title=repo.title,
        raw=pages.file_url("version_raw", **at, version=repo.latest_version),
        skip=utf16_length(repo.content[: len(repo.content) - len(repo.body)]),
        text=readable(Markup(mark_variables(str(escape(repo.body.strip("\r\n"))), mark)), [], 3),
    )
    return Markup(page.decode())
