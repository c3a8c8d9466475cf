"""Servers that are started on a configuration, and say nothing when they are ready."""

import contextlib
import socket
from collections.abc import Iterator

from builder.hosts.rules import HostedSite
from tests.support.servers import Process, wait_until


@contextlib.contextmanager
def listening(site: HostedSite, failure: str, process: Process) -> Iterator[str]:
    """The URL of a site whose server has been started, with the base path, from when it takes
    connections; at the end the server is stopped, and has to have gone well.

    ``failure`` is in what it writes when it cannot start.
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
    """Whether something takes connections there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port))).close()
    except ConnectionRefusedError:
        return False
    return True
