"""Prompts that are files: one, or all below a folder. Reads; writes nothing.

The text is the file's bytes, front matter and all; only what tells the roles of messages is put
in our own way (``chats``). Of a ``.prompt.yml``, which is no text, the messages are taken.

Files as ``hubctl export`` wrote them, by the list in their folder, become the texts that they were:
their front matter is the export's, and their placeholders are ours.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from builder.export.listing import LIST_FILE, Exported, read_list
from builder.model.errors import OperatorError
from builder.model.records import CONTENT_BYTES_MAX, Message
from builder.store.site import is_built
from builder.text.core_yaml import load_yaml, spellings
from builder.text.messages import write_messages
from builder.text.prompts import parse_document
from builder.text.summary import clean_title
from publisher.importers import chats
from publisher.importers.foreign import check_connection, translate
from publisher.importers.items import Item, PassedOver, Rejection
from publisher.write.fields import parse_loosely

SKILL_FILE = "skill.md"
MESSAGE_SUFFIXES = (".prompt.yml", ".prompt.yaml")
# Such a file has data to try the prompt with, too, and an export's may have schemas of tools.
_LARGE_YAML_VALUES_MAX = 50_000
SUFFIXES = (".md", ".prompt", ".prompty", *MESSAGE_SUFFIXES)
# Data to try a prompt with is none of its metadata.
TRIALS = ("testData", "evaluators")
# An export's file is larger than its prompt: braces that are text take five times their bytes, and
# all metadata is in it.
EXPORTED_BYTES_MAX = 4 * 1024 * 1024
_EXPORTED_LIMITS = {"bytes_max": EXPORTED_BYTES_MAX, "values_max": _LARGE_YAML_VALUES_MAX}
# What is about a collection is none of its prompts.
SKIPPED_STEMS = {
    "readme", "license", "licence", "changelog", "contributing", "code_of_conduct",
    "AUTHORS", "COPYING", "NOTICE", "SECURITY",
}  # fmt: skip


def read_files(source: str, own: Collection[str] = ()) -> Iterator[Item | Rejection | PassedOver]:
    """The items of a file, or of the files of a folder in the order of their paths.

    A folder with a SKILL.md is one prompt: what lies beside and below it belongs to the skill.
    Folders that hold no source are passed over; ``own``: real paths of such folders. Raises
    OperatorError for a folder inside one of these.
    """
    if not os.path.isdir(source):
        yield _read(Path(source), os.path.basename(source), None)
        return
    root = Path(source).resolve()
    for path in own:
        if root.is_relative_to(path):
            raise OperatorError(
                f"{source} is inside {path}, a folder of this hub, and so no source of an import. "
                "To publish a file from there, run `hubctl publish OWNER/NAME FILE`."
            )
    exported, passed = None, []
    try:
        exported = read_list(str(root))
    except OperatorError as error:
        yield Rejection(LIST_FILE, str(error).removesuffix("."))
    waiting = [root]
    while waiting:
        path = waiting.pop()
        where = path.relative_to(root).as_posix()
        try:
            if path.is_symlink():
                # A link inside leads to what is read anyway.
                if not path.resolve().is_relative_to(root):
                    yield Rejection(where, "a link that leads outside the folder")
            elif path.is_dir():
                if path != root and _is_no_source(path, own):
                    passed.append(where)
                    continue
                entries = sorted(one for one in path.iterdir() if _is_looked_at(one))
                skills = [one for one in entries if one.name.lower() == SKILL_FILE]
                waiting += reversed(skills or entries)
            elif path.is_file() and _is_prompt(path.name, exported and where in exported.files):
                yield _read(path, where, exported)
        except (OSError, RuntimeError) as error:  # the latter: links in a circle
            told = getattr(error, "strerror", None) or error
            yield Rejection(where, f"cannot be read: {told}")
    if passed:
        reason = "passed over, as folders of a hub, of a tool or hidden ones hold no source"
        yield PassedOver(", ".join(passed), reason)


def _is_looked_at(path: Path) -> bool:
    """Whether a path is not hidden, or is a folder, which is named."""
    return not path.name.startswith(".") or (path.is_dir() and not path.is_symlink())


def _is_no_source(folder: Path, own: Collection[str]) -> bool:
    return (
        folder.name.startswith(".")
        or folder.name == "node_modules"
        or str(folder) in own
        or (folder / "pyvenv.cfg").exists()
        or is_built(str(folder))
    )


def _is_prompt(name: str, is_listed: bool | None) -> bool:
    return name.lower().endswith(SUFFIXES) and (is_listed or not is_about(name))


def is_about(name: str) -> bool:
    """Whether a file of this name is about a collection, as README.md is."""
    stem = name.split(".")[0]
    return not SKIPPED_STEMS.isdisjoint((stem, stem.lower()))


def _read(path: Path, where: str, exported: Exported | None) -> Item | Rejection:
    is_listed = exported is not None and where in exported.files
    bytes_max = EXPORTED_BYTES_MAX if is_listed else CONTENT_BYTES_MAX
    try:
        with open(path, "rb") as file:
            raw = file.read(bytes_max + 1)
        if len(raw) > bytes_max:
            return Rejection(where, f"larger than {bytes_max:,} bytes")
        is_ours = is_listed and exported.is_whole(where, raw)
        text = raw.decode("utf-8")
        if path.name.lower().endswith(MESSAGE_SUFFIXES):
            messages, front, warnings = read_message_file(text)
            prompt = chats.as_prompt(messages)
            text = prompt if isinstance(prompt, str) else write_messages(prompt)
        else:
            limits = _EXPORTED_LIMITS if is_listed else {}
            text, front, warnings = _read_text(text, path.suffix.lower(), is_ours, limits)
            warnings += check_connection(front)
    except OSError as error:
        return Rejection(where, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return Rejection(where, f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        return Rejection(where, str(error))
    # What a hub wrote has its variables.
    convention = "none" if is_ours else _convention(path.name.lower(), front)
    fields, author, notes = read_front({k: one for k, one in front.items() if k not in TRIALS})
    name = _stem(path)
    if path.name.lower() == SKILL_FILE:
        name = str(front.get("name") or path.resolve().parent.name)
    if is_listed and not author:
        author = where.split("/")[0]
    return Item(where, author, name, text, fields, warnings + notes, convention)


def _convention(name: str, front: dict[str, Any]) -> str:
    """The convention of placeholders in a file of this name."""
    if name.endswith(".prompty"):
        # "mustache", or {format: mustache}, or {format: {kind: mustache}}.
        return "mustache" if "mustache" in str(front.get("template")).lower() else "jinja"
    return "mustache" if name.endswith((".prompt", *MESSAGE_SUFFIXES)) else "auto"


def _stem(path: Path) -> str:
    suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default="")
    return path.name[: len(path.name) - len(suffix)]


def _read_text(
    text: str, suffix: str, is_ours: bool, limits: dict[str, int]
) -> tuple[str, dict[str, Any], list[str]]:
    """A text with messages in our way, what its front matter says, and warnings."""
    document = parse_document(text, **limits)
    convert = chats.BY_SUFFIX.get(suffix)
    body = convert(document.body, is_ours) if convert else document.body
    # Without a body, the front matter is all that there is to publish.
    if not (is_ours and body.strip()):
        body = text[: len(text) - len(document.body)] + body
    return body, document.front or {}, document.warnings


def read_front(front: dict[str, Any]) -> tuple[dict[str, Any], str, list[str]]:
    """Metadata that is right, in our terms; who wrote it (empty: nobody is named); and warnings."""
    ours, author = translate(front)
    if isinstance(ours.get("title"), str):
        ours["title"] = clean_title(ours["title"]) or None
    fields, warnings = parse_loosely(ours)
    return fields, author, warnings


def read_message_file(text: str) -> tuple[list[Message], dict[str, Any], list[str]]:
    """The messages of a ``.prompt.yml``, its other keys, and warnings. Raises ValueError."""
    document, notes = load_yaml(text, _LARGE_YAML_VALUES_MAX)
    found = document.pop("messages", None) if isinstance(document, dict) else None
    messages, warnings = chats.read_list(spellings(found))
    return messages, document, notes + warnings
