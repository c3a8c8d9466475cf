"""Bodies of requests that come slowly, or never: who waits for one, and how long.

An application that waits in a thread is stopped by as many clients as it has threads. So bodies
that are small are read before, and the others are waited for only so long.
"""

import asyncio

from server.app import Receive, Scope

# The most that is read of a request from somebody without a token: a form, or a CI job's ID token.
VISITOR_BYTES_MAX = 64 * 1024
# The most that is read of a publication, from a program or out of the editor's form.
PUBLICATION_BYTES_MAX = 2 * 1024 * 1024


def is_long(scope: Scope, bytes_max: int) -> bool:
    """Whether a request's head says that its body is longer."""
    return _length(scope) > bytes_max


def is_chunked(scope: Scope) -> bool:
    """Whether a request's head leaves open how long its body is."""
    return any(name == b"transfer-encoding" for name, _ in scope["headers"])


async def read_ahead(scope: Scope, receive: Receive, bytes_max: int, seconds: float) -> Receive:
    """Read a request's body, but no more than ``bytes_max`` and a byte. An application that reads
    on where it is not whole, as time is over or its client is gone, gets a TimeoutError at once.

    A body whose head says that it is longer is not read at all.
    """
    body = bytearray()
    is_whole = False
    if not is_long(scope, bytes_max):
        try:
            async with asyncio.timeout(seconds):
                while not is_whole and len(body) <= bytes_max:
                    message = await receive()
                    if message["type"] != "http.request":
                        break
                    body += message.get("body", b"")
                    is_whole = not message.get("more_body", False)
        except TimeoutError:
            pass  # told to whoever reads on
    read = [{"type": "http.request", "body": bytes(body), "more_body": not is_whole}]

    async def receive_again() -> dict:
        if read:
            return read.pop()
        raise TimeoutError("the request body took too long")

    return receive_again


def in_time(receive: Receive, seconds: float) -> Receive:
    """The same, but that it raises TimeoutError so long after it was asked for the first time, and
    ConnectionResetError when the client is gone: else its body would look whole.
    """
    end: float | None = None

    async def receive_in_time() -> dict:
        nonlocal end
        if end is None:
            end = asyncio.get_running_loop().time() + seconds
        async with asyncio.timeout_at(end):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the client closed the connection")
        return message

    return receive_in_time


def _length(scope: Scope) -> int:
    """What the head says, which the server has checked; 0 where it says nothing."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
