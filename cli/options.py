"""The options that several commands share, so that they mean the same on each."""

import functools
import os
from collections.abc import Callable
from typing import Any

import click

from builder.model.settings import (
    DEFAULT_BASE_URL,
    DEFAULT_SEARCH,
    SEARCH_ENGINES,
    parse_base_url,
)
from publisher.openid.provider import SECRET_VARIABLE, make_provider
from publisher.trusted.issuers import DEFAULT_ISSUERS, parse_issuers
from publisher.web.environment import secret_from
from publisher.write.quotas import OPEN_SIGNUP_QUOTAS, default_quotas
from server.access import parse_origin

_DEFAULT_ISSUERS = tuple(f"{issuer.kind}={issuer.url}" for issuer in DEFAULT_ISSUERS)

content_option = click.option(
    "--content", metavar="DIR", default="content", show_default=True, envvar="HUB_CONTENT",
    show_envvar=True, help="Folder of the prompts, the source of truth.",
)  # fmt: skip
out_option = click.option(
    "--out", metavar="DIR", default="site_out", show_default=True, envvar="HUB_OUT",
    show_envvar=True, help="Folder of the generated site.",
)  # fmt: skip
state_option = click.option(
    "--state", metavar="DIR", default="var", show_default=True, envvar="HUB_STATE",
    show_envvar=True, help="Folder of owners and tokens, and of what the builder remembers.",
)  # fmt: skip
name_option = click.option(
    "--site-name", metavar="NAME", default="Hub", show_default=True, envvar="HUB_SITE_NAME",
    show_envvar=True, help="Name of the service, on its pages and in hub.json.",
)  # fmt: skip
rate_limit_option = click.option(
    "--rate-limit", type=click.IntRange(0), metavar="N", default=120, show_default=True,
    help="Reads a minute for each client address (of IPv6, its /64); 0 for no limit.",
)  # fmt: skip
search_option = click.option(
    "--search", type=click.Choice(SEARCH_ENGINES), default=DEFAULT_SEARCH, envvar="HUB_SEARCH",
    show_envvar=True,
    help="Search engine. Whoosh is slower, needs no compiled code and suits small hubs. "
    "[default: the first that is installed]",
)  # fmt: skip
mcp_origin_option = click.option(
    "--mcp-origin", "mcp_origins", multiple=True, metavar="ORIGIN",
    callback=lambda context, option, values: tuple(map(parse_origin, values)),
    help="Another address under which /mcp and /account may be asked, and whose pages may ask "
    "/mcp: https://app.example.org, or * for any, which leaves /account as it is. May be given "
    "several times.",
)  # fmt: skip
trusted_issuer_option = click.option(
    "--trusted-issuer", "issuers", multiple=True, metavar="KIND=URL",
    envvar="HUB_TRUSTED_ISSUERS", show_envvar=True,
    default=_DEFAULT_ISSUERS, show_default=" ".join(_DEFAULT_ISSUERS),
    callback=lambda context, option, values: parse_issuers(values),
    help="Whose word on CI jobs is believed, for publishing without a stored token; KIND is "
    "github or gitlab. May be given several times (in the variable: with spaces between, not "
    "commas), and replaces what is there by default.",
)  # fmt: skip


def folder_options(command: Callable) -> Callable:
    """The three folders, as parameters ``content``, ``out`` and ``state``."""
    return content_option(out_option(state_option(command)))


def base_url_option(default: str = DEFAULT_BASE_URL) -> Callable:
    """Where readers find the site, checked, as parameter ``base_url``."""
    return click.option(
        "--base-url", metavar="URL", envvar="HUB_BASE_URL", show_envvar=True,
        callback=lambda context, option, value: parse_base_url(value) if value else None,
        help=f"Where readers find the site; may carry a path. [default: {default}]",
    )  # fmt: skip


def listening_options(port: int) -> Callable:
    """Where to listen, whom to limit and where to log it, as ``host``, ``port``, ``rate_limit``,
    ``trusted_proxies`` and ``access_log``.
    """
    options = (
        click.option(
            "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
        ),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=port, show_default=True,
            envvar="HUB_PORT", show_envvar=True,
            help="Port to listen on; 0 takes a free one.",
        ),
        rate_limit_option,
        click.option(
            "--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
            help="Address or network of a reverse proxy whose X-Forwarded-For tells the client's "
            "address. May be given several times.",
        ),
        click.option(
            "--access-log", metavar="FILE", help="Write a line for each request, in the combined "
            "format. A file that is moved away is made anew. [default: none]",
        ),
    )  # fmt: skip

    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def signup_options(command: Callable) -> Callable:
    """Whether people may make accounts, and the most that an owner may have, as parameters
    ``open_signup`` and ``quotas``.
    """

    @click.option(
        "--open-signup", is_flag=True, envvar="HUB_OPEN_SIGNUP", show_envvar=True,
        help="Let people make accounts themselves. [default: by `hubctl owner invite` alone]",
    )  # fmt: skip
    @_quota_option("repos", "Repos that an owner may have")
    @_quota_option("versions", "Versions that an owner may have, in all repos")
    @_quota_option("bytes", "Bytes that an owner's texts and records may have")
    @functools.wraps(command)
    def with_quotas(*args: Any, open_signup: bool, **params: Any) -> Any:
        quotas = default_quotas(open_signup)
        given = {what: params.pop(f"quota_{what}") for what in quotas._fields}
        set_here = {what: limit for what, limit in given.items() if limit is not None}
        quotas = quotas._replace(**set_here)
        return command(*args, open_signup=open_signup, quotas=quotas, **params)

    return with_quotas


def _quota_option(what: str, help_text: str) -> Callable:
    default = getattr(OPEN_SIGNUP_QUOTAS, what)
    return click.option(
        f"--quota-{what}", type=click.IntRange(0), metavar="N", envvar=f"HUB_QUOTA_{what.upper()}",
        show_envvar=True,
        help=f"{help_text}; 0 for any number. [default: 0; with --open-signup {default:,}]",
    )  # fmt: skip


def openid_options(command: Callable) -> Callable:
    """The OpenID provider with which people may sign in, as parameter ``openid``; None: none."""

    @click.option(
        "--openid-issuer", metavar="URL", envvar="HUB_OPENID_ISSUER", show_envvar=True,
        help="Let people sign in with this OpenID Connect provider, too. Register there the "
        "callback URL BASE_URL/account/openid/callback.",
    )  # fmt: skip
    @click.option(
        "--openid-client-id", metavar="ID", envvar="HUB_OPENID_CLIENT_ID", show_envvar=True,
        help="What the provider calls this hub. The secret that it gives with it is read from "
        f"the environment variable {SECRET_VARIABLE}, or from a file that {SECRET_VARIABLE}_FILE "
        "names.",
    )  # fmt: skip
    @click.option(
        "--openid-name", metavar="TEXT", envvar="HUB_OPENID_NAME", show_envvar=True,
        help="What people call the provider, on the button. [default: its host]",
    )  # fmt: skip
    @functools.wraps(command)
    def with_provider(
        *args: Any, openid_issuer: str | None, openid_client_id: str | None,
        openid_name: str | None, **params: Any,
    ) -> Any:  # fmt: skip
        secret = secret_from(os.environ, SECRET_VARIABLE)
        openid = make_provider(openid_issuer, openid_client_id, openid_name, secret)
        return command(*args, openid=openid, **params)

    return with_provider
