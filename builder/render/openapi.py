"""The API document (OpenAPI 3.1), generated from the table of routes and the records."""

import re
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from builder.model import answers, names
from builder.model.envelopes import json_bytes
from builder.model.operations import OPERATIONS, Operation
from builder.model.request_bodies import Draft
from builder.model.routes import (
    BYTES,
    CHARS_MAX,
    FORM,
    GRAMMAR,
    JSON,
    LATEST_TEXTS,
    LIST_PARAMETERS,
    QUERY_CHARS_MAX,
    ROUTES,
    SORTS,
    TEXT,
    ZIP,
    Route,
)
from builder.model.service_urls import TRUSTED_URL
from builder.model.settings import Settings

# The record in the response of an API route: alone, or as the rows of a list.
_SINGLE = {
    "repo": answers.Repo,
    "version": answers.Version,
    "label": answers.LabelledVersion,
    "user": answers.User,
    "hub": answers.Hub,
}
_LIST = {
    "repos": answers.RepoSummary,
    "list": answers.RepoSummary,
    "tag_list": answers.RepoSummary,
    "versions": answers.ListedVersion,
    "labels": answers.LabelMove,
    "label_history": answers.LabelMove,
    "tags": answers.Tag,
}

_QUERY = {
    "page": {"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 1},
    "sort": {"type": "string", "enum": list(SORTS)},
    "tag": {
        "type": "string",
        "pattern": f"^{names.NAME_PATTERN}(?:,{names.NAME_PATTERN})*$",
        "description": "One tag, or several separated by commas. Finds repos with all of them.",
    },
    "owner": {
        "type": "string",
        "pattern": f"^{names.NAME_PATTERN}$",
        "description": "Finds only repos of this owner.",
    },
    "q": {
        "type": "string",
        "maxLength": QUERY_CHARS_MAX,
        "description": "Words to search for. The last word also matches as a prefix. "
        "`label:production` finds only repos with that label. Results are sorted by relevance "
        "unless `sort` is given, and by `top` if `q` has only labels.",
    },
    "explain": {"const": True, "description": "With `q`: adds `matches` and `facets` to `meta`."},
    "version": {"type": "string", "pattern": f"^{names.VERSION_PATTERN}$"},
    "label": {
        "type": "string",
        "pattern": f"^{names.LABEL_PATTERN}$",
        "description": "A label of the repo, instead of `version`.",
    },
}
_PUBLISH_HEADERS = {
    "Idempotency-Key": {
        "type": "string",
        "pattern": "^[!-~]([ -~]{0,253}[!-~])?$",
        "description": "Makes retries safe: a repeated request with the same key gets the first "
        "answer again.",
    },
    "If-Match": {
        "type": "string",
        "pattern": f'^"{names.VERSION_PATTERN}"$',
        "description": "Publish only if this is still the latest version. Same as `base_version`.",
    },
}
_PARAMETERS = {
    "repos": LIST_PARAMETERS,
    **dict.fromkeys(LATEST_TEXTS, ("version", "label")),
}


def document(settings: Settings) -> bytes:
    """The document as JSON."""
    paths = {
        route.url: {"get": _operation(route, settings.queries)} for route in ROUTES if route.summary
    }
    for one in OPERATIONS:
        paths.setdefault(one.url, {})[one.method] = _service_operation(one)
    return json_bytes(
        {
            "openapi": "3.1.0",
            "info": {
                "title": settings.site_name,
                "version": "1",
                "summary": "The API of a hub: prompts and their versions, as plain files.",
                "description": "A `repo` is one prompt with all its versions. "
                + ("" if settings.private else "Reading needs no key. ")
                + "Every answer has an `ETag` and may be cached as long as `Cache-Control` "
                "says. The paths in `hub.json` work on every host."
                + ("" if settings.queries else " This host answers no queries."),
            },
            "servers": [{"url": settings.base_url}],
            "paths": paths,
            "components": {
                "schemas": _schemas(),
                "responses": {
                    "Error": {
                        "description": "What went wrong, and what to do next",
                        "content": {JSON: {"schema": _reference(answers.ErrorEnvelope)}},
                    }
                },
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A token: `hub_` and 38 letters and digits. Create one in "
                        "the account settings. A CI job that is a trusted publisher gets one at "
                        f"`{TRUSTED_URL}`.",
                    }
                },
            },
        }
    )


