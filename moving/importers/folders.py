"""Finds the prompts in a folder, and what else is in it. Reads no file, only lists them.

A folder can hold prompts among other things. If some files have a form that only prompts have, such
as ``SKILL.md`` or ``.prompt.md``, plain Markdown files there are documents, and are passed over.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from builder.model.plural import counted
from builder.model.version_files import TEXT_NAMES
from builder.store.site import is_built
from moving.importers.agents import find_tool
from moving.importers.beside import (
    Beside,
    find_beside,
    text_in,
)
from moving.importers.items import PassedOver, Rejection
from publisher.write.left_out import ENVIRONMENT_FILE, TOOL_FOLDERS

# In one folder, these two are the messages of one prompt.
SYSTEM_FILE, USER_FILE = "system.md", "user.md"
_PAIR = {SYSTEM_FILE, USER_FILE}
MESSAGE_SUFFIXES = (".prompt.yml", ".prompt.yaml")
# Files of coding assistants.
ASSISTANT_SUFFIXES = (".prompt.md", ".instructions.md", ".agent.md", ".chatmode.md")
FORM_SUFFIXES = (*ASSISTANT_SUFFIXES, ".prompt", ".prompty", ".mdc", *MESSAGE_SUFFIXES)
SUFFIXES = (".md", *FORM_SUFFIXES)
# Folders in which coding assistants look for these files. Other hidden folders hold no source.
ASSISTANT_FOLDERS = tuple(
    ".agents .claude .clinerules .continue .cursor .gemini .github .windsurf".split()
)
# Files about a collection, which are no prompts. Names in capitals match only in capitals.
SKIPPED_STEMS = set(
    "readme license licence changelog contributing code_of_conduct third_party_notices "
    "pull_request_template AUTHORS COPYING MAINTAINERS NOTICE RELEASING SECURITY SUPPORT".split()
)
ABOUT = "about the collection, not a prompt"
# Files that tell every agent about the repository.
_INSTRUCTIONS = (
    "AGENTS.md CLAUDE.md GEMINI.md copilot-instructions.md .cursorrules .windsurfrules .clinerules"
).split()
INSTRUCTIONS = (
    "instructions for agents about the repository, not a prompt. Add --instructions to import them"
)
TWO_SOURCES = "two sources of one prompt. Remove one"
LINKS = "symbolic links"
OF_NO_KIND = "no kind of file that has prompts"
NO_SOURCE = "passed over, as folders of a hub, of a tool or hidden ones hold no source"
PLAIN = (
    "plain Markdown in a folder that has prompts in formats of their own. Add --markdown to "
    "import it, too"
)


class PromptFile(NamedTuple):
    """A file that is a prompt. ``user``: the file with the user's message. ``beside``: the other
    files of a folder that is a prompt. ``tool`` as find_tool. ``name``: if the file's is another.
    """

    path: Path
    where: str
    user: "PromptFile | None" = None
    beside: Beside | None = None
    tool: tuple[str, str] | None = None
    name: str = ""


def find_prompts(
    root: Path,
    own: Collection[str],
    *,
    markdown: bool,
    instructions: bool = False,
) -> Iterator[PromptFile | Rejection | PassedOver]:
    """The prompts below a folder in the order of their paths; and other files, with the reason.

    A folder with a SKILL.md or PROMPT.md is one prompt, and has the files beside and below that.
    ``own``: the real paths of the hub's own folders, which are skipped. ``markdown``: plain
    Markdown files are prompts, too. ``instructions``: so are those about the repository, by the
    name of their folder.
    """
    found: list[PromptFile] = []
    for one in _walk(root, own):
        if not isinstance(one, PromptFile):
            yield one
        elif one.path.name in _INSTRUCTIONS:
            named = one._replace(name=_repository_of(one.path).name)
            yield named if instructions else PassedOver(one.where, INSTRUCTIONS)
        elif _has_form(one.path.name) or not is_about(one.path.name):
            found.append(one)
        else:
            yield PassedOver(one.where, ABOUT)
    yield from _sort(found, markdown=markdown)


def _sort(
    found: list[PromptFile], *, markdown: bool
) -> Iterator[PromptFile | Rejection | PassedOver]:
    """The prompts among files that can be prompts, by the other files in their folders."""
    folders: dict[Path, dict[str, PromptFile]] = {}
    for one in found:
        folders.setdefault(one.path.parent, {})[one.path.name.lower()] = one
    # Only a folder of just these two files is a prompt; among others, they may be any two
    # documents.
    pairs = {folder for folder, files in folders.items() if {SYSTEM_FILE} <= {*files} <= _PAIR}
    forms = {
        one.path
        for one in found
        if _has_form(one.path.name) or one.path.parent in pairs or one.tool
    }
    left = {
        one.path
        for one in found
        if (forms or "/." in f"/{one.where}") and one.path not in forms and not markdown
    }
    texts = {one.path.parent: one for one in found if one.beside}
    twins = {one.path: texts.get(one.path.with_suffix("")) for one in found}
    doubled = {twin.path for path, twin in twins.items() if twin and path not in left}
    for one in found:
        beside = folders[one.path.parent]
        if one.path in left:
            yield PassedOver(one.where, PLAIN)
        elif twin := twins[one.path]:
            yield Rejection(f"{one.where}, {twin.where}", TWO_SOURCES)
        elif one.path in doubled:
            continue
        elif one is beside.get(SYSTEM_FILE):
            yield one._replace(user=beside.get(USER_FILE))
        elif one is not beside.get(USER_FILE) or SYSTEM_FILE not in beside:
            yield one


def is_about(name: str) -> bool:
    """True if a file of this name is about a collection, as README.md is."""
    stem = name.split(".")[0].replace("-", "_")
    return not SKIPPED_STEMS.isdisjoint((stem, stem.lower()))


def _has_form(name: str) -> bool:
    """True if a file's name shows that it is a prompt."""
    return name.lower().endswith(FORM_SUFFIXES) or bool({name, name.lower()} & {*TEXT_NAMES})


