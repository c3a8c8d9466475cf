"""Ends the access that an old copy of the accounts database would give back.

Since the copy was made, a session may have ended, an invitation been used, or a token been revoked.
The copy does not have that, and would let their holders in again.
"""

from typing import NamedTuple

from publisher.accounts import clock
from publisher.accounts.database import Database
from publisher.accounts.events import Events


class Ended(NamedTuple):
    """Counts of the sessions and the personal tokens that were good, and no longer are."""

    sessions: int
    tokens: int


def end_access(database: Database, of: str) -> Ended:
    """Ends all sessions, invitations, links to teams, and tokens of CI jobs; revokes the personal
    tokens. Notes it in the log of each account. ``of``: the time of the copy, for people.

    Raises RequestError ``storage_unavailable``.
    """
    events = Events(database)
    with database.transaction():
        sessions = database.execute("DELETE FROM session RETURNING 1")
        for table in ("invitation", "team_link"):
            database.execute(f"DELETE FROM {table}")
        database.execute("DELETE FROM token WHERE trusted_publisher IS NOT NULL")
        for (owner,) in database.execute("SELECT handle FROM owner"):
            events.note(owner, "restored", note=of)
        revoked = database.execute(
            "UPDATE token SET revoked_at = ?1 WHERE revoked_at IS NULL AND expires_at > ?1 "
            "RETURNING owner, id, name",
            (clock.seconds(None),),
        )
        for owner, token, name in revoked:
            events.note(owner, "token_revoked", subject=token, note=name)
    return Ended(len(sessions), len(revoked))
