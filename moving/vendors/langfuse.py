"""Langfuse: versions of prompts as its API returns them, or as its database has them.

Follows the published API (``Prompt`` of ``GET /api/public/v2/prompts/{name}``) and the table
``prompts``: field names in camelCase and in snake_case, from JSON and from CSV, in which lists are
JSON or PostgreSQL arrays. List answers have no texts, and are passed over.

Not taken: skills with their files, a beta with an API of its own; who created a version, which may
be an e-mail address; ids and ``updatedAt``; fields that follow from others (``isActive`` beside
``labels``, ``resolutionGraph``). A placeholder of a chat becomes a user's message that is only a
variable. References to other prompts stay text. Variables stay as they are: Langfuse's syntax is
the hub's, except for letters beyond ASCII, and its SDKs must render a text as before.
"""

import csv
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from builder.model.answers import Message
from builder.model.langfuse_records import DEFAULT_LABEL
from builder.model.names import ORDINAL_MAX
from builder.text.prompts import VARIABLE_NAME
from moving.importers.chats import tell_placeholder, text_of_parts, to_role
from moving.importers.items import Document, History, Rejection, Revision
from moving.importers.times import read_time
from moving.vendors.api import Api, ApiError
from moving.vendors.documents import FILES_MAX, load_json
from moving.vendors.paging import path_part
from moving.vendors.reading import list_names, open_list, read_number, shorten
from publisher.write.fields import parse_loosely

TITLE = "Langfuse"
API_URL = "https://cloud.langfuse.com"
KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")

# The most prompts that the API returns in one page of a list.
PAGE_PROMPTS = 100

_PATH = "/api/public/v2/prompts"
_TYPES = {"text": str, "chat": list}
_reference = re.compile(r"@@@langfusePrompt:name=([^|\n]{1,255})\|")


class _Listed(msgspec.Struct):
    name: str
    versions: list[int]


class _Meta(msgspec.Struct, rename="camel"):
    total_pages: int


class _List(msgspec.Struct):
    data: list[_Listed]
    meta: _Meta


def headers(keys: Mapping[str, str]) -> dict[str, str]:
    """The headers that authenticate a request: the project's two keys, as a user and a password."""
    pair = ":".join(keys[name] for name in KEYS)
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def download(api: Api) -> Iterator[Document | Rejection]:
    """Each version of each prompt in the list. Raises ApiError.

    Labels move without a new version, so each download requests all versions. References stay as
    they were written (``resolve=false``; servers before March 2026 resolve them).
    """
    prompts = _list_prompts(api)
    for done, (name, versions) in enumerate(prompts.items()):
        api.count(done, len(prompts))
        for version in sorted(versions):
            where = f"{shorten(name)}, version {version}"
            # The name includes folders.
            path, params = f"{_PATH}/{path_part(name)}", {"version": version, "resolve": "false"}
            try:
                yield Document(where, api.get(path, params))
            except ApiError as error:
                if error.status != 404:
                    raise
                reason = "was not there any more when it was downloaded. Run the import again"
                yield Rejection(where, reason)
    api.count(len(prompts), len(prompts))


def _list_prompts(api: Api) -> dict[str, set[int]]:
    """The version numbers of each prompt. Raises ApiError."""
    prompts: dict[str, set[int]] = {}
    page = pages = 1
    while page <= pages:
        answer = api.get(_PATH, {"page": page, "limit": PAGE_PROMPTS})
        try:
            listed = msgspec.convert(answer, _List)
        except msgspec.ValidationError as error:
            raise ApiError(
                f"The answer of {_PATH}, page {page}, is no list of prompts: {error}. Pass the "
                "address of a Langfuse server."
            ) from None
        for one in listed.data:
            prompts.setdefault(one.name, set()).update(one.versions)
        if sum(map(len, prompts.values())) > FILES_MAX:
            raise ApiError(
                f"The project has more than {FILES_MAX:,} versions of prompts. Import a table "
                "of its database."
            )
        pages = listed.meta.total_pages if listed.data else page
        page += 1
    return prompts


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """The prompts of an export, each with its versions in order of their numbers."""
    found: dict[tuple[str, str], list[Revision]] = {}
    for document in documents:
        for where, value in _open(document):
            try:
                found.setdefault(_key_of(value), []).append(_read_revision(where, value))
            except ValueError as error:
                yield Rejection(where, str(error))
    for (_, name), revisions in found.items():
        if revisions:
            revisions.sort(key=lambda one: one.number or 0)
            yield History(revisions[0].where, "", name, revisions)


def _open(document: Document) -> Iterator[tuple[str, Any]]:
    """The versions in a document: itself, or the entries of a list answer."""
    for where, value in open_list(document, "data"):
        is_listed = isinstance(value, dict) and "versions" in value and "prompt" not in value
        if where == document.where or not is_listed:
            yield where, value


def _key_of(value: Any) -> tuple[str, str]:
    """The project and the name, which together are one prompt. Raises ValueError."""
    if not isinstance(value, dict) or not {"name", "version", "prompt"} <= value.keys():
        raise ValueError(
            "is no version of a prompt of Langfuse, which has name, version and prompt"
        )
    name = value["name"]
    if not isinstance(name, str) or not name.strip():
        raise ValueError("has no name")
    project = value.get("projectId", value.get("project_id"))
    return project if isinstance(project, str) else "", name


