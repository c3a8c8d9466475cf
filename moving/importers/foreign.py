"""Converts metadata of other conventions: dotprompt, prompty, GitHub Models, Agent Skills. Pure.

Their keys do not contradict each other, so one function reads them all. Unknown keys stay, so that
the reader of the hub's own keys warns of them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

from builder.model.errors import cut
from builder.model.records import Variable, VariableType

_PARAMETERS = {
    "maxTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "responseFormat": "response_format",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
}
_TYPES = {kind: kind for kind in get_args(VariableType)} | {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
# Keys that tell coding assistants how and where to run a prompt.
_OF_ASSISTANTS = tuple(
    "mode agent tools allowed-tools applyTo argument-hint globs alwaysApply".split()
)
# Settings of a connection that reveal neither its address nor a credential.
_HARMLESS = {"type", "name", "kind", "api_version"}
_secret = re.compile("key|secret|token|password", re.IGNORECASE)
# A key of picoschema: the name, ? if it is optional, and in parentheses a container with its
# description.
_pico_key = re.compile(
    r"(?P<name>\w+)(?P<optional>\??)(?:\((?P<kind>\w+)(?:,\s*(?P<about>.*))?\))?"
)


def translate(front: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """``front`` in the hub's keys, and the author (empty if unnamed)."""
    ours = dict(front)
    metadata = ours.pop("metadata") if isinstance(ours.get("metadata"), dict) else {}
    for key in ("title", "tags", "license"):
        if key in metadata:
            ours.setdefault(key, metadata[key])
    for key in ("displayName", "name"):
        if isinstance(ours.get(key), str):
            title = ours.pop(key)
            ours["title"] = ours.get("title") or title
    # ``template`` says how to read the body; the hub gives versions their numbers.
    for key in ("template", "version"):
        ours.pop(key, None)
    if parameters := _take_parameters(ours):
        ours["parameters"] = parameters
    if variables := _take_variables(ours):
        ours["variables"] = variables
    named = (place.get(key) for place in (front, metadata) for key in ("authors", "author"))
    authors = next(filter(None, named), None)
    for key in ("authors", "author"):
        ours.pop(key, None)
    return ours, _first(authors)


def check_connection(front: dict[str, Any]) -> list[str]:
    """Warns if prompty's connection settings have addresses, since the text is published with them.
    References such as ``${env:KEY}`` reveal nothing.

    Raises ValueError if they have a key.
    """
    model = _dict(front.get("model"))
    found = [
        f"model.{part}.{key}"
        for part in ("configuration", "connection")
        for key, value in _dict(model.get(part)).items()
        if key not in _HARMLESS and type(value) is str and not value.startswith("${")
    ]
    shown = cut(", ".join(found), 200)
    if any(_secret.search(name) for name in found):
        raise ValueError(f"has a secret in its front matter ({shown}). Remove it: texts are public")
    return [f"The front matter is published, with {shown}."] if found else []


def _first(authors: Any) -> str:
    first = authors[0] if isinstance(authors, list) and authors else authors
    return first if isinstance(first, str) else ""


def _take_parameters(ours: dict[str, Any]) -> dict[str, Any]:
    """The model and its settings, removed from ``ours``. Values under ``parameters`` win."""
    parameters: dict[str, Any] = {}
    if isinstance(ours.get("model"), str):
        parameters["model"] = ours.pop("model")
    elif isinstance(ours.get("model"), dict):
        model = ours.pop("model")
        # Nothing else of the configuration, which has addresses and keys.
        parameters["model"] = model.get("id") or _dict(model.get("configuration")).get("name")
        options = dict(_dict(model.get("options")))
        others = _dict(options.pop("additionalProperties", None))
        parameters |= _dict(model.get("parameters")) | options | others
    for key in _OF_ASSISTANTS:
        if ours.get(key) in ("", []):
            del ours[key]
        elif _is_setting(ours.get(key)):
            parameters[key] = ours.pop(key)
    for key in ("config", "modelParameters"):
        if isinstance(ours.get(key), dict):
            parameters |= ours.pop(key)
    if isinstance(ours.get("responseFormat"), str):
        parameters["responseFormat"] = _response_format(ours)
    parameters |= _dict(ours.get("parameters"))
    return {
        _PARAMETERS.get(key, key): value for key, value in parameters.items() if value is not None
    }


