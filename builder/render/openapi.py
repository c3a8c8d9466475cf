"""The API document (OpenAPI 3.1), made from the table of routes and the records."""

import re
from typing import Any

import msgspec

from builder.model import names, records
from builder.model.routes import (
    CHARS_MAX,
    GRAMMAR,
    JSON,
    PUBLISH_URL,
    QUERY_CHARS_MAX,
    ROUTES,
    SORTS,
    TRUSTED_URL,
    Route,
)
from builder.model.settings import Settings
from builder.render.envelopes import json_bytes

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
_PUBLISH_HEADERS = {
    "Idempotency-Key": {
        "type": "string",
        "pattern": "^[!-~]([ -~]{0,253}[!-~])?$",
        "description": "A request sent again with the key of the first gets the first answer.",
    },
    "If-Match": {
        "type": "string",
        "pattern": f'^"{names.VERSION_PATTERN}"$',
        "description": "Publish only if this is still the latest version, as base_version.",
    },
}
_PARAMETERS = {"repos": ("page", "sort", "tag", "q"), "raw": ("version",)}


def document(settings: Settings) -> bytes:
    """The document as JSON."""
    kinds = {
        *_SINGLE.values(), *_LIST.values(), records.ListMeta, records.ErrorEnvelope,
        records.Draft, records.Publication, records.TrustedExchange, records.TrustedToken,
    }  # fmt: skip
    paths = {route.url: {"get": _operation(route)} for route in ROUTES if route.summary}
    paths[PUBLISH_URL]["post"] = _publish_operation()
    paths[TRUSTED_URL] = {"post": _trusted_operation()}
    _, schemas = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    return json_bytes(
        {
            "openapi": "3.1.0",
            "info": {
                "title": settings.site_name,
                "version": "1",
                "summary": "The API of a hub: prompts with their versions, as plain files.",
                "description": "Reading needs no key. Every answer has an ETag and may be kept as "
                "long as Cache-Control says. A host that has only the files ignores queries: "
                "meta tells which filters were applied, and the paths with an extension, "
                "listed in hub.json, hold everywhere.",
            },
            "servers": [{"url": settings.base_url}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "responses": {"Error": _error()},
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A token: `hub_` and 38 letters and digits. A personal one "
                        "is made in the account settings; a job of a CI that the owner trusts gets "
                        f"one at `{TRUSTED_URL}`.",
                    }
                },
            },
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
        "parameters": [*_path_parameters(route.url), *_query_parameters(route)],
        "responses": responses | {"default": {"$ref": "#/components/responses/Error"}},
    }
    if route.query:
        operation["description"] = f"With a query: `{route.query}`."
    return operation


def _publish_operation() -> dict[str, Any]:
    done = {
        "headers": {"RateLimit-Policy": {"schema": {"type": "string"}}},
        "content": {JSON: {"schema": _object(data=_reference(records.Publication))}},
    }
    location = {"Location": {"schema": {"type": "string", "format": "uri"}}}
    return {
        "operationId": "publish",
        "summary": "Publish a new version of a repo",
        "description": "The first publication makes the repo, as 1.0.0. Answered when the "
        "version is on the disk and can be read. The same text and metadata again make no new "
        "version.",
        "security": [{"token": []}],
        "parameters": [
            *_path_parameters(PUBLISH_URL),
            *({"name": name, "in": "header", "required": False, "schema": schema}
              for name, schema in _PUBLISH_HEADERS.items()),
        ],
        "requestBody": _body(records.Draft),
        "responses": {
            "201": {
                **done,
                "description": "Published",
                "headers": done["headers"] | location,
            },
            "200": {**done, "description": "The latest version is the same; nothing is published"},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }  # fmt: skip


def _trusted_operation() -> dict[str, Any]:
    return {
        "operationId": "trusted_publishing",
        "summary": "Get a token for a job of a CI",
        "description": "For a job of GitHub Actions or GitLab that an owner has named under "
        "Trusted publishers in the account settings; no secret is stored anywhere. The job sends "
        "the ID token that its CI made for it, whose audience (`aud`) must be the hub's base URL. "
        "An ID token counts once, and what it is exchanged for publishes for a quarter of an hour. "
        "For `OWNER/*` the token is good for all repos of the owner that trust the job.",
        "parameters": [],
        "requestBody": _body(records.TrustedExchange),
        "responses": {
            "200": {
                "description": "A token, which nothing can tell again",
                "headers": {"Cache-Control": {"schema": {"type": "string"}}},
                "content": {JSON: {"schema": _object(data=_reference(records.TrustedToken))}},
            },
            "default": {"$ref": "#/components/responses/Error"},
        },
    }


def _path_parameters(url: str) -> list[dict[str, Any]]:
    return [
        {
            "name": field,
            "in": "path",
            "required": True,
            "schema": {
                "type": "string",
                "pattern": f"^(?:{GRAMMAR[field]})$",
                **({"maxLength": CHARS_MAX[field]} if field in CHARS_MAX else {}),
            },
        }
        for field in re.findall(r"\{(\w+)\}", url)
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


def _body(kind: type) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": _reference(kind)}}}


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _error() -> dict[str, Any]:
    return {
        "description": "What went wrong, and what to do",
        "content": {JSON: {"schema": _reference(records.ErrorEnvelope)}},
    }
