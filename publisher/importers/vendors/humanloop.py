"""Humanloop, which ended in 2025: what people have kept of it.

Follows version 5 of its published API and the pages of its documentation about files:

- The folder that its export tool wrote (``files/{id}/versions/{version}``), or a ZIP archive of it,
  and what the API answered: prompts and agents (``PromptResponse``, ``AgentResponse``), alone or in
  ``records``.
- ``.prompt`` and ``.agent`` files: YAML front matter, and messages between tags such as
  ``<user>``. Lines between tags lose the indentation that they have in common.

Environments become labels; a version's name and description its changelog. Not taken: tools,
evaluators, datasets and flows, logs and evaluations, readmes, who has created a version, images,
calls of tools in messages, and projects of version 4.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from builder.model.plural import counted
from builder.model.records import Message
from builder.text.messages import parse_messages
from builder.text.prompts import parse_document
from publisher.importers.chats import from_parts
from publisher.importers.items import (
    Document,
    History,
    PassedOver,
    Rejection,
    Revision,
    clean_title,
)
from publisher.importers.times import to_time
from publisher.importers.vendors.documents import JSON_SUFFIXES, LINE_SUFFIXES, read_documents
from publisher.importers.vendors.reading import (
    as_dict,
    get_text,
    open_list,
    read_parameters,
    shorten,
)
from publisher.write.fields import parse_loosely

TITLE = "Humanloop"

_FILES = (".prompt", ".agent")
_JSON = (*JSON_SUFFIXES, *LINE_SUFFIXES)
# What the export has beside versions, in folders of these names.
_PASSED_OVER = {"logs", "evaluations", "datapoints"}
_KINDS = ("prompt", "agent")
_SETTINGS = (
    "model", "provider", "endpoint", "temperature", "max_tokens", "top_p", "stop",
    "presence_penalty", "frequency_penalty", "seed", "response_format", "reasoning_effort",
    "max_iterations", "tools", "attributes",
)  # fmt: skip
_READ = {*_SETTINGS, "other", "template", "template_language"}

_message = re.compile(
    r"^[ \t]*+<(?P<role>system|developer|user|assistant|tool)(?:[ \t][^<>\n]*+)?>", re.MULTILINE
)
_call = re.compile(r"<tool[ \t][^<>\n]*+>")
_image = re.compile(r"<image[ \t][^<>\n]*+>")


class _Found(NamedTuple):
    """A version that was read; ``at`` orders those of a prompt."""

    name: str
    version: str
    at: tuple[str, str]
    revision: Revision


def read_source(path: str) -> Iterator[Document | Rejection]:
    """The documents of a file, an archive or a folder. Raises OperatorError."""
    return read_documents(path, _kind_of)


def _kind_of(path: str) -> str:
    *folders, name = path.lower().split("/")
    if name.endswith(_FILES):
        return ".prompt"
    if not _PASSED_OVER.isdisjoint(folders):
        return ""
    if folders[-1:] == ["versions"] and "." not in name:
        return ".json"  # the export tool gives versions no suffix
    return next((suffix for suffix in _JSON if name.endswith(suffix)), "")


def read_histories(
    documents: Iterable[Document],
) -> Iterator[History | Rejection | PassedOver]:
    """The prompts of an export, each with its versions by their times."""
    prompts: dict[str, dict[str, _Found]] = {}
    deployed: dict[str, list[str]] = {}
    others: dict[str, dict[str, str]] = {}
    for document in documents:
        for where, value in open_list(document, "records"):
            try:
                if _is_deployment(value):
                    deployed.setdefault(value["version_id"], []).append(value["environment_name"])
                elif one := _read(where, value, others):
                    versions = prompts.setdefault(get_text(value, "id") or f"/{one.name}", {})
                    versions[one.version] = one  # a file's latest version is there twice
            except ValueError as error:
                yield Rejection(where, str(error))
    for kind, places in others.items():
        first, *more = places.values()
        told = f", and so are {counted(len(more), 'more file')}" if more else ""
        yield PassedOver(first, f"is a {shorten(kind)} of Humanloop, not a prompt{told}")
    for versions in prompts.values():
        found = sorted(versions.values(), key=lambda one: one.at)
        yield History(
            found[0].revision.where, "", found[-1].name,
            [_deploy(one, deployed.get(one.version, ())) for one in found],
        )  # fmt: skip


def _is_deployment(value: Any) -> bool:
    keys = ("version_id", "environment_id", "environment_name")
    return all(isinstance(as_dict(value).get(key), str) for key in keys)


def _deploy(one: _Found, environments: Iterable[str]) -> Revision:
    labels = dict.fromkeys((*one.revision.labels, *environments))
    return one.revision._replace(labels=tuple(labels))


def _read(where: str, value: Any, others: dict[str, dict[str, str]]) -> _Found | None:
    """A version; None for what is passed over. ``others`` gets the files that are no prompts: their
    places by what they are and their ids. Raises ValueError.
    """
    if isinstance(value, str):
        return _read_file(where, value)
    kind = as_dict(value).get("type") or "prompt"
    if not isinstance(kind, str) or not {"path", "template", "version_id"} & as_dict(value).keys():
        raise ValueError("is no prompt of Humanloop")
    if kind not in _KINDS:
        others.setdefault(kind, {}).setdefault(str(value.get("id") or where), where)
        return None
    if "version_id" not in value and "template" not in value:
        return None  # about a file whose versions lie beside it
    if value.get("status") == "deleted":
        raise ValueError("was deleted at Humanloop")
    name = get_text(value, "path") or get_text(value, "name")
    if not name:
        raise ValueError("has neither path nor name")
    title = get_text(value, "name") or name.rpartition("/")[2]
    about = {key: value.get(key) for key in ("description", "tags")}
    revision = _read_revision(where, value, title, about)
    at = (revision.published_at or "", str(value.get("committed_at") or value.get("created_at")))
    return _Found(name, get_text(value, "version_id") or where, at, revision)


def _read_file(where: str, text: str) -> _Found:
    """Raises ValueError."""
    document = parse_document(text.removeprefix("\ufeff"))
    if document.front is None and document.warnings:
        raise ValueError(document.warnings[0].removesuffix("."))
    front = document.front or {}
    is_chat = front.get("endpoint") != "complete" and _message.search(document.body)
    if not is_chat and parse_messages(document.body) is not None:
        raise ValueError("is a dotprompt, not one of Humanloop. Import it without --from")
    template = _read_messages(document.body) if is_chat else document.body.strip("\n")
    name = where[: where.rfind(".")] if where.lower().endswith(_FILES) else where
    others = {key: value for key, value in front.items() if key not in _READ}
    revision = _read_revision(
        where, front | {"template": template}, name.rpartition("/")[2], others
    )
    return _Found(name, where, ("", ""), revision)


def _read_revision(
    where: str, value: dict[str, Any], title: str, others: dict[str, Any]
) -> Revision:
    """``others`` is metadata as its source has it. Raises ValueError."""
    template = value.get("template")
    prompt: str | list[Message]
    if isinstance(template, str):
        prompt, told = template, []
    elif isinstance(template, list) and template:
        prompt, told = from_parts(template)
    else:
        raise ValueError("has no template")
    ours = {"title": clean_title(title), "parameters": read_parameters(_settings(value), told)}
    fields, warnings = parse_loosely(others | ours)
    environments = value.get("environments")
    labels = [
        get_text(one, "name") for one in (environments if isinstance(environments, list) else [])
    ]
    return Revision(
        where=where,
        prompt=prompt,
        fields=fields,
        warnings=told + warnings,
        convention="jinja" if value.get("template_language") == "jinja" else "mustache",
        changelog=_changelog(value),
        published_at=to_time(value.get("committed_at")) or to_time(value.get("created_at")),
        labels=tuple(filter(None, labels)),
    )


def _changelog(value: dict[str, Any]) -> str:
    """The name that a version has, and what was said of it."""
    said = get_text(value, "version_description") or get_text(value, "commit_message")
    return ": ".join(filter(None, (get_text(value, "version_name").strip(), said.strip())))


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    """The model and its settings, as the source has them."""
    found = as_dict(value.get("other")) | {key: value.get(key) for key in _SETTINGS}
    if found["max_tokens"] == -1:  # as many as the model can
        del found["max_tokens"]
    linked = value.get("linked_tools")
    if isinstance(linked, list):
        tools = found["tools"] if isinstance(found["tools"], list) else []
        found["tools"] = [*tools, *map(_as_tool, linked)]
    return found


def _as_tool(linked: Any) -> Any:
    """A tool that has its own file at Humanloop, as one of the prompt's."""
    if not isinstance(linked, dict):
        return linked
    return {key: one for key, one in linked.items() if key not in ("id", "version_id")}


