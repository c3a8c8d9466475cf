"""The security log of an account: what somebody should know who asks "was that me?".

Events are for the account's owner to read, and are kept for half a year. They name tokens and
addresses, never a secret. ``now`` is an aware datetime, by default the present. The methods raise
RequestError ``storage_unavailable`` as the database does.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from publisher.accounts import clock
from publisher.accounts.database import Database

EVENT_SECONDS = 180 * 86_400
# Of one kind about one subject: a guesser must not push out the rest, nor fill the disk. Of more,
# the oldest goes from the address that has most: whoever comes often pushes out nobody else.
KEPT_ALIKE_MAX = 200
# Of so many one after the other, the others are only counted where the log is shown.
SHOWN_ALIKE_MAX = 10
_READ_AT_ONCE = 500

Kind = Literal[
    "signed_up",
    "invited",
    "signed_in",
    "sign_in_failed",
    "signed_out_everywhere",
    "password_set",
    "password_changed",
    "identity_added",
    "identity_removed",
    "token_made",
    "token_new_address",
    "token_revoked",
    "publisher_added",
    "publisher_changed",
    "publisher_removed",
    "publisher_used",
    "trusted_only_on",
    "trusted_only_off",
    "label_protected",
    "label_unprotected",
    "withdrawn",
    "locked",
    "unlocked",
    "restored",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Event(NamedTuple):
    """``at`` is epoch seconds. ``subject``: what it is about, as a token's id; ``note``: how that
    is called. ``address``: whose request it was; empty for a command of whoever runs the hub.
    """

    at: int
    kind: Kind
    subject: str
    address: str
    note: str


class Line(NamedTuple):
    """What the log shows of an event, and how many ``more`` like it came just before."""

    event: Event
    more: int


class Events:
    """The events of all accounts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self,
        owner: str,
        kind: Kind,
        *,
        subject: str = "",
        address: str = "",
        note: str = "",
        now: datetime | None = None,
    ) -> None:
        """Add an event to an owner's log, and drop what is too old, or one of too many alike."""
        at = clock.seconds(now)
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO event (owner, at, kind, subject, address, note) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (owner, at, kind, subject, address, note),
            )
            self._database.execute(
                "DELETE FROM event WHERE id = (SELECT min(id) FROM event "
                "WHERE owner = ?1 AND kind = ?2 AND subject = ?3 GROUP BY address "
                "ORDER BY count(*) DESC, min(id) LIMIT 1) AND ?4 < "
                "(SELECT count(*) FROM event WHERE owner = ?1 AND kind = ?2 AND subject = ?3)",
                (owner, kind, subject, KEPT_ALIKE_MAX),
            )
            self._database.execute(
                "DELETE FROM event WHERE owner = ? AND at < ?", (owner, at - EVENT_SECONDS)
            )

    def has(self, owner: str, kind: Kind, subject: str, address: str) -> bool:
        """Whether there is such an event."""
        found = self._database.execute(
            "SELECT 1 FROM event WHERE owner = ? AND kind = ? AND subject = ? AND address = ? "
            "LIMIT 1",
            (owner, kind, subject, address),
        )
        return bool(found)

    def latest(self, owner: str, count: int) -> list[Event]:
        """So many events of an owner, the newest first."""
        rows = self._database.execute(
            f"SELECT {', '.join(Event._fields)} FROM event WHERE owner = ? "
            "ORDER BY id DESC LIMIT ?",
            (owner, count),
        )
        return [Event(*row) for row in rows]

    def page(
        self, owner: str, count: int, before: int | None = None
    ) -> tuple[list[Line], int | None]:
        """So many lines of an owner's log, the newest first, and what is ``before`` on the next
        page; None on the last.

        Of events alike (of one kind about one subject), one right after the other, the newest ten
        have a line each, and the last of these lines tells how many more there are.
        """
        lines: list[Line] = []
        alike, last_id = 0, before
        for event_id, event in self._newest_first(owner, before):
            is_alike = bool(lines) and _about(lines[-1].event) == _about(event)
            alike = alike + 1 if is_alike else 1
            if alike > SHOWN_ALIKE_MAX:
                lines[-1] = lines[-1]._replace(more=lines[-1].more + 1)
            elif len(lines) == count:
                return lines, last_id
            else:
                lines.append(Line(event, 0))
            last_id = event_id
        return lines, None

    def _newest_first(self, owner: str, before: int | None) -> Iterator[tuple[int, Event]]:
        while True:
            rows = self._database.execute(
                f"SELECT id, {', '.join(Event._fields)} FROM event "
                "WHERE owner = ?1 AND (id < ?2 OR ?2 IS NULL) ORDER BY id DESC LIMIT ?3",
                (owner, before, _READ_AT_ONCE),
            )
            for event_id, *row in rows:
                yield event_id, Event(*row)
            if len(rows) < _READ_AT_ONCE:
                return
            before = rows[-1][0]


def _about(event: Event) -> tuple[str, str]:
    return event.kind, event.subject
