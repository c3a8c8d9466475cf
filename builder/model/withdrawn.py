"""What was withdrawn: where the content says so, and how it is told. Pure."""

from typing import NamedTuple

from builder.model.errors import cut
from builder.model.labels import Move, moves_with
from builder.model.names import Version
from builder.model.records import (
    NOTE_BYTES_MAX,
    Remains,
    Withdrawal,
    WithdrawalFile,
    WithdrawnFile,
)

FOLDER = "withdrawn"
# The name of the file that withdraws a whole repo, without its extension.
WHOLE = "all"

# By reason: what follows "was withdrawn".
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
    """All that was withdrawn of a repo, in version order; the withdrawal of the ``whole`` repo, if
    there was one; and the moves of labels that came with it.
    """

    versions: list[WithdrawnVersion]
    whole: WithdrawalFile | None
    moves: list[Move]


def withdrawn_file(what: str) -> str:
    """Where a withdrawal is stored, relative to the repo's folder; ``what`` is a version, or
    WHOLE.
    """
    return f"{FOLDER}/{what}.json"


def public(withdrawal: WithdrawalFile) -> Withdrawal:
    """A withdrawal as readers get it."""
    return Withdrawal(withdrawal.at, withdrawal.reason, withdrawal.note)


def tell(what: str, withdrawal: Withdrawal | WithdrawalFile) -> str:
    """A sentence on what was withdrawn, and the note as others."""
    told = f"{what} was withdrawn on {withdrawal.at[:10]} {BECAUSE[withdrawal.reason]}."
    note = " ".join(withdrawal.note.split())
    if note and note[-1] not in ".!?…":
        note += "."
    return f"{told} {note}".rstrip()


def note_of(version: Version | None, withdrawal: WithdrawalFile) -> str:
    """Why labels do not name a version any more; None: the whole repo is withdrawn."""
    subject = f"Version {version}" if version else "The prompt"
    return cut(tell(subject, withdrawal), NOTE_BYTES_MAX)


def moves_of(what: str, stored: WithdrawnFile) -> list[Move]:
    """The moves of labels that a withdrawal keeps: those that the publications of its versions
    carried, and its own. ``what`` as in ``withdrawn_file``.
    """
    moves = [move for item in stored.versions.items() for move in moves_with(*item)]
    file, own = withdrawn_file(what), stored.withdrawn
    note = note_of(None if what == WHOLE else Version.parse(what), own)
    return [move._replace(file=file) for move in moves] + [
        Move(own.label_number, file, label, None, own.at, own.by, note)
        for label in own.labels or ()
    ]
