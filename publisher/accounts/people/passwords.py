"""Passwords: judges new ones, and verifies those of owners. They are stored as Argon2id hashes.

As NIST SP 800-63B-4 §3.1.1.2 requires (https://pages.nist.gov/800-63-4/sp800-63b.html), a password
that is the only factor has at least 15 characters, and there are no rules of composition: it must
not be among the breached ones that guessers try. Only new passwords are judged, so those from
before a rule remain valid. All are NFKC-normalised first, so that the same keys give the same
password on any device. ``now`` is an aware datetime, by
default the present. The methods raise RequestError ``storage_unavailable`` as the database does.
"""

import contextlib
import functools
import secrets
import threading
import unicodedata
from collections.abc import Iterator
from datetime import datetime

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from builder.model import names
from builder.model.errors import Detail, RequestError
from publisher.accounts.database import Database, epoch_seconds
from server.answer_headers import RETRY_SECONDS

PASSWORD_CHARS_MIN = 15
PASSWORD_CHARS_MAX = 256
GUESSES_MIN = 10**9
# Only this many characters are judged: the estimate of a hostile password takes half a second at
# this length, and three seconds at 100. Forty are enough to recognise a breached password, or one
# that repeats itself.
JUDGED_CHARS_MAX = 40

# A hash takes 64 MiB and a tenth of a second, and anyone may request one. So a few requests wait
# for their turn and more are refused: otherwise they could hold every thread of the account pages.
HASHES_AT_ONCE = 2
WAITING_MAX = 4
_hashing = threading.BoundedSemaphore(HASHES_AT_ONCE)
_places = threading.BoundedSemaphore(HASHES_AT_ONCE + WAITING_MAX)
# The library keeps the words of a call in a table that all its callers share, so one thread calls
# it at a time.
_judging = threading.Lock()
# The second recommended option of RFC 9106 §4: Argon2id, 64 MiB, three passes.
_hasher = PasswordHasher()


def check_password(password: str, *about: str) -> None:
    """Checks that a new password is long enough and hard to guess, even with the words that it is
    ``about``, such as the handle.

    Raises RequestError ``validation_failed`` with the field ``password`` as its detail.
    """
    normal = _normal(password)
    if len(normal) < PASSWORD_CHARS_MIN:
        raise _refusal(
            f"A password has at least {PASSWORD_CHARS_MIN} characters. Use a few unrelated "
            "words, or a password manager."
        )
    if len(normal) > PASSWORD_CHARS_MAX:
        raise _refusal(f"A password has at most {PASSWORD_CHARS_MAX} characters. Shorten it.")
    # Loaded late: its lists of words take long to load, and only a new password needs them.
    from zxcvbn import zxcvbn

    with _judging:
        guesses = zxcvbn(normal[:JUDGED_CHARS_MAX], user_inputs=list(about))["guesses"]
    if guesses < GUESSES_MIN:
        raise _refusal(
            "This password is easy to guess: it is close to one from a breach, to your handle, "
            "or to a simple pattern. Use a few unrelated words, or a password manager."
        )


