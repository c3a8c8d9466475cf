"""An owner's profile, ``content/{owner}/owner.json``: the owner's name, bio and address, durable.

All of it is public. Knows nothing of HTTP or permissions; does not build the site.
"""

from collections.abc import Iterator
from typing import Literal
from unicodedata import bidirectional
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, UnsetType

from builder.model.errors import ContentError, Detail, RequestError, validation_failed
from builder.model.records import OwnerFile
from builder.store.content import read_owner
from publisher.accounts.token import find_token
from publisher.write.durable import FolderStore, render
from publisher.write.fields import check_characters

# The characters that override or isolate the direction of the text after them (Unicode
# Bidirectional Algorithm, https://www.unicode.org/reports/tr9/).
_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")

_decode = msgspec.json.Decoder(OwnerFile).decode


def chars_max(field: str) -> int:
    """Returns the most characters that a field of a profile may have."""
    info = next(one for one in msgspec.inspect.type_info(OwnerFile).fields if one.name == field)
    kinds = getattr(info.type, "types", (info.type,))
    return next(kind.max_length for kind in kinds if isinstance(kind, msgspec.inspect.StrType))


def parse_profile(
    name: str, bio: str, url: str, joined_at: str, kind: Literal["team"] | UnsetType = UNSET
) -> OwnerFile:
    """Returns the profile that an owner has filled in, within ``chars_max`` of each field; an empty
    ``url`` is none.

    Raises RequestError ``validation_failed`` and ``secret_detected``, whose details name these
    parameters.
    """
    given = {"name": " ".join(name.split()), "bio": bio.strip(), "url": url.strip()}
    leaks = [
        Detail(
            field,
            "has a token of this hub, which everyone could read here. Remove it, and revoke "
            "the token",
        )
        for field, text in given.items()
        if find_token(text)
    ]
    if leaks:
        raise RequestError(
            "secret_detected",
            "Your profile contains a token, which readers would see. Remove and revoke the token.",
            leaks,
        )
    if faults := [*_faults(**given)]:
        raise validation_failed(*faults)
    return OwnerFile(given["name"], joined_at, given["bio"], given["url"] or None, kind)


def mark_team(store: FolderStore, team: str, joined_at: str) -> None:
    """Says in an owner's profile that this is a team. Raises as ``write_profile``."""
    profile = read_profile(store.root, team) or OwnerFile(team, joined_at)
    write_profile(store, team, msgspec.structs.replace(profile, kind="team"))


def read_profile(root: str, owner: str) -> OwnerFile | None:
    """Returns an owner's profile; None where there is none yet.

    Raises RequestError ``unavailable`` where the file is broken.
    """
    try:
        return read_owner(root, owner)
    except ContentError as error:
        message = "; ".join(map(str, error.faults))
        raise RequestError(
            "unavailable",
            f"The file of your profile has an error and was not changed: {message}. Ask the "
            "operator of this hub to fix or remove it, then save your profile again.",
        ) from error


def write_profile(store: FolderStore, owner: str, profile: OwnerFile) -> None:
    """Replaces an owner's profile, durably when this returns.

    Readers find the old or the new profile, whole. The last of concurrent writers wins.
    Creates the owner's folder. Raises RequestError ``storage_unavailable``.
    """
    data = render(profile)
    _decode(data)  # a profile that cannot be read back must not be stored
    store.replace_profile(owner, data)


def _faults(name: str, bio: str, url: str) -> Iterator[Detail]:
    for field, text in (("name", name), ("bio", bio)):
        try:
            check_characters(field, text)
        except RequestError as error:
            yield from error.details
        turns = sorted({f"U+{ord(char):04X}" for char in text if bidirectional(char) in _TURNS})
        if turns:
            yield Detail(field, f"has characters that turn the text direction: {', '.join(turns)}")
    if url and not _is_web_address(url):
        yield Detail("url", "must start with https:// or http://")


def _is_web_address(url: str) -> bool:
    try:
        host = urlsplit(url).hostname
    except ValueError:  # half a bracket of an IPv6 address
        return False
    is_one_word = url.isprintable() and len(url.split()) == 1
    return bool(host) and is_one_word and url.startswith(("https://", "http://"))
