"""LangChain's serialised prompts, read as data: nothing is imported, constructed or executed.

Follows what ``langchain_core.load.dumps`` writes, for Python and JavaScript: objects with ``lc``,
``type``, ``id`` and ``kwargs``. Taken are the texts and roles of ``PromptTemplate``,
``ChatPromptTemplate`` and ``StructuredPrompt``, literal messages, ``MessagesPlaceholder``, partial
variables, the schema of an answer, and of a model in the same sequence or binding the settings in
``_SETTINGS``. Not taken: secrets, addresses, headers and other settings of a model, images and
other parts that are not text, calls of tools, output parsers. Few-shot prompts are not serialised
by LangChain itself. Pure.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from builder.model.answers import Message
from builder.text.prompts import VARIABLE_NAME
from moving.importers.chats import left_out, tell_placeholder, text_of_parts, to_role
from moving.vendors.reading import as_dict, is_text, leave_out_keys, list_names, shorten

# Levels to which sequences, bindings and chats may nest. A deeper manifest is rejected.
LEVELS_MAX = 16

_CHATS = {"ChatPromptTemplate", "StructuredPrompt"}
_TEMPLATES = {"PromptTemplate", *_CHATS}
_ROLES = {
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
_CONVENTIONS = {"f-string": "f-string", "mustache": "mustache", "jinja2": "jinja"}
_SERIALIZED = ("constructor", "not_implemented", "secret")
_our_variable = re.compile(r"\{\{[ \t]*" + VARIABLE_NAME + r"[ \t]*\}\}")
_VARIABLES = {"f-string": "{%s}", "mustache": "{{%s}}", "jinja": "{{ %s }}"}

# Settings of how to answer, by the hub's names. Other keys may be addresses or credentials.
_SETTINGS = {
    "model_name": "model",
    "model_id": "model",
    "max_tokens_to_sample": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop_sequences": "stop",
} | {
    name: name
    for name in (
        "model temperature top_p top_k max_tokens stop seed n frequency_penalty presence_penalty "
        "logprobs top_logprobs logit_bias reasoning_effort reasoning effort thinking verbosity "
        "response_format tools tool_choice parallel_tool_calls functions function_call".split()
    )
}
# Keys that only say how to send requests. They are left out without a warning.
_ASKING = set(
    "cache callbacks disable_streaming max_retries metadata name request_timeout stream_usage "
    "streaming tags timeout verbose ls_structured_output_format".split()
)


class Template(NamedTuple):
    """A prompt with placeholders of ``convention``, and the data of its manifest.

    ``variables`` and ``parameters`` are for ``parse_loosely``; ``metadata`` is LangChain's own.
    """

    prompt: str | list[Message]
    convention: str
    variables: list[dict[str, Any]]
    parameters: dict[str, Any]
    metadata: dict[str, Any]
    warnings: list[str]


def is_manifest(value: Any) -> bool:
    """True if it is an object that LangChain serialised."""
    return isinstance(value, dict) and "lc" in value and isinstance(value.get("id"), list)


def read_manifest(value: Any) -> Template:
    """The prompt in a manifest. Raises ValueError, whose message follows a place."""
    parts = list(_find_parts(value, LEVELS_MAX))
    templates = [part for part in parts if part.name in _TEMPLATES and not part.is_cut]
    if not templates:
        names = list_names(part.name for part in parts) or "nothing that LangChain has serialised"
        raise ValueError(f"has no prompt template that can be read, only {names}")
    template, *others = templates
    warnings: list[str] = []
    if others:
        warnings.append("Left out all prompts of the sequence but the first.")
    reader = _Reader(warnings)
    reader.take(template)
    parameters: dict[str, Any] = {}
    for part in parts:
        if part.name not in _TEMPLATES and not part.name.endswith("Parser"):
            _take_settings(part, parameters, warnings)
    if template.name == "StructuredPrompt":
        _take_schema(template.kwargs, parameters, warnings)
    prompt, convention = reader.write(is_chat=template.name in _CHATS)
    metadata = as_dict(template.kwargs.get("metadata"))
    return Template(prompt, convention, reader.variables(), parameters, metadata, warnings)


class _Part(NamedTuple):
    """A serialised object. ``is_cut``: LangChain serialised only its name."""

    name: str
    kwargs: dict[str, Any]
    is_cut: bool = False


def _open(node: Any) -> _Part | None:
    """A serialised object; None for anything else, and for a secret."""
    if not is_manifest(node) or not node["id"] or not isinstance(node["id"][-1], str):
        return None
    name, kind = node["id"][-1], node.get("type")
    if kind == "not_implemented":
        return _Part(name, {}, is_cut=True)
    kwargs = node.get("kwargs")
    return _Part(name, kwargs) if kind == "constructor" and isinstance(kwargs, dict) else None


def _find_parts(node: Any, levels: int) -> Iterator[_Part]:
    """The objects of a sequence in order, each after those bound to it. Raises ValueError."""
    if not levels:
        raise ValueError(f"has sequences that are nested deeper than {LEVELS_MAX} levels")
    part = _open(node)
    if part is None:
        return
    if {"first", "last"} <= part.kwargs.keys():  # RunnableSequence, PromptPlayground
        middle = part.kwargs.get("middle")
        steps = [part.kwargs.get("first"), *(middle if isinstance(middle, list) else [])]
        for step in [*steps, part.kwargs.get("last")]:
            yield from _find_parts(step, levels - 1)
    elif part.name == "RunnableBinding":
        yield _Part(part.name, as_dict(part.kwargs.get("kwargs")))
        yield from _find_parts(part.kwargs.get("bound"), levels - 1)
    else:
        yield part


class _Piece(NamedTuple):
    """A text with placeholders, a literal text, or a variable's name."""

    kind: Literal["template", "literal", "variable"]
    text: str


