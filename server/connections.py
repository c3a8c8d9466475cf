"""Limits of a connection: the number of connections, memory for the head of a request, and time.

uvicorn has no such limits. This module adds them to its protocol class by its public methods: those
of asyncio's Protocol, the callbacks of the parser (httptools), ``send_400_response`` and
``timeout_keep_alive_handler``.
"""

import asyncio
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from builder.model.errors import RequestError
from builder.model.metrics import LIMITS_HIT, Gauge, Reading
from server.answer_headers import RETRY_SECONDS
from server.answers import Answer, error_answer
from server.throttle import network

CONNECTIONS = Gauge("hub_connections", "Open connections of clients and proxies.")
STALLED = Gauge(
    "hub_stalled_seconds", "Time since the server last got its turn; it answers nothing meanwhile."
)

CONNECTIONS_MAX = 4096
# Files reserved for the rest of the process: databases, publications, builds, large answers.
FILES_RESERVED = 384


class ConnectionLimits(NamedTuple):
    """The limits of one connection or one client address."""

    per_network: int = 128
    head_bytes: int = 64 * 1024
    headers: int = 100
    # Requests that a client may send before it gets an answer. One more is refused.
    pipelined: int = 100
    tick_seconds: float = 1
    # Ticks for the head of a request, from its first byte; for the first one, from the connection.
    # Then the connection is closed.
    head_ticks: int = 10
    # Ticks without a request after an answer; then the connection is closed. Longer than clients
    # keep idle connections (httpx 5 seconds, aiohttp 15), since a request fails if its connection
    # is being closed.
    idle_ticks: int = 20
    # The same for proxies. Google's load balancers keep connections for 600 seconds, others for 60.
    proxy_idle_ticks: int = 650
    # Ticks in which the client reads nothing of an answer; then the connection is aborted.
    blocked_ticks: int = 60


class Connections:
    """The open connections of a server. ``total`` is their number; ``by_network`` has the
    connections of each client.

    ``proxies`` are addresses and networks, or ``*`` for all. Their connections do not count by
    network, since they carry many clients.
    """

    def __init__(
        self, total_max: int, proxies: tuple[str, ...] = (), limits: ConnectionLimits | None = None
    ) -> None:
        self.limits = limits or ConnectionLimits()
        self.total = 0
        # The last time, by the monotonic clock, that the event loop of the server ran.
        self.turned_at = time.monotonic()
        self.by_network: defaultdict[str, set[_LimitedProtocol]] = defaultdict(set)
        self._total_max = total_max
        self._proxies = ProxyHeadersMiddleware(None, list(proxies)).trusted_hosts

    def enter(self, connection: "_LimitedProtocol", address: str) -> RequestError | None:
        """Count a connection. Returns an error if it is refused and not counted. If its client has
        too many, closes the connection that has been idle longest instead.
        """
        if self.total >= self._total_max:
            LIMITS_HIT.count("connections")
            return RequestError(
                "unavailable", "The server has too many connections. Try again in a moment."
            )
        theirs = self.by_network[network(address)]
        if len(theirs) >= self.limits.per_network and address not in self._proxies:
            idle = [one for one in theirs if one.is_idle()]
            if not idle:
                LIMITS_HIT.count("client-connections")
                return RequestError(
                    "rate_limited",
                    f"Your address already has {self.limits.per_network} open connections. Close "
                    "some, or reuse one for several requests.",
                )
            min(idle, key=lambda one: one.requested_at).transport.close()
        self.total += 1
        theirs.add(connection)
        return None

    def leave(self, connection: "_LimitedProtocol", address: str) -> None:
        """Uncount a connection that ``enter`` counted."""
        client = network(address)
        self.total -= 1
        self.by_network[client].remove(connection)
        if not self.by_network[client]:
            del self.by_network[client]

    def idle_ticks(self, address: str) -> int:
        """The ticks that a connection from this address may be idle."""
        limits = self.limits
        return limits.proxy_idle_ticks if address in self._proxies else limits.idle_ticks

    def readings(self) -> Iterator[Reading]:
        """The gauges of the server."""
        yield Reading(CONNECTIONS, self.total)
        yield Reading(STALLED, time.monotonic() - self.turned_at)

    def protocol(self, **options: Any) -> asyncio.Protocol:
        """The protocol of a new connection; ``options`` are uvicorn's."""
        return _LimitedProtocol(self, **options)


class _LimitExceeded(Exception):
    """Raised to the parser, which then stops."""


