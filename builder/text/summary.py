"""A prompt in about 160 characters, for cards and the heads of pages. Pure.

Records keep the description as it was published, and the first sentence where nobody wrote one.
That is often too little ("Act as a code reviewer."), and nothing at all for a prompt in JSON.
"""

import re
from collections.abc import Iterator

from msgspec import DecodeError, json

from builder.text.messages import without_markers
from builder.text.prompts import first_sentence, sentence_ends

SUMMARY_CHARS_MAX = 180
# One short sentence says little: the next one is cut to fit.
TELLING_CHARS_MIN = 80
# As much of a text as is looked at.
READ_CHARS_MAX = 2_000
# Where JSON says what it asks for, in the order in which it is looked for.
TELLING_KEYS = (
    "description", "task", "goal", "objective", "instruction", "instructions", "prompt",
    "main_prompt", "subject", "role", "title",
)  # fmt: skip
FIELDS_MAX, FIELD_CHARS_MAX = 5, 30

_heading = re.compile(r"#{1,6}\s")
_bullet = re.compile(r"\s*(?:[-*+>•]|\d{1,3}[.)])\s+")
_emphasis = re.compile(r"\*\*|__|`|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")
_rule = re.compile(r"[-=_*#~\s]*\Z")
_comment = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_unseen_element = re.compile(r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_tag = re.compile(r"</?([A-Za-z][\w.:-]*)(?:\s[^<>]*)?/?>|<!doctype[^>]*>", re.IGNORECASE)
_html = re.compile(
    r"\s*<(?:!doctype html|html|head|body|div|p|h[1-6]|section|table)\b", re.IGNORECASE
)
_loose_json = re.compile(r"""\s*(?:\{\s*["']|\[\s*(?:["'\[]|\{(?!\{)))""")
_string_value = re.compile(r'"(\w{1,40})"\s*:\s*"((?:[^"\\]|\\.){0,1000})')


def summarize(description: str, body: str) -> str:
    """Whole sentences of the description, or of the text where nobody wrote one; one line of
    about 160 characters.
    """
    if description and description != first_sentence(body):
        return _whole_sentences([description])
    body = without_markers(body)
    if _loose_json.match(body):
        return _summary_of_json(body) or description
    if _comment.match(body.lstrip()) or _tag.match(body.lstrip()):
        return _summary_of_markup(body) or description
    return _whole_sentences(_pieces(body[:READ_CHARS_MAX])) or description


def _summary_of_json(text: str) -> str:
    try:
        value = json.decode(text)
    except (DecodeError, RecursionError):
        value = dict(_string_value.findall(text[:READ_CHARS_MAX]))
    while isinstance(value, dict) and [type(one) for one in value.values()] == [dict]:
        (value,) = value.values()  # a wrapper around what is told
    if not isinstance(value, dict):
        return "JSON prompt."
    strings = {key.lower(): one for key, one in value.items() if isinstance(one, str)}
    told = next((strings[key] for key in TELLING_KEYS if strings.get(key, "").count(" ") > 1), "")
    if told:
        return "JSON prompt: " + _whole_sentences(_pieces(told[:READ_CHARS_MAX]))
    names = [" ".join(key.split())[:FIELD_CHARS_MAX] for key in [*value][:FIELDS_MAX]]
    more = f" and {len(value) - FIELDS_MAX} more" if len(value) > FIELDS_MAX else ""
    return f"JSON prompt with the fields {', '.join(names)}{more}." if names else "JSON prompt."


def _summary_of_markup(text: str) -> str:
    kind = "HTML" if _html.match(text) else "XML" if _tag.match(text.lstrip()) else ""
    plain = _unseen_element.sub("\n\n", _comment.sub("", text[: 4 * READ_CHARS_MAX]))
    told = _whole_sentences(_pieces(_tag.sub("\n\n", plain)[:READ_CHARS_MAX]))
    if not kind:
        return told
    return f"{kind} prompt: {told}" if told else f"{kind} prompt."


def _pieces(text: str) -> Iterator[str]:
    """The paragraphs and list items of a text, each on one line, without Markdown. Headings only
    where there is nothing else.
    """
    headings, lines, found = [], [], False
    for line in [*text.splitlines(), ""]:
        is_item = _bullet.match(line)
        if _heading.match(line):
            headings.append(_heading.sub("", line, count=1))
        if lines and (is_item or _rule.match(line) or _heading.match(line)):
            yield " ".join(lines)
            lines = []
        if not (_rule.match(line) or _heading.match(line) or line.startswith("```")):
            found = True
            lines.append(_bullet.sub("", line, count=1) if is_item else line.strip())
    if not found:
        yield from headings


def _whole_sentences(pieces: Iterator[str] | list[str]) -> str:
    """As many sentences as fit, one after the other; a cut one where they are too short."""
    told = ""
    for piece in pieces:
        for sentence in _sentences(piece):
            longer = sentence if not told else told + " " * told[-1].isascii() + sentence
            if len(longer) > SUMMARY_CHARS_MAX:
                return told if len(told) >= TELLING_CHARS_MIN else _cut(longer)
            if len(told) >= TELLING_CHARS_MIN and sentence.endswith(":"):
                return told  # what it announces would be missing
            told = longer
    return told


def _sentences(piece: str) -> Iterator[str]:
    line = " ".join(_emphasis.sub("", piece).split())
    if not line.isprintable():
        line = "".join(filter(str.isprintable, line))
    start = 0
    for end in sentence_ends(line):
        yield line[start:end].strip()
        start = end
    rest = line[start:].strip()
    if rest:
        # A list item seldom has a full stop; what ends in another script has none of these.
        yield f"{rest}." if rest[-1].isascii() and rest[-1] not in ".!?:;," else rest


def _cut(text: str) -> str:
    cut = text[: SUMMARY_CHARS_MAX - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > SUMMARY_CHARS_MAX // 2 else cut).rstrip(" ,;:") + "…"
