"""``hubctl hosts``: configurations of web servers that serve the site."""

import os
import re

import click

from builder.hosts.configuration import SERVERS, HostedSite, configuration, whole
from builder.model.errors import OperatorError
from builder.model.settings import parse_base_url
from builder.store.site import read_hub
from cli.groups import grouped, setting
from cli.options import (
    content_option,
    out_option,
    private_option,
    rate_limit_option,
    settings_of_serve,
    settle_private,
    url_of_serve,
)
from cli.standard_error import say

PORT_MAX = 65_535
_address = re.compile(r"([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):([1-9][0-9]{0,4})")


def _parse_address(context: click.Context, option: click.Option, value: str) -> str:
    found = _address.fullmatch(value)
    if value and (not found or int(found[2]) > PORT_MAX):
        raise click.BadParameter(
            f"{value!r} is not HOST:PORT. Give an address like 127.0.0.1:8080."
        )
    return value


def _parse_path(context: click.Context, option: click.Option, value: str) -> str:
    """A path as a word of nginx and Caddy: neither reads all characters there."""
    for path in (value,) if isinstance(value, str) else value or ():
        if not re.fullmatch(r"[\w./@+:-]+", path):
            raise click.BadParameter(
                f"{path!r} has characters that configurations reserve. Use letters, digits and "
                ". _ - + @ : / in the path."
            )
    return value


@click.command()
@click.argument("server", type=click.Choice(SERVERS))
@click.option(
    "--whole",
    "whole_file",
    is_flag=True,
    help="For nginx: a file for `nginx -c`, without other sites.",
)
@click.option("--no-upstream", is_flag=True, help="Serve files alone, without a `hubctl serve`.")
@grouped(
    "site",
    HostedSite,
    setting(
        "--listen",
        metavar="HOST:PORT",
        default="",
        callback=_parse_address,
        help="Listen here, without TLS unless you pass --certificate: behind another proxy. "
        "[default: the port of the base URL, with TLS for https]",
    ),
    setting(
        "--upstream",
        metavar="HOST:PORT",
        default="",
        callback=_parse_address,
        help="Address of `hubctl serve`. [default: its host and port in hub.toml]",
    ),
    setting(
        "--certificate",
        nargs=2,
        metavar="FILE KEY",
        callback=_parse_path,
        help="Certificate and key. [default: nginx: those of certbot; Caddy gets its own]",
    ),
    setting(
        "--log",
        variable="HUB_HOSTS_LOG",
        metavar="FILE",
        default=HostedSite._field_defaults["log"],
        callback=_parse_path,
        help="Access log of nginx.",
    ),
    rate_limit_option("reads_per_minute"),
    out_option,
    setting("--base-url", metavar="URL", help="Address of the site. [default: as it was built]"),
    private_option,
)
@content_option
@click.pass_context
def hosts(
    context: click.Context, server: str, whole_file: bool, no_upstream: bool, content: str,
    site: HostedSite,
) -> None:  # fmt: skip
    """Print the configuration with which nginx or Caddy serve the site.

    They answer what is a file, and pass the rest on to `hubctl serve`. A private hub is passed on
    as a whole. See docs/operate/hosting.md.

    \b
      hubctl hosts nginx > /etc/nginx/conf.d/hub.conf
      hubctl hosts caddy > /etc/caddy/hub.caddyfile
    """
    is_private = settle_private(content, site.out, site.private)
    if is_private and no_upstream:
        raise click.UsageError(
            "A private hub needs `hubctl serve`, which knows its members. Leave out --no-upstream."
        )
    if whole_file and server != "nginx":
        raise click.UsageError("--whole is for nginx: what Caddy gets is a whole Caddyfile.")
    site = site._replace(
        out=_parse_path(context, None, os.path.abspath(site.out)),
        base_url=_base_url(site.out, site.base_url),
        upstream=""
        if no_upstream
        else site.upstream or url_of_serve(context).removeprefix("http://"),
        certificate=site.certificate and tuple(map(os.path.abspath, site.certificate)),
        private=is_private,
        file_bytes=settings_of_serve(context)["file_bytes"],
    )
    if site.listen and site.listen == site.upstream:
        raise click.UsageError(
            f"--listen and --upstream are both {site.listen}, so {server} would pass requests on "
            "to itself. Give one of them another port."
        )
    text = configuration(server, site)
    click.echo(whole(text) if whole_file else text, nl=False)
    what = "a private hub" if is_private else f"with the files in {site.out}"
    say(f"For {site.base_url}, {what}.")


def _base_url(out: str, given: str | None) -> str:
    """The base URL that the configuration is for. Raises OperatorError."""
    if given:
        return parse_base_url(given)
    hub = read_hub(out)
    if not hub:
        raise OperatorError(
            f"No site in {out}, so its base URL is unknown. Build the site first, or pass "
            "--base-url."
        )
    return hub.base_url
