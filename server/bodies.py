"""Reads the bodies of requests within limits of time and size.

An application that waits for bodies in threads is blocked by as many slow clients as it has
threads. So small bodies are read before the application runs, and it waits for others only for a
limited time.
"""

import asyncio

from server.app import Receive, Scope

# The longest body of a form, of a CI job's ID token, and of a change of a label. The rest of a
# longer one is not read.
VISITOR_BYTES_MAX = 64 * 1024


def is_long(scope: Scope, bytes_max: int) -> bool:
    """True if the head of a request says that its body is longer than ``bytes_max``."""
    return _length(scope) > bytes_max


def is_chunked(scope: Scope) -> bool:
    """True if the head of a request does not say how long its body is."""
    return any(name == b"transfer-encoding" for name, _ in scope["headers"])


async def read_ahead(scope: Scope, receive: Receive, bytes_max: int, seconds: float) -> Receive:
    """Read a request's body: at most ``bytes_max`` bytes and one more. If time runs out or the
    client disconnects, the application gets a TimeoutError when it reads past the end of what came.

    If the head announces a longer body, nothing is read.
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
            pass  # ``receive_again`` raises it
    read = [{"type": "http.request", "body": bytes(body), "more_body": not is_whole}]

    async def receive_again() -> dict:
        if read:
            return read.pop()
        raise TimeoutError("the request body took too long")

    return receive_again


def in_time(receive: Receive, seconds: float) -> Receive:
    """``receive``, which raises TimeoutError ``seconds`` after its first call, and
    ConnectionResetError when the client disconnects: otherwise a cut body would look whole.
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
    """The length in the head, which the server has checked; 0 without one."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
