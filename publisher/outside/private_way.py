"""Connections that no one in between can read or change."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit


def is_private_way(url: Any) -> bool:
    """True for a URL of https, or of http on this machine itself."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (TypeError, ValueError, AttributeError):
        return False
    if not isinstance(url, str) or not host or port == 0 or "@" in parts.netloc:
        return False
    if not url.isascii() or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def is_loopback(host: str) -> bool:
    """True for an address or a name of this machine that only this machine can reach."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    # An IPv4 client has such an address at a listener for both protocols.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
