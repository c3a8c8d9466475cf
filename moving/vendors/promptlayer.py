"""PromptLayer: versions of prompt templates, as its API returns them.

Follows its published OpenAPI document: ``GetPromptTemplateRawResponse`` of ``GET
/prompt-templates/{identifier}?version=N``, the entries of ``GET /prompt-templates``, which its SDKs
also return, and ``GetPromptTemplateLabelResponse`` with the template's ``id`` added to it.

Snippets come as PromptLayer puts them into the texts that include them, and as prompts of their
own. Not taken: folders and workspaces, ``llm_kwargs``, which follow from the rest, external ids,
labels that split traffic among versions, and the LangChain format of before 2024.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from builder.model.answers import Message
from builder.model.names import ORDINAL_MAX, VERSIONS_PER_REPO_MAX
from builder.text.prompts import VARIABLE_NAME
from builder.text.summary import clean_title
from moving.importers.chats import from_parts, tell_placeholder, text_of_parts
from moving.importers.items import Document, History, Rejection, Revision
from moving.importers.times import read_time
from moving.vendors.api import Api, ApiError
from moving.vendors.reading import (
    as_dict,
    get_text,
    is_text,
    list_names,
    open_list,
    read_parameters,
    shorten,
)
from publisher.write.fields import parse_loosely

TITLE = "PromptLayer"
API_URL = "https://api.promptlayer.com"
KEYS = ("PROMPTLAYER_API_KEY",)

PAGE_PROMPTS = 100
PAGES_MAX = 1000

_PATH = "/prompt-templates"
_CONVENTIONS = {"f-string": "f-string", "jinja2": "jinja"}
_PLACEHOLDERS = {"f-string": "{%s}", "jinja2": "{{%s}}"}
_snippet = re.compile(r"@@@[^@\n]{1,512}@@@")
# Fields for tools, each with the one that says how to use them.
_TOOLS = {"tools": "tool_choice", "functions": "function_call"}


def headers(keys: Mapping[str, str]) -> dict[str, str]:
    """The headers that authenticate a request, and bypass caches."""
    return {"X-API-KEY": keys["PROMPTLAYER_API_KEY"], "Cache-Control": "no-cache"}


def download(api: Api) -> None:
    """Keep each version of each template, and the positions of its release labels. Raises
    ApiError.
    """
    latest = _list_templates(api)
    for done, (template, version) in enumerate(latest.items()):
        api.count(done, len(latest))
        folder = f"prompts/{template}"
        for number in range(max(1, version - VERSIONS_PER_REPO_MAX + 1), version + 1):
            try:
                api.keep(f"{folder}/{number}.json", f"{_PATH}/{template}", {"version": number})
            except ApiError as error:
                if error.status != 404:  # 404: a deleted version
                    raise
        answer = api.get(f"{_PATH}/{template}/labels")
        labels = answer.get("release_labels") if isinstance(answer, dict) else None
        api.write(f"{folder}/labels.json", {"id": template, "release_labels": labels})
    api.count(len(latest), len(latest))


def _list_templates(api: Api) -> dict[int, int]:
    """The ids of all templates and snippets, and their latest versions. Raises ApiError."""
    latest: dict[int, int] = {}
    for page in range(1, PAGES_MAX + 1):
        answer = api.get(
            _PATH, {"page": page, "per_page": PAGE_PROMPTS, "sort_by": "id", "sort_order": "asc"}
        )
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise ApiError(
                f"The answer of {_PATH}, page {page}, is no list of prompt templates. Pass the "
                "address of PromptLayer's API."
            )
        for one in items:
            template, version = (
                (one.get("id"), one.get("version")) if isinstance(one, dict) else (None, None)
            )
            if not _is_number(template) or not _is_number(version):
                raise ApiError(f"{_PATH}, page {page}, has a template without id or version.")
            latest[template] = version
        if not items or not answer.get("has_next"):
            return latest
    raise ApiError(f"{_PATH} has more than {PAGES_MAX:,} pages.")


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """The templates of an export, each with its versions in order of their numbers."""
    found: dict[int | str, list[tuple[str, Revision]]] = {}
    labels: dict[int | str, dict[int, list[str]]] = {}
    for document in documents:
        for where, value in open_list(document, "items"):
            try:
                if "release_labels" in as_dict(value):
                    _read_labels(value, labels)
                    continue
                name, revision = _read_version(where, value)
            except ValueError as error:
                yield Rejection(where, str(error))
                continue
            template = value["id"] if _is_number(value.get("id")) else name
            found.setdefault(template, []).append((name, revision))
    for template, named in found.items():
        named.sort(key=lambda one: one[1].number or ORDINAL_MAX)
        there = labels.get(template, {})
        revisions = [one._replace(labels=tuple(there.pop(one.number, ()))) for _, one in named]
        if lost := list_names(label for names in there.values() for label in names):
            revisions[-1].warnings.append(
                f"Left out labels of versions that are not in the export: {lost}."
            )
        yield History(revisions[0].where, "", named[-1][0], revisions)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= ORDINAL_MAX


def _read_labels(value: dict[str, Any], labels: dict[int | str, dict[int, list[str]]]) -> None:
    """Add the labels of each version. Raises ValueError."""
    template, entries = value.get("id"), value["release_labels"]
    if not _is_number(template) or not isinstance(entries, list):
        raise ValueError("is no list of release labels with the id of their template beside it")
    for one in entries:
        label, version = get_text(one, "release_label"), as_dict(one).get("prompt_version_number")
        if not label or not _is_number(version):
            raise ValueError("has a release label without its text or its version")
        labels.setdefault(template, {}).setdefault(version, []).append(label)


def _read_version(where: str, value: Any) -> tuple[str, Revision]:
    """The template's name, and a version of it. Raises ValueError."""
    template = as_dict(value).get("prompt_template")
    if not isinstance(template, dict):
        raise ValueError("is no version of a prompt template of PromptLayer")
    name, number = value.get("prompt_name"), value.get("version")
    if not is_text(name):
        raise ValueError("has no prompt_name")
    if number is not None and not _is_number(number):
        raise ValueError(f"has a version that is no number from 1 to {ORDINAL_MAX:,}")
    prompt, convention, warnings = _read_template(template)
    settings = _settings(as_dict(value.get("metadata")), template)
    fields, notes = parse_loosely(
        {
            "title": clean_title(name),
            "tags": value.get("tags"),
            "parameters": read_parameters(settings, warnings),
        }
    )
    published_at = read_time(value.get("created_at"), warnings)
    return name, Revision(
        where=where,
        prompt=prompt,
        fields=fields,
        warnings=warnings + notes,
        convention=convention,
        changelog=get_text(value, "commit_message"),
        published_at=published_at,
        number=number,
    )