def _read_messages(body: str) -> list[dict[str, Any]]:
    """The messages between tags, as the API has them. Raises ValueError."""
    messages: list[dict[str, Any]] = []
    end = 0
    while True:
        found = _message.search(body, end)
        if body[end : found.start() if found else None].strip():
            raise ValueError("has text outside the tags of its messages")
        if not found:
            return messages
        role = found["role"]
        close = body.find(f"</{role}>", found.end())
        if close < 0:
            raise ValueError(f"has a <{role}> that does not end")
        end = close + len(f"</{role}>")
        messages.append(_read_message(role, body[found.end() : close]))


def _read_message(role: str, text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role}
    parts = []
    if role == "assistant":
        text, calls = _cut_calls(text)
        message["tool_calls"] = calls
    elif _image.search(text):
        parts = [{"type": "image"}]
        # Beside an image, text has a tag, too.
        text = _image.sub("", text).replace("<text>", "").replace("</text>", "")
    text = textwrap.dedent(text).strip("\n")
    return message | {"content": [*parts, {"type": "text", "text": text}]}


def _cut_calls(text: str) -> tuple[str, int]:
    """The text without the calls of tools in it, and how many these are."""
    kept, end, calls = [], 0, 0
    while found := _call.search(text, end):
        close = text.find("</tool>", found.end())
        if close < 0:
            break
        kept.append(text[end : found.start()])
        end = close + len("</tool>")
        calls += 1
    return "".join([*kept, text[end:]]), calls
