"""The accounts at OpenID providers with which owners sign in.

An identity is an issuer's URL and its ID of a person: ``iss`` and ``sub`` of a verified ID token,
which together identify a person (OpenID Connect Core 1.0 §5.7). Both are compared exactly. ``now``
is an aware datetime, by default the present. The methods raise RequestError ``storage_unavailable``
as the database does.
"""

from datetime import datetime
from typing import NamedTuple

from builder.model.errors import RequestError
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.people.passwords import Passwords


class AddedIdentity(NamedTuple):
    """An account at a sign-in provider. ``added_at``: epoch seconds."""

    issuer: str
    subject: str
    added_at: int


class Identities:
    """The identities of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = Events(database)
        self._passwords = Passwords(database)

    def find(self, issuer: str, subject: str) -> str | None:
        """Returns the owner who has this identity, also one who is locked out; None if none has."""
        rows = self._database.execute(
            "SELECT owner FROM identity WHERE issuer = ? AND subject = ?", (issuer, subject)
        )
        return rows[0][0] if rows else None

    def add(self, owner: str, issuer: str, subject: str, *, now: datetime | None = None) -> None:
        """Lets an owner sign in with an identity; does nothing if the owner has it already.

        Raises RequestError ``validation_failed`` if it belongs to another account.
        """
        with self._database.transaction():
            whose = self.find(issuer, subject)
            if whose == owner:
                return
            if whose is not None:
                raise RequestError(
                    "validation_failed",
                    f"This identity at {issuer} already signs in to another account. Sign in "
                    "with it and remove it there, or use another identity.",
                )
            self._database.execute(
                "INSERT INTO identity (issuer, subject, owner, added_at) VALUES (?, ?, ?, ?)",
                (issuer, subject, owner, epoch_seconds(now)),
            )
            self._events.note(owner, "identity_added", subject=subject, note=issuer, now=now)

    def of(self, owner: str) -> list[AddedIdentity]:
        """Returns the identities of an owner, by age."""
        rows = self._database.execute(
            "SELECT issuer, subject, added_at FROM identity WHERE owner = ? "
            "ORDER BY added_at, issuer, subject",
            (owner,),
        )
        return [AddedIdentity(*row) for row in rows]

    def remove(self, owner: str, issuer: str, *, now: datetime | None = None) -> bool:
        """Removes an owner's identities of an issuer. True if the owner had one.

        Raises RequestError ``validation_failed`` where the owner has no password: another identity
        may be of a provider that this hub no longer uses.
        """
        with self._database.transaction():
            removed = self._database.execute(
                "DELETE FROM identity WHERE owner = ? AND issuer = ? RETURNING subject",
                (owner, issuer),
            )
            if removed and not self._passwords.has(owner):
                raise RequestError(
                    "validation_failed",
                    "This is your only way to sign in. Set a password first, then remove it.",
                )
            for (subject,) in removed:
                self._events.note(owner, "identity_removed", subject=subject, note=issuer, now=now)
        return bool(removed)
