"""The readers of a private hub: people who are signed in, and programs that have a token."""

import hashlib
from collections.abc import Callable

from werkzeug.datastructures import Authorization
from werkzeug.http import parse_cookie

from builder.model.errors import RequestError
from builder.model.service_urls import ACCOUNT_URL
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from publisher.web.incoming import bearer_token
from publisher.web.pages.cookie import CookieSessions

# With this many hexadecimal digits, no two readers get the same name.
READER_CHARS = 32


def reader_check(settings: Settings, database: Database) -> Callable[[str, str], str]:
    """Returns a function of the headers Cookie and Authorization that returns the reader, a name
    for the session or the token.

    It raises RequestError for requests that may not read: ``missing_token``, ``invalid_token``,
    ``token_expired``; ``storage_unavailable`` where the database does not answer.
    """
    cookies, sessions, accounts = CookieSessions(settings), Sessions(database), Accounts(database)

    def check(cookie: str, authorization: str) -> str:
        secret = cookies.secret_of(parse_cookie(cookie))
        if secret and sessions.find(secret):
            return _reader(secret)
        # Langfuse's SDKs send the secret key as a password (RFC 7617).
        basic = Authorization.from_header(authorization) if authorization.isascii() else None
        text = bearer_token(authorization) or (basic and basic.password)
        if not text:
            raise RequestError(
                "missing_token",
                "This hub is for members. Send a token as `Authorization: Bearer hub_…`; you can "
                f"create one at {settings.base_url}{ACCOUNT_URL}.",
            )
        # The address is not noted: programs that read may be anywhere.
        accounts.note_use(accounts.authenticate(text))
        return _reader(text)

    return check


def _reader(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:READER_CHARS]
