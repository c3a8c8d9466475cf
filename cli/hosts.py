"""``hubctl hosts``: configurations of servers and hosts that serve the site."""

import os
import re
from importlib import import_module
from ipaddress import ip_network

import click

from builder.hosts import caddy
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError
from builder.model.settings import parse_base_url
from builder.store.site import read_hub
from cli.options import out_option, rate_limit_option, state_option

# Name of each host, and what one does with its files. {0} is their folder.
NEXT = {
    "nginx": "Start it with: nginx -c {0}/nginx.conf",
    "caddy": "Start it with: caddy run --config {0}/Caddyfile",
    "cloudflare": "Deploy the site to the bucket; then, in {0}: npx wrangler deploy",
    "netlify": "They belong to the root of what is published: the site's folder, mostly.",
    "github": "It belongs to the root of what is published: the site's folder, mostly.",
}
# Written to be edited, so not written again.
EDITED = ("wrangler.toml",)
# Servers that run here, and keep logs and temporary files below the state folder.
SERVERS = ("nginx", "caddy")

PORT_MAX = 65_535
_address = re.compile(r"([A-Za-z0-9._-]+|\*|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?")


def _parse_address(context: click.Context, option: click.Option, value: str) -> str:
    found = _address.fullmatch(value)
    is_upstream = option.name == "upstream"
    if (
        not found
        or int(found[2] or 1) > PORT_MAX
        or (is_upstream and (found[1] == "*" or not found[2]))
    ):
        raise click.BadParameter(f"{value!r} is not HOST:PORT, as {option.default}.")
    return value


def _parse_networks(
    context: click.Context, option: click.Option, values: tuple[str, ...]
) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(value, strict=False)) for value in values)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


@click.command()
@click.argument("host", type=click.Choice(list(NEXT)))
@click.option(
    "--target", metavar="DIR", required=True,
    help="Folder for the files. For netlify and github it is the site's own.",
)  # fmt: skip
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True,
    callback=_parse_address,
    help="Where nginx or Caddy listens. Caddy takes a name, too, and gets a certificate for it.",
)  # fmt: skip
@click.option(
    "--upstream", metavar="HOST:PORT", default="127.0.0.1:8000", show_default=True,
    callback=_parse_address,
    help="Where `hubctl serve` answers searches, publishing and MCP, in an address that the host "
    "can reach.",
)  # fmt: skip
@click.option("--no-upstream", is_flag=True, help="There is no `hubctl serve` behind nginx.")
@rate_limit_option
@click.option(
    "--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
    callback=_parse_networks,
    help="Address or network of a proxy before the host, whose X-Forwarded-For tells the client's "
    "address. May be given several times.",
)  # fmt: skip
@click.option(
    "--certificate",
    nargs=2,
    metavar="FILE KEY",
    help="Certificate and key, for TLS with nginx or Caddy.",
)
@out_option
@state_option
@click.option(
    "--base-url", metavar="URL", envvar="HUB_BASE_URL", show_envvar=True,
    help="Where readers find the site. [default: what the site says]",
)  # fmt: skip
def hosts(
    host: str, target: str, listen: str, upstream: str, no_upstream: bool, rate_limit: int,
    trusted_proxies: tuple[str, ...], certificate: tuple[str, str] | None, out: str, state: str,
    base_url: str | None,
) -> None:  # fmt: skip
    """Write what a host needs to serve the site.

    \b
    nginx       nginx.conf, a whole configuration that runs without root
    caddy       Caddyfile, the same for Caddy
    cloudflare  a Worker and its wrangler.toml
    netlify     _redirects and _headers
    github      .nojekyll, for GitHub Pages

    The files follow from the same table of routes as the site. See docs/operate/hosting.md.
    """
    if no_upstream and host == "caddy":
        raise click.UsageError("--no-upstream is for nginx; Caddy's configuration needs one.")
    site = HostedSite(
        out=os.path.abspath(out),
        state=os.path.abspath(state),
        base_url=_base_url(out, base_url),
        listen=listen,
        upstream="" if no_upstream else upstream,
        reads_per_minute=rate_limit,
        trusted_proxies=trusted_proxies,
        certificate=certificate and tuple(map(os.path.abspath, certificate)),
    )
    folder = os.path.abspath(target)
    module = import_module(f"builder.hosts.{host}")
    try:
        os.makedirs(folder, exist_ok=True)
        if host in SERVERS:
            os.makedirs(module.folder(site), exist_ok=True)
        for name, text in module.files(site).items():
            _write(f"{folder}/{name}", text)
    except OSError as error:
        raise OperatorError(f"Cannot write {error.filename}: {error.strerror}.") from None
    if host == "caddy" and (warning := caddy.warning(site)):
        click.echo(warning, err=True)
    click.echo(NEXT[host].format(folder), err=True)
    if host in SERVERS:
        click.echo(f"Its logs are in {module.folder(site)}.", err=True)
    click.echo(f"Links of the site lead to {site.base_url}.", err=True)


def _base_url(out: str, given: str | None) -> str:
    """The base URL that the configuration is for. Raises OperatorError."""
    if given:
        return parse_base_url(given)
    hub = read_hub(out)
    if not hub:
        raise OperatorError(
            f"There is no site in {out} to ask for its base URL. Build it first, or give "
            "--base-url."
        )
    return hub.base_url


def _write(path: str, text: str) -> None:
    """Write a file, unless it is one of EDITED and there, and say which."""
    if os.path.basename(path) in EDITED and os.path.exists(path):
        click.echo(f"Kept {path}; remove it to have it written anew.", err=True)
        return
    # A server that reads its configuration meanwhile gets the old one or the new one.
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)
    click.echo(path)
