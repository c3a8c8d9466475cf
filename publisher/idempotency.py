"""Idempotency keys: a request that is sent again gets its first answer, also after a crash.

What a request is about to publish is stored, for good, before the version is written: the
version's number and the hash of its record. Sent again, the request finds either that very
record in the content, and has been answered then; or not, for it died before the commit
point, and is done anew. So no crash, at whatever moment, makes two versions of one request.
"""

import hashlib
import time
from typing import NamedTuple

import msgspec

from builder.content import repo_path
from builder.errors import RequestError
from publisher.database import Database
from publisher.publish import Published

KEPT_SECONDS = 86_400
SWEEP_SECONDS = 3_600

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Published).decode


class Keyed(NamedTuple):
    """A request with a key. A key is its owner's: others may use the same."""

    owner: str
    key: str
    fingerprint: bytes


def fingerprint(owner: str, name: str, if_match: str | None, body: bytes) -> bytes:
    """What tells one publication from another: the repo, the condition, the body's bytes."""
    return hashlib.sha256(_encode([owner, name, if_match]) + body).digest()


class Answers:
    """The answers of the last day to requests with a key, of all repos."""

    def __init__(self, database: Database, content_root: str) -> None:
        self._database = database
        self._content_root = content_root
        self._sweep_at = 0

    def to(self, request: Keyed) -> "FirstAnswer":
        """The answer to this request, for ``publish`` to recall or remember."""
        return FirstAnswer(self, request)

    def find(self, request: Keyed) -> Published | None:
        """What the request has published, if it came that far.

        Raises RequestError ``idempotency_key_reused``, ``storage_unavailable``.
        """
        rows = self._database.execute(
            "SELECT fingerprint, record_sha256, published FROM answer "
            "WHERE owner = ? AND key = ? AND kept_until > ?",
            (request.owner, request.key, int(time.time())),
        )
        for stored, record_sha256, raw in rows:
            if stored != request.fingerprint:
                raise _reused()
            published = _decode(raw)
            if self._is_in_content(published, record_sha256):
                return published
        return None

    def put(self, request: Keyed, published: Published, record: bytes | None) -> None:
        """Keep what the request is about to publish; durable when this returns.

        Raises RequestError ``idempotency_key_reused``, ``storage_unavailable``.
        """
        now = int(time.time())
        with self._database.transaction():
            # Another repo's request may have taken the key since: its lock is another.
            is_ours = self._database.execute(
                "INSERT INTO answer "
                "(owner, key, fingerprint, version, record_sha256, published, kept_until) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "fingerprint = excluded.fingerprint, version = excluded.version, "
                "record_sha256 = excluded.record_sha256, published = excluded.published, "
                "kept_until = excluded.kept_until "
                "WHERE fingerprint = excluded.fingerprint OR kept_until <= ? RETURNING 1",
                (*request, published.version, record and hashlib.sha256(record).digest(),
                 _encode(published), now + KEPT_SECONDS, now),
            )  # fmt: skip
            if not is_ours:
                raise _reused()
            if now >= self._sweep_at:
                self._database.execute("DELETE FROM answer WHERE kept_until <= ?", (now,))
                self._sweep_at = now + SWEEP_SECONDS

    def _is_in_content(self, published: Published, record_sha256: bytes | None) -> bool:
        folder = repo_path(self._content_root, published.owner, published.name)
        try:
            with open(f"{folder}/{published.version}.json", "rb") as file:
                record = file.read()
        except FileNotFoundError:
            return False
        return record_sha256 is None or hashlib.sha256(record).digest() == record_sha256


class FirstAnswer:
    """The Memory of one request, as ``publish`` wants it."""

    def __init__(self, answers: Answers, request: Keyed) -> None:
        self._answers = answers
        self._request = request

    def recall(self) -> Published | None:
        return self._answers.find(self._request)

    def remember(self, published: Published, record: bytes | None) -> None:
        self._answers.put(self._request, published, record)


def _reused() -> RequestError:
    return RequestError(
        "idempotency_key_reused",
        "This Idempotency-Key was sent with another request less than a day ago: make a new key "
        "for each publication, and send the same body to the same repo when you repeat one.",
    )
