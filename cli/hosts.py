"""``hubctl hosts``: configurations of servers and hosts that serve the site."""

import os
import re
import shlex
import shutil
from importlib import import_module
from ipaddress import ip_network
from urllib.parse import urlsplit

import click

from builder.hosts import caddy_options
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError, explained
from builder.model.settings import parse_base_url
from builder.store.site import read_hub
from cli.groups import grouped, setting
from cli.options import (
    address_of_serve,
    out_option,
    private_option,
    rate_limit_option,
    settle_private,
    state_option,
)
from cli.standard_error import say
from publisher.outside.private_way import is_loopback

# The next step for the files of each host. {folder} has them, {program} starts a server.
NEXT = {
    "nginx": "Start it with: {program} -c {folder}/nginx.conf\n"
    "Reload it with: {program} -c {folder}/nginx.conf -s reload",
    "caddy": "Start it with: {program} run --config {folder}/Caddyfile",
    "cloudflare": "Upload the site with `hubctl deploy s3://BUCKET`, then run in {folder}: "
    "npx wrangler deploy\nwrangler.toml there explains both.",
    "github": "Put the file in the root of the published folder, usually the site folder.",
}
# Files that the operator edits, so they are never overwritten.
EDITED = ("wrangler.toml",)
# Servers that run on this machine, with logs and temporary files below the state folder.
SERVERS = ("nginx", "caddy")
# Folders of servers on root's PATH that another user's PATH often lacks.
ROOT_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
# For each address that means all of a machine, the one that a browser there uses.
ALL_ADDRESSES = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
DEFAULT_PORTS = {"http": "80", "https": "443"}

# 30 days, renewed by each visit. A hub that gives up TLS loses its readers for at most this long.
HSTS_SECONDS = 30 * 24 * 3600

PORT_MAX = 65_535
_address = re.compile(r"([A-Za-z0-9._-]+|\*|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?")


def _parse_address(context: click.Context, option: click.Option, value: str | None) -> str | None:
    if value is None:
        return value
    found = _address.fullmatch(value)
    is_upstream, is_redirect = option.name == "upstream", option.name == "redirect_from"
    if (
        not found
        or int(found[2] or 1) > PORT_MAX
        or (is_upstream and found[1] == "*")
        or ((is_upstream or is_redirect) and not found[2])
    ):
        example = "[::]:80" if is_redirect else "127.0.0.1:8080"
        raise click.BadParameter(f"{value!r} is not HOST:PORT. Give an address like {example}.")
    return value


def _parse_networks(
    context: click.Context, option: click.Option, values: tuple[str, ...]
) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(value, strict=False)) for value in values)
    except ValueError as error:
        raise click.BadParameter(
            f"{error}. Give an address or a network, like 10.0.0.0/8."
        ) from None


@click.command()
@click.argument("host", type=click.Choice(list(NEXT)))
@setting(
    "--target",
    metavar="DIR",
    required=True,
    variable="HUB_HOSTS_TARGET",
    help="Folder for the files. For github, use the site folder.",
)
@setting("--no-upstream", is_flag=True, help="Run nginx without a `hubctl serve` behind it.")
@grouped(
    "site",
    HostedSite,
    setting(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:8080",
        callback=_parse_address,
        help="Address for nginx or Caddy to listen on. Caddy also takes a host name, and gets a "
        "certificate for it.",
    ),
    setting(
        "--upstream",
        metavar="HOST:PORT",
        callback=_parse_address,
        help="Address of `hubctl serve` as seen from the host. It answers searches, publishing "
        "and MCP. [default: the host and port of `hubctl serve` in hub.toml]",
    ),
    rate_limit_option("reads_per_minute"),
    setting(
        "--trusted-proxy",
        "trusted_proxies",
        variable="HUB_HOSTS_TRUSTED_PROXY",
        multiple=True,
        metavar="ADDRESS",
        callback=_parse_networks,
        help="Address or network of a proxy in front of the host. Its X-Forwarded-For gives the "
        "client's address. Can be repeated; in the variable, separate by spaces.",
    ),
    setting(
        "--certificate",
        nargs=2,
        metavar="FILE KEY",
        help="Certificate and key for TLS with nginx or Caddy.",
    ),
    setting(
        "--redirect-from",
        metavar="HOST:PORT",
        callback=_parse_address,
        help="With --certificate, also listen here, and redirect http to https. Usually [::]:80.",
    ),
    setting(
        "--hsts",
        "hsts_seconds",
        metavar="SECONDS",
        type=click.IntRange(0),
        default=HSTS_SECONDS,
        help="With TLS, browsers use only https for this time after a visit "
        "(Strict-Transport-Security). 0: send no such header.",
    ),
    out_option,
    state_option,
    setting(
        "--base-url",
        metavar="URL",
        help="Address of the site. [default: the one it was built with]",
    ),
    private_option,
)
@click.pass_context
def hosts(
    context: click.Context, host: str, target: str, no_upstream: bool, site: HostedSite
) -> None:
    """Write the configuration that a host needs to serve the site.

    \b
    nginx       nginx.conf, a complete configuration that runs without root
    caddy       Caddyfile, the same for Caddy
    cloudflare  a Worker and its wrangler.toml
    github      .nojekyll, for GitHub Pages

    See docs/operate/hosting.md.

    \b
      hubctl hosts nginx --target var/conf --base-url http://127.0.0.1:8080
    """
    site = site._replace(
        upstream=site.upstream or address_of_serve(context),
        private=settle_private(site.out, site.private),
    )
    _check(host, site, no_upstream)
    site = site._replace(
        out=os.path.abspath(site.out),
        state=os.path.abspath(site.state),
        base_url=_base_url(site.out, site.base_url),
        upstream="" if no_upstream else site.upstream,
        certificate=site.certificate and tuple(map(os.path.abspath, site.certificate)),
        redirect_from=site.redirect_from or "",
    )
    if site.redirect_from:
        _check_redirect(host, site)
    if host not in SERVERS or not _is_https(host, site):
        site = site._replace(hsts_seconds=0)
    _write_all(host, site, os.path.abspath(target))
    say(f"Links on the site start with {site.base_url}.")


