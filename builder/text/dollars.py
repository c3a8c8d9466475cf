r"""Placeholders such as ``${name}`` in a text, without code that looks like them. Pure.

Code also has ``${…}``. One with an expression (``${user.name}``, ``${f(x)}``, ``${PORT:-80}``,
``${#list[@]}``) shows that it is code. Then the whole fence around it stays text, and so does the
whole text if a third of its ``${…}`` are expressions. A fence without expressions is converted,
because prompts also show their templates in fences.
"""

import re
from bisect import bisect_right

# Longer ones are not names, but prose or code between braces.
READABLE_CHARS_MAX = 200
# If at least one in this many ${…} is an expression, the whole text is code.
CODE_SHARE = 3

# All patterns read each character a bounded number of times: the text inside braces has no braces,
# and is matched possessively.
pattern = re.compile(r"(?P<escape>[\\$])?\$\{(?:\$\{(?P<inner>[^{}]*+)\}\}|(?P<outer>[^{}]*+)\})")
# Text that people write as a name: words of any script, and few signs.
_readable = re.compile(r"(?:\w|[^\x00-\x7f])(?:[\w ,'/&-]|[^\x00-\x7f])*+\??")
# Signs that no name has, and names without a letter.
_code_in_name = re.compile(r" -|- |,,|,$|//|&&|^[\d_\s]*$")
# Values that editors request before a prompt is sent.
input_pattern = re.compile(
    r"input:\s*(?P<name>[\w][\w ,'/&-]{0,63}?)\s*(?:(?P<sign>[:|])(?P<more>.*))?", re.DOTALL
)
# The beginnings of a default in a shell's ${name:-default}.
_SHELL_DEFAULTS = ("-", "=", "?", "+")
# Prompty's references, which are resolved when the prompt is loaded.
_ENVIRONMENT = ("env:", "file:")
_fence_line = re.compile(r"^[ \t]*+(?P<fence>`{3,}+|~{3,}+)(?P<rest>[^\n]*+)", re.MULTILINE)
_code_span = re.compile(r"`[^`\n]*+`")


def find_all(text: str) -> list[re.Match[str]]:
    """All ``${…}`` of ``text`` that are not escaped."""
    return [one for one in pattern.finditer(text) if not one["escape"] and content_of(one).strip()]


def find_names(text: str) -> list[re.Match[str]]:
    """The ``${…}`` of ``text`` that are placeholders, not code."""
    found = find_all(text)
    codes = [one.start() for one in found if _is_code(one)]
    if len(codes) * CODE_SHARE >= max(len(found), 1):
        return []
    names = [one for one in found if is_name(one)]
    if not codes:
        return names
    borders = fence_borders(text)
    spoilt = {bisect_right(borders, code) for code in codes}
    # With an odd number of borders before it, it is in a fence.
    return [
        one
        for one in names
        if (place := bisect_right(borders, one.start())) % 2 == 0 or place not in spoilt
    ]


def content_of(found: re.Match[str]) -> str:
    """The text between the braces."""
    return found["outer"] if found["inner"] is None else found["inner"]


def split(found: re.Match[str]) -> tuple[str, str | None]:
    """The name in ``${name:default}``, and the default."""
    name, colon, default = content_of(found).partition(":")
    return " ".join(name.split()), default.strip() if colon else None


def is_name(found: re.Match[str]) -> bool:
    """True if it holds a name, and neither an expression nor a reference to the environment."""
    return not _is_code(found) and not content_of(found).startswith(_ENVIRONMENT)


def _is_code(found: re.Match[str]) -> bool:
    name, _, default = content_of(found).partition(":")
    return (
        len(name) > READABLE_CHARS_MAX
        or not _readable.fullmatch(name.strip())
        or _code_in_name.search(name) is not None
        or default.startswith(_SHELL_DEFAULTS)
    )


def fence_borders(text: str) -> list[int]:
    """The positions where fences of code begin and end, in turn. The last one may have no end."""
    borders: list[int] = []
    opening = ""
    for line in _fence_line.finditer(text):
        if not opening:
            opening = line["fence"]
            borders.append(line.start())
        elif line["fence"].startswith(opening) and not line["rest"].strip():
            opening = ""
            borders.append(line.end())
    return borders


def without_fences(text: str) -> str:
    """``text`` without its fences of code."""
    borders = fence_borders(text)
    starts = [0, *borders[1::2]]
    ends = [*borders[::2], len(text)]
    return "\n".join(text[start:end] for start, end in zip(starts, ends, strict=False))


def without_code(text: str) -> str:
    """``text`` without its fences and code spans."""
    return _code_span.sub("", without_fences(text))