class _LimitedProtocol(HttpToolsProtocol):
    """One connection. After the answer to a head that is too large, it keeps reading for a while
    and discards the data: closing at once would lose the answer for a client that still sends.
    """

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections
        self._limits = connections.limits
        self._address: str | None = None  # None: not counted
        self._idle_ticks_max = 0
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        # Bytes since the last callback of the parser, which buffers them until the next one.
        self._unparsed_bytes = 0
        self._has_exceeded = self._is_refused = False
        # True between requests: the last one came whole, and nothing of the next one yet.
        self._is_between = False
        # The time at which the last request began, by the monotonic clock.
        self.requested_at = 0.0
        # Ticks for which this connection has waited for a head, or the client has read nothing.
        # Ticks rather than a clock: a clock would count time in which this process was stopped
        # against clients.
        self._head_ticks = self._blocked_ticks = 0
        self._unsent_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        error = self._all.enter(self, address)
        if error:
            self._refuse(error_answer(error, RETRY_SECONDS))
            transport.close()
        else:
            self._address = address
            self._idle_ticks_max = self._all.idle_ticks(address)
        self._timer = self.loop.call_later(self._limits.tick_seconds, self._tick)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._timer.cancel()
        if self._address is not None:
            self._all.leave(self, self._address)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > self._limits.head_bytes and not self._is_refused:
            self._has_exceeded = True
            self.send_400_response("")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._blocked_ticks = 0

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined:
            raise _LimitExceeded
        super().on_message_begin()
        self._head_bytes = self._unparsed_bytes = self._head_ticks = 0
        self._is_between = False
        self.requested_at = time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if len(self.headers) >= self._limits.headers:
            self._exceed()
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Leave idle connections to ``_tick``, as all others that wait for a client."""

    def is_idle(self) -> bool:
        """True if it waits for the next request and would close at once, with nothing left
        to send.
        """
        if not self._is_between or self._is_answering() or self.transport.is_closing():
            return False
        # Unsent data would keep the connection open.
        return not self.transport.get_write_buffer_size()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed; with 431 if its head is too large."""
        if self._is_answering():
            # Another answer is under way, and this one would become a part of it.
            self.transport.close()
        elif self._has_exceeded:
            LIMITS_HIT.count("head")
            limits = self._limits
            self._refuse(
                error_answer(
                    RequestError(
                        "headers_too_large",
                        "The address or the headers of the request are too large. The limits are "
                        f"{limits.head_bytes:,} bytes and {limits.headers} headers.",
                    )
                )
            )
            self.transport.write_eof()
        else:
            super().send_400_response(msg)

    def _count(self, size: int) -> None:
        self._unparsed_bytes = 0
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            self._exceed()

    def _exceed(self) -> None:
        self._has_exceeded = True
        raise _LimitExceeded

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, answer: Answer) -> None:
        """Send an answer and read nothing more."""
        self._is_refused = True
        headers = [*answer.headers, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(
            b"HTTP/1.1 %d %b\r\n%b\r\n%b"
            % (answer.status, HTTPStatus(answer.status).phrase.encode(), head, answer.body)
        )

    def _tick(self) -> None:
        """Close the connection if its client has kept it waiting too long."""
        self._head_ticks = 0 if self._is_answering() else self._head_ticks + 1
        unsent_bytes = self.transport.get_write_buffer_size()
        is_blocked = unsent_bytes and unsent_bytes >= self._unsent_bytes
        self._blocked_ticks = self._blocked_ticks + 1 if is_blocked else 0
        self._unsent_bytes = unsent_bytes
        waited_max = self._idle_ticks_max if self._is_between else self._limits.head_ticks
        if self._blocked_ticks > self._limits.blocked_ticks:
            self.transport.abort()
        elif self._head_ticks > waited_max:
            self.transport.close()
        self._timer = self.loop.call_later(self._limits.tick_seconds, self._tick)


def raise_open_files_limit() -> int:
    """Raise the soft limit of open files to the hard one; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Without a hard limit, some systems reject an unlimited soft limit.
    wanted = hard
    if hard == resource.RLIM_INFINITY:
        wanted = max(soft, CONNECTIONS_MAX + FILES_RESERVED)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def connections_max(open_files: int) -> int:
    """The most connections of a process that may open ``open_files`` files."""
    return min(CONNECTIONS_MAX, open_files - min(FILES_RESERVED, open_files // 2))
