"""Fills in the templates beside it, one for each server, and one for its private hubs; they share
what is in `*-listen.jinja` and `nginx-proxy.jinja`.

An address is its file plus an extension, so the templates state no table of routes. The tests of
conformance hold them to it.
"""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import jinja2

from builder.model.request_bodies import publication_bytes_max
from builder.model.settings import DEFAULT_BASE_URL, READS_PER_MINUTE
from builder.model.version_files import BYTES_MAX

SERVERS = ("nginx", "caddy")


class HostedSite(NamedTuple):
    """A site as a web server's configuration has it. ``out`` is its absolute folder.

    ``listen``: host and port, empty for those of the base URL. ``upstream``: host and port of
    `hubctl serve`; empty if there is none. ``certificate``: the files of a certificate and its
    key; None for those that certbot writes, or Caddy itself. ``log``: the file of nginx's access
    log. ``reads_per_minute``: for each client address; 0 for no limit. ``private``: the server
    has no file of it, and passes everything on. ``file_bytes``: the most of the files of a version.
    """

    out: str
    base_url: str = DEFAULT_BASE_URL
    listen: str = ""
    upstream: str = "127.0.0.1:8000"
    certificate: tuple[str, str] | None = None
    log: str = "/var/log/nginx/hub.log"
    reads_per_minute: int = READS_PER_MINUTE
    private: bool = False
    file_bytes: int = BYTES_MAX

    @property
    def body_megabytes(self) -> int:
        """More than `hubctl serve` reads of a body, so that it can say so itself."""
        return publication_bytes_max(self.file_bytes) // 2**20 + 4

    @property
    def base_path(self) -> str:
        """The path below which the site is, without a slash at its end."""
        return urlsplit(self.base_url).path

    @property
    def name(self) -> str:
        """The host name of the site."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def is_https(self) -> bool:
        """True if this server ends TLS."""
        return bool(self.certificate) or (not self.listen and self.base_url.startswith("https:"))

    @property
    def port(self) -> int:
        """The port of the base URL."""
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)


def configuration(server: str, site: HostedSite) -> str:
    """Returns the configuration of ``server``, one of SERVERS, to include beside those of other
    sites.
    """
    name = f"{server}-private.jinja" if site.private else f"{server}.jinja"
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        block_start_string="<%", block_end_string="%>", variable_start_string="<<",
        variable_end_string=">>", comment_start_string="<#", comment_end_string="#>",
        keep_trailing_newline=True,
    )  # fmt: skip
    return templates.get_template(name).render(site=site, path=site.base_path)


def whole(nginx: str) -> str:
    """Returns nginx's configuration of a site as a file for `nginx -c`."""
    return f"pcre_jit on;\nevents {{ worker_connections 4096; }}\nhttp {{\n{nginx}}}\n"
