"""The activity of an owner, as a test reads it."""

from publisher.accounts.database import Database
from publisher.accounts.events import Event


def latest(database: Database, owner: str, count: int) -> list[Event]:
    """Returns at most ``count`` events of an owner, the newest first."""
    sql = f"SELECT {', '.join(Event._fields)} FROM event WHERE owner = ? ORDER BY id DESC LIMIT ?"
    return [Event(*row) for row in database.execute(sql, (owner, count))]
