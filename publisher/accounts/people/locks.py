"""Locks an owner out, or ends all access, for the operator. The owner's prompts stay published.

A locked owner neither signs in nor publishes, in any way. ``now`` is an aware datetime, by default
the present.
"""

from datetime import datetime

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.teams import Teams
from publisher.accounts.tokens import Accounts


def lock(database: Database, handle: str, now: datetime | None = None) -> bool:
    """Locks an owner out at once: ends sessions and an open invitation, and refuses tokens. True
    unless the owner was locked before.

    Raises RequestError ``invalid_name``; OperatorError for an unknown owner.
    """
    with database.transaction():
        is_new = Accounts(database).set_locked(handle, True, now)
        Invitations(database).end(handle)
        Sessions(database).end_all(handle)
        if is_new:
            Events(database).note(handle, "locked", now=now)
    return is_new


def end_access(database: Database, handle: str, now: datetime | None = None) -> list[str]:
    """Locks a person out, and ends for good what an unlocked account would have again: password,
    identities, tokens and memberships. Returns the teams in which the person stays, as they have
    no other maintainer. Raises as ``lock``.
    """
    accounts, teams, kept = Accounts(database), Teams(database), []
    with database.transaction():
        lock(database, handle, now)
        for table in ("password", "identity"):
            database.execute(f"DELETE FROM {table} WHERE owner = ?", (handle,))
        for token in accounts.tokens(handle):
            if token.revoked_at is None:
                accounts.revoke(handle, token.id, now)
        database.execute("DELETE FROM team_link WHERE made_by = ?", (handle,))
        database.execute("UPDATE owner SET is_operator = 0 WHERE handle = ?", (handle,))
        for (team,) in database.execute("SELECT team FROM member WHERE person = ?", (handle,)):
            try:
                teams.remove(team, handle, now=now)
            except RequestError as error:
                if error.code != "last_maintainer":
                    raise
                kept.append(team)
        Events(database).note(handle, "access_ended", now=now)
    return kept


def unlock(database: Database, handle: str, now: datetime | None = None) -> bool:
    """Lets an owner in again, with the earlier password and tokens. True if the owner was locked.
    Raises as ``lock``.
    """
    with database.transaction():
        is_new = Accounts(database).set_locked(handle, False, now)
        if is_new:
            Events(database).note(handle, "unlocked", now=now)
    return is_new
