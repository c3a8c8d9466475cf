"""Servers that answer slowly, and a fixture with which the product waits for them only a tenth of a
second.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from tests.support.servers import DEADLINE_SECONDS

DROP_SECONDS = 0.01


@contextlib.contextmanager
def trickling(begin: bytes, certificate: tuple[str, str] | None = None) -> Iterator[str]:
    """The URL of a server that sends this at once, then single bytes for longer than any test
    waits.
    """
    with answering(begin, b"x" * int(DEADLINE_SECONDS / DROP_SECONDS), certificate) as url:
        yield url


@contextlib.contextmanager
def answering(
    begin: bytes, drops: bytes = b"", certificate: tuple[str, str] | None = None
) -> Iterator[str]:
    """The URL of a server with this one answer; its ``drops`` arrive one after the other."""
    ended = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # it is closed
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                connection.sendall(begin)
                for drop in drops:
                    if ended.wait(DROP_SECONDS):
                        return
                    connection.sendall(bytes([drop]))

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            listener = stack.enter_context(context.wrap_socket(listener, server_side=True))
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product waits only a short time for other servers."""
    monkeypatch.setattr("publisher.outside.fetch.TIMEOUT_SECONDS", 0.1)
