"""The access log of the embedded server: a line for each request, in the combined format.

    ADDRESS - - [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT"

What a client sends is escaped as nginx does, so it cannot break a line or forge one. Requests
never wait for the disk: their lines are gathered in memory and written by a thread of its own. A
full disk stops nothing: it is reported, and lines wait while memory for them is left.
"""

import contextlib
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Self

from builder.model.errors import explained
from builder.model.service_urls import is_account_url
from server.app import Receive, Scope, Send

FLUSH_SECONDS = 1.0
# The most bytes that wait for a disk that accepts no data. Further lines are lost.
WAITING_BYTES_MAX = 16 * 1024 * 1024
LINES_AT_ONCE = 1000

_THEN = "Choose another file with --access-log, or let the user who runs hubctl write to it."
# Not readable for everyone, since addresses are personal data.
_MODE = 0o640
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_unsafe = re.compile(rb'[^\x20-\x7e]|["\\]')


class AccessLog:
    """A log file, as a context manager that writes the remaining lines at its end.

    A file that was moved away or deleted, as logrotate does, is created again within
    ``FLUSH_SECONDS``. Raises OperatorError if it cannot be opened at first.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: deque[bytes] = deque()
        # The lines under way. If the disk accepted a part of them, the rest.
        self._chunk = b""
        self._is_failing = False
        # One thread changes each: the server's, or the thread that writes.
        self._added_bytes = self._done_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="access-log")

    def __enter__(self) -> Self:
        with explained("write the access log", self._path, _THEN):
            self._file = os.open(self._path, _FLAGS, _MODE)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            os.close(self._file)

    def add(self, line: bytes) -> None:
        """Write a line, which ends with its newline, soon. Only for the server's thread."""
        if self._added_bytes - self._done_bytes <= WAITING_BYTES_MAX:
            self._added_bytes += len(line)
            self._lines.append(line)

    def _write_on(self) -> None:
        while not self._ended.wait(FLUSH_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        try:
            self._reopen_if_moved()
            while self._chunk or self._lines:
                if not self._chunk:
                    count = min(len(self._lines), LINES_AT_ONCE)
                    self._chunk = b"".join([self._lines.popleft() for _ in range(count)])
                done = os.write(self._file, self._chunk)
                self._chunk = self._chunk[done:]
                self._done_bytes += done
            what = "writing works again."
            has_changed, self._is_failing = self._is_failing, False
        except OSError as error:
            what = (
                f"cannot write: {error.strerror}. Requests are still answered. Fix that soon, or "
                "lines are lost."
            )
            has_changed, self._is_failing = not self._is_failing, True
        if has_changed:
            print(f"Access log {self._path}: {what}", file=sys.stderr, flush=True)

    def _reopen_if_moved(self) -> None:
        try:
            if os.path.samestat(os.stat(self._path), os.fstat(self._file)):
                return
        except FileNotFoundError:
            pass
        moved = self._file
        self._file = os.open(self._path, _FLAGS, _MODE)
        os.close(moved)


class Logged:
    """An ASGI application whose requests are logged. Requests to the account settings are logged
    without their queries, which may be secrets. ``root`` is the path of the base URL.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], log: AccessLog, root: str = "") -> None:
        self._app = app
        self._log = log
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The server sends this status if the application raises.
        status = 500
        size = 0

        # Not a coroutine: one for each message would cost more than the rest of the logging.
        def noting(message: dict[str, Any]) -> Awaitable[None]:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            return send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._log.add(self._line(scope, status, size))

    def _line(self, scope: Scope, status: int, size: int) -> bytes:
        referer = agent = b"-"
        for name, value in scope["headers"]:
            if name == b"user-agent":
                agent = value
            elif name == b"referer":
                referer = value
        target, query = scope["raw_path"], scope["query_string"]
        if query and not is_account_url(scope["path"].removeprefix(self._root)):
            target = b"%b?%b" % (target, query)
        client = scope["client"]
        return b'%b - - [%b] "%b %b HTTP/%b" %d %d "%b" "%b"\n' % (
            # A proxy may have forwarded any text as the address.
            _escaped(client[0].encode()).replace(b" ", b"\\x20") if client else b"-",
            _time(int(time.time())),
            scope["method"].encode(),
            _escaped(target),
            scope["http_version"].encode(),
            status,
            size,
            _escaped(referer),
            _escaped(agent),
        )


@lru_cache(1)
def _time(second: int) -> bytes:
    # Names of months are English: Python starts in the C locale, and nothing here sets another.
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(second)).encode()


def _escaped(data: bytes) -> bytes:
    """The bytes, with each quote, backslash and non-printable byte as ``\\xHH``."""
    if _unsafe.search(data):
        return _unsafe.sub(lambda byte: b"\\x%02X" % byte[0][0], data)
    return data