def _read_revision(where: str, value: dict[str, Any]) -> Revision:
    """The version. Raises ValueError, whose message follows ``where``."""
    number = read_number(value["version"])
    if number is None:
        raise ValueError(f"has a version that is no whole number from 1 to {ORDINAL_MAX:,}")
    # In a CSV table everything is text, so its JSON has to be parsed.
    is_row = isinstance(value["version"], str)
    warnings: list[str] = []
    prompt = _read_prompt(value, is_row, warnings)
    _warn_of_references(prompt, value, warnings)
    fields, notes = parse_loosely(
        {
            "tags": _strings(value.get("tags"), "tags", is_row, warnings),
            "parameters": _read_config(value.get("config"), is_row, warnings),
        }
    )
    labels = _read_labels(value, is_row, warnings)
    changelog = _either(value, "commitMessage", "commit_message")
    published_at = read_time(_either(value, "createdAt", "created_at"), warnings)
    return Revision(
        where=where,
        prompt=prompt,
        fields=fields,
        warnings=warnings + notes,
        convention="none",
        changelog=changelog.strip() if isinstance(changelog, str) else "",
        published_at=published_at,
        labels=labels,
        number=number,
    )


def _either(value: dict[str, Any], camel: str, snake: str) -> Any:
    return value[camel] if camel in value else value.get(snake)


def _read_prompt(value: dict[str, Any], is_row: bool, warnings: list[str]) -> str | list[Message]:
    prompt, kind = value["prompt"], value.get("type") or "text"
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(f"has the type {str(kind)[:40]!r}, which is neither text nor chat")
    if is_row and isinstance(prompt, str):
        read = _from_json(prompt)
        prompt = read if isinstance(read, _TYPES[kind]) else prompt
    if not isinstance(prompt, _TYPES[kind]):
        wanted = "text" if kind == "text" else "a list of messages"
        raise ValueError(f"has the type {kind}, but its prompt is not {wanted}")
    if isinstance(prompt, list):
        return [_read_message(one, number, warnings) for number, one in enumerate(prompt, start=1)]
    return prompt


def _read_message(one: Any, number: int, warnings: list[str]) -> Message:
    if not isinstance(one, dict):
        raise ValueError(f"has a message {number} that is no object")
    if one.get("type") == "placeholder":
        name = one.get("name")
        if not isinstance(name, str) or not re.fullmatch(VARIABLE_NAME, name):
            raise ValueError(f"has a placeholder, message {number}, without a name of letters")
        warnings.append(tell_placeholder(name))
        return Message("user", f"{{{{{name}}}}}")
    role = one.get("role")
    if not isinstance(role, str):
        raise ValueError(f"has a message {number} without a role")
    ours = to_role(role)
    if ours != role:
        warnings.append(f"The role {role} became {ours}.")
    text, notes = text_of_parts(one.get("content"))
    warnings += notes
    return Message(ours, text)


def _warn_of_references(
    prompt: str | list[Message], value: dict[str, Any], warnings: list[str]
) -> None:
    text = prompt if isinstance(prompt, str) else "\n".join(one.content for one in prompt)
    if found := _reference.findall(text):
        warnings.append(f"References to other prompts stay text: {list_names(found)}.")
    elif value.get("resolutionGraph"):
        warnings.append(
            "The server has put the texts of other prompts in the place of references to them."
        )


def _read_config(config: Any, is_row: bool, warnings: list[str]) -> dict[str, Any] | None:
    """The configuration unchanged: its meaning is defined by the programs that read the prompt."""
    if is_row and isinstance(config, str):
        config = _from_json(config) if config else None
    if config is None or isinstance(config, dict):
        return config or None
    warnings.append("Left out the config, which is no object.")
    return None


def _read_labels(value: dict[str, Any], is_row: bool, warnings: list[str]) -> tuple[str, ...]:
    if value.get("labels") not in (None, ""):
        return tuple(_strings(value["labels"], "labels", is_row, warnings))
    # The oldest versions have this instead of labels.
    is_active = _either(value, "isActive", "is_active")
    return (DEFAULT_LABEL,) if is_active in (True, "t", "true") else ()


def _strings(value: Any, field: str, is_row: bool, warnings: list[str]) -> list[str]:
    """A list of texts; in a table's row, also as JSON or as a PostgreSQL array."""
    if is_row and isinstance(value, str):
        read = _from_postgres(value) if value.startswith("{") else _from_json(value or "[]")
        value = value if read is None else read
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    warnings.append(f"Left out the {field}, which are no list of texts.")
    return []


def _from_postgres(text: str) -> list[str] | None:
    """The texts of an array such as ``{a,"b c",NULL}``; None if it is none."""
    if not text.endswith("}"):
        return None
    try:
        rows = list(csv.reader([text[1:-1]], escapechar="\\", doublequote=False, strict=True))
    except csv.Error:
        return None
    return [one for one in rows[0] if one != "NULL"] if rows else []


def _from_json(text: str) -> Any:
    """The value of JSON; None if it is invalid."""
    try:
        return load_json(text)
    except ValueError:
        return None
