"""An access token: its text, its scope and its rights.

The text is ``hub_``, 32 random base62 characters, and 6 that check them: the CRC-32 (as in zlib) of
the 36 characters before, as a number in base62, most significant digit first, padded with zeros.
The digits of base62 are 0-9, A-Z, a-z, in this order. So a secret scanner recognises a token, and a
typo is found without a look into the database.

A secret with 190 random bits cannot be found by trying. So a plain SHA-256 is stored, which would
not protect a password.
"""

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from builder.model.records import Source
from publisher.accounts.database import epoch_seconds

# The digits of base62, in their order.
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARS = 32

# The rights of a token. Each token reads a private hub; READ is for those that may do nothing else.
READ, PUBLISH, LABEL = "read", "publish", "label"
RIGHTS = (PUBLISH, LABEL)
ALL_RIGHTS = (READ, *RIGHTS)
# In a scope, stands for all repos of an owner, or for all owners for whom the person may act.
ANY = "*"

_PREFIX = "hub_"
_CHECK_CHARS = 6

_token = re.compile(f"{_PREFIX}[0-9A-Za-z]{{{SECRET_CHARS + _CHECK_CHARS}}}")


class Token(NamedTuple):
    """A token without its text. ``id`` is public. ``repos``: where it publishes, each as ``story``
    or ``*`` of the owner, or as ``team/story``, ``team/*`` or ``*/*``; empty for all of the
    owner's.

    ``rights`` are of ALL_RIGHTS. With LABEL it moves ``labels``, or if that is empty all that are
    not protected. ``trusted_publisher``: the ids, joined by spaces, of the trusted publishers that
    match the job of this token; None for a personal token. ``source``: that job.
    """

    id: str
    owner: str
    name: str
    repos: tuple[str, ...]
    created_at: int
    expires_at: int
    last_used_at: int | None
    revoked_at: int | None
    trusted_publisher: str | None
    rights: tuple[str, ...] = RIGHTS
    labels: tuple[str, ...] = ()
    source: Source | None = None

    def state(self, now: datetime | None = None) -> str:
        """Returns ``active``, ``expired`` (from the second ``expires_at`` on) or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if epoch_seconds(now) >= self.expires_at else "active"

    @property
    def only_reads(self) -> bool:
        """True if the token only reads a private hub, all of it."""
        return self.rights == (READ,)

    @property
    def scopes(self) -> list[tuple[str, str]]:
        """The owner and the repo of all to which it may publish; ``*`` stands for any."""
        split = (repo.rpartition("/") for repo in self.repos or ("*",))
        return [(owner or self.owner, repo) for owner, _, repo in split]

    def reaches(self, owner: str, repo: str = "") -> bool:
        """True if it may publish to a repo of an owner; without ``repo``, to any."""
        return any(
            whose in ("*", owner) and (one in ("*", repo) or not repo) for whose, one in self.scopes
        )

    def scope(self) -> str:
        """The repos to which it may publish, for people: ``ann/*``, or some repos."""
        return "nothing" if self.only_reads else ", ".join(map("/".join, self.scopes))

    def abilities(self) -> str:
        """Its rights, for people: ``publishes, moves production``."""
        moves = f"moves {', '.join(self.labels)}" if self.labels else "moves unprotected labels"
        verbs = {READ: "reads", PUBLISH: "publishes", LABEL: moves}
        return ", ".join(verbs[right] for right in self.rights)


class Grant(NamedTuple):
    """The scope and the rights of a new token. ``repos`` as Token has them; those of the owner may
    have the handle, too. ``rights`` and ``labels`` as Token has them.
    """

    repos: Sequence[str] = ()
    rights: Sequence[str] = RIGHTS
    labels: Sequence[str] = ()


EVERYTHING = Grant()


def make_secret() -> str:
    """Returns a new secret: 32 digits of base62."""
    return "".join(secrets.choice(DIGITS) for _ in range(SECRET_CHARS))


def hash_secret(secret: str) -> bytes:
    """Returns the hash to store for a secret, or for any text that a client sends in its place."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def make_token() -> str:
    """Returns a new token, with 190 random bits."""
    body = _PREFIX + make_secret()
    return body + _check_of(body)


def is_token(text: str) -> bool:
    """True if ``text`` has the form of a token, and its check is right."""
    body, check = text[:-_CHECK_CHARS], text[-_CHECK_CHARS:]
    return _token.fullmatch(text) is not None and check == _check_of(body)


def find_token(text: str) -> str | None:
    """Returns the first valid token anywhere in ``text``; None if it has none."""
    return next((found for found in _token.findall(text) if is_token(found)), None)


def _check_of(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(_CHECK_CHARS):
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits
