"""Links that let an owner in once, to set a password or to link an OpenID identity.

The operator creates one for a new owner, or for an owner who cannot sign in. A code is
``HANDLE.SECRET``. It is in the link's fragment, which browsers send to no server (RFC 9110 §7.1).
The database has the SHA-256 of its secret. ``now`` is an aware datetime, by default the present.
The methods raise RequestError ``storage_unavailable`` as the database does.
"""

import hmac
import re
from datetime import datetime

from builder.model import names
from builder.model.errors import OperatorError, RequestError
from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.passwords import Passwords, hash_new
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.token import SECRET_CHARS, hash_secret, make_secret
from publisher.accounts.tokens import Accounts

INVITATION_SECONDS = 86_400
INVITATION_DAYS_MAX = 30
INVITATION_URL = f"{ACCOUNT_URL}/invitation"

_code = re.compile(rf"({names.NAME_PATTERN})\.([0-9A-Za-z]{{{SECRET_CHARS}}})")


def invitation_link(base_url: str, code: str) -> str:
    """Returns the URL at which the owner opens an invitation, below the base URL of the site."""
    return f"{base_url}{INVITATION_URL}#{code}"


def parse_code(text: str) -> tuple[str, str]:
    """Returns the handle and the secret of a code, or of a whole link with one; white space around
    it is ignored.

    Raises RequestError ``invalid_token``.
    """
    found = _code.fullmatch(text.strip().rpartition("#")[2])
    if not found or len(found[1]) > names.OWNER_CHARS_MAX:
        raise _refusal()
    return found[1], found[2]


class Invitations:
    """The invitations of a database: at most one for each owner."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._accounts = Accounts(database)
        self._events = Events(database)
        self._passwords = Passwords(database)
        self._identities = Identities(database)
        self._sessions = Sessions(database)

    def invite(
        self, handle: str, now: datetime | None = None, *, seconds: int = INVITATION_SECONDS
    ) -> str:
        """Returns the code of a new invitation, good for ``seconds``. Replaces the one before.

        Adds the owner if the handle is new. Raises RequestError ``invalid_name``,
        ``name_reserved``; OperatorError for a team, and for an owner who is locked out.
        """
        names.check_owner(handle)
        secret = make_secret()
        with self._database.transaction():
            if not self._accounts.is_known(handle):
                self._accounts.add_owner(handle, now)
            if self._accounts.is_team(handle):
                raise OperatorError(
                    f"{handle} is a team, and no one signs in as it. Invite a person, then add "
                    f"them: `hubctl team add {handle} PERSON`."
                )
            if self._accounts.locked_at(handle) is not None:
                raise OperatorError(
                    f"{handle} is locked, so an invitation would not work. Run `hubctl owner "
                    f"unlock {handle}` first."
                )
            self._database.execute(
                "INSERT INTO invitation VALUES (?1, ?2, ?3) "
                "ON CONFLICT (owner) DO UPDATE SET hash = ?2, expires_at = ?3",
                (handle, hash_secret(secret), epoch_seconds(now) + seconds),
            )
            self._events.note(handle, "invited", now=now)
        return f"{handle}.{secret}"

    def end(self, owner: str) -> None:
        """Removes the owner's invitation, if there is one."""
        self._database.execute("DELETE FROM invitation WHERE owner = ?", (owner,))

    def look(self, code: str, now: datetime | None = None) -> str:
        """Returns the handle that a code invites. The code stays good.

        Raises RequestError ``invalid_token`` if it is not good, whatever the reason.
        """
        handle, secret = parse_code(code)
        rows = self._database.execute(
            "SELECT hash FROM invitation WHERE owner = ? AND expires_at > ?",
            (handle, epoch_seconds(now)),
        )
        if not any(hmac.compare_digest(stored, hash_secret(secret)) for (stored,) in rows):
            raise _refusal()
        return handle

    def accept(self, code: str, password: str, *, now: datetime | None = None) -> str:
        """Uses up an invitation: sets its owner's password, and ends all the owner's sessions.
        Returns the handle.

        Raises RequestError ``invalid_token`` as ``look``; ``validation_failed`` for a weak
        password, in which case the invitation is still good.
        """
        # Hashed before the transaction: all other writers would wait for it.
        password_hash = hash_new(self.look(code, now), password)
        with self._database.transaction():
            handle = self._use_up(code, now)
            self._passwords.put_hash(handle, password_hash, now)
            self._events.note(handle, "password_set", now=now)
        return handle

    def accept_identity(
        self, code: str, issuer: str, subject: str, *, now: datetime | None = None
    ) -> str:
        """Uses up an invitation: lets its owner sign in with an OpenID identity, and ends all the
        owner's sessions. Returns the handle.

        Raises RequestError ``invalid_token`` as ``look``; ``validation_failed`` for an identity of
        another account, in which case the invitation is still good.
        """
        with self._database.transaction():
            handle = self._use_up(code, now)
            self._identities.add(handle, issuer, subject, now=now)
        return handle

    def _use_up(self, code: str, now: datetime | None) -> str:
        handle = self.look(code, now)
        self.end(handle)
        self._sessions.end_all(handle)
        return handle


def _refusal() -> RequestError:
    return RequestError(
        "invalid_token",
        "This invitation is not valid: it was used, replaced, expired, or copied "
        "incompletely. Copy the whole link again, or ask the operator of this hub for a new "
        "one.",
    )
