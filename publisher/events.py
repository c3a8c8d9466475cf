"""The security log of an account: what somebody should know who asks "was that me?".

Events are for the account's owner to read, and are kept for half a year. They name tokens and
addresses, never a secret. ``now`` is an aware datetime, by default the present. The methods raise
RequestError ``storage_unavailable`` as the database does.
"""

from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

from publisher.database import Database

KEPT_SECONDS = 180 * 86_400
# Of one kind about one subject: a guesser must not push out the rest, nor fill the disk.
KEPT_ALIKE_MAX = 100

Kind = Literal[
    "signed_up", "invited", "signed_in", "sign_in_failed", "signed_out_everywhere",
    "password_set", "password_changed", "identity_added", "identity_removed",
    "token_made", "token_new_address", "token_revoked",
    "publisher_added", "publisher_removed", "publisher_used", "trusted_only_on", "trusted_only_off",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)


class Event(NamedTuple):
    """``at`` is epoch seconds. ``subject``: what it is about, as a token's id; ``note``: how that
    is called. ``address``: whose request it was; empty for a command of whoever runs the hub.
    """

    at: int
    kind: Kind
    subject: str
    address: str
    note: str


class Events:
    """The events of all accounts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self, owner: str, kind: Kind, *, subject: str = "", address: str = "", note: str = "",
        now: datetime | None = None,
    ) -> None:  # fmt: skip
        """Add an event to an owner's log, and drop what is too old, or one of too many alike."""
        at = int((now or datetime.now(UTC)).timestamp())
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO event (owner, at, kind, subject, address, note) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (owner, at, kind, subject, address, note),
            )
            self._database.execute(
                "DELETE FROM event WHERE owner = ?1 AND kind = ?2 AND subject = ?3 AND id <= "
                "(SELECT id FROM event WHERE owner = ?1 AND kind = ?2 AND subject = ?3 "
                "ORDER BY id DESC LIMIT 1 OFFSET ?4)",
                (owner, kind, subject, KEPT_ALIKE_MAX),
            )
            self._database.execute(
                "DELETE FROM event WHERE owner = ? AND at < ?", (owner, at - KEPT_SECONDS)
            )

    def has(self, owner: str, kind: Kind, subject: str, address: str) -> bool:
        """Whether there is such an event."""
        found = self._database.execute(
            "SELECT 1 FROM event WHERE owner = ? AND kind = ? AND subject = ? AND address = ? "
            "LIMIT 1",
            (owner, kind, subject, address),
        )
        return bool(found)

    def latest(self, owner: str, count: int) -> list[Event]:
        """So many events of an owner, the newest first."""
        rows = self._database.execute(
            f"SELECT {', '.join(Event._fields)} FROM event WHERE owner = ? "
            "ORDER BY id DESC LIMIT ?",
            (owner, count),
        )
        return [Event(*row) for row in rows]