def _is_setting(value: Any) -> bool:
    """True for a text or a list of texts."""
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(isinstance(one, str) and one.strip() for one in texts)


def _response_format(ours: dict[str, Any]) -> dict[str, Any]:
    """The response format of GitHub Models in the form of models' APIs, removed from ``ours``."""
    kind = ours.pop("responseFormat")
    try:
        schema = json.loads(ours["jsonSchema"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return {"type": kind}  # an unreadable schema stays, and causes a warning
    del ours["jsonSchema"]
    return {"type": kind, "json_schema": schema}


def _take_variables(ours: dict[str, Any]) -> list[dict[str, Any]]:
    """The declared inputs, removed from ``ours``. Values under ``variables`` win."""
    if ours.get("variables"):
        return ours["variables"]
    variables: list[dict[str, Any]] = []
    if isinstance(ours.get("input"), dict):
        source = ours.pop("input")
        variables = list(_read_schema(_dict(source.get("schema"))))
        _fill(variables, "default", _dict(source.get("default")))
    elif isinstance(ours.get("inputs"), dict | list):
        variables = list(_read_inputs(ours.pop("inputs")))
    if isinstance(ours.get("sample"), dict):
        _fill(variables, "example", ours.pop("sample"))
    return variables


def _fill(variables: list[dict[str, Any]], key: str, values: dict[str, Any]) -> None:
    named = {variable["name"]: variable for variable in variables}
    for name, value in values.items():
        if name not in named:
            named[name] = {"name": name}
            variables.append(named[name])
        # If there are two defaults, the schema's own one leaves the input required.
        if key == "default" and named[name].get("default") is None:
            named[name].pop("required", None)
        named[name][key] = value


def _read_schema(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The variables of an object's JSON schema, or of picoschema."""
    if isinstance(schema.get("properties"), dict):
        names = schema.get("required")
        required = names if isinstance(names, list) else []
        for name, spec in schema["properties"].items():
            # "required" inside an object is about its own properties.
            yield _variable(name, _dict(spec) | {"required": name in required})
        return
    for key, spec in schema.items():
        found = _pico_key.fullmatch(str(key))
        if not found:
            continue  # (*): any other key
        about = {"description": found["about"] or "", "required": not found["optional"]}
        if found["kind"] == "enum":
            about["enum"] = spec
        elif found["kind"]:
            about["type"] = found["kind"]
        elif isinstance(spec, str):
            about["type"], _, description = map(str.strip, spec.partition(","))
            about["description"] = description
        else:
            about["type"] = "object"
        yield _variable(found["name"], about)


def _read_inputs(inputs: dict[str, Any] | list[Any]) -> Iterator[dict[str, Any]]:
    """The variables of prompty's inputs: by name, or a list. A plain value is an example."""
    if isinstance(inputs, dict):
        for name, spec in inputs.items():
            yield _variable(name, spec if isinstance(spec, dict) else {"example": spec})
    else:
        for spec in inputs:
            if isinstance(spec, dict) and isinstance(spec.get("name"), str):
                yield _variable(spec["name"], spec)


def _variable(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    about = {**spec, "name": name}
    about["type"] = _TYPES.get(str(spec.get("type") or spec.get("kind")))
    about.setdefault("example", spec.get("sample"))
    about.setdefault("enum", spec.get("enumValues"))
    if about["example"] is None and isinstance(spec.get("examples"), list):
        about["example"] = next(iter(spec["examples"]), None)
    return {key: about[key] for key in Variable.__struct_fields__ if about.get(key) is not None}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