@cache
def _schemas() -> dict[str, Any]:
    """The records' schemas by name. Callers must not change them."""
    kinds = {
        *_SINGLE.values(),
        *_LIST.values(),
        answers.ListMeta,
        answers.ErrorEnvelope,
        *(kind for one in OPERATIONS for kind in (one.body, one.answer)),
    }
    _, schemas = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    return schemas


def _operation(route: Route, queries: bool) -> dict[str, Any]:
    # The path of a file decides its media type.
    medias = (TEXT, BYTES) if route.media == BYTES else (route.media,)
    ok: dict[str, Any] = {
        "description": route.summary,
        "headers": {
            "ETag": {"schema": {"type": "string"}},
            "Cache-Control": {"schema": {"type": "string"}},
        },
        "content": {media: {"schema": _schema(route, media)} for media in medias},
    }
    responses = {"200": ok, "304": {"description": "Unchanged since the given ETag"}}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": _path_parameters(route.url),
        "responses": responses | {"default": {"$ref": "#/components/responses/Error"}},
    }
    if queries:
        queried = _PARAMETERS.get(route.name, ())
        operation["parameters"] += [_parameter(name, "query", _QUERY[name]) for name in queried]
    if route.query and queries:
        operation["description"] = f"The same with a query: `{route.query}`."
    return operation


def _service_operation(one: Operation) -> dict[str, Any]:
    summary, description, statuses = one.words
    gets = {"Cache-Control": {"schema": {"type": "string"}}}
    if one.body is Draft:
        gets["RateLimit-Policy"] = {"schema": {"type": "string"}}
    location = {"Location": {"schema": {"type": "string", "format": "uri"}}}
    content = {JSON: {"schema": _object(data=_reference(one.answer))}}
    responses = {
        status: {"description": words, "content": content, "headers": gets}
        | ({"headers": gets | location} if status == "201" else {})
        for status, words in statuses.items()
    }
    return {
        "operationId": one.name,
        "summary": summary,
        **({"description": description} if description else {}),
        **({"security": one.security} if one.security else {}),
        "parameters": _path_parameters(one.url)
        + [_parameter(name, "header", _PUBLISH_HEADERS[name]) for name in one.sends],
        "requestBody": _publication_body() if one.body is Draft else _body(one.body),
        "responses": responses | {"default": {"$ref": "#/components/responses/Error"}},
    }


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _path_parameters(url: str) -> list[dict[str, Any]]:
    found = []
    for field in re.findall(r"\{(\w+)\}", url):
        schema = {"type": "string", "pattern": f"^(?:{GRAMMAR[field]})$"}
        limit = {"maxLength": CHARS_MAX[field]} if field in CHARS_MAX else {}
        found.append(_parameter(field, "path", schema | limit))
    return found


def _schema(route: Route, media: str) -> dict[str, Any]:
    if route.name in _SINGLE:
        return _object(data=_reference(_SINGLE[route.name]))
    if route.name in _LIST:
        rows = {"type": "array", "items": _reference(_LIST[route.name])}
        return _object(data=rows, meta=_reference(answers.ListMeta))
    if media in (BYTES, ZIP):
        return {}
    return {"type": "object"} if media == JSON else {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _body(kind: type[Struct]) -> dict[str, Any]:
    is_required = any(field.required for field in msgspec.structs.fields(kind))
    return {"required": is_required, "content": {JSON: {"schema": _reference(kind)}}}


def _publication_body() -> dict[str, Any]:
    """A draft as JSON, or as a form with a ZIP of the version's folder."""
    form = {
        "type": "object",
        "required": ["files"],
        "additionalProperties": False,
        "properties": {
            "files": {
                "type": "string",
                "format": "binary",
                "description": "A ZIP of the version's files, with its text as `SKILL.md` or "
                "`PROMPT.md`",
            },
            "draft": {"type": "object", "description": "The other fields of a `Draft`"},
        },
    }
    body = _body(Draft)
    body["content"][FORM] = {"schema": form, "encoding": {"files": {"contentType": ZIP}}}
    return body


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
