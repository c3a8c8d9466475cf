"""The API document (OpenAPI 3.1), made from the table of routes and the records."""

import re
from typing import Any

import msgspec

from builder import names, records
from builder.render import json_bytes
from builder.routes import (
    GRAMMAR,
    JSON,
    QUERY_CHARS_MAX,
    ROUTES,
    SORTS,
    Route,
)  # fmt: skip
from builder.settings import Settings

# The record that a route of the API answers with: alone, or as the rows of a list.
_SINGLE = {
    "repo": records.Repo, "version": records.Version, "user": records.User, "hub": records.Hub,
}  # fmt: skip
_LIST = {
    "repos": records.RepoSummary, "list": records.RepoSummary, "tag_list": records.RepoSummary,
    "versions": records.VersionEntry, "tags": records.Tag,
}  # fmt: skip

_QUERY = {
    "page": {"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 1},
    "sort": {"type": "string", "enum": list(SORTS)},
    "tag": {
        "type": "string",
        "pattern": f"^{names.NAME_PATTERN}(?:,{names.NAME_PATTERN})*$",
        "description": "One tag, or several with commas between them: repos with all of them.",
    },
    "q": {
        "type": "string",
        "maxLength": QUERY_CHARS_MAX,
        "description": "Words that must all be found; the last also as the beginning of one. "
        "Sorted by relevance unless sort is given.",
    },
    "version": {"type": "string", "pattern": f"^{names.VERSION_PATTERN}$"},
}
_PARAMETERS = {"repos": ("page", "sort", "tag", "q"), "raw": ("version",)}
_CHARS_MAX = {
    "owner": names.OWNER_CHARS_MAX, "name": names.REPO_CHARS_MAX, "tag": names.TAG_CHARS_MAX,
}  # fmt: skip


def document(settings: Settings) -> bytes:
    """The document as JSON."""
    kinds = {*_SINGLE.values(), *_LIST.values(), records.ListMeta, records.ErrorEnvelope}
    _, schemas = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    return json_bytes(
        {
            "openapi": "3.1.0",
            "info": {
                "title": settings.site_name,
                "version": "1",
                "summary": "The read API of a hub: prompts with their versions, as plain files.",
                "description": "No key is needed. Every answer has an ETag and may be kept as "
                "long as Cache-Control says. A host that has only the files ignores queries: "
                "meta tells which filters were applied, and the paths with an extension, "
                "listed in hub.json, hold everywhere.",
            },
            "servers": [{"url": settings.base_url}],
            "paths": {route.url: {"get": _operation(route)} for route in ROUTES if route.summary},
            "components": {"schemas": schemas, "responses": {"Error": _error()}},
        }
    )


def _operation(route: Route) -> dict[str, Any]:
    ok: dict[str, Any] = {
        "description": route.summary,
        "headers": {
            "ETag": {"schema": {"type": "string"}},
            "Cache-Control": {"schema": {"type": "string"}},
        },
        "content": {route.media: {"schema": _schema(route)}},
    }
    responses = {"200": ok, "304": {"description": "Not changed since the ETag given"}}
    if route.media.startswith("text/"):
        responses["206"] = {
            "description": "The bytes of a Range",
            "content": {route.media: {"schema": {"type": "string"}}},
        }
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": responses | {"default": {"$ref": "#/components/responses/Error"}},
    }
    if route.query:
        operation["description"] = f"With a query: `{route.query}`."
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": field,
            "in": "path",
            "required": True,
            "schema": {
                "type": "string",
                "pattern": f"^(?:{GRAMMAR[field]})$",
                **({"maxLength": _CHARS_MAX[field]} if field in _CHARS_MAX else {}),
            },
        }
        for field in re.findall(r"\{(\w+)\}", route.url)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": _QUERY[name]}
        for name in _PARAMETERS.get(route.name, ())
    ]


def _schema(route: Route) -> dict[str, Any]:
    if route.name in _SINGLE:
        return _object(data=_reference(_SINGLE[route.name]))
    if route.name in _LIST:
        rows = {"type": "array", "items": _reference(_LIST[route.name])}
        return _object(data=rows, meta=_reference(records.ListMeta))
    return {"type": "object"} if route.media == JSON else {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _error() -> dict[str, Any]:
    return {
        "description": "What went wrong, and what to do",
        "content": {JSON: {"schema": _reference(records.ErrorEnvelope)}},
    }
