"""The text of a prompt on its pages, and the form that fills in its variables. Pure, like
builder.render.pages.
"""

from collections.abc import Iterable
from itertools import accumulate

from markupsafe import Markup, escape

from builder.model.answers import Message, Repo, Version
from builder.model.plural import counted
from builder.model.records import Variable
from builder.render.files_panels import link_files
from builder.render.pages import Pages, shortened
from builder.text.hidden_chars import MARKS_MAX, Marks, called, hidden_characters, visible
from builder.text.prompts import mark_variables
from builder.text.readable import Heading, readable
from builder.text.summary import is_data
from builder.text.values import as_text

# The most messages and characters that a page shows as a conversation. The page also has the whole
# text.
MESSAGES_SHOWN_MAX = 200
MESSAGES_CHARS_MAX = 50_000
# The most kinds of hidden characters that a page names.
HIDDEN_KINDS_MAX = 5
# The most headings in the outline of a text.
OUTLINE_MAX = 40


def shown_text(
    pages: Pages, one: Repo | Version, number: str, marks: Marks
) -> tuple[Markup, Markup | str]:
    """The text, and the list of its headings if it has several."""
    front = one.content[: len(one.content) - len(one.body)]
    body = one.body.lstrip("\r\n") if front else one.body
    shown_front = visible(front, marks)
    shown_body = link_files(pages, one, number, _marked(body, marks))
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
        has_signs=not is_code and "<u>" in shown_body,
        is_cut=marks.is_cut,
        hidden=hidden,
        front=shown_front,
        skip=str(utf16_length(front)),
        body=shown_body,
        messages=lines(shown_messages),
        messages_left=counted(left, "more message is", "more messages are") if left else "",
    )
    outline = [
        f'<li><a href="#{one.id}">{escape(one.title)}</a></li>' for one in _outline(headings)
    ]
    return shown, lines(outline) if len(outline) > 1 else ""


def _hidden(text: str) -> str:
    """The number of hidden characters in a text, and what the most frequent are."""
    counts = hidden_characters(text)
    kinds = [f"{called(one)} ×{count:,}" for one, count in counts.most_common(HIDDEN_KINDS_MAX)]
    kinds += ["others"] if len(counts) > len(kinds) else []
    return f"{counted(counts.total(), 'hidden character')}: {', '.join(kinds)}"


def _outline(headings: list[Heading]) -> list[Heading]:
    """The headings that have words. If they are too many, without those of the deepest levels."""
    kept = [one for one in headings if any(map(str.isalnum, one.title))]
    for level in range(6, 1, -1):
        if len(kept) <= OUTLINE_MAX:
            break
        upper = [one for one in kept if one.level < level]
        if len(upper) > 1:
            kept = upper
    return kept[:OUTLINE_MAX]


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
        text=text if is_code else readable(text, headings),
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


def lines(parts: Iterable[str]) -> Markup:
    return Markup("\n".join(parts))
