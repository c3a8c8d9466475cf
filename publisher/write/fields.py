"""One field at a time: strictly for the body of a request, loosely for front matter. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from builder.model import names
from builder.model.errors import MESSAGES_MAX, Detail, RequestError, cut, validation_failed
from builder.model.records import METADATA, check_metadata
from builder.model.request_bodies import Draft
from builder.text.core_yaml import core_values, spellings
from builder.text.likeness import alike
from builder.text.prompts import VARIABLE_NAME
from builder.text.values import check_size

_SHOWN_CHARS_MAX = 80
# The likeness of a word with a slip, such as "titel"; "args" is no slip of "tags".
SLIP_MIN = 0.8

# What a pattern of the schema means, by the last field in the place of a fault.
GRAMMAR = {
    "tags": f"a tag has only a-z, 0-9 and single hyphens, at most {names.TAG_CHARS_MAX} characters",
    "name": f"a variable name has letters, digits and _: {VARIABLE_NAME}",
    "repo": "must be OWNER/NAME in lower case, or OWNER/* for all that trust the job: "
    "ada/code-review",
} | dict.fromkeys(
    ("version", "base_version", "expected", "move_labels"),
    "a version is x.y.z: three whole numbers without leading zeros, like 1.2.0",
)
_TYPES = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
# Control characters give orders to terminals. Noncharacters and surrogates break readers of XML
# (XML 1.0 §2.2, https://www.w3.org/TR/xml/#charsets) and of YAML (YAML 1.2.2 §5.1,
# https://yaml.org/spec/1.2.2/#51-character-set).
_NONCHARACTERS = "\ud800-\udfff\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_control = re.compile(rf"[\x00-\x1f\x7f-\x9f{_NONCHARACTERS}]")
# A text of several lines may also have tabs and both common line ends.
_control_in_lines = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_NONCHARACTERS}]|\r(?!\n)")
_NEAR_CHARS_MAX = 40
_length = re.compile(r"Expected `(str|array)` of length (>=|<=) (\d+)")


@cache
def decoder_of(kind: type[Struct], field: str) -> msgspec.json.Decoder:
    """Returns the decoder of a field, by the schema of ``kind``."""
    (found,) = (one for one in msgspec.structs.fields(kind) if one.name == field)
    return msgspec.json.Decoder(found.type)


def decode(decoder: msgspec.json.Decoder, field: str, value: Any) -> Any:
    """Returns ``value`` as ``decoder`` reads it.

    Raises RequestError ``validation_failed`` with one detail, which names the place in ``field``.
    """
    try:
        check_size(value)
        parsed = decoder.decode(msgspec.json.encode(value))
        if field in METADATA:
            check_metadata(field, parsed)
        return parsed
    except UnicodeEncodeError as error:
        message, place = f"has half of a surrogate pair at position {error.start}: remove it", ""
    except (ValueError, RecursionError) as error:
        message, _, place = str(error).partition(" - at `$")
    place = field + place.rstrip("`")
    raise validation_failed(Detail(place, _in_words(message, place, decoder.type)))


def parse_field(field: str, value: Any) -> Any:
    """Returns ``value`` as a publication has it in ``field``, one of METADATA. Raises as
    decode, and for characters that metadata cannot have.
    """
    parsed = decode(decoder_of(Draft, field), field, value)
    check_characters(field, msgspec.to_builtins(parsed))
    return parsed


def _in_words(message: str, place: str, kind: Any) -> str:
    """Returns a fault that msgspec has found, as advice."""
    if "matching regex" in message:
        return GRAMMAR.get(re.sub(r"\[\d+\]", "", place).rpartition(".")[2], message)
    if found := _length.fullmatch(message):
        what = "characters" if found[1] == "str" else "entries"
        few = f"is longer than {int(found[3]):,} {what}: shorten it"
        return few if found[2] == "<=" else "is empty"
    if get_origin(kind) is Literal:
        return f"must be one of {', '.join(get_args(kind))}"
    return message


def parse_loosely(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns the valid ``values`` that a person wrote in a file, by field, and warnings.

    Leaves the others out, each with a warning that says why. A value of None counts as missing.
    Tags may be a string and have capitals and spaces; variables may be a mapping.
    """
    fields: dict[str, Any] = {}
    warnings: list[str] = []
    unknown: list[str] = []
    for key, value in values.items():
        if value is None:
            continue
        if key not in METADATA:
            unknown.append(key)
            continue
        try:
            tidy = _TIDY[key](value, warnings)
            if tidy != [] or value == []:  # a list without any valid item counts as missing
                fields[key] = parse_field(key, tidy)
        except (RequestError, ValueError) as error:
            warnings.append(f"Ignored front-matter key {key!r}: {_reason(error, key)}.")
    if unknown:
        listed = ", ".join(
            f"{_shown(key)}{suggest(key, METADATA)}" for key in unknown[:MESSAGES_MAX]
        )
        more = len(unknown) - MESSAGES_MAX
        listed += f" and {more:,} more" if more > 0 else ""
        warnings.append(f"Ignored unknown front-matter keys: {listed}.")
    return fields, warnings


