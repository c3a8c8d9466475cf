"""The ways in which each owner can sign in."""

from datetime import datetime

from publisher.accounts import clock
from publisher.accounts.database import Database

# In the order in which an owner's ways are listed.
WAYS = ("password", "openid", "invited")


def ways_to_sign_in(database: Database, now: datetime | None = None) -> dict[str, list[str]]:
    """Returns the WAYS of each owner who has any. ``invited``: an invitation that is still good.

    Raises RequestError ``storage_unavailable`` as the database does.
    """
    rows = database.execute(
        "SELECT owner, 'password' FROM password UNION SELECT owner, 'openid' FROM identity "
        "UNION SELECT owner, 'invited' FROM invitation WHERE expires_at > ?",
        (clock.seconds(now),),
    )
    ways: dict[str, list[str]] = {}
    for owner, way in sorted(rows, key=lambda row: WAYS.index(row[1])):
        ways.setdefault(owner, []).append(way)
    return ways
