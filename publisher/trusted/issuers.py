"""The issuers of ID tokens that a hub trusts to describe CI jobs."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from builder.model.errors import OperatorError
from publisher.outside.private_way import is_private_way

Kind = Literal["github", "gitlab"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Issuer(NamedTuple):
    """An issuer. ``kind`` decides the names of its claims; ``url`` is its ``iss``, without a slash
    at its end.
    """

    kind: Kind
    url: str


DEFAULT_ISSUERS = (
    Issuer("github", "https://token.actions.githubusercontent.com"),
    Issuer("gitlab", "https://gitlab.com"),
)


def parse_issuers(texts: Iterable[str]) -> tuple[Issuer, ...]:
    """Reads each ``KIND=URL``. Raises OperatorError, also where two have the same URL."""
    issuers = tuple(map(parse_issuer, texts))
    urls = [issuer.url for issuer in issuers]
    for url in urls:
        if urls.count(url) > 1:
            raise OperatorError(f"The issuer {url} is listed twice. List it once.")
    return issuers


def parse_issuer(text: str) -> Issuer:
    """Reads ``KIND=URL``, as ``gitlab=https://gitlab.example.org``. Raises OperatorError."""
    if "," in text:
        raise OperatorError(
            f"{text!r} has a comma. Separate issuers with spaces: "
            'HUB_TRUSTED_ISSUERS="github=https://token.actions.githubusercontent.com '
            'gitlab=https://gitlab.example.org"'
        )
    kind, _, url = text.strip().partition("=")
    url = url.rstrip("/")
    is_url = is_private_way(url) and not urlsplit(url).query and not urlsplit(url).fragment
    if kind not in KINDS or not is_url:
        raise OperatorError(
            f"{text!r} is not an issuer. Pass {' or '.join(KINDS)} and the issuer's https URL "
            "without query (http only on this machine): gitlab=https://gitlab.example.org"
        )
    return Issuer(kind, url)
