"""The tokens with which programs publish in the name of an owner.

Personal tokens are created by people and live for days. Those of trusted publishers are created for
one CI job, and live for minutes. A token's text is given once and never stored. The database has
its SHA-256, which is enough for a secret of 190 bits. Changes of an account are noted in its log.
Nothing is cached between calls, so a revocation takes effect at once in every process. Times are
epoch seconds; ``now`` is an aware datetime, by default the present. The methods raise RequestError
``storage_unavailable`` as the database does.
"""

import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from builder.model import names, records
from builder.model.errors import Detail, OperatorError, RequestError, validation_failed
from builder.model.records import DAY_SECONDS, Source
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.owners import Owners
from publisher.accounts.teams import MAINTAINER, Actor, Teams
from publisher.accounts.token import (
    ALL_RIGHTS,
    ANY,
    EVERYTHING,
    LABEL,
    PUBLISH,
    READ,
    Grant,
    Token,
    hash_secret,
    is_token,
    make_token,
)

TOKEN_NAME_CHARS_MAX = 64
EXPIRES_DAYS_DEFAULT = 90
EXPIRES_DAYS_MAX = 365
# At most this many revoked and expired tokens of an owner are kept, the newest.
ENDED_KEPT_MAX = 1000
TRUSTED_ONLY_MAX = 1000
LABELS_PER_TOKEN_MAX = 20
# Beyond this many, this process forgets which events exist, and looks for each one once more.
ADDRESSES_NOTED_MAX = 10_000
# A last use is written at most this often: otherwise each publication would wait for it.
USE_NOTED_EVERY_SECONDS = 60
# The token of a job of a trusted publisher expires after this time.
TRUSTED_SECONDS = 15 * 60

LOCKED = "The account is locked. Ask the operator of this hub to unlock it."

# The role of the person ?1 in the team ?2, unless that is locked.
_ROLE_OF = (
    "SELECT role FROM member JOIN owner ON handle = team "
    "WHERE person = ?1 AND team = ?2 AND locked_at IS NULL"
)


# Each is stored as one text, joined by spaces.
_JOINED = ("repos", "rights", "labels")
_SELECT = f"SELECT {', '.join(Token._fields)} FROM token"