def _walk(root: Path, own: Collection[str]) -> Iterator[PromptFile | Rejection | PassedOver]:
    """The files below a folder with names of prompts, in the order of their paths. If the folder
    itself is a prompt, yields it and the folders below it that are prompts.
    """
    is_one = text_in([*root.iterdir()]) is not None
    waiting, passed, of_no_kind = [root], [], defaultdict[str, list[str]](list)
    while waiting:
        path = waiting.pop()
        where = path.relative_to(root).as_posix()
        try:
            if path.name.startswith(".") and not path.is_dir() and path.name not in _INSTRUCTIONS:
                of_no_kind["hidden"].append(where)
            elif path.is_symlink():
                # A link to a path inside the folder leads to files that are read anyway.
                may_lose = path.is_dir() or path.name.lower().endswith(SUFFIXES)
                if may_lose and not path.resolve().is_relative_to(root):
                    yield Rejection(where, "a link that leads outside the folder")
                else:
                    of_no_kind[LINKS] += [] if is_one else [where]
            elif path.is_dir():
                if path != root and _is_no_source(path, own):
                    if not is_one:  # as a part of that prompt, it has been named
                        passed.append(where)
                    continue
                entries = sorted(path.iterdir())
                if text := text_in(entries):
                    entries = [one for one in entries if one.is_dir()] if path == root else []
                    if text.is_symlink():
                        entries.insert(0, text)
                    else:
                        beside = find_beside(text, has_others=path == root)
                        yield PromptFile(text, text.relative_to(root).as_posix(), beside=beside)
                waiting += reversed(entries)
            elif path.is_file() and not is_one:
                tool = find_tool(path)
                if tool or path.name in _INSTRUCTIONS or path.name.lower().endswith(SUFFIXES):
                    yield PromptFile(path, where, tool=tool)
                else:
                    of_no_kind[path.suffix.lower() or "without an ending"].append(where)
        # RuntimeError: links in a circle; ValueError: rules that cannot be read
        except (OSError, RuntimeError, ValueError) as error:
            cause = getattr(error, "strerror", None) or error
            yield Rejection(where, f"cannot be read: {cause}")
    if passed:
        yield PassedOver(", ".join(passed), NO_SOURCE, tuple(passed))
    if paths := tuple(chain(*of_no_kind.values())):
        yield PassedOver(_count(of_no_kind), OF_NO_KIND, paths)


def _count(of_no_kind: dict[str, list[str]]) -> str:
    """``3 .csv, 1 hidden``, the most first."""
    counts = sorted((-len(paths), ending) for ending, paths in of_no_kind.items() if paths)
    return ", ".join(
        counted(-count, "symbolic link" if ending == LINKS else ending, ending)
        for count, ending in counts
    )


def _repository_of(path: Path) -> Path:
    """The folder that a file of instructions is about."""
    return next(one for one in path.parents if one.name not in ASSISTANT_FOLDERS)


def _is_no_source(folder: Path, own: Collection[str]) -> bool:
    return (
        (folder.name.startswith(".") and folder.name not in ASSISTANT_FOLDERS)
        or folder.name in TOOL_FOLDERS
        or str(folder) in own
        or (folder / ENVIRONMENT_FILE).exists()
        or is_built(str(folder))
    )
