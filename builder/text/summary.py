"""A prompt's title, description, and summary for cards and page heads. Pure.

Records keep the title and the description that were published. If the publisher gave none, they are
the heading that begins the text, and the first sentence of its prose. That sentence is often too
little for a card ("Act as a code reviewer."), so a summary has about 160 characters.

*Prose* is text that people read as sentences: paragraphs and list items. Headings, labels such as
"YOUR TASK:", comments, fences, tables, tags and front matter that does not parse are not prose.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import DecodeError, json

from builder.model.plural import some_of
from builder.model.records import Title
from builder.text.messages import without_markers
from builder.text.prompts import without_block

TITLE_CHARS_MAX = Title.__metadata__[0].max_length
DESCRIPTION_CHARS_MAX = 200
SUMMARY_CHARS_MAX = 180
# A summary shorter than this gets a part of the next sentence.
TELLING_CHARS_MIN = 80
# Text beyond this is not read; comments and tags do not count.
READ_CHARS_MAX = 2_000
# Keys of JSON whose value describes the prompt, in the order in which they are tried.
TELLING_KEYS = tuple(
    "description task goal objective instruction instructions prompt main_prompt subject role "
    "title".split()
)
FIELDS_MAX, FIELD_CHARS_MAX = 5, 30
LABEL_CHARS_MAX = 60
# Words that name a part of a prompt, but not its purpose.
_SECTION_WORDS = frozenset(
    "a about act and answer as assistant background constraints context core description example "
    "examples for format goal goals guidelines identity important input inputs instruction "
    "instructions introduction main message mission note notes objective objectives of output "
    "outputs overview persona prompt purpose question request response role rules section skill "
    "steps summary system task tasks the to usage user you your".split()
)

_heading = re.compile(r"\s{0,3}#{1,6}(?:\s|\Z)")
_first_heading = re.compile(
    r"#[ \t]+(?P<atx>[^\n]+)|(?P<setext>[^\s#>|`<*+-][^\n]*)\n=+[ \t\r]*(?:\n|\Z)"
)
_underline = re.compile(r"=+\s*\Z")
_bullet = re.compile(r"\s*(?:[-*+>•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
# A sign comes before what is to stand around it, because the module searches for it faster.
_emphasis = re.compile(
    r"\*\*|`|__(?=\S)(?<!\w__)|__(?!\w)(?<=\S__)|\*(?=\S)(?<!\w\*)|\*(?!\w)(?<=\S\*)"
)
_link = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|\[([^\]\n]+)\]\([^)\n]+\)")
_rule = re.compile(r"[-=_*#~\s]*\Z")
_fence = re.compile(r"\s*(`{3,}|~{3,})")
# A line of placeholders, tags or table cells alone, or a comment.
_no_words = re.compile(r"\s*(?:(?:\{\{[^{}]*\}\}\s*)+|(?:</?[A-Za-z][^<>]*>\s*)+|\|.*|//\s.*)\Z")
_element = re.compile(r"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>(.*)</\1\s*>\s*\Z")
_labelled = re.compile(r"\s*(?:\*\*|__)?([^:*_\n]{1,60})(?::(?:\*\*|__)?|(?:\*\*|__):)\s+(?=\S)")
_small_words = re.compile(r"\b(?:and|or|of|the|to|for|in|your)\b")
_bold_line = re.compile(r"(\*\*|__)[^*_]+\1:?\Z")
_comment = re.compile(
    r"<!--.*?(?:-->|\Z)|\{\{!--.*?(?:--\}\}|\Z)|\{\{![^}]*\}\}|\{#[^#]*#\}", re.DOTALL
)
_unseen_element = re.compile(r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_tag = re.compile(r"</?([A-Za-z][\w.:-]*)(?:\s[^<>]*)?/?>|<!doctype[^>]*>", re.IGNORECASE)
_html = re.compile(r"<(?:!doctype html|html|head|body|div|p|h[1-6]|section|table)\b", re.IGNORECASE)
# Or front matter, a comment or the marker of a message.
_may_be_data = re.compile(r"[\ufeff\s]*[-{\[<]").match
_loose_json = re.compile(r"""\{\s*["']|\[\s*(?:["'\[]|\{(?!\{))""")
_string_value = re.compile(r'"(\w{1,40})"\s*:\s*"((?:[^"\\]|\\.){0,1000})')
# A full stop ends a sentence before white space, except in abbreviations and after the number of a
# list item; the CJK full stop needs no white space.
_sentence_end = re.compile(
    r"\.(?=\s)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)"
    r"(?<!\bMrs\.)(?<!\s\d\.)|[!?…](?=\s)|[。！？]|[.!?…]\Z"
)


def title_of(body: str) -> str:
    """The level-1 heading that begins a prompt's body, as a title; empty if none does."""
    found = _first_heading.match(_visible(body.removeprefix("\ufeff"))[:READ_CHARS_MAX])
    if not found:
        return ""
    heading = re.sub(r"(?:^|\s)#+\s*\Z", "", found["atx"]) if found["atx"] else found["setext"]
    return clean_title(_plain(heading))


def clean_title(text: str) -> str:
    """``text`` as a title: one line, printable, not too long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= TITLE_CHARS_MAX else line[: TITLE_CHARS_MAX - 1].rstrip() + "…"


def names_a_part(heading: str) -> bool:
    """True if a heading names a part of a prompt, like "Identity and purpose", and so says nothing
    about the prompt.
    """
    words = re.findall(r"[^\W_]+", heading.lower())
    return _SECTION_WORDS.issuperset(words)


# A build asks twice in succession about the same text.
@lru_cache(maxsize=1)
def first_sentence(body: str) -> str:
    """The first sentence of a prompt's prose, on one line, at most 200 characters. For a chat
    prompt, that of its first message. For a text without prose, its beginning.
    """
    kind, text = _open(body)
    sentences = (one for piece in _prose(text) for one in _sentences(piece))
    sentence = next(sentences, "") or (
        _fields_of_json(body) if kind == "JSON" else _printable(_visible(without_markers(body)))
    )
    return _cut(sentence, DESCRIPTION_CHARS_MAX)


def summarize(description: str, body: str) -> str:
    """Whole sentences of the description, or of the text if the publisher gave none; one line of
    about 160 characters.
    """
    if has_own_description(description, body):
        return _whole_sentences([description])
    kind, text = _open(body)
    summary = _whole_sentences(_prose(text))
    if not kind:
        return summary or description
    if kind == "JSON" and not summary:
        return _fields_of_json(body)
    return f"{kind} prompt: {summary}" if summary else f"{kind} prompt."


def has_own_description(description: str, body: str) -> bool:
    """False if the description repeats the text, because the publisher gave none."""
    return bool(description) and description != first_sentence(body)


def is_data(body: str) -> bool:
    """True for a body of JSON or HTML rather than prose."""
    return bool(_may_be_data(body)) and _open(body)[0] in ("JSON", "HTML")


@lru_cache(maxsize=1)
def _open(body: str) -> tuple[str, str]:
    """The kind of a body (JSON, HTML, XML, or empty for text), and the part of it to read."""
    text = _visible(without_markers(body))
    if _loose_json.match(text):
        return "JSON", _telling(_load_json(body))[:READ_CHARS_MAX]
    if not _tag.match(text):
        return "", text[:READ_CHARS_MAX]
    plain = _tag.sub("\n\n", _unseen_element.sub("\n\n", text))
    return "HTML" if _html.match(text) else "XML", plain[:READ_CHARS_MAX]


def _visible(text: str) -> str:
    """The beginning of a text, without comments, and without front matter that does not parse."""
    text = without_block(text.lstrip("\ufeff \t\r\n"))
    return _comment.sub("", text[: 4 * READ_CHARS_MAX]).lstrip("\ufeff \t\r\n")


def _load_json(body: str) -> object:
    text = without_markers(body)
    try:
        value = json.decode(text)
    except (DecodeError, RecursionError):
        value = dict(_string_value.findall(text[:READ_CHARS_MAX]))
    while isinstance(value, dict) and [type(one) for one in value.values()] == [dict]:
        (value,) = value.values()  # A wrapper around the actual data.
    return value


def _telling(value: object) -> str:
    """The text in JSON that describes the prompt; empty if there is none."""
    if not isinstance(value, dict):
        return ""
    strings = {key.lower(): one for key, one in value.items() if isinstance(one, str)}
    return next((strings[key] for key in TELLING_KEYS if strings.get(key, "").count(" ") > 1), "")


def _fields_of_json(body: str) -> str:
    value = _load_json(body)
    if not isinstance(value, dict) or not value:
        return "JSON prompt."
    names = [" ".join(key.split())[:FIELD_CHARS_MAX] for key in value]
    return f"JSON prompt with the fields {some_of(names, FIELDS_MAX)}."


def _prose(text: str) -> Iterator[str]:
    """The paragraphs and list items of a text, each on one line. If there are none, the text in
    fences, otherwise headings and labels.
    """
    labels: list[str] = []
    fenced: list[str] = []
    lines: list[str] = []
    fence, found = "", False
    for line in [*text.splitlines(), ""]:
        opening = _fence.match(line)
        item = _bullet.match(line)
        is_label = not fence and not opening and _is_label(line)
        if len(lines) == 1 and _underline.match(line):
            labels.append(lines.pop())
        if lines and (opening or item or is_label or _rule.match(line) or _no_words.match(line)):
            yield " ".join(lines)
            lines, found = [], True
        if fence:
            fence = "" if line.strip().startswith(fence) else fence
            fenced += [line] if fence else []
        elif opening:
            fence = opening[1]
        elif is_label:
            labels.append(_heading.sub("", line, count=1))
        elif not (_rule.match(line) or _no_words.match(line)):
            lines.append(_without_label(_bullet.sub("", line, count=1) if item else line.strip()))
    if not found:
        yield from _prose("\n".join(fenced)) if fenced else labels


def _is_label(line: str) -> bool:
    """True if a line is a heading, a line in bold, or words such as "YOUR TASK:"."""
    is_marked = _heading.match(line) or _bold_line.match(line.strip())
    return bool(is_marked) or _names_part_or_shouts(line.strip())


def _names_part_or_shouts(words: str) -> bool:
    words = words.strip("*_ ")
    if not words or len(words) > LABEL_CHARS_MAX or words[-1] in ".!?…":
        return False
    if words.endswith(":") and names_a_part(words):
        return True
    return _small_words.sub("", words).isupper() and "{{" not in words


def _without_label(line: str) -> str:
    found = _labelled.match(line)
    return line[found.end() :] if found and _names_part_or_shouts(f"{found[1]}:") else line


def _whole_sentences(pieces: Iterator[str] | list[str]) -> str:
    """As many sentences as fit. If they are too short, part of the next one."""
    summary = ""
    for piece in pieces:
        for sentence in map(_with_full_stop, _sentences(piece)):
            longer = sentence if not summary else summary + " " * summary[-1].isascii() + sentence
            is_telling = len(summary) >= TELLING_CHARS_MIN
            if len(longer) > SUMMARY_CHARS_MAX:
                return summary if is_telling else _cut(longer, SUMMARY_CHARS_MAX)
            if is_telling and sentence.endswith(":"):
                return summary  # The text that it announces would be missing.
            summary = longer
    return summary


def _sentences(piece: str) -> Iterator[str]:
    line = _plain(piece)
    start = 0
    for found in _sentence_end.finditer(line):
        yield line[start : found.end()].strip()
        start = found.end()
    if line[start:].strip():
        yield line[start:].strip()


def _with_full_stop(sentence: str) -> str:
    # A list item seldom has a full stop, and sentences in other scripts end with other signs.
    return f"{sentence}." if sentence[-1].isascii() and sentence[-1] not in ".!?:;," else sentence


def _plain(text: str) -> str:
    """``text`` on one line, without Markdown's signs."""
    element = _element.match(text)
    text = _link.sub(lambda found: found[1] or "", element[2] if element else text)
    return _printable(_emphasis.sub("", text))


def _printable(text: str) -> str:
    if not text.isprintable():
        text = "".join(char for char in text if char.isprintable() or char.isspace())
    return " ".join(text.split())


def _cut(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    cut = text[: chars_max - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > chars_max // 2 else cut).rstrip(" ,;:") + "…"
