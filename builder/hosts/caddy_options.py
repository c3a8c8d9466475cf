"""Options of a site as Caddy takes them, and the abilities of the Caddy on this machine."""

import ipaddress
import re
import subprocess
from typing import NamedTuple

from builder.hosts.rules import (
    HostedSite,
)
from builder.model.errors import (
    OperatorError,
)

PROGRAM = "caddy"

_VERSION_SECONDS_MAX = 10

# The first version that can log the client's address as trusted proxies report it. Older ones log
# the proxy's.
LOGS_CLIENTS_FROM = (2, 8)


class Listen(NamedTuple):
    """The address that Caddy listens on. Each part may be empty: no host means all addresses."""

    host: str
    port: str

    @property
    def is_name(self) -> bool:
        """True if the host is a name for which a certificate can be issued."""
        return not is_address(self.host) and "." in self.host


def is_https(site: HostedSite) -> bool:
    """True if readers reach the site over TLS: with a given certificate, or with one that Caddy
    obtains for a name. Raises OperatorError for an address that Caddy cannot listen on.
    """
    listen = parse_listen(site.listen)
    return bool(site.certificate) or (listen.is_name and listen.port != "80")


def warning(site: HostedSite) -> str | None:
    """A requested feature that this machine's Caddy lacks, and what to do; None if it has all."""
    if not site.trusted_proxies or logs_clients():
        return None
    return (
        f"Caddy on this machine is older than {shown(LOGS_CLIENTS_FROM)}. It logs the address of "
        "the proxy instead of the reader's, so all readers count as one. Install a newer Caddy and "
        "run this command again."
    )


def logs_clients() -> bool:
    version = _installed_version()
    return version is None or version >= LOGS_CLIENTS_FROM


def _installed_version() -> tuple[int, int] | None:
    """Major and minor version of this machine's Caddy. None if there is no Caddy, or if it does not
    say, as a custom build may not. Then the configuration may be for another machine or a newer
    Caddy.
    """
    try:
        printed = subprocess.run(
            [PROGRAM, "version"], capture_output=True, text=True, timeout=_VERSION_SECONDS_MAX
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v?([0-9]+)\.([0-9]+)", printed)
    return (int(found[1]), int(found[2])) if found else None


def shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def address(listen: Listen, has_certificate: bool) -> str:
    """The site's address in Caddy's configuration. A name implies certificate, TLS and ports. Other
    addresses accept requests for any host name.
    """
    if listen.is_name:
        return ":".join(filter(None, listen))
    return f"{'https' if has_certificate else 'http'}://:{listen.port}"


def parse_listen(text: str) -> Listen:
    """Parses HOST:PORT. Raises OperatorError for an address that Caddy cannot listen on."""
    found = re.fullmatch(r"(?:\[([^\[\]]*)\]|([A-Za-z0-9.-]*)|\*)(?::([0-9]{1,5}))?", text)
    if found and (found[1] is None or is_address(found[1])):
        listen = Listen(found[1] or found[2] or "", found[3] or "")
        if 1 <= int(listen.port or 1) <= 65535 and (listen.port or listen.is_name):
            return listen
    raise OperatorError(
        f"Caddy cannot listen on {text!r}. Give an address and a port, like 127.0.0.1:8080, or the "
        "name of this machine, like prompts.example.org."
    )


def parse_redirect(site: HostedSite) -> Listen | None:
    """Parses ``redirect_from``. Raises OperatorError for an address that Caddy cannot listen on,
    and for a name, which Caddy redirects by itself.
    """
    listen = parse_listen(site.redirect_from) if site.redirect_from else None
    if listen and (listen.is_name or parse_listen(site.listen).is_name):
        raise OperatorError(
            f"Caddy redirects http to https for a name by itself. Leave out --redirect-from "
            f"{site.redirect_from}, or listen on an address, like [::]:443."
        )
    return listen


def check_upstream(text: str) -> None:
    found = re.fullmatch(r"(?:\[([^\[\]]*)\]|[A-Za-z0-9._-]+):[0-9]{1,5}", text)
    if not found or (found[1] is not None and not is_address(found[1])):
        raise OperatorError(
            f"Invalid upstream {text!r}. Give the HOST:PORT of `hubctl serve`, like 127.0.0.1:8000."
        )


def check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise OperatorError(
            f"Invalid trusted proxy {text!r}. Give an address or a network, like 10.0.0.0/8."
        ) from None


def check_path(path: str) -> None:
    # In Caddy's configuration, braces are placeholders (also for environment variables); *, ? and
    # brackets are globs; after | come the permissions of a socket.
    if re.search(r'["`{}\\|*?\[\]\x00-\x1f\x7f\ud800-\udfff]', path):
        raise OperatorError(
            f"Caddy's configuration cannot contain the path {path!r}. Choose a path in UTF-8 "
            "without double quotes, backticks, backslashes, braces, brackets, |, *, ? or control "
            "characters."
        )


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def quoted(text: str) -> str:
    return f'"{text}"'
