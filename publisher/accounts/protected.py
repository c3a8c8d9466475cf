"""Protected labels: only their owner, signed in, or a token that names them can move them.

An owner protects a label of one repo, which need not exist, or of all. The methods raise
RequestError ``storage_unavailable`` as the database does.
"""

from builder.model import names
from builder.model.errors import Detail, validation_failed
from publisher.accounts.database import Database
from publisher.accounts.events import Events

PROTECTED_MAX = 1000


class ProtectedLabels:
    """The protected labels of a database. ``repo`` is empty for all of the owner's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = Events(database)

    def of(self, owner: str) -> list[tuple[str, str]]:
        """Returns the repo and the label of all that an owner protects, sorted."""
        return self._database.execute(
            "SELECT repo, label FROM protected_label WHERE owner = ? ORDER BY repo, label", (owner,)
        )

    def in_repo(self, owner: str, repo: str) -> set[str]:
        """Returns the labels that are protected in a repo."""
        rows = self._database.execute(
            "SELECT label FROM protected_label WHERE owner = ? AND repo IN ('', ?)", (owner, repo)
        )
        return {label for (label,) in rows}

    def set(self, owner: str, repo: str, label: str, is_on: bool) -> bool:
        """Protects a label, or stops protecting it. True if that changed anything.

        Raises RequestError ``invalid_name``, ``invalid_label``, ``name_reserved``;
        ``validation_failed`` for one label too many.
        """
        if repo:
            names.check_repo(repo)
        names.check_new_label(label)
        with self._database.transaction():
            there = self.of(owner)
            if is_on == ((repo, label) in there):
                return False
            if is_on and len(there) >= PROTECTED_MAX:
                message = f"is one too many: an owner protects at most {PROTECTED_MAX:,} labels"
                raise validation_failed(Detail("label", message))
            self._database.execute(
                "INSERT INTO protected_label VALUES (?, ?, ?)"
                if is_on
                else "DELETE FROM protected_label WHERE owner = ? AND repo = ? AND label = ?",
                (owner, repo, label),
            )
            note = f"{label} of {owner}/{repo or '*'}"
            kind = "label_protected" if is_on else "label_unprotected"
            self._events.note(owner, kind, subject=note, note=note)
        return True
