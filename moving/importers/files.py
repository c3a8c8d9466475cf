"""Reads prompts from files: one, or all below a folder. Writes nothing.

The text is the file's bytes with its front matter; only role markers are converted to the hub's
(``chats``). A ``.prompt.yml`` is no text, so its messages are taken. A ``system.md`` and the
``user.md`` beside it are one prompt with two messages. A folder that is a prompt has files
(``beside``).
"""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from builder.model.answers import Message
from builder.model.errors import OperatorError, cut
from builder.model.records import CONTENT_BYTES_MAX
from builder.text.core_yaml import load_yaml, spellings
from builder.text.messages import write_messages
from builder.text.prompts import parse_document
from builder.text.skill_writer import asked_first
from builder.text.summary import clean_title, first_sentence, names_a_part, title_of
from moving.importers import agents, chats, notes
from moving.importers.beside import text_in
from moving.importers.folders import (
    ASSISTANT_SUFFIXES,
    MESSAGE_SUFFIXES,
    SUFFIXES,
    PromptFile,
    find_prompts,
)
from moving.importers.foreign import check_connection, translate
from moving.importers.items import Item, PassedOver, Rejection, decode_text
from moving.importers.naming import KINDS, telling_name, to_words
from moving.importers.placeholding import DESCRIPTION_CHARS_MAX
from publisher.write.fields import parse_loosely

# Such a file also has data to test the prompt with.
_LARGE_YAML_VALUES_MAX = 50_000
# Test data and evaluators, which are no metadata of the prompt.
_TRIALS = ("testData", "evaluators")
EMPTY = "empty"
# In Markdown's front matter, a name of this form is an identifier, not a title.
_identifier = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")


def read_files(
    source: str, own: Collection[str] = (), *, markdown: bool = False, instructions: bool = False
) -> Iterator[Item | Rejection | PassedOver]:
    """The items of a file, or of the files of a folder (``find_prompts``). Raises OperatorError for
    a folder inside one of the hub's ``own``, given by their real paths.
    """
    if not os.path.isdir(source):
        path = Path(source)
        tool = agents.find_tool(path.absolute())
        for one in _read_prompt(PromptFile(path, path.name, tool=tool), Path("/")):
            is_item = isinstance(one, Item)
            yield one._replace(warnings=one.warnings + _tell_alone(path)) if is_item else one
        return
    root = Path(source).resolve()
    for path in own:
        if root.is_relative_to(path):
            raise OperatorError(
                f"{source} is inside {path}, a folder of this hub, and so no source of an import. "
                "To publish a file from there, run `hubctl publish OWNER/NAME FILE`."
            )
    for one in find_prompts(root, own, markdown=markdown, instructions=instructions):
        if isinstance(one, PromptFile):
            yield from _read_prompt(one, root)
        else:
            yield one


def _read_prompt(found: PromptFile, root: Path) -> Iterator[Item | Rejection | PassedOver]:
    """The prompt of a file, with the user's message from the file beside it."""
    items: list[Item] = []
    for one in filter(None, (found, found.user)):
        item = _read(one, root)
        if isinstance(item, Item) and item.text.strip("\ufeff \t\r\n"):
            items.append(item)
        else:
            yield PassedOver(one.where, EMPTY) if isinstance(item, Item) else item
    if len(items) == 2:
        items = [_join(*items)]
    yield from map(_with_title, items)


def _tell_alone(path: Path) -> list[str]:
    """A warning for the text of a folder that is imported without the folder."""
    if not text_in([path]) or all(one == path for one in path.parent.glob("[!.]*")):
        return []
    return [f"Left out the files beside it: import its folder, {path.parent}, to have them."]


def _join(system: Item, user: Item) -> Item:
    """One prompt with two messages, and the front matter of the first file."""
    body = parse_document(system.text).body
    messages = [Message("system", body), Message("user", parse_document(user.text).body)]
    return system._replace(
        text=system.text[: len(system.text) - len(body)] + write_messages(messages),
        fields=user.fields | system.fields,
        warnings=system.warnings + user.warnings,
    )


def _with_title(item: Item) -> Item:
    """The item with the title of its text, or with its name in words."""
    body = parse_document(item.text).body
    heading = title_of(body)
    rest = notes.without_properties(body, is_of_notion=notes.has_id(item.where))
    described = {"description": first_sentence(rest)} if rest != body else {}
    return item._replace(
        title=to_words(item.name) if names_a_part(heading) else heading,
        fields={key: one for key, one in described.items() if one} | item.fields,
    )


