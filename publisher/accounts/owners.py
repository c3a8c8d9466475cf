"""The owners of a hub, who may have repos, whether they sign in or not.

Times are epoch seconds; ``now`` is an aware datetime, by default the present. The methods raise
RequestError ``storage_unavailable`` as the database does.
"""

from datetime import datetime
from typing import Any, NamedTuple

from builder.model import names
from builder.model.errors import OperatorError
from builder.text.likeness import alike
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events

# Characters that are easily confused in a sans or monospace font, each replaced by the narrower
# one, so that `vw` and `wv` are the same. A hyphen is easily overlooked.
_LOOKS_LIKE = str.maketrans(
    {
        "-": "",
        "0": "o",
        "1": "l",
        "i": "l",
        "2": "z",
        "5": "s",
        "6": "b",
        "9": "g",
        "q": "g",
        "m": "rn",
        "w": "vv",
        "d": "cl",
    }
)


def skeleton(handle: str) -> str:
    """Returns the look of a handle: the same for handles that are easily confused.

    The accounts database stores it for every owner, so a change of the rule needs a migration.
    """
    return handle.translate(_LOOKS_LIKE)


class Owner(NamedTuple):
    """An owner, who may have repos. ``tokens``: how many are active. ``locked_at``: None unless the
    owner is locked out. ``kind``: ``person`` or ``team``.
    """

    handle: str
    created_at: int
    tokens: int
    locked_at: int | None = None
    kind: str = "person"
    is_operator: bool = False


class Owners:
    """The owners of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_owner(self, handle: str, now: datetime | None = None) -> None:
        """Adds an owner, who can then have tokens.

        Raises RequestError ``invalid_name``, ``name_reserved``; OperatorError if the owner exists.
        """
        names.check_new_owner(handle)
        is_new = self._database.execute(
            "INSERT INTO owner (handle, created_at, look) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING RETURNING 1",
            (handle, epoch_seconds(now), skeleton(handle)),
        )
        if not is_new:
            raise OperatorError(
                f"Owner {handle} already exists. Choose another handle, or create a token: "
                f"`hubctl token create {handle} --name NAME`."
            )

    def is_known(self, handle: str) -> bool:
        """True if an owner has this handle."""
        return self._value("created_at", handle) is not None

    def has_people(self) -> bool:
        """True if anyone can sign in: with a password or an identity, and not locked out."""
        found = self._database.execute(
            "SELECT 1 FROM (SELECT owner FROM password UNION ALL SELECT owner FROM identity) "
            "AS one JOIN owner ON handle = one.owner WHERE locked_at IS NULL LIMIT 1"
        )
        return bool(found)

    def is_team(self, handle: str) -> bool:
        """True if this is a team, as which no one signs in."""
        return self._value("kind", handle) == "team"

    def is_operator(self, handle: str) -> bool:
        """True for a person who manages the accounts in the browser."""
        return self._value("is_operator", handle) == 1

    def set_operator(self, handle: str, is_on: bool) -> None:
        """Lets a person manage the accounts in the browser, or no longer.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner or a team.
        """
        self.check_known(names.check_owner(handle))
        if self.is_team(handle):
            raise OperatorError(f"{handle} is a team, and no one signs in as it. Name a person.")
        with self._database.transaction():
            if is_on != self.is_operator(handle):
                self._database.execute(
                    "UPDATE owner SET is_operator = ? WHERE handle = ?", (int(is_on), handle)
                )
                kind = "operator_made" if is_on else "operator_ended"
                Events(self._database).note(handle, kind)

    def created_at(self, handle: str) -> int:
        """Returns when an owner was added. Raises OperatorError for an unknown one."""
        self.check_known(handle)
        return self._value("created_at", handle)

    def look_like(self, handle: str) -> list[str]:
        """Returns the owners whose handles are this one, or are easily confused with it."""
        rows = self._database.execute(
            "SELECT handle FROM owner WHERE look = ? ORDER BY handle", (skeleton(handle),)
        )
        return [owner for (owner,) in rows]

    def locked_at(self, handle: str) -> int | None:
        """Returns when an owner was locked out; None for one who is not, or who is unknown."""
        return self._value("locked_at", handle)

    def _value(self, column: str, handle: str) -> Any:
        rows = self._database.execute(f"SELECT {column} FROM owner WHERE handle = ?", (handle,))
        return rows[0][0] if rows else None

    def set_locked(self, handle: str, is_on: bool, now: datetime | None = None) -> bool:
        """Refuses an owner's tokens and trusted jobs from now on, or accepts them again. True if
        that changed anything. ``people.locks`` does the whole of a lock.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner.
        """
        self.check_known(names.check_owner(handle))
        changed = self._database.execute(
            "UPDATE owner SET locked_at = ? WHERE handle = ? AND (locked_at IS NULL) = ? "
            "RETURNING 1",
            (epoch_seconds(now) if is_on else None, handle, is_on),
        )
        return bool(changed)

    def owners(self, now: datetime | None = None) -> list[Owner]:
        """Returns all owners, by handle."""
        rows = self._database.execute(
            "SELECT handle, owner.created_at, count(token.id), locked_at, kind, is_operator "
            "FROM owner LEFT JOIN token "
            "ON token.owner = handle AND revoked_at IS NULL AND expires_at > ? "
            "AND trusted_publisher IS NULL "
            "GROUP BY handle ORDER BY handle",
            (epoch_seconds(now),),
        )
        return [Owner(*row[:-1], bool(row[-1])) for row in rows]

    def check_known(self, owner: str) -> None:
        """Raises OperatorError if no owner has this handle."""
        if not self.is_known(owner):
            same = (one.handle for one in self.owners() if one.handle[0] == owner[:1])
            near = next(iter(alike(owner, same)), "")
            advice = f"Did you mean {near}? Or run" if near else "Run"
            raise OperatorError(f"No owner {owner}. {advice} `hubctl owner add {owner}` to add it.")


# In the order in which an owner's ways are listed.
WAYS = ("password", "openid", "invited")


def ways_to_sign_in(database: Database, now: datetime | None = None) -> dict[str, list[str]]:
    """Returns the WAYS of each owner who has any. ``invited``: an invitation that is still good.

    Raises RequestError ``storage_unavailable`` as the database does.
    """
    rows = database.execute(
        "SELECT owner, 'password' FROM password UNION SELECT owner, 'openid' FROM identity "
        "UNION SELECT owner, 'invited' FROM invitation WHERE expires_at > ?",
        (epoch_seconds(now),),
    )
    ways: dict[str, list[str]] = {}
    for owner, way in sorted(rows, key=lambda row: WAYS.index(row[1])):
        ways.setdefault(owner, []).append(way)
    return ways
