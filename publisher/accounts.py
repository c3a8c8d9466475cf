"""Who may publish where: owners, and the tokens that publish in their name.

A token's text is given once and never stored; what is stored is its SHA-256, which is enough
for a secret of 190 bits. Nothing is remembered between calls, so that a revocation holds at
once in every process. Times are epoch seconds; ``now`` is an aware datetime, by default the
present. The methods raise RequestError ``storage_unavailable`` as the database does.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from builder import names, records
from builder.errors import OperatorError, RequestError
from publisher.database import Database
from publisher.tokens import is_token, make_token

TOKEN_NAME_CHARS_MAX = 64
EXPIRES_DAYS_DEFAULT = 90
EXPIRES_DAYS_MAX = 365
# A last use is written at most this often, or each publication would wait for it.
USE_NOTED_EVERY_SECONDS = 60

_DAY_SECONDS = 86_400
_REPOS_SHOWN = 5


class Owner(NamedTuple):
    """Somebody who may have repos. ``tokens``: how many are active."""

    handle: str
    created_at: int
    tokens: int


class Token(NamedTuple):
    """A token without its text. ``id`` is public; ``repos`` is empty for all of the owner's."""

    id: str
    owner: str
    name: str
    repos: tuple[str, ...]
    created_at: int
    expires_at: int
    last_used_at: int | None
    revoked_at: int | None

    def state(self, now: datetime | None = None) -> str:
        """``active``, ``expired`` (from the second ``expires_at`` on) or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if _seconds(now) >= self.expires_at else "active"

    def scope(self) -> str:
        """Where it may publish, for people: ``ann/*``, or some repos."""
        return ", ".join(f"{self.owner}/{repo}" for repo in self.repos or ("*",))


_SELECT = f"SELECT {', '.join(Token._fields)} FROM token"


class Accounts:
    """The owners and tokens of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_owner(self, handle: str, now: datetime | None = None) -> None:
        """Let an owner have tokens.

        Raises RequestError ``invalid_name``, ``name_reserved``; OperatorError if there already.
        """
        names.check_new_owner(handle)
        is_new = self._database.execute(
            "INSERT INTO owner VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1",
            (handle, _seconds(now)),
        )
        if not is_new:
            raise OperatorError(
                f"There is an owner {handle} already; choose another handle, or make it a token: "
                f"`hubctl token create {handle} --name NAME`."
            )

    def owners(self, now: datetime | None = None) -> list[Owner]:
        """All owners, by handle."""
        rows = self._database.execute(
            "SELECT handle, owner.created_at, count(token.id) FROM owner LEFT JOIN token "
            "ON token.owner = handle AND revoked_at IS NULL AND expires_at > ? "
            "GROUP BY handle ORDER BY handle",
            (_seconds(now),),
        )
        return [Owner(*row) for row in rows]

    def create_token(
        self,
        owner: str,
        name: str,
        repos: Sequence[str] = (),
        expires_days: int = EXPIRES_DAYS_DEFAULT,
        now: datetime | None = None,
    ) -> tuple[str, Token]:
        """A new token and its text, which nothing can tell again.

        ``repos`` (``name`` or ``owner/name``) are all it is good for; none: all of the owner's.
        Raises RequestError ``invalid_name``; OperatorError for an unknown owner, a name that
        cannot be or is another token's, and an expiry that is not 1 to 365 days.
        """
        names.check_owner(owner)
        _check_token_name(name)
        if not 1 <= expires_days <= EXPIRES_DAYS_MAX:
            raise OperatorError(
                f"A token is good for 1 to {EXPIRES_DAYS_MAX} days, not {expires_days:,}."
            )
        created_at = _seconds(now)
        text = make_token()
        with self._database.transaction():
            self._check_known(owner)
            self._check_unused(owner, name)
            token = Token(
                id=self._new_id(),
                owner=owner,
                name=name,
                repos=tuple(dict.fromkeys(_repo_of(owner, repo) for repo in repos)),
                created_at=created_at,
                expires_at=created_at + expires_days * _DAY_SECONDS,
                last_used_at=None,
                revoked_at=None,
            )
            self._database.execute(
                f"INSERT INTO token (hash, {', '.join(Token._fields)}) "
                f"VALUES (?, {', '.join('?' * len(Token._fields))})",
                (_hash(text), *token._replace(repos=" ".join(token.repos))),
            )
        return text, token

    def tokens(self, owner: str | None = None) -> list[Token]:
        """All tokens (of an owner) that were ever made, by owner and age.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner.
        """
        if owner is None:
            return self._find("ORDER BY owner, created_at, name")
        self._check_known(names.check_owner(owner))
        return self._find("WHERE owner = ? ORDER BY created_at, name", owner)

    def revoke(
        self, owner: str, name_or_id: str, now: datetime | None = None
    ) -> tuple[Token, bool]:
        """Make a token invalid at once, for ever; tells whether it was not before.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner or token.
        """
        names.check_owner(owner)
        with self._database.transaction():
            self._check_known(owner)
            # Names can be used again, and look like ids; an id is always this one token's.
            found = self._find(
                "WHERE owner = ?1 AND (id = ?2 OR name = ?2) "
                "ORDER BY id = ?2 DESC, revoked_at IS NULL DESC, revoked_at DESC LIMIT 1",
                owner, name_or_id,
            )  # fmt: skip
            if not found:
                raise OperatorError(
                    f"{owner} has no token {name_or_id}; `hubctl token list {owner}` shows all."
                )
            (token,) = found
            if token.revoked_at is not None:
                return token, False
            token = token._replace(revoked_at=_seconds(now))
            self._database.execute(
                "UPDATE token SET revoked_at = ? WHERE id = ?", (token.revoked_at, token.id)
            )
        return token, True

    def authenticate(self, text: str | None, now: datetime | None = None) -> Token:
        """The token with this text, if it is good at this moment.

        Raises RequestError ``missing_token``, ``invalid_token``, ``token_expired``.
        """
        if not text:
            raise RequestError(
                "missing_token",
                "Publishing needs a token: send it as `Authorization: Bearer hub_…`. "
                "Whoever runs this hub makes one with `hubctl token create`.",
            )
        if not is_token(text):
            raise RequestError(
                "invalid_token",
                "The token is cut off or mistyped: copy all of it again, hub_ and the 38 letters "
                "and digits behind it.",
            )
        digest = _hash(text)
        rows = self._database.execute(
            f"SELECT hash, {', '.join(Token._fields)} FROM token WHERE hash = ?", (digest,)
        )
        found = [_token_of(row) for stored, *row in rows if hmac.compare_digest(stored, digest)]
        if not found or found[0].revoked_at is not None:
            raise RequestError(
                "invalid_token",
                "The token is not known here: it was revoked, or it is another hub's. "
                "Ask whoever runs this hub for a new one.",
            )
        (token,) = found
        if token.state(now) == "expired":
            raise RequestError(
                "token_expired",
                f"The token expired at {format_time(token.expires_at)}. Ask whoever runs this hub "
                f"for a new one, which `hubctl token create {token.owner}` makes.",
            )
        return token

    def note_use(self, token: Token, now: datetime | None = None) -> None:
        """Remember that a token was used, to the minute."""
        seconds = _seconds(now)
        stale = seconds - USE_NOTED_EVERY_SECONDS
        if token.last_used_at is None or token.last_used_at <= stale:
            # Another request may have noted it since the token was read.
            self._database.execute(
                "UPDATE token SET last_used_at = ? "
                "WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ?)",
                (seconds, token.id, stale),
            )

    def _find(self, clauses: str, *args: str) -> list[Token]:
        return [_token_of(row) for row in self._database.execute(f"{_SELECT} {clauses}", args)]

    def _check_known(self, owner: str) -> None:
        if not self._database.execute("SELECT 1 FROM owner WHERE handle = ?", (owner,)):
            raise OperatorError(f"There is no owner {owner}; `hubctl owner add {owner}` adds it.")

    def _check_unused(self, owner: str, name: str) -> None:
        for token in self._find("WHERE owner = ? AND name = ? AND revoked_at IS NULL", owner, name):
            raise OperatorError(
                f"{owner} has a token named {name} already; choose another name, or revoke it "
                f"first: `hubctl token revoke {owner} {token.id}`."
            )

    def _new_id(self) -> str:
        while True:
            token_id = secrets.token_hex(4)
            if not self._find("WHERE id = ?", token_id):
                return token_id


def check_may_publish(token: Token, owner: str, name: str) -> None:
    """Whether a token that is good is good for this repo, which need not exist.

    Raises RequestError ``not_owner``, ``insufficient_scope``; neither tells what there is.
    """
    # Capitals are told of where names are checked.
    if owner.lower() != token.owner:
        raise RequestError(
            "not_owner",
            f"This token publishes for {token.owner} and nobody else: publish to "
            f"{token.owner}/NAME, or use a token of the owner you mean.",
        )
    if token.repos and name.lower() not in token.repos:
        more = len(token.repos) - _REPOS_SHOWN
        shown = ", ".join(token.repos[:_REPOS_SHOWN]) + (f" and {more} more" if more > 0 else "")
        raise RequestError(
            "insufficient_scope",
            f"This token is only for these repos of {token.owner}: {shown}. Use another token; "
            "`hubctl token create` makes one for all repos, or with --repo for some.",
        )


def format_time(seconds: int) -> str:
    """A time as it is shown: RFC 3339, UTC."""
    return records.format_time(datetime.fromtimestamp(seconds, UTC))


def _check_token_name(name: str) -> None:
    is_fit = 1 <= len(name) <= TOKEN_NAME_CHARS_MAX and name.isprintable() and name == name.strip()
    if not is_fit:
        raise OperatorError(
            f"A token's name has 1 to {TOKEN_NAME_CHARS_MAX} printable characters, and no space "
            "at its ends: say what will use it, as `laptop` or `ci`."
        )


def _repo_of(owner: str, repo: str) -> str:
    of, slash, name = repo.rpartition("/")
    if slash and of != owner:
        raise OperatorError(
            f"{repo} is not a repo of {owner}, and a token publishes for one owner only; "
            f"make another token: `hubctl token create OWNER --name NAME --repo {name}`."
        )
    return names.check_repo(name)


def _token_of(row: tuple) -> Token:
    token = Token(*row)
    return token._replace(repos=tuple(token.repos.split()))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _seconds(now: datetime | None) -> int:
    return int((now or datetime.now(UTC)).timestamp())