def _read(found: PromptFile, root: Path) -> Item | Rejection:
    path, where, _, beside, *_ = found
    name = path.name.lower()
    tool, tool_name = found.tool or ("", "")
    try:
        with open(path, "rb") as file:
            raw = file.read(CONTENT_BYTES_MAX + 1)
        if len(raw) > CONTENT_BYTES_MAX:
            return Rejection(where, f"larger than {CONTENT_BYTES_MAX:,} bytes")
        text = decode_text(raw)
        if name.endswith(MESSAGE_SUFFIXES):
            messages, front, warnings = _read_message_file(text)
            prompt = chats.as_prompt(messages)
            text = prompt if isinstance(prompt, str) else write_messages(prompt)
        else:
            text, front, warnings = _read_agents(text, tool, path.suffix.lower())
            warnings += check_connection(front)
            text = asked_first.sub("", text, count=1)
    except OSError as error:
        return Rejection(where, f"cannot be read: {error.strerror}")
    except ValueError as error:
        return Rejection(where, str(error))
    convention = "files" if tool else _convention(name, front)
    fields, author, warned = _read_front({k: one for k, one in front.items() if k not in _TRIALS})
    metadata = front.get("metadata")
    is_title = "title" in front or (isinstance(metadata, dict) and "title" in metadata)
    is_title = is_title or not name.endswith(".md")
    if not is_title and _identifier.fullmatch(fields.get("title", "")):
        del fields["title"]
    return Item(
        where,
        "",
        found.name or tool_name or _name(path, front, root),
        text,
        fields,
        [
            *warnings,
            *warned,
            *(f"Left out {one}: {why}." for one, why in (beside.left if beside else ())),
        ],
        convention,
        author,
        beside,
        name.strip(".").partition(".")[0] if found.name else _kind(name),
    )


def _name(path: Path, front: dict[str, Any], root: Path) -> str:
    own = front.get("name")
    stem = notes.without_id(_stem(path))
    if path.name.lower() == "skill.md" and isinstance(own, str) and own.strip():
        return own
    kind, word = _kind(path.name.lower()).rstrip("s"), stem.lower()
    if kind and word in KINDS and word.rstrip("s") != kind:
        return _stem(path)
    return notes.without_id(telling_name(stem, path.resolve().parent, root))


def _convention(name: str, front: dict[str, Any]) -> str:
    """The convention of the placeholders in a file, by its name and front matter."""
    if name.endswith((".mdc", ".instructions.md")):
        return "files"
    if name.endswith(ASSISTANT_SUFFIXES):
        return "vscode"
    if name.endswith(".prompty"):
        # "mustache", or {format: mustache}, or {format: {kind: mustache}}.
        return "mustache" if "mustache" in str(front.get("template")).lower() else "jinja"
    return "mustache" if name.endswith((".prompt", *MESSAGE_SUFFIXES)) else "markdown"


def _kind(name: str) -> str:
    """The kind of an assistant's file: prompt, instructions, agent or chatmode; empty for
    others.
    """
    return name.rsplit(".", 2)[1] if name.endswith(ASSISTANT_SUFFIXES) else ""


def _stem(path: Path) -> str:
    suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default="")
    return path.name[: len(path.name) - len(suffix)]


def _read_agents(text: str, tool: str, suffix: str) -> tuple[str, dict[str, Any], list[str]]:
    """As ``_read_text``, by the rules of a coding agent's ``tool``, if any. Raises ValueError."""
    if tool == agents.GEMINI:
        text, front = agents.read_gemini(text)
        return text, front, agents.warn_of_running(text)
    text, repaired = agents.repair(agents.open_header(text) if suffix == ".prompt" else text)
    text, front, warnings = _read_text(text, suffix)
    if tool == agents.COMMAND:
        body = parse_document(text).body
        converted, front = agents.read_command(body, front)
        text = text[: len(text) - len(body)] + converted
    running = agents.warn_of_running(text) if tool else []
    return text, front, [*repaired, *warnings, *running]


def _read_text(text: str, suffix: str) -> tuple[str, dict[str, Any], list[str]]:
    """A text with the hub's role markers, the metadata of its front matter, and warnings."""
    document = parse_document(text)
    convert = chats.BY_SUFFIX.get(suffix)
    body = convert(document.body) if convert else document.body
    text = text[: len(text) - len(document.body)] + body
    return text, document.front or {}, document.warnings


def _read_front(front: dict[str, Any]) -> tuple[dict[str, Any], str, list[str]]:
    """The valid metadata in the hub's terms; the author (empty if unnamed); and warnings."""
    ours, author = translate(front)
    if isinstance(ours.get("title"), str):
        ours["title"] = clean_title(ours["title"]) or None
    description, shortened = ours.get("description"), []
    if isinstance(description, str) and len(description.strip()) > DESCRIPTION_CHARS_MAX:
        ours["description"] = cut(description.strip(), DESCRIPTION_CHARS_MAX)
        shortened = [f"Shortened the description to {DESCRIPTION_CHARS_MAX:,} characters."]
    fields, warnings = parse_loosely(ours)
    return fields, author, shortened + warnings


def _read_message_file(text: str) -> tuple[list[Message], dict[str, Any], list[str]]:
    """The messages of a ``.prompt.yml``, its other keys, and warnings. Raises ValueError."""
    document, repeated = load_yaml(text, _LARGE_YAML_VALUES_MAX)
    found = document.pop("messages", None) if isinstance(document, dict) else None
    messages, warnings = chats.read_list(spellings(found))
    return messages, document, repeated + warnings
