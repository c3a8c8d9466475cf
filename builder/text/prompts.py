"""What a prompt's text says of itself: front matter and variables.

Pure functions of text. The front matter block follows the field's convention (dotprompt,
prompty, SKILL.md): a YAML mapping between two lines of three hyphens, at the very start. YAML is
bounded before it is loaded, so no text takes long.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import yaml
from msgspec import UNSET, UnsetType

from builder.model.records import FRONT_MATTER_BYTES_MAX

VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"

# From left to right: an escaped opening is taken before it can open anything.
_variable = re.compile(r"\\\{\{|\{\{[ \t]*(" + VARIABLE_NAME + r")[ \t]*\}\}")
# The line before front matter, and the line after it.
_fence = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


class Document(NamedTuple):
    """A prompt's text, taken apart. ``front`` is None where there is no front matter block.

    ``over_limit``: the reason why a block is too large to be read as front matter, else empty.
    """

    front: dict[str, Any] | None
    body: str
    warnings: list[str]
    over_limit: str = ""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Safe YAML in which a date stays the text that it is, as in JSON, and so does 1:30."""


_Loader.yaml_implicit_resolvers = {
    first: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
    for first, entries in _Loader.yaml_implicit_resolvers.items()
}


def _decimal(construct: Callable[[Any, Any], int | float]) -> Callable[[Any, Any], Any]:
    """``construct`` without the numbers to base 60, whose digits take quadratic time."""

    def construct_decimal(loader: Any, node: yaml.ScalarNode) -> int | float | str:
        text = loader.construct_scalar(node)
        return text if ":" in text else construct(loader, node)

    return construct_decimal


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal(_Loader.construct_yaml_int))
_Loader.add_constructor("tag:yaml.org,2002:float", _decimal(_Loader.construct_yaml_float))

YAML_TOKENS_MAX = 2_000
# libyaml recurses on the C stack: a text of brackets alone would end the process.
YAML_DEPTH_MAX = 50
NUMBER_BITS_MAX = 1023
_OPENING = (
    yaml.BlockMappingStartToken, yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken,
)  # fmt: skip
_CLOSING = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)


def parse_document(
    text: str, *, bytes_max: int = FRONT_MATTER_BYTES_MAX, tokens_max: int = YAML_TOKENS_MAX
) -> Document:
    """Split ``text`` into front matter, of at most ``bytes_max`` with its lines of hyphens and
    ``tokens_max`` of YAML, and body.

    A block that is not a YAML mapping, or is too large, is prompt text; a warning says so. Never
    raises.
    """
    opening = _fence.match(text)
    closing = opening and _fence.search(text, opening.end())
    if not closing:
        return Document(None, text, [])
    try:
        size = len(text[: closing.end()].encode(errors="surrogatepass"))
        if size > bytes_max:
            raise _OverLimit(f"it has {size:,} bytes; the limit is {bytes_max:,}")
        # An empty line in the fence's place, so that errors name the lines of the text.
        front = load_yaml("\n" + text[opening.end() : closing.start()], tokens_max)
    except ValueError as error:
        reason = str(error) if isinstance(error, _OverLimit) else ""
        told = f"The front matter is invalid and was kept as text: {error}."
        return Document(None, text, [told], reason)
    if not isinstance(front, dict):
        told = "The block between the --- lines is not a mapping and was kept as text."
        return Document(None, text, [told])
    return Document(front, text[closing.end() :], [])


def body_of(text: str, front_matter_bytes: int | UnsetType) -> str:
    """``text`` without its front matter, as long as its record says; parsed only if that does
    not say.
    """
    if front_matter_bytes is UNSET:
        return parse_document(text).body
    return text.encode()[front_matter_bytes:].decode() if front_matter_bytes else text


class _OverLimit(ValueError):
    pass


def load_yaml(text: str, tokens_max: int = YAML_TOKENS_MAX) -> Any:
    """YAML to what JSON can hold. Raises ValueError with one line that says what is wrong.

    No more than ``tokens_max`` tokens are read, nor YAML_DEPTH_MAX levels.
    """
    try:
        _check_tokens(text, tokens_max)
        return _as_json(_load(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(
            f"invalid YAML{where}: {getattr(error, 'problem', None) or 'malformed'}"
        ) from None


def _load(text: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except (AttributeError, IndexError, KeyError):  # what PyYAML makes of "!!bool maybe"
        raise ValueError("invalid YAML: a value does not match its tag (!!type)") from None
    except ValueError:  # Python's words for "!!int x", and for a number of 5,000 digits
        raise ValueError("invalid YAML: a number cannot be read") from None


def _check_tokens(text: str, tokens_max: int) -> None:
    depth = 0
    for count, token in enumerate(yaml.scan(text, _Loader), start=1):
        if count > tokens_max:
            raise _OverLimit(f"it has more than {tokens_max:,} YAML tokens")
        # An alias may stand for itself or multiply: a few bytes can become gigabytes of JSON.
        if isinstance(token, yaml.AliasToken):
            raise ValueError("YAML aliases (*name) are not supported; repeat the value")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > YAML_DEPTH_MAX:
            raise ValueError(f"its YAML is nested deeper than {YAML_DEPTH_MAX} levels")


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if (isinstance(value, float) and not math.isfinite(value)) or (
        isinstance(value, int) and value.bit_length() > NUMBER_BITS_MAX
    ):
        raise ValueError("JSON has no such number; use a smaller, finite one")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"JSON has no value of type {type(value).__name__}")


def variable_names(text: str) -> list[str]:
    r"""The names of the ``{{variables}}`` in ``text``, each once, as they first appear.

    ``\{{`` is a literal ``{{``.
    """
    return list(dict.fromkeys(filter(None, _variable.findall(text))))


def mark_variables(text: str, mark: Callable[[str, str], str]) -> str:
    r"""``text`` with ``mark(name, placeholder)`` in the place of each ``{{variable}}``, and ``{{``
    for ``\{{``.
    """
    return _variable.sub(lambda found: mark(found[1], found[0]) if found[1] else "{{", text)


def fill(text: str, values: Mapping[str, str]) -> str:
    r"""``text`` with these values in the place of its ``{{variables}}``, in one pass, and ``{{``
    for ``\{{``. A variable without a value stays.
    """
    return mark_variables(text, values.get)


def filled_chars(text: str, values: Mapping[str, str]) -> int:
    """An upper bound of the characters that ``fill`` gives, without making them."""
    return len(text) + sum(len(values.get(name, "")) for name in _variable.findall(text))
