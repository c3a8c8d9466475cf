"""The files of a folder that are prompts, and what else lies there. Reads no file but lists.

A folder can hold prompts among other things. Where it has files that are prompts by their form,
such as ``SKILL.md`` or ``.prompt.md``, its plain Markdown files are documents, and are passed over.
"""

import os
from collections.abc import Collection, Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from builder.store.site import is_built
from moving.importers.items import PassedOver, Rejection

SKILL_FILE = "skill.md"
# Beside each other, these are two messages of one prompt.
SYSTEM_FILE, USER_FILE = "system.md", "user.md"
_PAIR = {SYSTEM_FILE, USER_FILE}
MESSAGE_SUFFIXES = (".prompt.yml", ".prompt.yaml")
# Files of coding assistants.
ASSISTANT_SUFFIXES = (".prompt.md", ".instructions.md", ".agent.md", ".chatmode.md")
FORM_SUFFIXES = (*ASSISTANT_SUFFIXES, ".prompt", ".prompty", *MESSAGE_SUFFIXES)
SUFFIXES = (".md", *FORM_SUFFIXES)
# Where coding assistants look for them. Other hidden folders hold no source.
ASSISTANT_FOLDERS = (".agents", ".claude", ".github")
# What is about a collection is none of its prompts. Those in capitals only in capitals.
SKIPPED_STEMS = set(
    "readme license licence changelog contributing code_of_conduct third_party_notices "
    "pull_request_template AUTHORS COPYING MAINTAINERS NOTICE RELEASING SECURITY SUPPORT".split()
)
ABOUT = "about the collection, not a prompt"
NO_SOURCE = "passed over, as folders of a hub, of a tool or hidden ones hold no source"
PLAIN = (
    "plain Markdown in a folder that has prompts in formats of their own. Add --markdown to "
    "import it, too"
)


class Found(NamedTuple):
    """A file that is a prompt. ``user``: the file with the message of the user. ``beside``: the
    other files of a skill, and their sizes in bytes.
    """

    path: Path
    where: str
    user: "Found | None" = None
    beside: tuple[tuple[str, int], ...] = ()


def find_prompts(
    root: Path, listed: Container[str], own: Collection[str], *, markdown: bool
) -> Iterator[Found | Rejection | PassedOver]:
    """The prompts below a folder in the order of their paths, and what is none, and why.

    A folder with a SKILL.md is one prompt: what lies beside and below it belongs to the skill.
    Folders that hold no source are passed over; ``own``: real paths of such folders. ``listed``:
    files that are prompts in any case. ``markdown``: so is plain Markdown.
    """
    found: list[Found] = []
    for one in _walk(root, own):
        if not isinstance(one, Found):
            yield one
        elif one.where in listed or _has_form(one.path.name) or not is_about(one.path.name):
            found.append(one)
        else:
            yield PassedOver(one.where, ABOUT)
    folders: dict[Path, dict[str, Found]] = {}
    for one in found:
        folders.setdefault(one.path.parent, {})[one.path.name.lower()] = one
    # A folder of such files alone is a prompt; among others, they are any two documents.
    pairs = {folder for folder, files in folders.items() if {SYSTEM_FILE} <= {*files} <= _PAIR}
    forms = {
        one.path
        for one in found
        if one.where in listed or _has_form(one.path.name) or one.path.parent in pairs
    }
    for one in found:
        beside = folders[one.path.parent]
        is_document = forms or "/." in f"/{one.where}"
        if is_document and one.path not in forms and not markdown:
            yield PassedOver(one.where, PLAIN)
        elif one is beside.get(SYSTEM_FILE):
            yield one._replace(user=beside.get(USER_FILE))
        elif one is not beside.get(USER_FILE) or SYSTEM_FILE not in beside:
            yield one


def is_about(name: str) -> bool:
    """Whether a file of this name is about a collection, as README.md is."""
    stem = name.split(".")[0].replace("-", "_")
    return not SKIPPED_STEMS.isdisjoint((stem, stem.lower()))


def _has_form(name: str) -> bool:
    """Whether a file of this name is a prompt by its form."""
    return name.lower().endswith(FORM_SUFFIXES) or name.lower() == SKILL_FILE


def _walk(root: Path, own: Collection[str]) -> Iterator[Found | Rejection | PassedOver]:
    """The files below a folder whose names are those of prompts, in the order of their paths. Where
    the folder itself is a skill, these are that skill and others below it.
    """
    is_skill = _skill_in(root.iterdir()) is not None
    waiting, passed = [root], []
    while waiting:
        path = waiting.pop()
        where = path.relative_to(root).as_posix()
        try:
            if path.is_symlink():
                # A link inside leads to what is read anyway.
                may_lose = path.is_dir() or path.name.lower().endswith(SUFFIXES)
                if may_lose and not path.resolve().is_relative_to(root):
                    yield Rejection(where, "a link that leads outside the folder")
            elif path.is_dir():
                if path != root and _is_no_source(path, own):
                    passed.append(where)
                    continue
                entries = sorted(one for one in path.iterdir() if _is_looked_at(one))
                if skill := _skill_in(entries):
                    entries = [one for one in entries if one.is_dir()] if path == root else []
                    if skill.is_symlink():
                        entries.insert(0, skill)
                    else:
                        beside = _files_beside(skill, has_others=path == root)
                        yield Found(skill, skill.relative_to(root).as_posix(), beside=beside)
                waiting += reversed(entries)
            elif path.is_file() and path.name.lower().endswith(SUFFIXES) and not is_skill:
                yield Found(path, where)
        except (OSError, RuntimeError) as error:  # the latter: links in a circle
            told = getattr(error, "strerror", None) or error
            yield Rejection(where, f"cannot be read: {told}")
    if passed:
        yield PassedOver(", ".join(passed), NO_SOURCE)


def _is_looked_at(path: Path) -> bool:
    """Whether a path is not hidden, or is a folder, which is named."""
    return not path.name.startswith(".") or (path.is_dir() and not path.is_symlink())


def _is_no_source(folder: Path, own: Collection[str]) -> bool:
    return (
        (folder.name.startswith(".") and folder.name not in ASSISTANT_FOLDERS)
        or folder.name == "node_modules"
        or str(folder) in own
        or (folder / "pyvenv.cfg").exists()
        or is_built(str(folder))
    )


def _skill_in(entries: Iterable[Path]) -> Path | None:
    named = (one for one in entries if one.name.lower() == SKILL_FILE)
    return next((one for one in named if one.is_symlink() or one.is_file()), None)


def _files_beside(skill: Path, *, has_others: bool) -> tuple[tuple[str, int], ...]:
    """The other files of a skill, and their sizes. ``has_others``: other skills lie below it."""
    found = []
    for name, folders, files in os.walk(skill.parent):
        folder = Path(name)
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        if has_others and folder != skill.parent and _skill_in(folder / one for one in files):
            folders[:] = []
            continue
        for path in sorted(folder / one for one in files if not one.startswith(".")):
            if path != skill:
                found.append((path.relative_to(skill.parent).as_posix(), path.lstat().st_size))
    return tuple(found)
