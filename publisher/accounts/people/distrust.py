"""What an accounts database of the past must not let in any more.

A session that has ended since, an invitation that was used, a token that was revoked: an old copy
of the database does not know it, and would let its holder in again.
"""

from datetime import datetime
from typing import NamedTuple

from publisher.accounts import clock
from publisher.accounts.database import Database


class Ended(NamedTuple):
    """How many sessions and personal tokens were good, and are not any more."""

    sessions: int
    tokens: int


def end_access(database: Database, of: str, *, tokens: bool, now: datetime | None = None) -> Ended:
    """End all sessions, invitations and tokens of CI jobs, and with ``tokens`` revoke the personal
    tokens; noted in the log of each account. ``of``: the time of the copy, for people.

    Raises RequestError ``storage_unavailable``.
    """
    at = clock.seconds(now)
    with database.transaction():
        sessions = database.execute("DELETE FROM session RETURNING 1")
        database.execute("DELETE FROM invitation")
        database.execute("DELETE FROM token WHERE trusted_publisher IS NOT NULL")
        database.execute(
            "INSERT INTO event (owner, at, kind, subject, address, note) "
            "SELECT handle, ?, 'restored', '', '', ? FROM owner",
            (at, of),
        )
        revoked = []
        if tokens:
            is_active = "revoked_at IS NULL AND expires_at > ?1"
            database.execute(
                "INSERT INTO event (owner, at, kind, subject, address, note) "
                f"SELECT owner, ?1, 'token_revoked', id, '', name FROM token WHERE {is_active}",
                (at,),
            )
            revoked = database.execute(
                f"UPDATE token SET revoked_at = ?1 WHERE {is_active} RETURNING 1", (at,)
            )
    return Ended(len(sessions), len(revoked))
