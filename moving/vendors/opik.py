"""Opik: the versions of prompts as its API answers them, or as ``opik export`` writes them.

Follows the published API (``PromptPublic``, ``PromptDetail``, ``PromptVersionPublic`` and their
pages) and the JSON of Opik's command line (``current_version`` and ``history``, which have neither
times nor changes' descriptions). Documents belong together by the prompts' ids.

Not taken: who created a prompt or a version, which may be an e-mail address; projects; masks, which
are versions for experiments; images and other parts of messages that are not text. The command
line's CSV is refused: its history is not JSON.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from builder.model.answers import Message
from builder.model.plural import counted
from moving.importers.chats import from_parts
from moving.importers.items import Document, History, Rejection, Revision
from moving.importers.times import read_time, to_time
from moving.vendors.api import Api, file_part
from moving.vendors.documents import load_json
from moving.vendors.paging import list_entries, path_part
from moving.vendors.reading import (
    as_dict,
    get_text,
    open_list,
    read_parameters,
    shorten,
    write_changelog,
)
from publisher.write.fields import parse_loosely

TITLE = "Opik"
API_URL = "https://www.comet.com/opik/api"
KEYS = ()
# Optional: your own server needs none.
OPTIONAL_KEYS = ("OPIK_API_KEY", "OPIK_WORKSPACE")

# Entries of a page.
PAGE_ENTRIES = 50

_PATH = "/v1/private/prompts"
_DEFAULT_WORKSPACE = "default"
_CONVENTIONS = {"mustache": "mustache", "jinja2": "jinja", "python": "f-string"}
_FOREIGN = "is neither a prompt of Opik, with an id and a name, nor a version of one"


def headers(keys: Mapping[str, str]) -> dict[str, str]:
    """The headers that authenticate a request, and name the workspace."""
    named = {"Comet-Workspace": keys.get("OPIK_WORKSPACE") or _DEFAULT_WORKSPACE}
    key = keys.get("OPIK_API_KEY")
    return named | ({"Authorization": key} if key else {})


def download(api: Api) -> None:
    """Keep all versions of each prompt of the workspace. Raises ApiError."""

    def ask(page: int, _: int) -> Any:
        return api.get(_PATH, {"page": page, "size": PAGE_ENTRIES})

    listed = list_entries(ask, "content", "id", _PATH)
    # A prompt without versions has no text.
    prompts = {one["id"]: one for one in listed if one.get("version_count") != 0}
    for done, (key, prompt) in enumerate(prompts.items()):
        api.count(done, len(prompts))
        _download_versions(api, key, prompt)
    api.count(len(prompts), len(prompts))


def _download_versions(api: Api, key: str, prompt: dict[str, Any]) -> None:
    folder, path = f"prompts/{file_part(key)}", f"{_PATH}/{path_part(key)}/versions"
    api.write(f"{folder}/prompt.json", prompt)

    def ask(page: int, _: int) -> Any:
        params = {"page": page, "size": PAGE_ENTRIES}
        return api.keep(f"{folder}/versions-{page}.json", path, params)

    for _ in list_entries(ask, "content", "id", path):
        pass


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """The prompts of an export, each with its versions in order."""
    export = _Export()
    for document in documents:
        for where, value in open_list(document, "content"):
            yield from export.take(where, value)
    yield from export.finish()


class _Export:
    """Collects the data of prompts and versions in documents, by the prompts' ids."""

    def __init__(self) -> None:
        self._prompts: dict[str, tuple[str, dict[str, Any]]] = {}
        self._versions: dict[str, dict[str, Document]] = {}

    def take(self, where: str, value: Any) -> Iterator[Rejection]:
        if not isinstance(value, dict):
            yield Rejection(where, _FOREIGN)
        elif "current_version" in value:
            yield from self._take_export(where, value)
        elif "template" in value and get_text(value, "prompt_id"):
            self._add(value["prompt_id"], where, value)
        elif get_text(value, "id") and get_text(value, "name") and "template" not in value:
            self._prompts.setdefault(value["id"], (where, value))
            if isinstance(value.get("latest_version"), dict):
                self._add(value["id"], where, value["latest_version"])
        elif "prompt_current_version_prompt" in value:
            yield Rejection(where, "is CSV, whose history is not JSON. Export with --format json")
        else:
            yield Rejection(where, _FOREIGN)

    def finish(self) -> Iterator[History | Rejection]:
        for key, versions in self._versions.items():
            if key not in self._prompts:
                for one in versions.values():
                    yield Rejection(one.where, "is a version of a prompt that is not in the export")
        for key, (where, prompt) in self._prompts.items():
            versions = list(self._versions.get(key, {}).values())
            yield from _read_prompt(where, prompt, sorted(versions, key=_order))

    def _add(self, key: str, where: str, value: dict[str, Any]) -> None:
        found = get_text(value, "id") or get_text(value, "commit") or where
        self._versions.setdefault(key, {}).setdefault(found, Document(where, value))

    def _take_export(self, where: str, value: dict[str, Any]) -> Iterator[Rejection]:
        """Take a file of the command line, which has the prompt in either of two places."""
        prompt = value if get_text(value, "name") else value.get("prompt")
        if not get_text(prompt, "name"):
            yield Rejection(where, "has no name")
            return
        key = get_text(prompt, "id") or where
        if key in self._prompts:
            yield Rejection(where, f"has the same prompt as {self._prompts[key][0]}")
            return
        tags = as_dict(value["current_version"]).get("tags")
        self._prompts[key] = (where, prompt | {"tags": prompt.get("tags") or tags})
        for number, one in enumerate(_list_exported(value), start=1):
            place = f"{where}, version {number:,}"
            if isinstance(one, dict):
                # Versions have no other field that gives their order.
                version = one | {"template": one.get("prompt"), "id": f"{number:09}"}
                self._add(key, place, version)
            else:
                yield Rejection(place, "is not an object")


