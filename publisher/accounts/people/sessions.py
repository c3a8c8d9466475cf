"""The sessions of people who are signed in. The browser has a session's secret; the database has
its SHA-256.

The secret must have at least 128 random bits, and be a new one at each sign-in. Nothing is cached
between calls, so the end of a session takes effect at once in every process. Times are epoch
seconds; ``now`` is an aware datetime, by default the present. The methods raise RequestError
``storage_unavailable`` as the database does.
"""

import hmac
from datetime import datetime
from typing import NamedTuple

from builder.model.errors import RequestError
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.token import hash_secret
from publisher.accounts.tokens import LOCKED, Accounts

# A session ends after IDLE_SECONDS without use, and at the latest after LIFE_SECONDS. One that
# began at an OpenID provider ends after a day: the provider may have locked the person out since.
IDLE_SECONDS = 14 * 86_400
LIFE_SECONDS = 60 * 86_400
PROVIDER_SECONDS = 86_400
# The last use is written at most this often: otherwise each page would wait for the disk.
SEEN_NOTED_EVERY_SECONDS = 5 * 60
# The most sessions of one owner. One more sign-in ends the session that was unused for longest.
SESSIONS_MAX = 100
AGENT_CHARS_MAX = 200


class Session(NamedTuple):
    """A session without its secret. ``id`` is public: the first 8 hexadecimal digits of the hash.
    ``address``: the client's at sign-in; ``agent``: the name that the browser gives itself.
    """

    id: str
    owner: str
    began_at: int
    seen_at: int
    address: str
    agent: str
    is_operator: bool


_COLUMNS = "hash, owner, began_at, seen_at, address, agent"
_SELECT = (
    f"SELECT {_COLUMNS}, (SELECT is_operator FROM owner WHERE handle = session.owner) FROM session"
)
_IS_GOOD = (
    f"seen_at > ? - {IDLE_SECONDS} AND began_at > ? - {LIFE_SECONDS} "
    "AND (ends_at IS NULL OR ends_at > ?)"
)


class Sessions:
    """The sessions of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._accounts = Accounts(database)
        self._events = Events(database)

    def begin(
        self,
        owner: str,
        secret: str,
        *,
        address: str,
        agent: str,
        seconds: int | None = None,
        now: datetime | None = None,
    ) -> None:
        """Signs an owner in, in the browser that has the secret, for ``seconds`` at most. Deletes
        sessions that are over.

        Raises RequestError ``insufficient_scope`` for an owner who is locked out.
        """
        at = epoch_seconds(now)
        agent = "".join(char for char in agent if char.isprintable())[:AGENT_CHARS_MAX]
        row = (hash_secret(secret), owner, at, at, address, agent)
        with self._database.transaction():
            if self._accounts.locked_at(owner) is not None:
                raise RequestError("insufficient_scope", LOCKED)
            self._database.execute(f"DELETE FROM session WHERE NOT ({_IS_GOOD})", (at, at, at))
            self._database.execute(
                "DELETE FROM session WHERE owner = ?1 AND hash NOT IN (SELECT hash FROM session "
                "WHERE owner = ?1 ORDER BY seen_at DESC, began_at DESC LIMIT ?2)",
                (owner, SESSIONS_MAX - 1),
            )
            self._database.execute(
                f"INSERT INTO session ({_COLUMNS}, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*row, seconds and at + seconds),
            )
            self._events.note(owner, "signed_in", address=address, note=agent, now=now)

    def find(self, secret: str, now: datetime | None = None) -> Session | None:
        """Returns the session with this secret, if it is good at this moment, and notes its use."""
        at, digest = epoch_seconds(now), hash_secret(secret)
        rows = self._database.execute(
            f"{_SELECT} WHERE hash = ? AND {_IS_GOOD}", (digest, at, at, at)
        )
        found = [_session_of(row) for row in rows if hmac.compare_digest(row[0], digest)]
        if not found:
            return None
        (session,) = found
        stale = at - SEEN_NOTED_EVERY_SECONDS
        if session.seen_at > stale:
            return session
        # Another request may have noted the use since, or ended the session.
        self._database.execute(
            "UPDATE session SET seen_at = ? WHERE hash = ? AND seen_at <= ?", (at, digest, stale)
        )
        return session._replace(seen_at=at)

    def end(self, secret: str) -> None:
        """Ends the session with this secret, if it exists."""
        self._database.execute("DELETE FROM session WHERE hash = ?", (hash_secret(secret),))

    def end_all(
        self, owner: str, *, but: str | None = None, note: bool = False, now: datetime | None = None
    ) -> None:
        """Ends all sessions of an owner, except the one with the secret ``but``.

        ``note``: the owner requested it, so it is noted in the account's log, even if no session
        ended. Where it follows from another event, such as a new password, that event is noted
        instead.
        """
        with self._database.transaction():
            self._database.execute(
                "DELETE FROM session WHERE owner = ?1 AND (hash != ?2 OR ?2 IS NULL)",
                (owner, None if but is None else hash_secret(but)),
            )
            if note:
                self._events.note(owner, "signed_out_everywhere", now=now)

    def of(self, owner: str, now: datetime | None = None) -> list[Session]:
        """Returns the sessions of an owner that are good at this moment, the newest first."""
        at = epoch_seconds(now)
        rows = self._database.execute(
            f"{_SELECT} WHERE owner = ? AND {_IS_GOOD} ORDER BY began_at DESC, seen_at DESC, hash",
            (owner, at, at, at),
        )
        return [_session_of(row) for row in rows]


def _session_of(row: tuple) -> Session:
    digest, *rest, is_operator = row
    return Session(digest.hex()[:8], *rest, bool(is_operator))