class _Reader:
    """Collects the pieces of a template, then writes them in one convention."""

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings
        self._messages: list[tuple[str, list[_Piece]]] = []
        self._formats: list[str] = []
        self._variables: dict[str, dict[str, Any]] = {}

    def take(self, template: _Part) -> None:
        """Raises ValueError."""
        if template.name in _CHATS:
            self._take_chat(template.kwargs, LEVELS_MAX)
        else:
            self._messages.append(("user", [self._read_template(template)]))

    def write(self, *, is_chat: bool) -> tuple[str | list[Message], str]:
        """The prompt and its convention. Raises ValueError if there is no text."""
        convention = self._formats[0] if self._formats else "f-string"
        if len(set(self._formats)) > 1:
            self._warnings.append(
                f"Mixes the template formats {list_names(self._formats)}. All placeholders are "
                f"read as those of {convention}."
            )
        messages = [
            Message(to_role(role), "\n".join(_write(piece, convention) for piece in pieces))
            for role, pieces in self._messages
        ]
        messages = [one for one in messages if one.content.strip()]
        if not messages:
            raise ValueError("has no text")
        return (messages if is_chat else messages[0].content), convention

    def variables(self) -> list[dict[str, Any]]:
        """The declared properties of variables, beyond their names."""
        return list(self._variables.values())

    def _take_chat(self, kwargs: dict[str, Any], levels: int) -> None:
        if not levels:
            raise ValueError(f"has chats that are nested deeper than {LEVELS_MAX} levels")
        nodes = kwargs.get("messages")
        if not isinstance(nodes, list):
            raise ValueError("has no list of messages")
        for number, node in enumerate(nodes, start=1):
            part = _open(node)
            if part is None:
                raise ValueError(f"has a message {number} that LangChain has not serialised")
            if part.name in _CHATS:
                self._take_chat(part.kwargs, levels - 1)
            elif part.name == "MessagesPlaceholder":
                self._take_placeholder(part.kwargs)
            else:
                self._take_message(part, number)
        self._take_partials(kwargs)

    def _take_message(self, part: _Part, number: int) -> None:
        kind = part.name.removesuffix("PromptTemplate").removesuffix("Chunk")
        role = part.kwargs.get("role") if kind == "ChatMessage" else _ROLES.get(kind)
        if part.is_cut or (role is None and kind != "ChatMessage"):
            self._warnings.append(left_out(part.name))
            return
        if not isinstance(role, str):
            raise ValueError(f"has a message {number} without a role")
        if part.name.endswith("PromptTemplate"):
            pieces = self._read_pieces(part.kwargs.get("prompt"))
        else:
            pieces = [_Piece("literal", self._read_content(part.kwargs))]
        self._messages.append((role, pieces))

    def _read_content(self, kwargs: dict[str, Any]) -> str:
        content = kwargs.get("content")
        if isinstance(content, list):
            content = [{"text": one} if isinstance(one, str) else one for one in content]
        text, notes = text_of_parts(content)
        self._warnings += notes
        if kwargs.get("tool_calls"):
            self._warnings.append(left_out("tool_calls"))
        return text

    def _read_pieces(self, prompt: Any) -> list[_Piece]:
        pieces = []
        for node in prompt if isinstance(prompt, list) else [prompt]:
            part = _open(node)
            if part is None:
                raise ValueError("has a message whose prompt LangChain has not serialised")
            if part.name == "PromptTemplate" and not part.is_cut:
                pieces.append(self._read_template(part))
            else:
                self._warnings.append(left_out(part.name))
        return pieces

    def _read_template(self, part: _Part) -> _Piece:
        text, name = part.kwargs.get("template"), part.kwargs.get("template_format", "f-string")
        if not isinstance(text, str):
            raise ValueError("has a template that is not text")
        if not isinstance(name, str) or name not in _CONVENTIONS:
            raise ValueError(
                f"has the template format {shorten(str(name))!r}, which is none of "
                f"{', '.join(_CONVENTIONS)}"
            )
        self._formats.append(_CONVENTIONS[name])
        self._take_partials(part.kwargs)
        return _Piece("template", text)

    def _take_placeholder(self, kwargs: dict[str, Any]) -> None:
        name = kwargs.get("variable_name")
        if not is_text(name):
            raise ValueError("has a MessagesPlaceholder without a variable_name")
        self._messages.append(("user", [_Piece("variable", name)]))
        self._warnings.append(tell_placeholder(shorten(name)))
        if kwargs.get("optional") is True:
            self._variables.setdefault(name, {"name": name, "required": False})

    def _take_partials(self, kwargs: dict[str, Any]) -> None:
        for name, value in as_dict(kwargs.get("partial_variables")).items():
            if isinstance(value, str | int | float):
                self._variables[name] = {"name": name, "default": value}
            elif value:  # an optional placeholder has an empty list
                self._warnings.append(
                    f"Left out the partial variable {shorten(name)}, whose value is not text."
                )