def _list_exported(value: dict[str, Any]) -> list[Any]:
    """The versions in a file of the command line, oldest first."""
    current, history = value["current_version"], value.get("history")
    versions = list(history) if isinstance(history, list) else []
    commit = get_text(current, "commit")

    def is_current(one: Any) -> bool:
        # The history has different tags for it.
        return one == current or (bool(commit) and get_text(one, "commit") == commit)

    if not any(map(is_current, versions)):
        return [*reversed(versions), current]
    is_oldest_first = is_current(versions[-1]) and not is_current(versions[0])
    return versions if is_oldest_first else versions[::-1]


def _order(version: Document) -> tuple[int, str, str]:
    """The sort key: the time with which ids begin."""
    value = version.value
    return _number_of(value) or 0, to_time(value.get("created_at")) or "", get_text(value, "id")


def _number_of(value: dict[str, Any]) -> int | None:
    found = re.fullmatch(r"v([1-9][0-9]{0,8})", get_text(value, "version_number"))
    return int(found[1]) if found else None


def _read_prompt(
    where: str, prompt: dict[str, Any], versions: list[Document]
) -> Iterator[History | Rejection]:
    revisions, masks = [], 0
    for version in versions:
        if version.value.get("version_type") == "mask":
            masks += 1
            continue
        try:
            revisions.append(_read_version(prompt, version))
        except ValueError as error:
            yield Rejection(version.where, str(error))
    if not versions:
        yield Rejection(where, "has no versions")
    if revisions:
        if masks:
            revisions[-1].warnings.append(
                f"Left out {counted(masks, 'mask')}, as versions for experiments are called."
            )
        yield History(where, "", prompt["name"], revisions)


def _read_version(prompt: dict[str, Any], version: Document) -> Revision:
    """The version. Raises ValueError, whose message follows a place."""
    where, value = version
    warnings: list[str] = []
    text, convention = _read_template(value, warnings), _convention_of(value, warnings)
    metadata = value.get("metadata")
    if metadata and not isinstance(metadata, dict):
        warnings.append("Left out the metadata, which is not an object.")
    fields, notes = parse_loosely(
        {
            "description": prompt.get("description") or None,
            "tags": [*_strings(prompt, "tags", warnings), *_strings(value, "tags", warnings)]
            or None,
            "parameters": read_parameters(as_dict(metadata), warnings),
        }
    )
    labels = [*_strings(value, "environments", warnings), get_text(value, "environment")]
    published_at = read_time(value.get("created_at"), warnings)
    return Revision(
        where=where,
        prompt=text,
        fields=fields,
        warnings=[*dict.fromkeys(warnings + notes)],
        convention=convention,
        changelog=write_changelog(
            get_text(value, "change_description"), get_text(value, "commit"), TITLE
        ),
        published_at=published_at,
        labels=tuple(dict.fromkeys(filter(None, labels))),
        number=_number_of(value),
    )


def _read_template(value: dict[str, Any], warnings: list[str]) -> str | list[Message]:
    template = value.get("template")
    if value.get("template_structure") == "chat" and isinstance(template, str):
        template = load_json(template)
    if isinstance(template, str):
        return template
    messages, notes = from_parts(template)
    warnings += notes
    return messages


def _convention_of(value: dict[str, Any], warnings: list[str]) -> str:
    kind = (get_text(value, "type") or "mustache").lower()
    if kind not in _CONVENTIONS:
        warnings.append(f"Has templates of the type {shorten(kind)}, so no text is a placeholder.")
    return _CONVENTIONS.get(kind, "none")


def _strings(value: dict[str, Any], key: str, warnings: list[str]) -> list[str]:
    found = value.get(key)
    if isinstance(found, list) and all(isinstance(one, str) for one in found):
        return found
    if found:
        warnings.append(f"Left out the {key}, which are not a list of strings.")
    return []
