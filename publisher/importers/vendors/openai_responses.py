"""Saved responses of OpenAI's API, as versions of the prompts that they were made with. Pure.

Follows ``Response`` of the published OpenAPI description: what it says of a reusable prompt is its
id, its version and the values of its variables, while ``instructions`` has the text or messages
with these values filled in.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from builder.model.names import ORDINAL_MAX
from builder.model.records import CONTENT_BYTES_MAX, Message
from publisher.importers.chats import left_out, text_of_parts, to_role
from publisher.importers.items import Revision
from publisher.importers.times import to_time
from publisher.importers.vendors.reading import get_text, list_names
from publisher.write.fields import parse_loosely

# The least that the API takes; what it answers beyond the prompt is of no use.
OUTPUT_TOKENS_MIN = 16
# What a call that asks for the prompt alone sends, whatever the prompt itself says.
ASKED = {"max_output_tokens": OUTPUT_TOKENS_MIN, "tool_choice": "none"}

# Shorter values stand in many a text by chance.
_VALUE_CHARS_MIN = 8
_VALUES_MAX = 200
# As every response has them of which nothing else was asked.
_USUAL = {
    "temperature": (1,), "top_p": (1,), "tool_choice": ("auto",), "tools": ([],),
    "parallel_tool_calls": (True,), "truncation": ("disabled",), "top_logprobs": (0,),
    "text": ({"format": {"type": "text"}}, {"format": {"type": "text"}, "verbosity": "medium"}),
    "reasoning": ({},),
}  # fmt: skip
_PARAMETERS = (
    "model", "temperature", "top_p", "max_output_tokens", "reasoning", "text", "tools",
    "tool_choice", "parallel_tool_calls", "max_tool_calls", "top_logprobs", "truncation",
)  # fmt: skip
# Of a tool on another server: what it is called with.
_SECRETS = ("authorization", "headers")


class Saved(NamedTuple):
    """A response, as far as it says something of its prompt. ``number`` is the version's, None
    where the response does not say it. ``back`` and ``left`` name the variables whose values were
    filled in: those that are placeholders again, and those that are not.
    """

    where: str
    id: str
    number: int | None
    created: float
    prompt: str | list[Message]
    parameters: dict[str, Any]
    back: list[str]
    left: list[str]
    warnings: list[str]

    def text(self) -> str:
        """Which responses of one version say the same."""
        return repr(self.prompt)

    def to_revision(self, labels: tuple[str, ...]) -> Revision:
        """The version of the prompt that this response shows."""
        fields, warnings = parse_loosely({"parameters": self.parameters or None})
        return Revision(
            where=self.where,
            prompt=self.prompt,
            fields=fields,
            warnings=list(dict.fromkeys([*self.warnings, *self._told(), *warnings])),
            convention="mustache",
            published_at=to_time(self.created),
            labels=labels,
            number=self.number,
        )

    def _told(self) -> Iterator[str]:
        if self.back:
            yield (
                "Its variables were filled in when it was saved. Put back where their values "
                f"stood: {_list_variables(self.back)}. Compare the text with the prompt at OpenAI."
            )
        if self.left:
            yield (
                "Its variables were filled in when it was saved. Not put back: "
                f"{_list_variables(self.left)}. Look for their values in the text, and replace "
                "them."
            )


def _list_variables(names: list[str]) -> str:
    return list_names(f"{{{{{name}}}}}" for name in names)


def read_response(where: str, value: Any) -> Saved:
    """Raises ValueError, whose message goes on after ``where``."""
    if not isinstance(value, dict) or "instructions" not in value:
        raise ValueError("is no response of OpenAI's API")
    prompt = value.get("prompt")
    if not isinstance(prompt, dict) or not isinstance(prompt.get("id"), str) or not prompt["id"]:
        raise ValueError("is a response that was made without a reusable prompt")
    warnings: list[str] = []
    texts = _read_instructions(value.get("instructions"), warnings)
    values = prompt.get("variables")
    texts, back, left = _put_back(texts, values if isinstance(values, dict) else {})
    created = value.get("created_at")
    return Saved(
        where, prompt["id"], read_number(prompt.get("version")),
        created if isinstance(created, int | float) else math.inf,
        texts, _read_parameters(value, warnings), back, left, warnings,
    )  # fmt: skip


def _read_instructions(value: Any, warnings: list[str]) -> str | list[Message]:
    """A text, or the messages in a list of items. Raises ValueError if there are none."""
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, list):
        raise ValueError("has no instructions, which is where the prompt's text is")
    messages: list[Message] = []
    for item in value:
        kind = item.get("type") or "message" if isinstance(item, dict) else None
        if kind == "message":
            text, told = text_of_parts(item.get("content"))
            warnings += told
            if text.strip():
                messages.append(Message(to_role(str(item.get("role"))), text))
        elif isinstance(kind, str):
            warnings.append(left_out(kind))
        else:
            raise ValueError("has an entry in its instructions that is no message")
    if not messages:
        raise ValueError("has no message with a text")
    return messages


def read_number(version: Any) -> int | None:
    """The number of a version; None if it has none."""
    if isinstance(version, int) and not isinstance(version, bool):
        version = str(version)
    if not isinstance(version, str) or not re.fullmatch("[0-9]{1,9}", version):
        return None
    return int(version) if 1 <= int(version) <= ORDINAL_MAX else None


def _put_back(
    prompt: str | list[Message], values: Mapping[str, Any]
) -> tuple[str | list[Message], list[str], list[str]]:
    """``prompt`` with placeholders again where values can only have come from variables; the
    variables of which that is so, and the others that were filled in.
    """
    plain = {name: get_text(one, "text") or one for name, one in values.items()}
    filled = {name: one for name, one in plain.items() if not _is_itself(name, one)}
    texts = [prompt] if isinstance(prompt, str) else [one.content for one in prompt]
    chars = sum(map(len, texts))
    sure = {
        one: name for name, one in filled.items()
        if len(filled) <= _VALUES_MAX and chars <= CONTENT_BYTES_MAX
        and _is_sure(one, filled.values(), texts)
    }  # fmt: skip
    # Values that do not overlap are no longer than the texts that they stand in.
    sure = sure if sum(map(len, sure)) <= chars else {}
    if sure:
        pattern = re.compile("|".join(re.escape(one) for one in sure))
        texts = [pattern.sub(lambda found: f"{{{{{sure[found[0]]}}}}}", one) for one in texts]
        prompt = (
            texts[0] if isinstance(prompt, str)
            else [Message(old.role, new) for old, new in zip(prompt, texts, strict=True)]
        )  # fmt: skip
    back = sorted(sure.values())
    return prompt, back, sorted(filled.keys() - back)


def _is_itself(name: str, value: Any) -> bool:
    """Whether the value of a variable is its placeholder."""
    text = "".join(value.split()) if isinstance(value, str) else ""
    return text == f"{{{{{name}}}}}"


def _is_sure(value: Any, values: Any, texts: list[str]) -> bool:
    """Whether a value stands in the texts, and cannot be a part of another value, or chance."""
    return (
        isinstance(value, str)
        and len(value.strip()) >= _VALUE_CHARS_MIN
        and sum(isinstance(one, str) and value in one for one in values) == 1
        and any(value in text for text in texts)
    )


def _read_parameters(value: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The model and its settings, without those that every response has."""
    asked = value.get("max_output_tokens") == OUTPUT_TOKENS_MIN
    found: dict[str, Any] = {}
    for key in _PARAMETERS:
        one = _without_nulls(value.get(key))
        if isinstance(one, dict) and "format" in one:
            one["format"] = _without_nulls(one["format"])
        elif key == "tools" and isinstance(one, list):
            one = [_without_secrets(_without_nulls(tool), warnings) for tool in one]
        if one is None or one in _USUAL.get(key, ()) or (asked and one == ASKED.get(key)):
            continue
        found["max_tokens" if key == "max_output_tokens" else key] = one
    return found


def _without_nulls(value: Any) -> Any:
    """``value`` as the API sends it, also where OpenAI's SDK has written it: with null for all
    that is missing, and in Python's names.
    """
    if not isinstance(value, dict):
        return value
    names = {"schema_": "schema", "async_": "async"}
    return {names.get(key, key): one for key, one in value.items() if one is not None}


def _without_secrets(tool: Any, warnings: list[str]) -> Any:
    if not isinstance(tool, dict) or not any(key in tool for key in _SECRETS):
        return tool
    warnings.append(f"Left out {' and '.join(_SECRETS)} of tools, which can have keys.")
    return {key: one for key, one in tool.items() if key not in _SECRETS}
