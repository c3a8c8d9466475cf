"""OpenAI: reusable prompts, from saved responses of the Responses API. Pure.

OpenAI retires reusable prompts on 2026-11-30. It has neither an export nor a list of them, but a
response that was made with one has its text in ``instructions``. So saved responses are read, also
in a list, a stream of events or the results of a batch.

Follows ``Response`` of the published OpenAPI description: what it says of a reusable prompt is its
id, its version and the values of its variables, while ``instructions`` has the text or messages
with these values filled in. Not taken: the model's answer, ``metadata``, the tier, the user, and
values of variables that are not text. A response has neither a name nor a changelog, and its time
is when it was made.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from builder.model.answers import Message
from builder.model.names import ORDINAL_MAX
from builder.model.records import CONTENT_BYTES_MAX
from moving.importers.chats import left_out, text_of_parts, to_role
from moving.importers.items import Document, History, Rejection, Revision
from moving.importers.times import read_time
from moving.vendors.reading import get_text, leave_out_keys, list_names, read_number
from publisher.write.fields import parse_loosely

TITLE = "OpenAI"

# An id is long; its start is the time of creation, which is enough for a name.
_NAME_CHARS = len("pmpt_") + 16
# A call that only fetched the prompt sent these values, whatever the prompt says.
_FETCH = {"max_output_tokens": 16, "tool_choice": "none"}

# Shorter values may appear in a text by chance.
_VALUE_CHARS_MIN = 8
_VALUES_MAX = 200
# Defaults, which every response has unless the request sets others.
_USUAL = {
    "temperature": (1,),
    "top_p": (1,),
    "tool_choice": ("auto",),
    "tools": ([],),
    "parallel_tool_calls": (True,),
    "truncation": ("disabled",),
    "top_logprobs": (0,),
    "text": ({"format": {"type": "text"}}, {"format": {"type": "text"}, "verbosity": "medium"}),
    "reasoning": ({},),
}
_PARAMETERS = tuple(
    "model temperature top_p max_output_tokens reasoning text tools tool_choice "
    "parallel_tool_calls max_tool_calls top_logprobs truncation".split()
)


class Saved(NamedTuple):
    """The data that a response has of its prompt. ``number``: the version's, None if the response
    lacks it. ``back`` and ``left``: the variables whose values were filled in and that are
    placeholders again, and the others.
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
        """Equal for responses of one version with the same text."""
        return repr(self.prompt)

    def to_revision(self) -> Revision:
        """The version of the prompt that this response shows."""
        fields, warnings = parse_loosely({"parameters": self.parameters or None})
        published_at = read_time(self.created, warnings)
        return Revision(
            where=self.where,
            prompt=self.prompt,
            fields=fields,
            warnings=list(dict.fromkeys([*self.warnings, *self._notes(), *warnings])),
            convention="mustache",
            published_at=published_at,
            number=self.number,
        )

    def _notes(self) -> Iterator[str]:
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


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """A prompt for each id, with its versions in order. If a version has several responses, the one
    with most of the prompt's own text counts, with the time of the first.
    """
    found: dict[str, dict[int | str, Saved]] = {}
    for document in documents:
        for where, value in _open(document.where, document.value):
            try:
                saved = read_response(where, value)
                yield from _add(found.setdefault(saved.id, {}), saved)
            except ValueError as error:
                yield Rejection(where, str(error))
    for prompt_id, versions in found.items():
        revisions = [one.to_revision() for one in sorted(versions.values(), key=_order)]
        yield History(revisions[0].where, "", prompt_id[:_NAME_CHARS], revisions)


def _order(saved: Saved) -> tuple[int, float]:
    """The sort key: responses without a version come last, in order of time."""
    return saved.number or ORDINAL_MAX, saved.created


