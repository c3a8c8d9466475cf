"""Locks an owner out, for the operator. The owner's prompts stay published.

A locked owner neither signs in nor publishes, in any way. ``now`` is an aware datetime, by default
the present.
"""

from datetime import datetime

from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.sessions import Sessions
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


def unlock(database: Database, handle: str, now: datetime | None = None) -> bool:
    """Lets an owner in again, with the earlier password and tokens. True if the owner was locked.
    Raises as ``lock``.
    """
    with database.transaction():
        is_new = Accounts(database).set_locked(handle, False, now)
        if is_new:
            Events(database).note(handle, "unlocked", now=now)
    return is_new
