"""The settings of sign-in, for people and CI jobs, and of an OpenID Connect provider."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from builder.model.errors import OperatorError
from publisher.outside.private_way import is_private_way
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer

# The one setting that no command line has: every user of the machine could read it there.
SECRET_VARIABLE = "HUB_OPENID_CLIENT_SECRET"


@dataclass(frozen=True)
class Provider:
    """A provider, and the id and secret that it gave this hub. ``name`` is its name for people."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str


class SignIn(NamedTuple):
    """The settings of sign-in. ``open_signup``: anyone may create an account. ``issuers``: the
    issuers whose ID tokens of CI jobs are trusted. ``openid``: the provider with which people may
    also sign in; with ``openid_signup``, all of them may create an account. ``origins``: other
    addresses of the account pages, as ``Access`` takes them.
    """

    open_signup: bool = False
    issuers: Sequence[Issuer] = DEFAULT_ISSUERS
    openid: Provider | None = None
    origins: tuple[str, ...] = ()
    openid_signup: bool = False

    @property
    def issuer_names(self) -> dict[str, str]:
        """The name of the provider, by its URL. Earlier providers have no name."""
        return {self.openid.issuer: self.openid.name} if self.openid else {}


DEFAULT_SIGN_IN = SignIn()


def make_provider(
    issuer: str | None, client_id: str | None, name: str | None, client_secret: str | None
) -> Provider | None:
    """Returns the provider of these settings; None without any setting. By default its name is that
    of its host.

    Raises OperatorError if a setting is missing, or the issuer is not a URL of https (http on this
    machine itself).
    """
    if not (issuer or client_id or name or client_secret):
        return None
    missing = [
        how
        for how, value in (
            ("the issuer (--openid-issuer)", issuer),
            ("the client ID (--openid-client-id)", client_id),
            (
                f"the client secret (environment variable {SECRET_VARIABLE}, or a file that "
                f"{SECRET_VARIABLE}_FILE names)",
                client_secret,
            ),
        )
        if not value
    ]
    if missing:
        raise OperatorError(
            f"Sign-in with an OpenID provider also needs {', and '.join(missing)}. The "
            "provider shows them when you register this hub there."
        )
    if not is_private_way(issuer) or urlsplit(issuer).query or urlsplit(issuer).fragment:
        raise OperatorError(
            f"{issuer!r} is not an OpenID issuer. Pass its exact https URL (http only on this "
            "machine), such as https://login.example.org/realms/staff."
        )
    return Provider(issuer, client_id, client_secret, name or urlsplit(issuer).hostname)
