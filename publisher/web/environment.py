"""Settings from environment variables, under the names that ``hubctl`` has for them."""

from collections.abc import Mapping

from builder.model.errors import OperatorError
from builder.model.settings import (
    DEFAULT_BASE_URL,
    SEARCH_ENGINES,
    Settings,
    check_folders,
    parse_base_url,
)
from builder.store.site import read_hub
from publisher.openid.provider import SECRET_VARIABLE, Provider, make_provider
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer, parse_issuers
from publisher.write.quotas import Quotas

_TRUE, _FALSE = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off", "")


def settings_from(environ: Mapping[str, str]) -> Settings:
    """The settings that the environment gives. Raises OperatorError."""
    default = Settings()
    settings = Settings(
        content=environ.get("HUB_CONTENT") or default.content,
        out=environ.get("HUB_OUT") or default.out,
        state=environ.get("HUB_STATE") or default.state,
        base_url=parse_base_url(environ.get("HUB_BASE_URL") or DEFAULT_BASE_URL),
        site_name=environ.get("HUB_SITE_NAME") or default.site_name,
        queries=flag_from(environ, "HUB_QUERIES"),
        search=environ.get("HUB_SEARCH") or default.search,
        langfuse=flag_from(environ, "HUB_LANGFUSE"),
    )
    if settings.search not in SEARCH_ENGINES:
        raise OperatorError(
            f"HUB_SEARCH is {settings.search!r}. Set it to {' or '.join(SEARCH_ENGINES)}."
        )
    check_folders(settings)
    hub = read_hub(settings.out)
    if flag_from(environ, "HUB_PRIVATE") or (hub and hub.private):
        raise OperatorError(
            "This hub is private, and the publish service on its own cannot tell a web server who "
            "may read. Run `hubctl serve --private` instead."
        )
    return settings


def number_from(environ: Mapping[str, str], variable: str, default: int) -> int:
    """A count that the environment gives. Raises OperatorError."""
    text = environ.get(variable) or str(default)
    if not (text.isascii() and text.isdigit()):
        raise OperatorError(f"{variable} is {text!r}. Set it to a whole number, 0 or more.")
    return int(text)


def quotas_from(environ: Mapping[str, str], default: Quotas) -> Quotas:
    """The most that an owner may have. Raises OperatorError."""
    return Quotas(
        repos=number_from(environ, "HUB_QUOTA_REPOS", default.repos),
        versions=number_from(environ, "HUB_QUOTA_VERSIONS", default.versions),
        bytes=number_from(environ, "HUB_QUOTA_BYTES", default.bytes),
    )


def issuers_from(environ: Mapping[str, str]) -> tuple[Issuer, ...]:
    """Whose word on CI jobs is believed. Raises OperatorError."""
    text = environ.get("HUB_TRUSTED_ISSUERS")
    return parse_issuers(text.split()) if text else DEFAULT_ISSUERS


def flag_from(environ: Mapping[str, str], variable: str) -> bool:
    """A switch that the environment gives, by default off. Raises OperatorError."""
    text = environ.get(variable, "").lower()
    if text not in _TRUE + _FALSE:
        raise OperatorError(f"{variable} is {text!r}. Set it to 1 or 0.")
    return text in _TRUE


def secret_from(environ: Mapping[str, str], variable: str) -> str | None:
    """A secret that the environment gives, or that a file holds which it names in the variable
    with ``_FILE``, as service managers pass them. Raises OperatorError.
    """
    secret, path = environ.get(variable), environ.get(f"{variable}_FILE")
    if secret and path:
        raise OperatorError(f"Set {variable} or {variable}_FILE, not both.")
    if not path:
        return secret or None
    try:
        with open(path, encoding="utf-8") as file:
            secret = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OperatorError(
            f"Cannot read {path}, which {variable}_FILE names: {reason}."
        ) from error
    if not secret:
        raise OperatorError(
            f"{path}, which {variable}_FILE names, is empty. Write the secret into it."
        )
    return secret


def provider_from(environ: Mapping[str, str]) -> Provider | None:
    """The OpenID provider that the environment gives, if it gives one. Raises OperatorError."""
    return make_provider(
        environ.get("HUB_OPENID_ISSUER"),
        environ.get("HUB_OPENID_CLIENT_ID"),
        environ.get("HUB_OPENID_NAME"),
        secret_from(environ, SECRET_VARIABLE),
    )
