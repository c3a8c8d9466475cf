"""JSON Schemas for the records of a tool's arguments and results; converts arguments to records.

Schemas are flat, because clients treat ``$ref``, ``anyOf`` and ``oneOf`` in different ways.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec

from builder.model.errors import RequestError
from mcp_app.unknown import unknown_argument

T = TypeVar("T", bound=msgspec.Struct)


@cache
def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a record, with the schemas of its records inlined."""
    (root,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    return _resolved(root, parts)


def _resolved(part: Any, parts: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_resolved(item, parts) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        part = {**parts[part["$ref"]], **part}
        del part["$ref"], part["title"]
        part.pop("description", None)  # the record's docstring is for developers
    if "enum" in part and "type" not in part:
        part = {"type": "string", **part}
    return {
        key: _resolved(value, parts)
        for key, value in part.items()
        # The description of an argument says what its default means.
        if not (key == "default" and value in ("", []))
    }


def read_arguments(given: dict[str, Any], kind: type[T]) -> T:
    """``given`` as a record. null means that an argument is left out.

    Raises RequestError ``invalid_parameter``, which names the argument and its valid values.
    """
    given = {key: value for key, value in given.items() if value is not None}
    fields = _fields(kind)
    if not given.keys() <= fields.keys():
        raise unknown_argument("tool", given, fields)
    values = {}
    for name, (type_, is_required, rule) in fields.items():
        if name in given:
            try:
                values[name] = _converted(given[name], type_)
            except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
                raise _invalid(rule) from None
        elif is_required:
            raise _invalid(rule)
    return kind(**values)


def _converted(value: Any, type_: Any) -> Any:
    # In JSON Schema, 5.0 is an integer.
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    try:
        return msgspec.convert(plain, type_)
    except msgspec.ValidationError:
        if not isinstance(value, str):
            raise
    # Some clients send an object, a list or a number as a string of its JSON.
    return _converted(msgspec.json.decode(value), type_)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, bool, str]]:
    """By name: the field's type, True if it is required, and its valid values for an error."""
    properties = schema(kind)["properties"]
    return {
        field.name: (
            field.type,
            field.required,
            f"`{field.name}` must be {describe(properties[field.name])}.",
        )
        for field in msgspec.structs.fields(kind)
    }


def describe(rules: dict[str, Any]) -> str:
    """Describes the valid values in words."""
    if "enum" in rules:
        return f"one of {', '.join(rules['enum'])}"
    if rules["type"] == "integer":
        least, most = rules["minimum"], rules.get("maximum")
        return f"a whole number from {least}" + (f" to {most}" if most else "")
    if rules["type"] == "array":
        return f"a list of at most {rules['maxItems']} texts"
    if rules["type"] == "object":
        return "an object"
    return f"a text of at most {rules['maxLength']} characters"


def _invalid(message: str) -> RequestError:
    return RequestError("invalid_parameter", message)
