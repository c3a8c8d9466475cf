"""The security log of an account. It answers the owner's question "was that me?".

The account's owner reads the events, which are kept for half a year. They name tokens and
addresses, never a secret. ``now`` is an aware datetime, by default the present. The methods raise
RequestError ``storage_unavailable`` as the database does.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import datetime
from typing import NamedTuple

from publisher.accounts.database import Database, epoch_seconds

EVENT_SECONDS = 180 * 86_400
# The most events of one kind about one subject, so that a guesser neither pushes out the other
# events nor fills the disk. Beyond that, the oldest event of the address with the most events is
# deleted. So a frequent address pushes out only its own events.
KEPT_ALIKE_MAX = 200
# The log shows at most this many similar events in a row, and counts the others.
SHOWN_ALIKE_MAX = 10
_READ_AT_ONCE = 500

# Each kind of event, as a sentence. {note} is the event's ``note``, as its module has written it.
TEXTS = {
    "signed_up": "Account created.",
    "invited": "Invitation created. Its link can set a password.",
    "signed_in": "Signed in with {note}.",
    "sign_in_failed": "Wrong password entered.",
    "signed_out_everywhere": "Signed out everywhere.",
    "password_set": "Password set.",
    "password_changed": "Password changed.",
    "identity_added": "Sign-in with {note} added.",
    "identity_removed": "Sign-in with {note} removed.",
    "token_made": "Token created: {note}.",
    "token_new_address": "Token used from a new address: {note}.",
    "token_revoked": "Token revoked: {note}.",
    "publisher_added": "Trusted publisher added: {note}.",
    # In earlier logs: nothing notes it today.
    "publisher_changed": "Labels of a trusted publisher changed: {note}.",
    "publisher_removed": "Trusted publisher removed: {note}.",
    "publisher_used": "A job of a trusted publisher got a token: {note}.",
    "trusted_only_on": "{note} now accepts only trusted publishers.",
    "trusted_only_off": "{note} accepts tokens again.",
    "label_protected": "Label protected: {note}.",
    "label_unprotected": "Label no longer protected: {note}.",
    "published": "Published: {note}.",
    "label_moved": "Label moved: {note}.",
    "withdrawn": "Withdrawn: {note}.",
    "team_made": "Team created for {note}.",
    "team_link_made": "Link made with which one person joins as {note}.",
    "member_added": "Member added: {note}.",
    "member_joined": "Joined by a link: {note}.",
    "member_role": "Role changed: {note}.",
    "member_removed": "Member removed: {note}.",
    "locked": "Account locked.",
    "unlocked": "Account unlocked.",
    "access_ended": "All access ended: password, sign-ins, tokens and teams.",
    "operator_made": "Made an operator of this hub.",
    "operator_ended": "No longer an operator of this hub.",
    "restored": "The hub was restored from a backup of {note}. Everyone was signed out.",
}

# The person and the client's address of a request; both empty in the operator's shell.
_request: ContextVar[tuple[str, str]] = ContextVar("request", default=("", ""))


@contextlib.contextmanager
def written_by(person: str, address: str = "") -> Iterator[None]:
    """Names a person as the author of all events that the block notes, and the client's address."""
    token = _request.set((person, address))
    try:
        yield
    finally:
        _request.reset(token)


class Event(NamedTuple):
    """An entry of the log. ``at`` is epoch seconds. ``subject``: the thing that the event is about,
    such as a token's id; ``note``: its name. ``address``: the client's; empty for a command of the
    operator. ``author``: the person who did it; empty for the owner, or the operator.
    """

    at: int
    kind: str
    subject: str
    address: str
    note: str
    author: str = ""


class Line(NamedTuple):
    """An event as the log shows it, and how many ``more`` like it came just before."""

    event: Event
    more: int


class Events:
    """The events of all accounts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self,
        owner: str,
        kind: str,
        *,
        subject: str = "",
        address: str = "",
        note: str = "",
        now: datetime | None = None,
    ) -> None:
        """Adds an event to an owner's log. Deletes events that are too old, or one of too many
        similar ones. ``address``: by default that of ``written_by``.
        """
        at, (author, written_at) = epoch_seconds(now), _request.get()
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO event (owner, at, kind, subject, address, note, author) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (owner, at, kind, subject, address or written_at, note, author),
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

    def has(self, owner: str, kind: str, subject: str, address: str) -> bool:
        """True if the log has such an event."""
        found = self._database.execute(
            "SELECT 1 FROM event WHERE owner = ? AND kind = ? AND subject = ? AND address = ? "
            "LIMIT 1",
            (owner, kind, subject, address),
        )
        return bool(found)

    def page(
        self, owner: str, count: int, before: int | None = None
    ) -> tuple[list[Line], int | None]:
        """Returns a page of an owner's log, the newest lines first, and the ``before`` of the next
        page; None on the last.

        If similar events (of one kind, about one subject) follow each other, the newest ten have a
        line each. The last of these lines says how many more there were.
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
