"""Prompts that are files: one, or all below a folder. Reads; writes nothing.

The text is the file's bytes, front matter and all; only what tells the roles of messages is put
in our own way (``chats``). Of a ``.prompt.yml``, which is no text, the messages are taken.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder.model.records import CONTENT_BYTES_MAX
from builder.text.prompts import load_yaml, parse_document
from publisher.importers import chats
from publisher.importers.foreign import translate
from publisher.importers.items import Item, Rejection, clean_title
from publisher.write.fields import parse_loosely

SKILL_FILE = "skill.md"
MESSAGE_SUFFIXES = (".prompt.yml", ".prompt.yaml")
SUFFIXES = (".md", ".prompt", ".prompty", *MESSAGE_SUFFIXES)
# What is about a collection is none of its prompts.
SKIPPED_STEMS = {
    "readme", "license", "licence", "changelog", "contributing", "code_of_conduct",
    "AUTHORS", "COPYING", "NOTICE", "SECURITY",
}  # fmt: skip


def read_files(path: str) -> Iterator[Item | Rejection]:
    """The items of a file, or of the files of a folder in the order of their paths.

    A folder with a SKILL.md is one prompt: what lies beside and below it belongs to the skill.
    """
    if os.path.isdir(path):
        root = Path(path).resolve()
        yield from _walk(root, root)
    else:
        yield _read(Path(path), os.path.basename(path))


def _walk(root: Path, folder: Path) -> Iterator[Item | Rejection]:
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        yield Rejection(str(folder.relative_to(root)), f"cannot be read: {error.strerror}")
        return
    skills = [entry for entry in entries if entry.name.lower() == SKILL_FILE]
    for entry in skills or entries:
        where = entry.relative_to(root).as_posix()
        if entry.is_symlink():
            # A link inside leads to what is read anyway.
            if not entry.resolve().is_relative_to(root):
                yield Rejection(where, "a link that leads outside the folder")
        elif entry.is_dir():
            yield from _walk(root, entry)
        elif entry.name.lower().endswith(SUFFIXES) and not is_about(entry.name):
            yield _read(entry, where)


def is_about(name: str) -> bool:
    """Whether a file of this name is about a collection, as README.md is."""
    stem = name.split(".")[0]
    return not SKIPPED_STEMS.isdisjoint((stem, stem.lower()))


def _read(path: Path, where: str) -> Item | Rejection:
    try:
        with open(path, "rb") as file:
            raw = file.read(CONTENT_BYTES_MAX + 1)
        if len(raw) > CONTENT_BYTES_MAX:
            return Rejection(where, f"larger than {CONTENT_BYTES_MAX:,} bytes")
        text = raw.decode("utf-8")
        if path.name.lower().endswith(MESSAGE_SUFFIXES):
            text, front, warnings = _read_messages(text)
        else:
            document = parse_document(text)
            front, warnings = document.front or {}, document.warnings
            convert = chats.BY_SUFFIX.get(path.suffix.lower())
            if convert:
                text = text[: len(text) - len(document.body)] + convert(document.body)
    except OSError as error:
        return Rejection(where, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return Rejection(where, f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        return Rejection(where, str(error))
    ours, author = translate(front)
    if isinstance(ours.get("title"), str):
        ours["title"] = clean_title(ours["title"]) or None
    fields, notes = parse_loosely(ours)
    name = _stem(path)
    if path.name.lower() == SKILL_FILE:
        name = str(front.get("name") or path.resolve().parent.name)
    return Item(where, author, name, text, fields, warnings + notes)


def _stem(path: Path) -> str:
    suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default="")
    return path.name[: len(path.name) - len(suffix)]


def _read_messages(text: str) -> tuple[str, dict[str, Any], list[str]]:
    """The text of a list of messages, and the other keys. Raises ValueError."""
    document = load_yaml(text)
    text = chats.from_list(document.pop("messages", None) if isinstance(document, dict) else None)
    # Data to try the prompt with is none of its metadata.
    front = {key: value for key, value in document.items() if key not in ("testData", "evaluators")}
    return text, front, []
