"""The one cookie of the account pages: a secret that only the visitor's browser has.

The cookie is ``SECRET`` or ``SECRET.DATA``. The secret has 256 random bits; whose it is says the
hub's database, by its hash. DATA is Flask's session: messages for the next page, CSRF tokens, the
state of a sign-in elsewhere. It is signed with a key made from the secret, so no key has to be kept
on the server, shared by its processes, or lost. A visitor can therefore write what is in it:
nothing that is read from it may give rights.

It is sent with the account pages alone, never with reads; on a private hub with both, by another
name, so that a cookie of a time when the hub was open is not mistaken for one.
"""

import base64
import contextlib
import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec
from flask import Flask, Request, Response, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from itsdangerous import BadSignature, Signer

from builder.model.routes import ACCOUNT_URL
from builder.model.settings import Settings
from publisher.accounts.people.sessions import LIFE_SECONDS


# What may be in it, of which kind. Plain JSON: Flask's own form can be compressed, which can be a
# bomb, and have tags in it, which can be HTML.
class _Data(TypedDict, total=False):
    csrf_token: str
    _flashes: list[tuple[str, str]]
    openid: dict


_secret = re.compile(r"[A-Za-z0-9_-]{43}")
# What browsers take in one cookie, with some room for its attributes.
_DATA_BYTES_MAX = 3500


class VisitorSession(SecureCookieSession):
    """Flask's session, and the secret that it is kept under. ``is_signed_in``: whether the browser
    is to keep it when it is closed.
    """

    def __init__(self, secret: str | None = None, data: Any = None) -> None:
        super().__init__(data)
        self.is_signed_in = False
        self.sent_secret = secret
        self._secret = secret

    @property
    def secret(self) -> str:
        """The visitor's secret; a new one for who has sent none."""
        if self._secret is None:
            self._secret = secrets.token_urlsafe(32)
            self.modified = True
        return self._secret

    def renew(self) -> str:
        """Begin anew with another secret, which is returned: nobody who knows the old one, or has
        put it there, knows this one.
        """
        self.clear()
        self._secret = None
        self.is_signed_in = False
        return self.secret

    @property
    def key(self) -> bytes:
        """What is signed for this visitor is signed with this."""
        return hashlib.sha256(b"signing\0" + self.secret.encode()).digest()


class CookieSessions(SecureCookieSessionInterface):
    """Reads and writes the cookie."""

    def __init__(self, settings: Settings) -> None:
        is_private = settings.private
        self._path = (settings.base_path or "/") if is_private else settings.base_path + ACCOUNT_URL
        self._is_secure = settings.base_url.startswith("https:")
        name = "hub-member" if is_private else "hub-account"
        # Browsers take such a name with Secure only, so nobody puts it there in clear text.
        self._name = f"__Secure-{name}" if self._is_secure else name

    def secret_of(self, cookies: Mapping[str, str]) -> str | None:
        """The secret that a browser has sent, if it looks like one."""
        secret = cookies.get(self._name, "").partition(".")[0]
        return secret if _secret.fullmatch(secret) else None

    def open_session(self, app: Flask, request: Request) -> VisitorSession:
        secret = self.secret_of(request.cookies)
        if secret is None:
            return VisitorSession()
        data = request.cookies[self._name].partition(".")[2]
        found = VisitorSession(secret)
        if data and len(data) <= _DATA_BYTES_MAX:
            # Cut off, or of another secret: as if there were none.
            with contextlib.suppress(ValueError, BadSignature, msgspec.DecodeError):
                sent = _signer(found).unsign(base64.urlsafe_b64decode(data))
                return VisitorSession(secret, msgspec.json.decode(sent, type=_Data))
        return found

    def save_session(self, app: Flask, session: VisitorSession, response: Response) -> None:
        if not session.modified:
            return
        signed = _signer(session).sign(msgspec.json.encode(dict(session))) if session else b""
        data = base64.urlsafe_b64encode(signed).decode()
        if len(data) > _DATA_BYTES_MAX:
            raise ValueError("too much for a cookie")
        response.set_cookie(
            self._name,
            f"{session.secret}.{data}" if data else session.secret,
            max_age=LIFE_SECONDS if session.is_signed_in else None,
            path=self._path,
            secure=self._is_secure,
            httponly=True,
            samesite="Lax",
        )


class VisitorsFlask(Flask):
    """Flask, whose key is the visitor's own."""

    @property
    def secret_key(self) -> bytes:  # type: ignore[override]
        return session.key


def _signer(session: VisitorSession) -> Signer:
    return Signer(session.key, salt="session", key_derivation="hmac", digest_method=hashlib.sha256)
