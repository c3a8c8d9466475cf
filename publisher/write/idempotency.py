"""Idempotency keys: a request that is sent again gets its first answer, also after a crash.

The header follows the IETF draft
(https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/).

What a request is about to publish is stored durably before the version is written: the version's
number and the hash of its record. When the request is sent again, the service looks for that record
in the content. If the content has it, the request is answered from it. If not, the request died
before the commit point, and is run again. So no crash, at any moment, makes two versions of one
request. ``publish`` does this, and builds the answer from the record and the request. A change of a
label works alike, with its file instead of a record.

Earlier attempts stay stored when the request is run again; the content has at most one of them.
Where many nodes share a database, the row is stored in the transaction of the version itself.

A row has some hundred bytes, whatever was published, and is deleted when it is a day old. An owner
has at most ``kept_max`` keys. Beyond that, requests with a new key are refused until the oldest key
is a day old: to delete one earlier would let its request publish twice.
"""

import hashlib
import time
from typing import NamedTuple

import msgspec

from builder.model.errors import RequestError
from publisher.accounts.database import Database

KEPT_SECONDS = 86_400
# At most so many attempts of one request are looked for in the content, the latest first.
ATTEMPTS_MAX = 100

_encode = msgspec.json.Encoder().encode


def fingerprint(*request: str | None, body: bytes) -> bytes:
    """Returns a hash that differs between requests: of the body's bytes, and of ``request``, the
    target. For a publication that is the repo and its condition; for a label's change the repo, the
    label and the method.
    """
    return hashlib.sha256(_encode(request) + body).digest()


class KeptAnswer(NamedTuple):
    """The write that a request was about to make. The rest of its answer is in the version's
    record, or follows from the request.

    ``record_sha256`` is the hash of that record; None: nothing was to be written.

    ``label_number``: where the request changes a label without a new version, the number of that
    change; where the label was so already, the number of the change that made it so.
    ``record_sha256`` is then the hash of that change's file. ``version`` is empty where a label is
    removed.
    """

    version: str
    previous_version: str | None
    record_sha256: bytes | None
    label_number: int | None = None

    @property
    def writes(self) -> bool:
        return self.record_sha256 is not None


class TooManyKept(RequestError):
    """An owner has as many keys as are kept. ``wait_seconds`` until there is room for another."""

    def __init__(self, wait_seconds: int) -> None:
        super().__init__(
            "rate_limited",
            "Too many publications with an Idempotency-Key within a day. Publish without the "
            f"key, or send the same request again in {wait_seconds} s.",
        )
        self.wait_seconds = wait_seconds


class IdempotencyKey(NamedTuple):
    """The key of one request, and the answer that is kept for it. Used under the repo's lock.

    A key belongs to its owner: other owners may use the same one. ``fingerprint``: of the request.
    ``kept_max``: the most keys that are kept for an owner; 0 for no limit.
    """

    database: Database
    owner: str
    key: str
    fingerprint: bytes
    kept_max: int = 0

    def find(self) -> list[KeptAnswer]:
        """Returns what is kept of the request, if it was sent in the last day: one entry for each
        attempt that decided differently, those that were to write first.

        Raises RequestError ``idempotency_key_reused``, ``storage_unavailable``.
        """
        rows = self.database.execute(
            f"SELECT fingerprint, {', '.join(KeptAnswer._fields)} FROM answer "
            "WHERE owner = ? AND key = ? AND kept_until > ? ORDER BY kept_until DESC LIMIT ?",
            (self.owner, self.key, int(time.time()), ATTEMPTS_MAX),
        )
        if any(stored != self.fingerprint for stored, *_ in rows):
            raise RequestError(
                "idempotency_key_reused",
                "This Idempotency-Key was used for another request within the last day. Use a new "
                "key for each publication; to repeat one, send the same body to the same repo.",
            )
        return sorted((KeptAnswer(*kept) for _, *kept in rows), key=lambda kept: not kept.writes)

    def store(self, kept: KeptAnswer) -> None:
        """Keeps what the request is about to publish; durable when this returns.

        Raises RequestError ``idempotency_key_reused``, ``rate_limited`` (a TooManyKept),
        ``storage_unavailable``.
        """
        now = int(time.time())
        with self.database.transaction():
            self.database.execute("DELETE FROM answer WHERE kept_until <= ?", (now,))
            # A request about another repo may have taken the key since: it holds another lock.
            if kept in self.find():
                return
            self.database.execute(
                "INSERT INTO answer (owner, key, fingerprint, version, previous_version, "
                "record_sha256, label_number, kept_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self.owner, self.key, self.fingerprint, *kept, now + KEPT_SECONDS),
            )
            self.check_room(0)

    def check_room(self, more: int) -> None:
        """Raises RequestError ``rate_limited`` (a TooManyKept) where there is no room for ``more``
        keys.
        """
        if not self.kept_max:
            return
        now = int(time.time())
        # Finds when the key expires that stands in the way. A key has one row as a rule, and rows
        # are counted faster than keys, so rows are tried first.
        where = "FROM answer WHERE owner = ? AND kept_until > ?"
        for sql in (f"SELECT kept_until {where}", f"SELECT max(kept_until) {where} GROUP BY key"):
            rows = self.database.execute(
                f"{sql} ORDER BY 1 DESC LIMIT 1 OFFSET ?", (self.owner, now, self.kept_max - more)
            )
            if not rows:
                return
        raise TooManyKept(rows[0][0] - now)
