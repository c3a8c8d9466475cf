"""Reads the withdrawals of a repo, and removes files that a crash has left.

Such a file alone decides: the text and record of the versions in it are no longer part of the
content, even if they are still in the repo's folder.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from builder.model.content_tree import WHOLE, WITHDRAWAL, WITHDRAWN
from builder.model.errors import ContentError, Fault, Faults
from builder.model.labels import Move
from builder.model.names import Version
from builder.model.records import WithdrawnFile
from builder.model.withdrawn import WithdrawnParts, WithdrawnVersion, moves_of
from builder.store.plain_files import files_in, read_record_file, remove

_decode = msgspec.json.Decoder(WithdrawnFile).decode


class WithdrawnListing(NamedTuple):
    """One listing of the folder: the versions that have a file of their own, and whether the whole
    repo is withdrawn.
    """

    versions: frozenset[str]
    is_whole: bool

    @property
    def files(self) -> list[str]:
        """The subject of each file, as in ``read_withdrawn``, in order of version."""
        ordered = sorted(self.versions, key=Version.parse)
        return [*ordered, WHOLE] if self.is_whole else ordered


NOTHING_WITHDRAWN = WithdrawnListing(frozenset(), False)


def list_withdrawn(root: str, repo: str, faults: list[Fault]) -> WithdrawnListing:
    """The withdrawals of ``repo`` (``owner/name``); opens no file. Adds to ``faults`` as
    ``files_in``.
    """
    found = {what for _, what, _ in files_in(root, repo, WITHDRAWN, faults)}
    return WithdrawnListing(frozenset(found - {WHOLE}), WHOLE in found)


def read_withdrawn(root: str, repo: str, what: str) -> WithdrawnFile:
    """The withdrawal of a version of ``repo`` (``owner/name``), or of the whole repo (WHOLE).
    Raises ContentError.
    """
    file = f"{repo}/{WITHDRAWAL.file(what)}"
    stored = read_record_file(root, file, _decode, WITHDRAWAL.bytes_max)
    if what != WHOLE and [*stored.versions] != [what]:
        raise ContentError([Fault(file, f"must withdraw {what}, and nothing else")])
    return stored


def read_parts(root: str, repo: str, listing: WithdrawnListing) -> WithdrawnParts:
    """All withdrawals of ``repo`` (``owner/name``). Raises ContentError."""
    found: dict[Version, WithdrawnVersion] = {}
    moves: list[Move] = []
    whole, faults = None, Faults()
    for what in listing.files:
        with faults:
            stored = read_withdrawn(root, repo, what)
            moves += moves_of(what, stored)
            whole = stored.withdrawn if what == WHOLE else None
            for text, remains in stored.versions.items():
                version = Version.parse(text)
                found.setdefault(version, WithdrawnVersion(version, remains, stored.withdrawn))
    faults.check()
    return WithdrawnParts([found[version] for version in sorted(found)], whole, moves)


def remove_left(root: str, repo: str, files: Iterable[str]) -> list[Fault]:
    """Remove files of withdrawn versions that are still in the folder of ``repo``. Returns the
    faults of those that cannot be removed. Safe in several processes at once.
    """
    faults = []
    for file in files:
        try:
            remove(f"{root}/{repo}/{file}")
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"was withdrawn, and cannot be removed ({error.strerror}); remove it"
            faults.append(Fault(f"{repo}/{file}", reason, is_warning=True))
    return faults