def _read_template(template: dict[str, Any]) -> tuple[str | list[Message], str, list[str]]:
    """The text or the messages, the convention of their placeholders, and warnings. Raises
    ValueError.
    """
    prompt: str | list[Message]
    if "messages" in template:
        entries, remarks = _open_placeholders(template["messages"])
        prompt, more = from_parts(entries)
        remarks += more
        texts = [one.content for one in prompt]
        formats = [one.get("template_format") for one in entries]
    else:
        prompt, remarks = text_of_parts(template.get("content"))
        texts, formats = [prompt], [template.get("template_format")]
    # Each message names its format, even without placeholders.
    written = [str(kind or "f-string") for kind in formats]
    used = {kind for kind, text in zip(written, texts, strict=True) if "{" in text} or {"f-string"}
    convention = _CONVENTIONS.get(min(used), "none") if len(used) == 1 else "none"
    if convention == "none":
        shown = " and ".join(map(shorten, sorted(used)[:3]))
        remarks.append(f"Left placeholders as text: the messages are written as {shown}.")
    if any(_snippet.search(text) for text in texts):
        remarks.append("References to snippets (@@@…@@@) stay text.")
    return prompt, convention, remarks


def _open_placeholders(messages: Any) -> tuple[Any, list[str]]:
    """The messages, with each placeholder for messages as a user's message that is a variable."""
    if not isinstance(messages, list):
        return messages, []
    opened, warnings = [], []
    for one in messages:
        if isinstance(one, dict) and one.get("role") == "placeholder":
            name, kind = one.get("name"), str(one.get("template_format") or "f-string")
            if not isinstance(name, str) or not re.fullmatch(VARIABLE_NAME, name):
                raise ValueError("has a placeholder for messages whose name is no variable's")
            one = {
                "role": "user",
                "template_format": kind,
                "content": _PLACEHOLDERS.get(kind, "%s") % name,
            }
            warnings.append(tell_placeholder(name))
        opened.append(one)
    return opened, warnings


def _settings(metadata: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    """The model and its settings, tools, and the metadata that users added."""
    model = as_dict(metadata.get("model"))
    names = {"model": model.get("name"), "provider": model.get("provider")}
    found = as_dict(model.get("parameters")) | names
    for key, choice in _TOOLS.items():
        if template.get(key):
            found |= {key: template[key], choice: template.get(choice)}
    return found | {"metadata": {key: one for key, one in metadata.items() if key != "model"}}
