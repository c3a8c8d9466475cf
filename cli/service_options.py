"""The options of commands that serve or publish over HTTP, in groups."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

import click

from builder.model.errors import OperatorError
from cli.groups import grouped, setting
from cli.options import DEFAULT_PORT, rate_limit_option
from publisher.limits import DEFAULT_LIMITS, OPEN_SIGNUP_QUOTAS, Limits, Quotas, default_quotas
from publisher.openid.provider import SECRET_VARIABLE, Provider, SignIn, make_provider
from publisher.trusted.issuers import DEFAULT_ISSUERS, parse_issuers
from server.access import parse_address, parse_origin

_DEFAULT_ISSUERS = tuple(f"{issuer.kind}={issuer.url}" for issuer in DEFAULT_ISSUERS)


class Listening(NamedTuple):
    """The address of a service, the reads that each client has a minute, and the access log."""

    host: str
    port: int
    rate_limit: int
    trusted_proxies: tuple[str, ...]
    access_log: str | None


# As parameter ``listening``: Listening.
listening_options = grouped(
    "listening",
    Listening,
    setting("--host", metavar="ADDRESS", default="127.0.0.1", help="Address to listen on."),
    setting(
        "--port",
        type=click.IntRange(0, 65535),
        default=DEFAULT_PORT,
        help="Port to listen on; 0 picks a free one.",
    ),
    rate_limit_option("rate_limit"),
    setting(
        "--trusted-proxy",
        "trusted_proxies",
        multiple=True,
        metavar="ADDRESS",
        help="Address or network of a reverse proxy. Its X-Forwarded-For gives the client's "
        "address. Can be repeated; in the variable, separate by spaces.",
    ),
    setting(
        "--access-log",
        metavar="FILE",
        help="Log each request to FILE, in the combined format. To rotate the log, move the "
        "file away. [default: none]",
    ),
)
metrics_option = setting(
    "--metrics",
    metavar="HOST:PORT",
    callback=lambda context, option, value: parse_address(value) if value else None,
    help="Serve metrics for Prometheus at this address, under /metrics. Use one that only your "
    "monitoring reaches, like 127.0.0.1:9108. [default: none]",
)


class Publishing(NamedTuple):
    """Settings of publishing by programs and people. ``new_accounts``: create an accounts database
    in place of one that is lost.
    """

    limits: Limits
    sign_in: SignIn
    new_accounts: bool


def _publishing(
    publications: int, quotas: tuple[int | None, ...], sign_in: SignIn, new_accounts: bool
) -> Publishing:
    if sign_in.openid_signup and not sign_in.openid:
        raise click.UsageError(
            "--openid-signup needs a provider. Name it with --openid-issuer and --openid-client-id."
        )
    defaults = default_quotas(sign_in.open_signup)
    settled = Quotas(
        *(usual if quota is None else quota for usual, quota in zip(defaults, quotas, strict=True))
    )
    return Publishing(Limits(publications, quotas=settled), sign_in, new_accounts)


def _quota(what: str, help_text: str) -> Callable:
    default = getattr(OPEN_SIGNUP_QUOTAS, what)
    return setting(
        f"--quota-{what}",
        what,
        type=click.IntRange(0),
        metavar="N",
        hidden=True,
        help=f"{help_text}; 0: no limit. [default: 0; with --open-signup {default:,}]",
    )


def _provider(
    openid_issuer: str | None, openid_client_id: str | None, openid_name: str | None
) -> Provider | None:
    secret = secret_from(os.environ, SECRET_VARIABLE)
    return make_provider(openid_issuer, openid_client_id, openid_name, secret)


# Limits and sign-in, as parameter ``publishing``: Publishing.
publishing_options = grouped(
    "publishing",
    _publishing,
    setting(
        "--publish-limit",
        "publications",
        type=click.IntRange(0),
        metavar="N",
        default=DEFAULT_LIMITS.publications,
        help="Publications per minute and owner; 0: no limit.",
    ),
    grouped(
        "quotas",
        Quotas,
        _quota("repos", "Prompts per owner"),
        _quota("versions", "Versions per owner, in all prompts"),
        _quota("bytes", "Bytes of texts and records per owner"),
    ),
    grouped(
        "sign_in",
        SignIn,
        setting(
            "--open-signup",
            is_flag=True,
            help="Let anyone create an account. [default: only with `hubctl owner invite`]",
        ),
        setting(
            "--openid-signup",
            is_flag=True,
            help="Let each person whom the OpenID provider lets in create an account at the first "
            "sign-in. [default: only with `hubctl owner invite`]",
        ),
        grouped(
            "openid",
            _provider,
            setting(
                "--openid-issuer",
                metavar="URL",
                help="Also let people sign in with this OpenID Connect provider. Register the "
                "callback URL BASE_URL/account/openid/callback there.",
            ),
            setting(
                "--openid-client-id",
                metavar="ID",
                help="Client ID that the provider gave this hub. Put the client secret into the "
                f"environment variable {SECRET_VARIABLE}, or into a file named by "
                f"{SECRET_VARIABLE}_FILE.",
            ),
            setting(
                "--openid-name",
                metavar="TEXT",
                help="Name of the provider on the sign-in button. [default: its host]",
            ),
        ),
        setting(
            "--trusted-issuer",
            "issuers",
            variable="HUB_TRUSTED_ISSUERS",
            multiple=True,
            metavar="KIND=URL",
            default=_DEFAULT_ISSUERS,
            show_default=" ".join(_DEFAULT_ISSUERS),
            callback=lambda context, option, values: parse_issuers(values),
            help="Issuer of ID tokens whose CI jobs may publish without a stored token. KIND is "
            "github or gitlab. Replaces the default issuers. Can be repeated; in the variable, "
            "separate by spaces.",
        ),
        setting(
            "--mcp-origin",
            "origins",
            variable="HUB_MCP_ORIGINS",
            multiple=True,
            metavar="ORIGIN",
            callback=lambda context, option, values: tuple(map(parse_origin, values)),
            help="Additional address at which /mcp and /account answer, and whose web pages may "
            "call /mcp, like https://app.example.org. * allows any address for /mcp only. Can be "
            "repeated; in the variable, separate by spaces.",
        ),
    ),
    click.option(
        "--new-accounts",
        is_flag=True,
        help="Begin with empty accounts if those of this hub are lost. Without it, publishing and "
        "sign-in stop until you restore them.",
    ),
)


class Following(NamedTuple):
    """The place to deploy to after each build; None: none."""

    deploy: str | None
    deploy_files_only: bool


# As parameter ``following``: Following.
following_options = grouped(
    "following",
    Following,
    setting(
        "--deploy",
        metavar="DIR/URL",
        help="Also deploy the site after each build, as `hubctl deploy` does: to a folder, or to "
        "s3://BUCKET/PREFIX.",
    ),
    setting(
        "--deploy-files-only",
        is_flag=True,
        hidden=True,
        help="As `hubctl deploy --files-only`.",
    ),
)


def secret_from(environ: Mapping[str, str], variable: str) -> str | None:
    """Returns a secret from the environment variable, or from the file that the variable with
    ``_FILE`` names, as service managers pass them. Raises OperatorError.
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
