"""Names of repos and handles of owners, made of what people call them.

The same source gives the same names each time, so that a second import finds its repos.
"""

import re

from builder.model import names
from builder.text.plain_words import plain_words

NAMELESS = "prompt"


class Names:
    """The names given out in one run, by owner."""

    def __init__(self) -> None:
        self._given: dict[str, set[str]] = {}
        # Counted on, since thousands of titles may come to one name.
        self._numbers: dict[tuple[str, str], int] = {}

    def give(self, owner: str, name: str) -> str:
        """``name``, or with ``-2``, ``-3`` … where the owner has given it before."""
        given = self._given.setdefault(owner, set())
        number, free = self._numbers.get((owner, name), 1), name
        while free in given:
            number += 1
            free = _append(name, f"-{number}", names.REPO_CHARS_MAX)
        self._numbers[owner, name] = number
        given.add(free)
        return free


def name_of(title: str, notes: list[str] | None = None) -> str:
    """A repo's name from a title in any language. ``notes`` gets a sentence if another one is
    reserved.
    """
    slug = plain_words(title, names.REPO_CHARS_MAX, "-")
    if why := names.why_reserved("prompt", slug):
        return _instead(slug, f"{slug}-{NAMELESS}", why, notes)
    return slug if re.search("[a-z]", slug) else NAMELESS


def handle_of(contributors: str, default: str, notes: list[str] | None = None) -> str:
    """An owner's handle from the first of a list with commas; ``default`` where none is left.
    ``notes`` as in ``name_of``.
    """
    first = contributors.split(",")[0].strip().removeprefix("@")
    # Of an address only what is before the @: no e-mail address is ever public.
    handle = plain_words(first.split("@")[0], names.OWNER_CHARS_MAX, "-") or default
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