def _open(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The responses in a document: itself, or those of a list, an event or a batch."""
    if not isinstance(value, dict):
        yield where, value
    elif isinstance(value.get("data"), list):
        for number, one in enumerate(value["data"], start=1):
            yield f"{where}, entry {number:,}", one
    elif str(value.get("type")).startswith("response."):
        if "response" in value:  # other events are parts of the answer
            yield where, value["response"]
    elif "custom_id" in value and isinstance(value.get("response"), dict):
        yield where, value["response"].get("body")
    else:
        yield where, value


def _add(versions: dict[int | str, Saved], saved: Saved) -> Iterator[Rejection]:
    # Without a version, each own text of the prompt counts as one.
    key = saved.number or ("" if saved.left else saved.text())
    there = versions.setdefault(key, saved)
    if there is saved:
        return
    best = min(there, saved, key=lambda one: (len(one.left), len(one.back), one.created))
    other = saved if best is there else there
    versions[key] = best._replace(created=min(there.created, saved.created))
    if not (other.left or other.back) and other.text() != best.text():
        yield Rejection(
            other.where, f"has another text for version {saved.number} than {best.where}"
        )


def read_response(where: str, value: Any) -> Saved:
    """The prompt in a response. Raises ValueError, whose message follows ``where``."""
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
        where,
        prompt["id"],
        read_number(prompt.get("version")),
        created if isinstance(created, int | float) else math.inf,
        texts,
        _read_parameters(value, warnings),
        back,
        left,
        warnings,
    )


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
            text, notes = text_of_parts(item.get("content"))
            warnings += notes
            if text.strip():
                messages.append(Message(to_role(str(item.get("role"))), text))
        elif isinstance(kind, str):
            warnings.append(left_out(kind))
        else:
            raise ValueError("has an entry in its instructions that is no message")
    if not messages:
        raise ValueError("has no message with a text")
    return messages


def _put_back(
    prompt: str | list[Message], values: Mapping[str, Any]
) -> tuple[str | list[Message], list[str], list[str]]:
    """``prompt`` with placeholders again for values that can only come from variables; the names of
    these variables, and of the others that were filled in.
    """
    plain = {name: get_text(one, "text") or one for name, one in values.items()}
    filled = {name: one for name, one in plain.items() if not _is_itself(name, one)}
    texts = [prompt] if isinstance(prompt, str) else [one.content for one in prompt]
    chars = sum(map(len, texts))
    sure = {
        one: name
        for name, one in filled.items()
        if len(filled) <= _VALUES_MAX
        and chars <= CONTENT_BYTES_MAX
        and _is_sure(one, filled.values(), texts)
    }
    # Together, values that do not overlap are no longer than the texts that contain them.
    sure = sure if sum(map(len, sure)) <= chars else {}
    if sure:
        pattern = re.compile("|".join(re.escape(one) for one in sure))
        texts = [pattern.sub(lambda found: f"{{{{{sure[found[0]]}}}}}", one) for one in texts]
        prompt = (
            texts[0]
            if isinstance(prompt, str)
            else [Message(old.role, new) for old, new in zip(prompt, texts, strict=True)]
        )
    back = sorted(sure.values())
    return prompt, back, sorted(filled.keys() - back)


def _is_itself(name: str, value: Any) -> bool:
    """True if the value of a variable is its placeholder."""
    text = "".join(value.split()) if isinstance(value, str) else ""
    return text == f"{{{{{name}}}}}"


def _is_sure(value: Any, values: Any, texts: list[str]) -> bool:
    """True if a value occurs in the texts, and neither within another value nor by chance."""
    return (
        isinstance(value, str)
        and len(value.strip()) >= _VALUE_CHARS_MIN
        and sum(isinstance(one, str) and value in one for one in values) == 1
        and any(value in text for text in texts)
    )


def _read_parameters(value: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The model and its settings, without defaults that every response has."""
    is_fetch = value.get("max_output_tokens") == _FETCH["max_output_tokens"]
    found: dict[str, Any] = {}
    for key in _PARAMETERS:
        one = _without_nulls(value.get(key))
        if isinstance(one, dict) and "format" in one:
            one["format"] = _without_nulls(one["format"])
        elif key == "tools" and isinstance(one, list):
            one = leave_out_keys([_without_nulls(tool) for tool in one], warnings)
        if one is None or one in _USUAL.get(key, ()) or (is_fetch and one == _FETCH.get(key)):
            continue
        found["max_tokens" if key == "max_output_tokens" else key] = one
    return found


def _without_nulls(value: Any) -> Any:
    """``value`` as the API sends it. OpenAI's SDK writes null for missing fields, and Python's
    names.
    """
    if not isinstance(value, dict):
        return value
    names = {"schema_": "schema", "async_": "async"}
    return {names.get(key, key): one for key, one in value.items() if one is not None}
