"""Servers that are started on a configuration, and say nothing when they are ready."""

import contextlib
import socket
from collections.abc import Iterator

from builder.hosts.configuration import HostedSite
from tests.support.servers import Process, wait_until


@contextlib.contextmanager
def listening(site: HostedSite, failure: str, process: Process) -> Iterator[str]:
    """The URL of a site with the base path, once its started server accepts connections.

    At the end the server is stopped, and must exit without an error. ``failure`` is in its output
    if it cannot start.
    """

    def is_ready() -> bool:
        assert failure not in process.text, process.text
        return listens(site.listen)

    try:
        wait_until(is_ready, f"a server at {site.listen}")
        scheme = "https" if site.certificate else "http"
        yield f"{scheme}://{site.listen}{site.base_path}"
    finally:
        status = process.stop()
    assert status == 0, f"exit status {status}\n{process.text}"


def listens(address: str) -> bool:
    """True if a server accepts connections there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port))).close()
    except ConnectionRefusedError:
        return False
    return True
