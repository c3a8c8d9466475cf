"""Idempotency keys: a request that is sent again gets its first answer, also after a crash.

What a request is about to publish is stored, for good, before the version is written: the
version's number and the hash of its record. Sent again, the request finds either that very
record in the content, and has been answered then; or not, for it died before the commit
point, and is done anew. So no crash, at whatever moment, makes two versions of one request.
``publish`` finds that out, and makes the answer of the record and the request.

A row has some hundred bytes, whatever was published. An owner has at most ``kept_max`` of them;
beyond that, requests with a new key are refused until the oldest is a day old: to forget one
earlier would publish its request twice.
"""

import hashlib
import time
from typing import NamedTuple

import msgspec

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.write.publish import Kept

KEPT_SECONDS = 86_400
SWEEP_SECONDS = 3_600

_encode = msgspec.json.Encoder().encode


class Keyed(NamedTuple):
    """A request with a key. A key is its owner's: others may use the same."""

    owner: str
    key: str
    fingerprint: bytes


def fingerprint(owner: str, name: str, if_match: str | None, body: bytes) -> bytes:
    """What tells one publication from another: the repo, the condition, the body's bytes."""
    return hashlib.sha256(_encode([owner, name, if_match]) + body).digest()


class TooManyKept(RequestError):
    """An owner has as many keys as are kept. ``wait_seconds``: until there is room for another."""

    def __init__(self, wait_seconds: int) -> None:
        super().__init__(
            "rate_limited",
            "Too many publications with an Idempotency-Key in a day. Publish without the key, or "
            f"send the same request again in {wait_seconds} s.",
        )
        self.wait_seconds = wait_seconds


class Answers:
    """The answers of the last day to requests with a key, of all repos.

    ``kept_max``: how many of an owner; 0: any number.
    """

    def __init__(self, database: Database, kept_max: int = 0) -> None:
        self._database = database
        self._kept_max = kept_max
        self._sweep_at = 0

    def to(self, request: Keyed) -> "FirstAnswer":
        """The answer to this request, for ``publish`` to recall or remember."""
        return FirstAnswer(self, request)

    def find(self, request: Keyed) -> Kept | None:
        """What is kept of the request.

        Raises RequestError ``idempotency_key_reused``, ``storage_unavailable``.
        """
        rows = self._database.execute(
            "SELECT fingerprint, version, previous_version, record_sha256 FROM answer "
            "WHERE owner = ? AND key = ? AND kept_until > ?",
            (request.owner, request.key, int(time.time())),
        )
        if not rows:
            return None
        stored, *kept = rows[0]
        if stored != request.fingerprint:
            raise _reused()
        return Kept(*kept)

    def put(self, request: Keyed, kept: Kept) -> None:
        """Keep what the request is about to publish; durable when this returns.

        Raises RequestError ``idempotency_key_reused``, ``rate_limited`` (a TooManyKept),
        ``storage_unavailable``.
        """
        now = int(time.time())
        with self._database.transaction():
            # Another repo's request may have taken the key since: its lock is another.
            is_ours = self._database.execute(
                "INSERT INTO answer "
                "(owner, key, fingerprint, version, previous_version, record_sha256, kept_until) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "fingerprint = excluded.fingerprint, version = excluded.version, "
                "previous_version = excluded.previous_version, "
                "record_sha256 = excluded.record_sha256, kept_until = excluded.kept_until "
                "WHERE fingerprint = excluded.fingerprint OR kept_until <= ? RETURNING 1",
                (*request, *kept, now + KEPT_SECONDS, now),
            )
            if not is_ours:
                raise _reused()
            if self._kept_max:
                self._check_room(request.owner, now)
            if now >= self._sweep_at:
                self._database.execute("DELETE FROM answer WHERE kept_until <= ?", (now,))
                self._sweep_at = now + SWEEP_SECONDS

    def _check_room(self, owner: str, now: int) -> None:
        # The last row for which there is no room; the one that was just put is the newest.
        rows = self._database.execute(
            "SELECT kept_until FROM answer WHERE owner = ? AND kept_until > ? "
            "ORDER BY kept_until DESC LIMIT 1 OFFSET ?",
            (owner, now, self._kept_max),
        )
        for (kept_until,) in rows:
            raise TooManyKept(kept_until - now)


class FirstAnswer:
    """The Memory of one request, as ``publish`` wants it."""

    def __init__(self, answers: Answers, request: Keyed) -> None:
        self._answers = answers
        self._request = request

    def recall(self) -> Kept | None:
        return self._answers.find(self._request)

    def remember(self, kept: Kept) -> None:
        self._answers.put(self._request, kept)


def _reused() -> RequestError:
    return RequestError(
        "idempotency_key_reused",
        "This Idempotency-Key was sent with another request less than a day ago: make a new key "
        "for each publication, and send the same body to the same repo when you repeat one.",
    )
