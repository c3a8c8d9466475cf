"""Who may have repos: the owners of a hub, whether they sign in or not.

Times are epoch seconds; ``now`` is an aware datetime, by default the present. The methods raise
RequestError ``storage_unavailable`` as the database does.
"""

from datetime import datetime
from typing import NamedTuple

from builder.model import names
from builder.model.errors import OperatorError
from builder.text.likeness import alike
from publisher.accounts import clock
from publisher.accounts.database import Database
from publisher.accounts.handles import skeleton


class Owner(NamedTuple):
    """Somebody who may have repos. ``tokens``: how many are active. ``locked_at``: None for one who
    is not locked out.
    """

    handle: str
    created_at: int
    tokens: int
    locked_at: int | None = None


class Owners:
    """The owners of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_owner(self, handle: str, now: datetime | None = None) -> None:
        """Let an owner have tokens.

        Raises RequestError ``invalid_name``, ``name_reserved``; OperatorError if there already.
        """
        names.check_new_owner(handle)
        is_new = self._database.execute(
            "INSERT INTO owner (handle, created_at, look) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING RETURNING 1",
            (handle, clock.seconds(now), skeleton(handle)),
        )
        if not is_new:
            raise OperatorError(
                f"Owner {handle} already exists. Choose another handle, or create a token: "
                f"`hubctl token create {handle} --name NAME`."
            )

    def is_known(self, handle: str) -> bool:
        """Whether there is an owner of this handle."""
        return bool(self._database.execute("SELECT 1 FROM owner WHERE handle = ?", (handle,)))

    def created_at(self, handle: str) -> int:
        """Since when there is an owner. Raises OperatorError for an unknown one."""
        self.check_known(handle)
        rows = self._database.execute("SELECT created_at FROM owner WHERE handle = ?", (handle,))
        return rows[0][0]

    def look_like(self, handle: str) -> list[str]:
        """The owners whose handles are this one, or easily taken for it."""
        rows = self._database.execute(
            "SELECT handle FROM owner WHERE look = ? ORDER BY handle", (skeleton(handle),)
        )
        return [owner for (owner,) in rows]

    def locked_at(self, handle: str) -> int | None:
        """Since when an owner is locked out; None: is not, or there is no such owner."""
        rows = self._database.execute("SELECT locked_at FROM owner WHERE handle = ?", (handle,))
        return rows[0][0] if rows else None

    def set_locked(self, handle: str, is_on: bool, now: datetime | None = None) -> bool:
        """Refuse an owner's tokens and trusted jobs from now on, or take them again; tells whether
        that is new. ``people.locks`` does all that belongs to it.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner.
        """
        self.check_known(names.check_owner(handle))
        changed = self._database.execute(
            "UPDATE owner SET locked_at = ? WHERE handle = ? AND (locked_at IS NULL) = ? "
            "RETURNING 1",
            (clock.seconds(now) if is_on else None, handle, is_on),
        )
        return bool(changed)

    def owners(self, now: datetime | None = None) -> list[Owner]:
        """All owners, by handle."""
        rows = self._database.execute(
            "SELECT handle, owner.created_at, count(token.id), locked_at "
            "FROM owner LEFT JOIN token "
            "ON token.owner = handle AND revoked_at IS NULL AND expires_at > ? "
            "AND trusted_publisher IS NULL "
            "GROUP BY handle ORDER BY handle",
            (clock.seconds(now),),
        )
        return [Owner(*row) for row in rows]

    def check_known(self, owner: str) -> None:
        """Raises OperatorError if there is no owner of this handle."""
        if not self.is_known(owner):
            same = (one.handle for one in self.owners() if one.handle[0] == owner[:1])
            near = next(iter(alike(owner, same)), "")
            advice = f"Did you mean {near}? Or run" if near else "Run"
            raise OperatorError(f"No owner {owner}. {advice} `hubctl owner add {owner}` to add it.")