class Passwords:
    """The passwords of a database.

    A process hashes HASHES_AT_ONCE at a time and lets WAITING_MAX more requests wait. Beyond that,
    ``put``, ``verify`` and ``hash_new`` raise RequestError ``unavailable``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, owner: str, password: str, now: datetime | None = None) -> None:
        """Checks and sets an owner's password, whether the owner had one or not.

        Ends no session and notes no event. Not for use in a transaction, which would last as long
        as the hash. Raises RequestError ``validation_failed`` as ``check_password``.
        """
        self.put_hash(owner, hash_new(owner, password), now)

    def put_hash(self, owner: str, password_hash: str, now: datetime | None = None) -> None:
        """Sets an owner's password to a hash that ``hash_new`` returned."""
        self._database.execute(
            "INSERT INTO password VALUES (?1, ?2, ?3) "
            "ON CONFLICT (owner) DO UPDATE SET hash = ?2, changed_at = ?3",
            (owner, password_hash, epoch_seconds(now)),
        )

    def set_at(self, owner: str) -> int | None:
        """Returns when an owner's password was set, in epoch seconds; None without a password."""
        rows = self._database.execute("SELECT changed_at FROM password WHERE owner = ?", (owner,))
        return rows[0][0] if rows else None

    def has(self, owner: str) -> bool:
        """True if an owner has a password."""
        return self.set_at(owner) is not None

    def verify(self, handle: str, password: str) -> str | None:
        """Returns the stored hash of an owner's password, if ``password`` is right; None if it is
        wrong, or the owner is locked out.

        It takes long, and the password may change meanwhile. A caller that acts on the answer
        therefore calls ``is_still`` in the same transaction. A handle without a password, an
        unknown one and an invalid one take the same work, so the time does not reveal which handles
        exist.
        """
        normal = _normal(password)
        if len(normal) > PASSWORD_CHARS_MAX:
            return None
        with _place():
            return self._verify(handle, normal)

    def _verify(self, handle: str, normal: str) -> str | None:
        # A text that is not a handle may be one that the database cannot take.
        is_name = names.is_name(handle, names.OWNER_CHARS_MAX)
        rows = self._database.execute(
            "SELECT hash FROM password JOIN owner ON handle = owner "
            "WHERE owner = ? AND locked_at IS NULL",
            (handle if is_name else "",),
        )
        dummy = _dummy()
        stored = rows[0][0] if rows else dummy
        if not _matches(stored, normal) or stored is dummy:
            return None
        if not _hasher.check_needs_rehash(stored):
            return stored
        renewed = _hash(normal)
        is_done = self._database.execute(
            "UPDATE password SET hash = ? WHERE owner = ? AND hash = ? RETURNING 1",
            (renewed, handle, stored),
        )
        # If the update found no such hash, the password was changed meanwhile, or rehashed by
        # another sign-in.
        return renewed if is_done else self._verify(handle, normal)

    def is_still(self, owner: str, verified: str | None) -> bool:
        """True if an owner's password is still the one that ``verify`` has seen; with None, if the
        owner still has none.
        """
        rows = self._database.execute("SELECT hash FROM password WHERE owner = ?", (owner,))
        return (rows[0][0] if rows else None) == verified


def hash_new(owner: str, password: str) -> str:
    """Returns the hash of a new password for an owner, as a PHC string.

    Raises RequestError ``validation_failed`` as ``check_password``.
    """
    with _place():
        check_password(password, owner)
        return _hash(_normal(password))


def _normal(password: str) -> str:
    return unicodedata.normalize("NFKC", password)


@contextlib.contextmanager
def _place() -> Iterator[None]:
    """Takes one of the places for requests that hash a password. Raises RequestError
    ``unavailable`` where all are taken, before the password's owner is known.
    """
    if not _places.acquire(blocking=False):
        raise RequestError(
            "unavailable",
            "Too many sign-ins are waiting, so your password was not checked. Wait "
            f"{RETRY_SECONDS} seconds, go back, and send the form again.",
        )
    try:
        yield
    finally:
        _places.release()


def _hash(normal: str) -> str:
    with _hashing:
        return _hasher.hash(_bytes(normal))


def _matches(stored: str, normal: str) -> bool:
    with _hashing:
        try:
            return _hasher.verify(stored, _bytes(normal))
        except VerifyMismatchError:
            return False


def _bytes(normal: str) -> bytes:
    # A surrogate, which is no valid text, makes a wrong password like any other.
    return normal.encode(errors="surrogatepass")


@functools.cache
def _dummy() -> str:
    """Returns the hash of a password that no owner has, with today's parameters."""
    return _hash(secrets.token_urlsafe())


def _refusal(message: str) -> RequestError:
    return RequestError("validation_failed", message, [Detail("password", message)])
