"""Withdrawals: the files that record them, and the sentences about them. Pure."""

from typing import NamedTuple

from builder.model.answers import Withdrawal, WithdrawnLine
from builder.model.content_tree import WHOLE, WITHDRAWAL
from builder.model.envelopes import json_bytes
from builder.model.errors import cut
from builder.model.labels import Move, moves_with
from builder.model.names import Version
from builder.model.records import NOTE_BYTES_MAX, Remains, WithdrawalFile, WithdrawnFile

# By reason: the words after "was withdrawn".
BECAUSE = {
    "error": "because it was wrong",
    "secret": "because it contained a secret",
    "legal": "for legal reasons",
    "owner": "at the owner's wish",
}


class WithdrawnVersion(NamedTuple):
    """A version that was withdrawn, on its own or with its whole repo."""

    version: Version
    remains: Remains
    withdrawal: WithdrawalFile


class WithdrawnParts(NamedTuple):
    """The withdrawn versions of a repo, in version order; the withdrawal of the ``whole`` repo, if
    any; and the moves of labels that belong to them.
    """

    versions: list[WithdrawnVersion]
    whole: WithdrawalFile | None
    moves: list[Move]

    @property
    def names(self) -> set[str]:
        return {str(one.version) for one in self.versions}

    def lines(self, owner: str, name: str) -> bytes:
        """The repo's lines of ``withdrawn.jsonl``, in order of version."""
        found = [
            (str(one.version), one.withdrawal)
            for one in self.versions
            if one.withdrawal != self.whole
        ] + ([(None, self.whole)] if self.whole else [])
        lines = (
            WithdrawnLine(owner, name, version, gone.at, gone.reason, gone.note)
            for version, gone in found
        )
        return b"".join(json_bytes(line) + b"\n" for line in lines)


def public(withdrawal: WithdrawalFile) -> Withdrawal:
    """A withdrawal as readers see it."""
    return Withdrawal(withdrawal.at, withdrawal.reason, withdrawal.note)


def tell(what: str, withdrawal: Withdrawal | WithdrawalFile) -> str:
    """A sentence about a withdrawal, followed by its note."""
    sentence = f"{what} was withdrawn on {withdrawal.at[:10]} {BECAUSE[withdrawal.reason]}."
    note = " ".join(withdrawal.note.split())
    if note and note[-1] not in ".!?…":
        note += "."
    return f"{sentence} {note}".rstrip()


def note_of(version: Version | None, withdrawal: WithdrawalFile) -> str:
    """The note of the moves of labels: why they name the version no more. ``version`` is None if
    the whole repo is withdrawn.
    """
    subject = f"Version {version}" if version else "The prompt"
    return cut(tell(subject, withdrawal), NOTE_BYTES_MAX)


def moves_of(what: str, stored: WithdrawnFile) -> list[Move]:
    """The moves of labels that a withdrawal keeps: those that its versions' publications carried,
    and its own. ``what`` is a version, or WHOLE.
    """
    moves = [move for item in stored.versions.items() for move in moves_with(*item)]
    file, own = WITHDRAWAL.file(what), stored.withdrawn
    note = note_of(None if what == WHOLE else Version.parse(what), own)
    return [move._replace(file=file) for move in moves] + [
        Move(own.label_number, file, label, own.move_labels or None, own.at, own.by, note)
        for label in own.labels or ()
    ]