class Accounts(Owners):
    """The owners of a database, and their tokens."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._events = Events(database)
        # Tokens and addresses that have an event: otherwise each publication would look for it
        # again.
        self._noted: set[tuple[str, str]] = set()

    def create_token(
        self,
        owner: str,
        name: str,
        grant: Grant = EVERYTHING,
        expires_days: int = EXPIRES_DAYS_DEFAULT,
        now: datetime | None = None,
    ) -> tuple[str, Token]:
        """Returns a new personal token and its text, which cannot be shown again.

        Raises RequestError ``invalid_name``, ``invalid_label``, ``name_reserved``; OperatorError
        for an unknown owner, a repo of another owner whose team has no such member, an invalid or a
        used name, invalid rights, and an expiry that is not 1 to 365 days.
        """
        names.check_owner(owner)
        _check_token_name(name)
        _check_rights(grant.rights, grant.labels)
        if set(grant.rights) == {READ} and grant.repos:
            raise OperatorError(
                f"A token with the right `{READ}` alone reads the whole hub. Leave the prompts out."
            )
        if not 1 <= expires_days <= EXPIRES_DAYS_MAX:
            raise OperatorError(
                f"A token is valid for 1 to {EXPIRES_DAYS_MAX} days, not {expires_days:,}. "
                "Choose a shorter time."
            )
        with self._database.transaction():
            self.check_known(owner)
            self._check_teams(owner, grant)
            unused = "WHERE owner = ? AND name = ? AND revoked_at IS NULL"
            for token in self._find(unused, owner, name):
                raise OperatorError(
                    f"{owner} already has a token named {name}. Choose another name, or revoke "
                    f"that token: `hubctl token revoke {owner} {token.id}`."
                )
            self._drop_ended(owner, now)
            text, token = self._add_token(owner, name, grant, expires_days * DAY_SECONDS, None, now)
            self._events.note(owner, "token_made", subject=token.id, note=name, now=now)
        return text, token

    def create_trusted_token(
        self,
        owner: str,
        repos: Sequence[str],
        trusted_publisher: str,
        now: datetime | None = None,
        *,
        labels: Sequence[str] = (),
        publishes: bool = True,
        source: Source | None = None,
    ) -> tuple[str, Token]:
        """Returns a token for one job of a trusted publisher, good for a quarter of an hour, and
        its text. It publishes if it ``publishes``, and moves these ``labels``; without any, it
        moves none. ``source``: the job, for the records of what it changes.

        Raises RequestError ``insufficient_scope`` for an owner who is locked out.
        """
        with self._database.transaction():
            if self.locked_at(owner) is not None:
                raise RequestError("insufficient_scope", LOCKED)
            # Expired tokens have no use any more, and jobs create thousands.
            self._database.execute(
                "DELETE FROM token WHERE trusted_publisher IS NOT NULL AND expires_at < ?",
                (epoch_seconds(now) - DAY_SECONDS,),
            )
            rights = [PUBLISH] * publishes + [LABEL] * bool(labels)
            return self._add_token(
                owner,
                "",
                Grant(repos, rights, labels),
                TRUSTED_SECONDS,
                trusted_publisher,
                now,
                source,
            )

    def _add_token(
        self,
        owner: str,
        name: str,
        grant: Grant,
        seconds: int,
        trusted_publisher: str | None,
        now: datetime | None,
        source: Source | None = None,
    ) -> tuple[str, Token]:
        text, token_id = make_token(), self._database.new_id("token")
        created_at = epoch_seconds(now)
        token = Token(
            id=token_id,
            owner=owner,
            # The tokens of an owner have different names.
            name=name or f"job-{token_id}",
            repos=tuple(dict.fromkeys(_repo_of(owner, repo) for repo in grant.repos)),
            created_at=created_at,
            expires_at=created_at + seconds,
            last_used_at=None,
            revoked_at=None,
            trusted_publisher=trusted_publisher,
            rights=tuple(right for right in ALL_RIGHTS if right in grant.rights),
            labels=tuple(dict.fromkeys(grant.labels)),
            source=source,
        )
        self._database.execute(
            f"INSERT INTO token (hash, {', '.join(Token._fields)}) "
            f"VALUES (?, {', '.join('?' * len(Token._fields))})",
            (
                hash_secret(text),
                *token._replace(
                    **{field: " ".join(getattr(token, field)) for field in _JOINED},
                    source=msgspec.json.encode(source).decode() if source else None,
                ),
            ),
        )
        return text, token

    def tokens(self, owner: str | None = None) -> list[Token]:
        """Returns the personal tokens (of an owner), by owner and age: the active ones, and those
        that were revoked or expired, up to a limit.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner.
        """
        if owner is None:
            return self._find("WHERE trusted_publisher IS NULL ORDER BY owner, created_at, name")
        self.check_known(names.check_owner(owner))
        return self._find(
            "WHERE owner = ? AND trusted_publisher IS NULL ORDER BY created_at, name", owner
        )

    def revoke(
        self, owner: str, name_or_id: str, now: datetime | None = None
    ) -> tuple[Token, bool]:
        """Makes a token invalid, at once and permanently. True unless it was revoked before.

        Raises RequestError ``invalid_name``; OperatorError for an unknown owner or token.
        """
        names.check_owner(owner)
        with self._database.transaction():
            self.check_known(owner)
            # A name can be used again, and can look like an id; an id always means this one token.
            found = self._find(
                "WHERE owner = ?1 AND (id = ?2 OR name = ?2) "
                "ORDER BY id = ?2 DESC, revoked_at IS NULL DESC, revoked_at DESC LIMIT 1",
                owner,
                name_or_id,
            )
            if not found:
                raise OperatorError(
                    f"{owner} has no token {name_or_id}. Run `hubctl token list {owner}` to "
                    "see all tokens."
                )
            (token,) = found
            if token.revoked_at is not None:
                return token, False
            token = token._replace(revoked_at=epoch_seconds(now))
            self._database.execute(
                "UPDATE token SET revoked_at = ? WHERE id = ?", (token.revoked_at, token.id)
            )
            self._drop_ended(owner, now)
            self._events.note(owner, "token_revoked", subject=token.id, note=token.name, now=now)
        return token, True

    def authenticate(self, text: str | None, now: datetime | None = None) -> Token:
        """Returns the token with this text, if it is good at this moment.

        Raises RequestError ``missing_token``, ``invalid_token``, ``token_expired``.
        """
        return self.admit(text, "", now).token

    def admit(self, text: str | None, owner: str, now: datetime | None = None) -> Actor:
        """As ``authenticate``: returns the token's holder as the actor for ``owner``, as a request
        names it.
        """
        if not text:
            raise RequestError(
                "missing_token",
                "Publishing needs a token. Create one in your account and send it as "
                "`Authorization: Bearer hub_…`.",
            )
        if not is_token(text):
            raise RequestError(
                "invalid_token",
                "The token is incomplete or mistyped. Copy all of it: hub_ and 38 letters and "
                "digits.",
            )
        digest = hash_secret(text)
        # Capitals are reported where names are checked.
        owner = owner.lower() if names.is_name(owner.lower(), names.OWNER_CHARS_MAX) else ""
        rows = self._database.execute(
            "SELECT hash, (SELECT locked_at FROM owner WHERE handle = token.owner), "
            f"({_ROLE_OF.replace('?1', 'token.owner')}), "
            f"{', '.join(Token._fields)} FROM token WHERE hash = ?1",
            (digest, owner),
        )
        found = [
            (locked_at, role, _token_of(row))
            for stored, locked_at, role, *row in rows
            if hmac.compare_digest(stored, digest)
        ]
        if not found or found[0][2].revoked_at is not None:
            raise RequestError(
                "invalid_token",
                "This hub does not know the token: it was revoked, or it belongs to another "
                "hub. Create a new one in your account.",
            )
        ((locked_at, role, token),) = found
        if locked_at is not None:
            raise RequestError("invalid_token", LOCKED)
        if token.state(now) == "expired":
            raise RequestError(
                "token_expired",
                f"The token expired at {format_time(token.expires_at)}. Create a new one in "
                "your account.",
            )
        role = MAINTAINER if owner == token.owner else role or ""
        return Actor(token.owner, owner, role, token)

    def acting(self, person: str, owner: str) -> Actor:
        """Returns a person who is signed in as the actor for an owner."""
        if person == owner:
            return Actor(person, owner, MAINTAINER)
        rows = self._database.execute(_ROLE_OF, (person, owner))
        return Actor(person, owner, rows[0][0] if rows else "")

    def note_use(self, token: Token, now: datetime | None = None, *, address: str = "") -> None:
        """Notes the use of a token, to the minute, and its new addresses.

        Each job has another address, so addresses are not noted for tokens of trusted publishers.
        """
        if address and token.trusted_publisher is None:
            self._note_address(token, address, now)
        seconds = epoch_seconds(now)
        stale = seconds - USE_NOTED_EVERY_SECONDS
        if token.last_used_at is None or token.last_used_at <= stale:
            # Another request may have noted a later use since the token was read.
            self._database.execute(
                "UPDATE token SET last_used_at = ? "
                "WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ?)",
                (seconds, token.id, stale),
            )

    def _note_address(self, token: Token, address: str, now: datetime | None) -> None:
        if (token.id, address) in self._noted:
            return
        alike = {"subject": token.id, "address": address}
        if not self._events.has(token.owner, "token_new_address", **alike):
            self._events.note(token.owner, "token_new_address", **alike, note=token.name, now=now)
        if len(self._noted) >= ADDRESSES_NOTED_MAX:
            self._noted.clear()
        self._noted.add((token.id, address))

    def trusted_only(self, owner: str) -> set[str]:
        """Returns the repos of an owner that accept publications only from trusted publishers."""
        rows = self._database.execute("SELECT repo FROM trusted_only WHERE owner = ?", (owner,))
        return {repo for (repo,) in rows}

    def set_trusted_only(
        self, owner: str, repo: str, is_on: bool, now: datetime | None = None
    ) -> None:
        """Makes a repo, which need not exist, accept publications only from trusted publishers, or
        from personal tokens as well.

        Raises RequestError ``invalid_name``; ``validation_failed`` for one repo too many.
        """
        names.check_repo(repo)
        with self._database.transaction():
            now_on = self.trusted_only(owner)
            if is_on == (repo in now_on):
                return
            if is_on and len(now_on) >= TRUSTED_ONLY_MAX:
                message = (
                    f"is one too many: at most {TRUSTED_ONLY_MAX:,} prompts can accept trusted "
                    "publishers only. Allow tokens for another prompt first"
                )
                raise validation_failed(Detail("repo", message))
            self._database.execute(
                "INSERT INTO trusted_only VALUES (?, ?)"
                if is_on
                else "DELETE FROM trusted_only WHERE owner = ? AND repo = ?",
                (owner, repo),
            )
            kind = "trusted_only_on" if is_on else "trusted_only_off"
            self._events.note(owner, kind, subject=repo, note=repo, now=now)

    def _check_teams(self, owner: str, grant: Grant) -> None:
        """Raises OperatorError where a new token names a team that has no such member."""
        teams = Teams(self._database)
        for repo in grant.repos:
            of = repo.rpartition("/")[0]
            if of in ("", ANY, owner):
                continue
            if not teams.role(names.check_owner(of), owner):
                raise OperatorError(
                    f"{owner} is no member of a team {of}, so a token of {owner} cannot publish "
                    f"there. Run `hubctl team add {of} {owner}` first, or create a token of {of}."
                )

    def _find(self, clauses: str, *args: str) -> list[Token]:
        return [_token_of(row) for row in self._database.execute(f"{_SELECT} {clauses}", args)]

    def _drop_ended(self, owner: str, now: datetime | None) -> None:
        ended = (
            "FROM token WHERE owner = ?1 AND trusted_publisher IS NULL "
            "AND (revoked_at IS NOT NULL OR expires_at <= ?2)"
        )
        self._database.execute(
            f"DELETE {ended} AND id NOT IN (SELECT id {ended} ORDER BY created_at DESC LIMIT ?3)",
            (owner, epoch_seconds(now), ENDED_KEPT_MAX),
        )


def format_time(seconds: int) -> str:
    """Returns a time as it is shown: RFC 3339, UTC."""
    return records.format_time(datetime.fromtimestamp(seconds, UTC))


def _check_token_name(name: str) -> None:
    is_fit = 1 <= len(name) <= TOKEN_NAME_CHARS_MAX and name.isprintable() and name == name.strip()
    if not is_fit:
        raise OperatorError(
            f"A token name has 1 to {TOKEN_NAME_CHARS_MAX} printable characters, with no space "
            "at its ends. Name what will use it, such as `laptop` or `ci`."
        )


def _check_rights(rights: Sequence[str], labels: Sequence[str]) -> None:
    if not rights or not set(rights) <= set(ALL_RIGHTS):
        raise OperatorError(f"A token has one or more of the rights {', '.join(ALL_RIGHTS)}.")
    if labels and LABEL not in rights:
        raise OperatorError(
            f"A token that is limited to labels needs the right `{LABEL}`. Add it, or leave the "
            "labels out."
        )
    if len(labels) > LABELS_PER_TOKEN_MAX:
        raise OperatorError(f"A token is limited to at most {LABELS_PER_TOKEN_MAX} labels.")
    for label in labels:
        names.check_new_label(label)


def _repo_of(owner: str, repo: str) -> str:
    """Returns a repo as Token has it, without the handle of its owner."""
    of, _, name = repo.rpartition("/")
    if name != ANY or not of:
        names.check_repo(name)
    return name if of in ("", owner) else f"{of}/{name}"


def _token_of(row: tuple) -> Token:
    token = Token(*row)
    return token._replace(
        **{field: tuple(getattr(token, field).split()) for field in _JOINED},
        source=token.source and msgspec.json.decode(token.source, type=Source),
    )
