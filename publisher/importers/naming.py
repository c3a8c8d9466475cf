"""Names of repos and handles of owners, made of what people call them.

The same source gives the same names each time, so that a second import finds its repos.
"""

import re

from anyascii import anyascii

from builder.model import names

NAMELESS = "prompt"


class Names:
    """The names given out in one run, by owner."""

    def __init__(self) -> None:
        self._given: dict[str, set[str]] = {}

    def give(self, owner: str, name: str) -> str:
        """``name``, or with ``-2``, ``-3`` … where the owner has given it before."""
        given = self._given.setdefault(owner, set())
        number, free = 1, name
        while free in given:
            number += 1
            free = _append(name, f"-{number}", names.REPO_CHARS_MAX)
        given.add(free)
        return free


def name_of(title: str) -> str:
    """A repo's name from a title in any language."""
    slug = _slug(title, names.REPO_CHARS_MAX)
    return slug if re.search("[a-z]", slug) else NAMELESS


def handle_of(contributors: str, default: str) -> str:
    """An owner's handle from the first of a list with commas; ``default`` where none is left."""
    first = contributors.split(",")[0].strip().removeprefix("@")
    # Of an address only what is before the @: no e-mail address is ever public.
    handle = _slug(first.split("@")[0], names.OWNER_CHARS_MAX) or default
    if handle in names.RESERVED_OWNERS:
        return _append(handle, "-user", names.OWNER_CHARS_MAX)
    return handle


def _slug(text: str, chars_max: int) -> str:
    """Words of a-z and 0-9 with hyphens between them; empty where there are none."""
    # An apostrophe is inside a word.
    plain = re.sub("['`]", "", anyascii(text).lower())
    slug = re.sub("[^a-z0-9]+", "-", plain).strip("-")
    if len(slug) <= chars_max:
        return slug
    # One character more shows whether the limit is the end of a word.
    head, hyphen, _ = slug[: chars_max + 1].rpartition("-")
    return head if hyphen else slug[:chars_max]


def _append(name: str, suffix: str, chars_max: int) -> str:
    return name[: chars_max - len(suffix)].rstrip("-") + suffix
