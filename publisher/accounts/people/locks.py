"""Locking an owner out, for whoever runs the hub: what is published stays.

One who is locked neither signs in nor publishes, in any way. ``now`` is an aware datetime, by
default the present.
"""

from datetime import datetime

from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts


def lock(database: Database, handle: str, now: datetime | None = None) -> bool:
    """Lock an owner out at once: sessions and an open invitation end, tokens are refused. Tells
    whether the owner was not before.

    Raises RequestError ``invalid_name``; OperatorError for an unknown owner.
    """
    with database.transaction():
        is_new = Accounts(database).set_locked(handle, True, now)
        Invitations(database).end(handle)
        Sessions(database).end_all(handle)
        if is_new:
            Events(database).note(handle, "locked", now=now)
    return is_new


def unlock(database: Database, handle: str, now: datetime | None = None) -> bool:
    """Let an owner in again, with the password and the tokens of before; tells whether the owner
    was locked. Raises as ``lock``.
    """
    with database.transaction():
        is_new = Accounts(database).set_locked(handle, False, now)
        if is_new:
            Events(database).note(handle, "unlocked", now=now)
    return is_new
