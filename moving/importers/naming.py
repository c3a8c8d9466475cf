"""Derives names of repos and handles of owners from names in a source.

The same source gives the same names each time, so a second import finds its repos.
"""

import re
from pathlib import Path

from builder.model import names
from builder.text.plain_words import plain_words
from builder.text.summary import clean_title

NAMELESS = "prompt"
# Names of files and folders that do not describe a prompt. The first say of which kind it is, and
# so the topic of a file that has another kind: `agents.instructions.md`.
KINDS = set("agent agents claude instructions prompt prompts skill".split())
_VAGUE = KINDS | set("default index main readme system template user".split())
_INITIALS = set(
    "ai api aws cli css csv diy gpt html http json llm mcp pdf php prd qa seo sql ui url ux "
    "xml yaml".split()
)


class Names:
    """The names given out in one run, by owner."""

    def __init__(self) -> None:
        self._given: dict[str, set[str]] = {}
        # The last number given, since thousands of titles may share one name.
        self._numbers: dict[tuple[str, str], int] = {}

    def give(self, owner: str, name: str, kind: str = "") -> str:
        """``name``, or if the owner has it already, ``name`` with ``kind``, or with ``-2``, ``-3``
        and so on.
        """
        given = self._given.setdefault(owner, set())
        if kind and name in given:
            name = _append(name, f"-{kind}", names.REPO_CHARS_MAX)
        number, free = self._numbers.get((owner, name), 1), name
        while free in given:
            number += 1
            free = _append(name, f"-{number}", names.REPO_CHARS_MAX)
        self._numbers[owner, name] = number
        given.add(free)
        return free


def name_of(title: str, notes: list[str] | None = None) -> str:
    """A repo's name from a title in any language. ``notes`` gets a sentence if the name is reserved
    and another is used.
    """
    slug = plain_words(title, names.REPO_CHARS_MAX, "-")
    if why := names.why_reserved("prompt", slug):
        return _instead(slug, f"{slug}-{NAMELESS}", why, notes)
    return slug if re.search("[a-z]", slug) else NAMELESS


def telling_name(stem: str, folder: Path, root: Path) -> str:
    """The name of a file in ``folder``, without its suffix. If it is vague, the name of the nearest
    folder up to ``root`` that is not.
    """
    folders = [one for one in (folder, *folder.parents) if one == root or root in one.parents]
    named = (one for one in (stem, *(one.name for one in folders)) if one.lower() not in _VAGUE)
    return next(filter(None, named), stem)


def to_words(name: str) -> str:
    """A name as a title: ``review-sql_query`` as "Review SQL query"."""
    words = [
        word.upper() if word in _INITIALS else word for word in re.split(r"[-_\s]+", name) if word
    ]
    title = clean_title(" ".join(words)) or NAMELESS
    return title[0].upper() + title[1:]


def display_name(author: str) -> str:
    """An author's name, without URLs and e-mail addresses."""
    return clean_title(re.split(r"\s+-\s+https?:|\s*[<(]|https?:|@(?=\S)", author)[0])


def handle_of(contributors: str, default: str, notes: list[str] | None = None) -> str:
    """An owner's handle from the first of comma-separated contributors; ``default`` if none is
    left. ``notes`` as in ``name_of``.
    """
    # E-mail addresses are never published.
    first = display_name(contributors.split(",")[0].strip().removeprefix("@"))
    handle = plain_words(first, names.OWNER_CHARS_MAX, "-") or default
    is_of_site = handle in names.RESERVED_OWNERS
    why = "the site uses it itself" if is_of_site else names.why_reserved("owner", handle)
    if why:
        return _instead(handle, _append(handle, "-user", names.OWNER_CHARS_MAX), why, notes)
    return handle


def _instead(name: str, free: str, why: str, notes: list[str] | None) -> str:
    if notes is not None:
        notes.append(f"{free} takes the place of the reserved name {name}: {why}.")
    return free


def _append(name: str, suffix: str, chars_max: int) -> str:
    return name[: chars_max - len(suffix)].rstrip("-") + suffix
