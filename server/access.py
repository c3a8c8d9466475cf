"""Checks the Host and Origin of requests to /mcp and /account, against DNS rebinding.

MCP's transport specification requires it, even though the content is public. Also parses the
origins and addresses that operators give.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from builder.model.errors import OperatorError

ANY = "*"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
HEADER_BYTES_MAX = 300
_DEFAULT_PORTS = {"http": 80, "https": 443}
# urlsplit is lenient: it finds a host in text that a proxy reads in another way.
_is_authority = re.compile(
    r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?:[1-9][0-9]{0,4})?)?"
).fullmatch


class Access:
    """The hosts that are served, and the origins whose pages may send requests.

    These are the base URL's, this machine's own with any port, and those of ``origins``: each like
    ``https://app.example.org``, or ``*`` for any.
    """

    def __init__(self, base_url: str, origins: tuple[str, ...] = ()) -> None:
        self._is_open = ANY in origins
        urls = [urlsplit(url) for url in (base_url, *origins) if url != ANY]
        self._origins = {(url.scheme, url.hostname, _port(url)) for url in urls}
        self._hosts = {(url.hostname, _port(url)) for url in urls}
        # Results are remembered, so their number is limited.
        self._serves = lru_cache(maxsize=1000)(self._serves)
        self._admits = lru_cache(maxsize=1000)(self._admits)

    def serves(self, host: bytes | None) -> bool:
        """True if a request with this Host header is for this hub."""
        return self._is_open or (len(host or b"") <= HEADER_BYTES_MAX and self._serves(host))

    def admits(self, origin: bytes | None) -> bool:
        """True if a page of this origin may send the request. Without an Origin header, the request
        comes from no page of another site.
        """
        if self._is_open or origin is None:
            return True
        return len(origin) <= HEADER_BYTES_MAX and self._admits(origin)

    def _serves(self, host: bytes | None) -> bool:
        authority = (host or b"").decode("latin-1")
        if not _is_authority(authority):
            return False
        try:
            url = urlsplit(f"//{authority}")
            port = url.port
        except ValueError:
            return False
        if url.hostname in LOOPBACK:
            return True
        # Without a scheme, the host may mean either default port.
        ports = (port,) if port else _DEFAULT_PORTS.values()
        return any((url.hostname, port) in self._hosts for port in ports)

    def _admits(self, origin: bytes) -> bool:
        text = origin.decode("latin-1")
        if not _is_authority(text.partition("://")[2]):
            return False
        try:
            url = urlsplit(text)
            return url.hostname in LOOPBACK or (url.scheme, url.hostname, _port(url)) in (
                self._origins
            )
        except ValueError:
            return False


def _port(url) -> int | None:
    return url.port or _DEFAULT_PORTS.get(url.scheme)


def parse_origin(text: str) -> str:
    """The origin that an operator gave, checked. Raises OperatorError."""
    scheme, _, authority = text.partition("://")
    try:
        is_origin = (
            scheme in _DEFAULT_PORTS
            and _is_authority(authority) is not None
            and urlsplit(text).port != 0
        )
    except ValueError:  # an invalid port
        is_origin = False
    if text != ANY and not is_origin:
        raise OperatorError(
            f"Invalid origin {text!r}. Give scheme and host, like https://app.example.org, or * "
            "for any."
        )
    return text


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of an address like 127.0.0.1:9108 or [::1]:9108. Raises OperatorError."""
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or not is_port or (":" in host and not is_bracketed):
        raise OperatorError(
            f"Invalid address {text!r}. Give host and port, like 127.0.0.1:9108 or [::1]:9108."
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