def split_tags(text: str) -> list[str]:
    """Returns the tags in a string: between commas or semicolons if it has any, else between
    spaces.
    """
    return re.split("[,;]", text) if re.search("[,;]", text) else text.split()


def suggest(word: str, known: Iterable[str]) -> str:
    """Returns a suggestion to append to an unknown ``word``; empty if it is no slip or beginning of
    a known word.
    """
    found = alike(word, known).items()
    near = next((one for one, like in found if like >= SLIP_MIN or one.startswith(word)), None)
    return f" (did you mean {near!r}?)" if near else ""


def _reason(error: RequestError | ValueError, key: str) -> str:
    if not isinstance(error, RequestError):
        return str(error)
    place, message = error.details[0]
    return message if place == key else f"{place}: {message}"


def _shown(value: Any) -> str:
    """Returns a value as a message quotes it."""
    return cut(repr(value), _SHOWN_CHARS_MAX)


def _tidy_line(value: Any, _: list[str]) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else spellings(value)


def _tidy_text(value: Any, _: list[str]) -> Any:
    return value.strip() if isinstance(value, str) else spellings(value)


def _tidy_tags(value: Any, warnings: list[str]) -> Any:
    value = spellings(value)
    if isinstance(value, str):
        value = split_tags(value)
    if not isinstance(value, list):
        return value
    tags = []
    for item in value:
        word = str(item) if isinstance(item, str | int) and not isinstance(item, bool) else ""
        word = word.strip()
        tag = re.sub(r"[\s_]+", "-", word.lower())
        if why := names.why_reserved("tag", tag):
            warnings.append(f"Ignored tag {_shown(item)}: {why}.")
        elif names.is_name(tag, names.TAG_CHARS_MAX):
            tags.append(tag)
        elif word or not isinstance(item, str):
            warnings.append(f"Ignored tag {_shown(item)}: {GRAMMAR['tags']}.")
    tags = list(dict.fromkeys(tags))
    for tag in tags[names.TAGS_PER_REPO_MAX :]:
        warnings.append(
            f"Ignored tag {tag!r}: a prompt has at most {names.TAGS_PER_REPO_MAX} tags."
        )
    return tags[: names.TAGS_PER_REPO_MAX]


def _tidy_variables(value: Any, warnings: list[str]) -> Any:
    if isinstance(value, dict):
        entries = [
            {**spec, "name": name} if isinstance(spec, dict) else {"name": name, "default": spec}
            for name, spec in value.items()
        ]
    elif isinstance(value, list):
        entries = [{"name": item} if isinstance(item, str) else item for item in value]
    else:
        return spellings(value)
    variables = []
    for entry in entries:
        try:
            variables += parse_field("variables", [_tidy_variable(entry)])
        except (RequestError, ValueError) as error:
            name = entry.get("name") if isinstance(entry, dict) else spellings(entry)
            message = error.details[0].message if isinstance(error, RequestError) else error
            warnings.append(f"Ignored variable {_shown(name)}: {message}.")
    return variables


def _tidy_variable(entry: Any) -> Any:
    """Returns a variable whose texts are kept as they are spelled. For types other than string, the
    default, example and enum become values.
    """
    if not isinstance(entry, dict):
        return spellings(entry)
    if entry.get("default") is not None:
        entry = {"type": _TYPES.get(type(entry["default"]), "string"), **entry}
    texts = {"name", "description", "type"}
    if entry.get("type", "string") == "string":
        texts |= {"default", "example", "enum"}
    return {key: (spellings if key in texts else core_values)(item) for key, item in entry.items()}


_TIDY = {
    "title": _tidy_line,
    "description": _tidy_text,
    "tags": _tidy_tags,
    "license": _tidy_line,
    "variables": _tidy_variables,
    "parameters": lambda value, _: core_values(value),
}


def check_characters(field: str, value: Any) -> None:
    """Raises RequestError ``validation_failed`` where a text in ``value`` has a control character
    or a noncharacter. The detail names the place.

    Only a license must be one line.
    """
    pattern = _control if field == "license" else _control_in_lines
    for place, text in _texts(field, value):
        if found := pattern.search(text):
            near = cut(repr(text[max(found.start() - 10, 0) :]), _NEAR_CHARS_MAX)
            message = f"has the control character U+{ord(found[0]):04X} in {near}: remove it"
            raise validation_failed(Detail(place, message))


def without_controls(text: str) -> str:
    """Returns ``text`` of several lines with a space for each character that ``check_characters``
    refuses.
    """
    return _control_in_lines.sub(" ", text)


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Each text in ``value`` with its place, keys included."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield place, key
            yield from _texts(f"{place}.{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(f"{place}[{index}]", item)
