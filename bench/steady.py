"""Reads at a steady rate, even if the server falls behind: an open loop.

Reads follow a fixed schedule, and latency counts from the scheduled time. So a pause of the server
delays hundreds of reads, not one (this avoids coordinated omission). A read goes out on any free
connection, one at a time on each; bodies are checked afterwards.
"""

import gc
import json
import math
import os
import select
import socket
import time
import urllib.parse
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from typing import NamedTuple

CONNECTIONS = 64
CLIENTS = 20_000
# Seconds after the last scheduled read. Unanswered reads are errors then.
PATIENCE_SECONDS = 20


class Read(NamedTuple):
    """An answered read; times by the monotonic clock. ``version``: of a repo's JSON."""

    path: str
    scheduled_at: float
    sent: float
    answered: float
    version: str | None

    @property
    def milliseconds(self) -> float:
        return (self.answered - self.scheduled_at) * 1000


class Reads(NamedTuple):
    """The results of steady reading. ``errors``: one for each read without status 200 and a whole
    body. ``late_milliseconds``: the delay of each read that was sent late though a connection was
    free, which is the client's fault. ``busy``: its share of a core.
    """

    answered: list[Read]
    errors: list[str]
    late_milliseconds: list[float]
    busy: float


def reading_process(core: int | None) -> ProcessPoolExecutor:
    """A process for ``read_steadily``, on one core if given."""
    return ProcessPoolExecutor(1, get_context("spawn"), _pin, (core,))


def _pin(core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})
    # With permission, it has priority on its core: a delay of the clock would look like latency.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def read_steadily(url: str, paths: Sequence[str], rate: float, seconds: float) -> Reads:
    """Read ``paths`` in turn, ``rate`` a second, each with another ``X-Forwarded-For``."""
    address = urllib.parse.urlsplit(url)
    requests = [_request(address.netloc, paths[at % len(paths)], at)
                for at in range(math.ceil(rate * seconds))]  # fmt: skip
    gc.collect()
    gc.disable()
    try:
        with ExitStack() as stack:
            loop = _Loop((address.hostname, address.port), requests, rate, stack)
            cpu_started = time.process_time()
            loop.run()
            busy = (time.process_time() - cpu_started) / (time.monotonic() - loop.started)
    finally:
        gc.enable()
    return _checked(loop, paths, busy)


def _request(host: str, path: str, number: int) -> bytes:
    client = number % CLIENTS
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\n"
        f"X-Forwarded-For: 10.{client >> 16}.{client >> 8 & 255}.{client & 255}\r\n\r\n"
    ).encode()


class _Loop:
    """Sends scheduled reads, and receives answers."""

    def __init__(
        self, address: tuple[str, int], requests: list[bytes], rate: float, stack: ExitStack
    ) -> None:
        self.address, self.requests, self.rate, self.stack = address, requests, rate, stack
        # Each answer: the number of the request, times of sending and answer, head, body.
        self.answers: list[tuple[int, float, float, bytes, bytes]] = []
        self.errors: list[str] = []
        self.late_seconds: list[float] = []
        self._free = deque(self._connect() for _ in range(min(CONNECTIONS, len(requests))))
        # By connection: the number of the request, the time of sending, and the data received.
        self._busy: dict[socket.socket, tuple[int, float, bytearray]] = {}
        self.started = time.monotonic() + 0.1

    def run(self) -> None:
        next_one, count = 0, len(self.requests)
        free_since = self.started
        give_up_at = self.started + count / self.rate + PATIENCE_SECONDS
        while next_one < count or self._busy:
            now = time.monotonic()
            while (
                self._free
                and next_one < count
                and now >= (scheduled_at := self.scheduled_at(next_one))
            ):
                connection = self._free.popleft()
                connection.sendall(self.requests[next_one])
                self._busy[connection] = (next_one, now, bytearray())
                self.late_seconds.append(now - max(scheduled_at, free_since))
                next_one += 1
                now = time.monotonic()
            if now > give_up_at:
                missing = count - next_one + len(self._busy)
                self.errors += ["no answer in time"] * missing
                return
            wait_seconds = 1.0
            if self._free and next_one < count:
                wait_seconds = max(0.0, self.scheduled_at(next_one) - now)
            # select is the only way to wait that is exact to the microsecond.
            ready, _, _ = select.select(list(self._busy), [], [], wait_seconds)
            was_free = bool(self._free)
            for connection in ready:
                self._receive(connection)
            if not was_free:
                free_since = time.monotonic()

    def scheduled_at(self, number: int) -> float:
        return self.started + number / self.rate

    def _connect(self) -> socket.socket:
        connection = self.stack.enter_context(socket.create_connection(self.address))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _receive(self, connection: socket.socket) -> None:
        number, sent, received = self._busy[connection]
        try:
            chunk = connection.recv(1 << 18)
        except OSError as error:
            chunk = b""
            self.errors.append(f"{error}")
        else:
            if not chunk:
                self.errors.append("the server hung up")
        if not chunk:
            del self._busy[connection]
            connection.close()
            self._free.append(self._connect())
            return
        now = time.monotonic()
        received += chunk
        head_end = received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(received[:head_end])
        if len(received) < head_end + 4 + _content_length(head):
            return
        del self._busy[connection]
        self._free.append(connection)
        self.answers.append((number, sent, now, head, bytes(received[head_end + 4 :])))


def _content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    if not found:
        raise SystemExit(f"an answer without a length cannot be read here:\n{head.decode()}")
    return int(rest.partition(b"\r\n")[0])


def _checked(loop: _Loop, paths: Sequence[str], busy: float) -> Reads:
    errors = list(loop.errors)
    answered = []
    # Most answers are equal, and each different one is checked once.
    known: dict[bytes, str | None] = {}
    for number, sent, received, head, body in loop.answers:
        path = paths[number % len(paths)]
        if not head.startswith(b"HTTP/1.1 200 "):
            errors.append(f"{path}: {head.decode().splitlines()[0]}")
            continue
        if body not in known:
            try:
                known[body] = _version(head, body)
            except (ValueError, KeyError) as error:
                errors.append(f"{path}: {error!r}")
                continue
        answered.append(Read(path, loop.scheduled_at(number), sent, received, known[body]))
    late = [seconds * 1000 for seconds in loop.late_seconds]
    return Reads(answered, errors, late, busy)


def _version(head: bytes, body: bytes) -> str | None:
    """The version of a repo's JSON. Raises ValueError if the body is not whole."""
    text = body.decode()
    if b"application/json" in head:
        data = json.loads(text)["data"]
        return data.get("latest_version") if isinstance(data, dict) else None
    if not text or (b"text/html" in head and not text.rstrip().endswith("</html>")):
        raise ValueError(f"cut off after {len(body)} bytes")
    return None
