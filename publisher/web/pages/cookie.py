"""The one cookie of the account pages: a secret that only the visitor's browser has.

The cookie is ``SECRET`` or ``SECRET.DATA``. The secret has 256 random bits; the hub's database
finds its owner by its hash. DATA is Flask's session: messages for the next page, CSRF tokens, the
state of a sign-in at a provider. It is signed with a key made from the secret. So the server has no
key to keep, to share between processes, or to lose. But a visitor can write any DATA: no value read
from it may give rights.

Browsers send the cookie only with the account pages, never with reads. On a private hub they send
it with both, under another name. So a cookie of the time when the hub was open does not count.
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

from builder.model.service_urls import ACCOUNT_URL
from builder.model.settings import Settings
from publisher.accounts.people.sessions import LIFE_SECONDS


# The keys and types of DATA. Plain JSON: Flask's own form can be compressed, which allows a
# decompression bomb, and can have tags, which allow HTML.
class _Data(TypedDict, total=False):
    csrf_token: str
    _flashes: list[tuple[str, str]]
    openid: dict


_secret = re.compile(r"[A-Za-z0-9_-]{43}")
# Browsers accept at least 4096 bytes for one cookie (RFC 6265 §6.1); its attributes need the rest.
# More data raises ValueError.
_DATA_BYTES_MAX = 3500


class VisitorSession(SecureCookieSession):
    """Flask's session, with its secret. ``is_signed_in``: the browser keeps the cookie when it is
    closed.
    """

    def __init__(self, secret: str | None = None, data: Any = None) -> None:
        super().__init__(data)
        self.is_signed_in = False
        self.sent_secret = secret
        self._secret = secret

    @property
    def secret(self) -> str:
        """The visitor's secret; a new one if the browser sent none."""
        if self._secret is None:
            self._secret = secrets.token_urlsafe(32)
            self.modified = True
        return self._secret

    def renew(self) -> str:
        """Begins a new session with a new secret, and returns it. Anyone who knows or planted the
        old secret does not know this one.
        """
        self.clear()
        self._secret = None
        self.is_signed_in = False
        return self.secret

    @property
    def key(self) -> bytes:
        """The key that signs values for this visitor."""
        return hashlib.sha256(b"signing\0" + self.secret.encode()).digest()


class CookieSessions(SecureCookieSessionInterface):
    """Reads and writes the cookie."""

    def __init__(self, settings: Settings) -> None:
        is_private = settings.private
        self._path = (settings.base_path or "/") if is_private else settings.base_path + ACCOUNT_URL
        self._is_secure = settings.base_url.startswith("https:")
        name = "hub-member" if is_private else "hub-account"
        # Browsers accept this prefix only with Secure, so no one can set the cookie over plain
        # HTTP.
        self._name = f"__Secure-{name}" if self._is_secure else name

    def secret_of(self, cookies: Mapping[str, str]) -> str | None:
        """Returns the secret that a browser has sent, if it looks like one."""
        secret = cookies.get(self._name, "").partition(".")[0]
        return secret if _secret.fullmatch(secret) else None

    def open_session(self, app: Flask, request: Request) -> VisitorSession:
        secret = self.secret_of(request.cookies)
        if secret is None:
            return VisitorSession()
        data = request.cookies[self._name].partition(".")[2]
        found = VisitorSession(secret)
        if data and len(data) <= _DATA_BYTES_MAX:
            # Truncated or foreign data is ignored.
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
    """Flask with a secret key for each visitor."""

    @property
    def secret_key(self) -> bytes:  # type: ignore[override]
        return session.key


def _signer(session: VisitorSession) -> Signer:
    return Signer(session.key, salt="session", key_derivation="hmac", digest_method=hashlib.sha256)