def _write(piece: _Piece, convention: str) -> str:
    """A piece as a template of ``convention``."""
    if piece.kind == "variable":
        return _VARIABLES[convention] % piece.text
    if piece.kind == "template":
        return piece.text
    if convention == "f-string":
        return piece.text.replace("{", "{{").replace("}", "}}")
    return _our_variable.sub(r"\\\g<0>", piece.text)


def _take_settings(part: _Part, parameters: dict[str, Any], warnings: list[str]) -> None:
    """Add a model's settings to ``parameters``; existing ones win."""
    if part.is_cut:
        warnings.append(f"Left out {shorten(part.name)}, which LangChain has not serialised.")
        return
    others = []
    for name, value in (part.kwargs | as_dict(part.kwargs.get("model_kwargs"))).items():
        if value is None or name in _ASKING or name == "model_kwargs" or _is_serialized(value):
            continue
        ours = _SETTINGS.get(name)
        setting = leave_out_keys(value, warnings) if ours == "tools" else value
        if ours and _is_plain(setting) and (ours != "model" or is_text(setting)):
            parameters.setdefault(ours, setting)
        else:
            others.append(name)
    if others:
        warnings.append(f"Left out settings of {shorten(part.name)}: {list_names(others)}.")


def _take_schema(kwargs: dict[str, Any], parameters: dict[str, Any], warnings: list[str]) -> None:
    """Add the schema of a StructuredPrompt in the form of OpenAI and others."""
    schema = kwargs.get("schema_", kwargs.get("schema"))
    if not isinstance(schema, dict) or not schema or not _is_plain(schema):
        if schema:
            warnings.append("Left out the schema of the answer, which is not a JSON schema.")
        return
    name = schema.get("title") or schema.get("name")
    if isinstance(schema.get("parameters"), dict) and "properties" not in schema:
        schema = schema["parameters"]  # of a function
    cleaned = re.sub("[^A-Za-z0-9_-]+", "_", name)[:64] if is_text(name) else ""
    described = {"name": cleaned or "answer", "schema": schema}
    strict = as_dict(kwargs.get("structured_output_kwargs")).get("strict")
    if isinstance(strict, bool):
        described["strict"] = strict
    parameters["response_format"] = {"type": "json_schema", "json_schema": described}


def _is_plain(value: Any) -> bool:
    """True if it contains nothing that LangChain serialised, such as a secret."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if _is_serialized(one):
            return False
        if isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one
    return True


def _is_serialized(value: Any) -> bool:
    return isinstance(value, dict) and "lc" in value and value.get("type") in _SERIALIZED