def _check(host: str, site: HostedSite, no_upstream: bool) -> None:
    """Reject options that exclude each other. Raises click.UsageError."""
    if site.private and host not in SERVERS:
        raise click.UsageError(
            f"{host} cannot ask `hubctl serve` who may read, so everybody could read this private "
            "hub there. Use nginx or caddy."
        )
    if site.private and no_upstream:
        raise click.UsageError(
            "A private hub needs `hubctl serve`, which knows its members. Leave out --no-upstream, "
            "and give its address with --upstream."
        )
    if no_upstream and host == "caddy":
        raise click.UsageError("--no-upstream works only with nginx. For caddy, give --upstream.")
    if host in SERVERS and not no_upstream and _is_same(site.listen, site.upstream):
        raise click.UsageError(
            f"--listen {site.listen} and --upstream {site.upstream} are the same address, so "
            f"{host} would pass requests on to itself. Give `hubctl serve` and --upstream another "
            "port."
        )


def _write_all(host: str, site: HostedSite, folder: str) -> None:
    """Write the files of a host into ``folder``, and say what to do with them."""
    module = import_module(f"builder.hosts.{host}")
    with explained("write", folder, "Choose another folder with --target.", is_inside=True):
        os.makedirs(folder, exist_ok=True)
        if host in SERVERS:
            os.makedirs(module.folder(site), exist_ok=True)
            os.makedirs(site.challenges, exist_ok=True)
        for name, text in module.files(site).items():
            _write(f"{folder}/{name}", text)
    if host == "caddy" and (warning := caddy_options.warning(site)):
        say(warning)
    say(NEXT[host].format(folder=shlex.quote(folder), program=_program(host)))
    if host in SERVERS:
        _say_where(host, site)
        say(f"Logs: {module.folder(site)}")


def _is_https(host: str, site: HostedSite) -> bool:
    return caddy_options.is_https(site) if host == "caddy" else bool(site.certificate)


def _check_redirect(host: str, site: HostedSite) -> None:
    if host not in SERVERS:
        raise click.UsageError(f"--redirect-from is for nginx and caddy. Leave it out for {host}.")
    if not site.certificate or not site.base_url.startswith("https:"):
        raise click.UsageError(
            "--redirect-from needs --certificate, and a --base-url with https: without TLS there "
            "is nothing to redirect to."
        )
    if site.redirect_from == site.listen:
        raise click.UsageError(
            f"--redirect-from and --listen are both {site.listen}. Give them two ports, like "
            "[::]:80 and [::]:443."
        )


def _is_same(listen: str, upstream: str) -> bool:
    """True if a request to ``upstream`` from this machine reaches a server that listens at
    ``listen``.
    """
    (name, port), (upstream_name, upstream_port) = (
        _address.fullmatch(address.lower()).groups() for address in (listen, upstream)
    )
    # Caddy listens at both default ports if no port is given.
    if upstream_port not in ((port,) if port else DEFAULT_PORTS.values()):
        return False
    local = {"localhost", *ALL_ADDRESSES.values()}
    if name in ALL_ADDRESSES:
        return upstream_name in ALL_ADDRESSES or is_loopback(upstream_name.strip("[]"))
    is_local = "localhost" in (name, upstream_name) and {name, upstream_name} <= local
    return name == upstream_name or is_local


def _program(host: str) -> str:
    """The command that starts a server here, without its folder if that is on the PATH."""
    if shutil.which(host):
        return host
    return shutil.which(host, path=ROOT_FOLDERS) or host


def _say_where(host: str, site: HostedSite) -> None:
    name, port = _address.fullmatch(site.listen).groups()
    scheme = "https" if _is_https(host, site) else "http"
    if host == "nginx":
        port = port or DEFAULT_PORTS["http"]  # even with a certificate
    netloc = ALL_ADDRESSES.get(name, name)
    if port and port != DEFAULT_PORTS[scheme]:
        netloc += f":{port}"
    others = ", and on all other addresses of this machine" if name in ALL_ADDRESSES else ""
    say(f"It listens on {scheme}://{netloc}{site.base_path}/{others}.")
    if site.redirect_from:
        say(f"It redirects http from {site.redirect_from} to {site.origin}.")
    if site.upstream:
        say(
            f"It passes searches, accounts, publishing and MCP on to `hubctl serve` at "
            f"{site.upstream}."
        )
    base = urlsplit(site.base_url)
    if is_loopback(base.hostname or "") and base.netloc != netloc:
        say(
            f"Links lead to {base.netloc}, past this server. Run `hubctl serve` and this command "
            f"with the address that readers use: --base-url {scheme}://{netloc}{site.base_path}"
        )


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


def _write(path: str, text: str) -> None:
    """Write a file and print its path. Files of EDITED are not overwritten."""
    if os.path.basename(path) in EDITED and os.path.exists(path):
        say(f"Kept your {path}. To replace it, remove it and run this command again.")
        return
    # Renamed when whole: a server that reads its configuration now gets the old one or the new one.
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)
    click.echo(path)
