"""The content of the page about the API, read from the API document. Pure.

The document is the only source, except for the error codes.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from builder.model.routes import BY_NAME

# What examples of writing are about. The shell has the reader's own handle and token.
_WRITTEN = {"owner": "$HUB_OWNER", "name": "hello", "label": "production"}
_BODY_EXAMPLES = {
    "content": "Say hello to {{name}}.",
    "token": "$ID_TOKEN",
    "repo": "$HUB_OWNER/hello",
    "version": "1.0.0",
}
ZIPS = ("version_skill_archive", "version_plugin")
# Besides binary answers, one that is written later, and the source of this page.
_UNSHOWN = (*ZIPS, "hub", "openapi")
# Parameters of addresses.
_NAMES = ("owner", "name", "version", "label", "file_path", "tag", "sort", "page")
Values = tuple[tuple[str, str], ...]


class Examples(NamedTuple):
    """Values of parameters that name prompts of this hub: any prompt; a tag; a prompt whose latest
    version has changes; one with a label; one with files. Each is empty if the hub has none.
    """

    any: Values = ()
    tagged: Values = ()
    changed: Values = ()
    labelled: Values = ()
    folder: Values = ()

    def of(self, id: str, url: str) -> dict[str, str] | None:
        """The values for an operation that reads; None if this hub has none."""
        named = {"diff": "changed", "version_file": "folder", "version_plugin": "folder"}.get(id)
        named = named or ("labelled" if "/labels" in url else "tagged" if "{tag}" in url else "any")
        values = dict(getattr(self, named)) | {"sort": "new", "page": "1"}
        return values if all(f"{{{one}}}" not in url or one in values for one in _NAMES) else None

    def connect(self) -> dict[str, str]:
        """The values for the page about clients."""
        return dict(self.any) or {"owner": "OWNER", "name": "NAME", "version": "1.0.0"}

    def files(self) -> dict[str, str]:
        """The files of the answers that a page can show, by operation."""
        found = {}
        for route in BY_NAME.values():
            values = self.of(route.name, route.url)
            if not route.summary or route.name in _UNSHOWN or values is None:
                continue
            named = "list" if route.name == "repos" else route.name
            found[route.name] = values.get("file") or BY_NAME[named].file_for(
                **{key: values[key] for key in _NAMES if f"{{{key}}}" in BY_NAME[named].url}
            )
        return found


# So much of an answer is shown: of a text, of each text in JSON, of each record, and of each list.
TEXT_CHARS, JSON_CHARS, FIELDS, ENTRIES = 240, 48, 6, 1
# JSON that is longer is shown as a text.
ANSWER_BYTES_READ = 65_536


def shown(data: bytes) -> str:
    """The beginning of an answer, JSON indented; "…" stands for what is left out."""
    if data.startswith(b'{"data":') and len(data) < ANSWER_BYTES_READ:
        text = json.dumps(_begun(json.loads(data)), ensure_ascii=False, indent=2)
        return text.replace('"…": "…"', "…").replace('"…"', "…")
    return _cut(data.decode(errors="ignore"), TEXT_CHARS)


def _begun(value: Any) -> Any:
    if isinstance(value, dict):
        fields = [(key, _begun(one)) for key, one in value.items()]
        return dict(fields[:FIELDS] + [("…", "…")] * (len(value) > FIELDS))
    if isinstance(value, list):
        return [*map(_begun, value[:ENTRIES]), *["…"] * (len(value) > ENTRIES)]
    return _cut(value, JSON_CHARS) if isinstance(value, str) else value


def _cut(text: str, chars: int) -> str:
    return text[:chars] + "…" * (len(text) > chars)


# The text for each rule of a JSON schema. Other keywords are shown elsewhere or left out.
_RULES = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
    "pattern": "matches `{}`",
}


class Kind(NamedTuple):
    """A type, in words; ``record`` is the name of the record in it, or None."""

    words: str
    record: str | None = None


class Field(NamedTuple):
    """A field of a record, or a parameter. ``place`` is the place of a parameter: path, query or
    header. Texts may have code between backticks.
    """

    name: str
    kind: Kind
    is_required: bool
    rules: list[str]
    description: str
    place: str = ""


class Answer(NamedTuple):
    """The response of an operation with one status; ``fields`` are those of its envelope."""

    status: str
    description: str
    media: str
    fields: list[Field]


class Operation(NamedTuple):
    """A method at a URL. ``body`` is the record that it expects. ``example`` is for a shell, and
    None if no prompt of the hub suits it.
    """

    id: str
    method: str
    url: str
    summary: str
    description: str
    needs_token: bool
    parameters: list[Field]
    body: Kind | None
    answers: list[Answer]
    example: str | None


class Record(NamedTuple):
    name: str
    description: str
    fields: list[Field]


SECTIONS = ("Prompts", "Versions", "Labels", "Lists", "Publishing")


class ApiPage(NamedTuple):
    """The whole page. ``token`` explains tokens. ``groups``: the operations, by section.
    ``failures``: the codes of errors, by status.
    """

    description: str
    token: str
    groups: dict[str, list[Operation]]
    records: list[Record]
    failures: dict[HTTPStatus, list[str]]


def describe(
    document: Mapping[str, Any], statuses: Mapping[str, int], examples: Examples
) -> ApiPage:
    """The page of an OpenAPI document of this hub, and of the error codes with their statuses."""
    components = document["components"]
    groups: dict[str, list[Operation]] = {name: [] for name in SECTIONS}
    for url, item in document["paths"].items():
        for method in item:
            one = _operation(document, url, method, examples)
            groups[_section_of(one)].append(one)
    schemas = components["schemas"].items()
    return ApiPage(
        document["info"]["description"],
        components["securitySchemes"]["token"]["description"],
        groups,
        [Record(name, one.get("description", ""), _fields(one)) for name, one in schemas],
        {
            HTTPStatus(status): [code for code, its in statuses.items() if its == status]
            for status in sorted({*statuses.values()})
        },
    )


def _section_of(one: Operation) -> str:
    if one.method != "GET":
        return "Publishing"
    for section in ("Versions", "Labels"):
        if f"/{{name}}/{section.lower()}" in one.url:
            return section
    return "Prompts" if "/{name}" in one.url else "Lists"


def _operation(document: Mapping[str, Any], url: str, method: str, examples: Examples) -> Operation:
    operation, components = document["paths"][url][method], document["components"]
    base_url = document["servers"][0]["url"]
    values = examples.of(operation["operationId"], url) if method == "get" else _WRITTEN
    body, schemas = operation.get("requestBody"), components["schemas"]
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        url=url,
        summary=operation["summary"],
        description=operation.get("description", ""),
        needs_token=_needs_token(operation),
        parameters=[
            _field(one["name"], one["schema"], one["required"], one["in"])
            for one in operation["parameters"]
        ],
        body=_kind(_first_schema(body)) if body else None,
        answers=[
            _answer(status, answer, components["responses"])
            for status, answer in operation["responses"].items()
        ],
        example=values
        and _shell_example(base_url + url.format_map(values), method, operation, schemas),
    )


def _answer(status: str, answer: dict[str, Any], shared: dict[str, Any]) -> Answer:
    if "$ref" in answer:
        answer = shared[_name(answer["$ref"])]
    media = next(iter(answer.get("content", ())), "")
    schema = _first_schema(answer) if media else {}
    fields = [_field("", schema, True)] if "$ref" in schema else _fields(schema)
    return Answer("other" if status == "default" else status, answer["description"], media, fields)


def _first_schema(holder: dict[str, Any]) -> dict[str, Any]:
    return next(iter(holder["content"].values()))["schema"]


def _fields(schema: dict[str, Any]) -> list[Field]:
    required, properties = schema.get("required", ()), schema.get("properties", {})
    return [_field(name, inner, name in required) for name, inner in properties.items()]


def _field(name: str, schema: dict[str, Any], is_required: bool, place: str = "") -> Field:
    return Field(name, _kind(schema), is_required, _rules(schema), _description(schema), place)


def _kind(schema: dict[str, Any]) -> Kind:
    if "$ref" in schema:
        name = _name(schema["$ref"])
        return Kind(name, name)
    if "anyOf" in schema:
        kinds = [_kind(one) for one in schema["anyOf"]]
        record = next((kind.record for kind in kinds if kind.record), None)
        return Kind(" or ".join(kind.words for kind in kinds), record)
    if "enum" in schema:
        return Kind("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    if schema.get("type") == "array":
        inner = _kind(schema["items"]) if "items" in schema else Kind("anything")
        return Kind(f"array of {inner.words}", inner.record)
    return Kind(schema.get("type", "anything"))


def _rules(schema: dict[str, Any]) -> list[str]:
    rules = [text.format(schema[key]) for key, text in _RULES.items() if key in schema]
    for one in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
        rules += _rules(one)
    if "default" in schema:
        rules.append(f"default `{json.dumps(schema['default'])}`")
    rules += [f"like `{example}`" for example in schema.get("examples", ())]
    return rules


def _description(schema: dict[str, Any]) -> str:
    inner = (one.get("description", "") for one in schema.get("anyOf", ()))
    return schema.get("description") or next(filter(None, inner), "")


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _needs_token(operation: dict[str, Any]) -> bool:
    return {} not in operation.get("security", [{}])


def _shell_example(
    address: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> str:
    if operation["operationId"] == "repos":
        address += "?sort=new"
    # A shell expands variables only between double quotes.
    if "$" in address or "?" in address:
        address = f'"{address}"'
    # Sending a body implies POST.
    flag = "" if method in ("get", "post") else f"-X {method.upper()} "
    authorization = ' -H "Authorization: Bearer $HUB_TOKEN"' if _needs_token(operation) else ""
    if operation["operationId"] in ZIPS:
        flag = "-o skill.zip "
    command = f"curl {flag}{address}{authorization}"
    sent = operation.get("requestBody")
    if not sent or not sent["required"]:
        return command
    required = schemas[_name(_first_schema(sent)["$ref"])]["required"]
    body = json.dumps({field: _BODY_EXAMPLES[field] for field in required})
    quoted = '"{}"'.format(body.replace('"', '\\"')) if "$" in body else f"'{body}'"
    return f"{command} \\\n  -H 'Content-Type: application/json' -d {quoted}"
