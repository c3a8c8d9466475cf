"""Idempotency keys: a request that is sent again gets its first answer, also after a crash.

What a request is about to publish is stored, for good, before the version is written: the
version's number and the hash of its record. Sent again, the request finds either that very
record in the content, and has been answered then; or not, for it died before the commit
point, and is done anew. So no crash, at whatever moment, makes two versions of one request.
``publish`` finds that out, and makes the answer of the record and the request. For a change of a
label it is the same, with the file of that change in the place of the record.

What was kept stays when the request is done anew; at most one of these attempts is ever in the
content. Where many nodes share a database, it is stored in the transaction of the version itself.

A row has some hundred bytes, whatever was published, and goes when it is a day old. An owner has
at most ``kept_max`` keys; beyond that, requests with a new key are refused until the oldest is
a day old: to forget one earlier would publish its request twice.
"""

import hashlib
import time
from typing import NamedTuple

import msgspec

from builder.model.errors import RequestError
from publisher.accounts.database import Database

KEPT_SECONDS = 86_400
# The last attempts of one request are looked for in the content.
ATTEMPTS_MAX = 100

_encode = msgspec.json.Encoder().encode


def fingerprint(*request: str | None, body: bytes) -> bytes:
    """What tells one request from another: what it is about (the repo and the condition of a
    publication; the repo, the label and the method of a label's change), and the body's bytes.
    """
    return hashlib.sha256(_encode(request) + body).digest()


class KeptAnswer(NamedTuple):
    """What a request was about to write. The rest of its answer is in the version's record, or
    follows from the request. ``record_sha256``: of that record; None: nothing was to be written.

    ``label_number``: where the request changes a label, and no new version says so, the number of
    that change (or of the one that made the label what it is); ``record_sha256`` is of its file.
    ``version`` is empty where a label is removed.
    """

    version: str
    previous_version: str | None
    record_sha256: bytes | None
    label_number: int | None = None

    @property
    def writes(self) -> bool:
        return self.record_sha256 is not None


class TooManyKept(RequestError):
    """An owner has as many keys as are kept. ``wait_seconds``: until there is room for another."""

    def __init__(self, wait_seconds: int) -> None:
        super().__init__(
            "rate_limited",
            "Too many publications with an Idempotency-Key within a day. Publish without the "
            f"key, or send the same request again in {wait_seconds} s.",
        )
        self.wait_seconds = wait_seconds


class IdempotencyKey(NamedTuple):
    """The key of one request, and the answer that is kept for it. Used under the repo's lock.

    A key is its owner's: others may use the same. ``fingerprint``: of the request. ``kept_max``:
    how many keys are kept for an owner; 0: any number.
    """

    database: Database
    owner: str
    key: str
    fingerprint: bytes
    kept_max: int = 0

    def find(self) -> list[KeptAnswer]:
        """What is kept of the request, if it was sent in the last day: of each attempt that made
        something else of it, first of those that were to write.

        Raises RequestError ``idempotency_key_reused``, ``storage_unavailable``.
        """
        rows = self.database.execute(
            f"SELECT fingerprint, {', '.join(KeptAnswer._fields)} FROM answer "
            "WHERE owner = ? AND key = ? AND kept_until > ? ORDER BY kept_until DESC LIMIT ?",
            (self.owner, self.key, int(time.time()), ATTEMPTS_MAX),
        )
        if any(stored != self.fingerprint for stored, *_ in rows):
            raise _reused()
        return sorted((KeptAnswer(*kept) for _, *kept in rows), key=lambda kept: not kept.writes)

    def store(self, kept: KeptAnswer) -> None:
        """Keep what the request is about to publish; durable when this returns.

        Raises RequestError ``idempotency_key_reused``, ``rate_limited`` (a TooManyKept),
        ``storage_unavailable``.
        """
        now = int(time.time())
        with self.database.transaction():
            self.database.execute("DELETE FROM answer WHERE kept_until <= ?", (now,))
            # Another repo's request may have taken the key since: its lock is another.
            if kept in self.find():
                return
            self.database.execute(
                "INSERT INTO answer (owner, key, fingerprint, version, previous_version, "
                "record_sha256, label_number, kept_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self.owner, self.key, self.fingerprint, *kept, now + KEPT_SECONDS),
            )
            self.check_room(0)

    def check_room(self, more: int) -> None:
        """Raises RequestError ``rate_limited`` (a TooManyKept) where there is no room for so many
        ``more`` keys.
        """
        if not self.kept_max:
            return
        now = int(time.time())
        # The last key for which there is no room. Rows are seldom more than keys, and counted
        # faster.
        where = "FROM answer WHERE owner = ? AND kept_until > ?"
        for sql in (f"SELECT kept_until {where}", f"SELECT max(kept_until) {where} GROUP BY key"):
            rows = self.database.execute(
                f"{sql} ORDER BY 1 DESC LIMIT 1 OFFSET ?", (self.owner, now, self.kept_max - more)
            )
            if not rows:
                return
        raise TooManyKept(rows[0][0] - now)


def _reused() -> RequestError:
    return RequestError(
        "idempotency_key_reused",
        "This Idempotency-Key was used for another request within the last day. Use a new key "
        "for each publication; to repeat one, send the same body to the same repo.",
    )
