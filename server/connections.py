"""Limits on what a connection may hold: a place, memory for the head of a request, and time.

uvicorn has no such limits. Here they are added to its protocol class, by its public methods: those
of asyncio's Protocol, the callbacks of the parser (httptools), ``send_400_response`` and
``timeout_keep_alive_handler``.
"""

import asyncio
import ipaddress
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from builder.model.answer_headers import RETRY_SECONDS
from builder.model.errors import RequestError
from builder.model.metrics import LIMITS_HIT, Gauge, Reading
from server.answers import Answer, error_answer
from server.throttle import network

CONNECTIONS = Gauge("hub_connections", "Open connections of clients and proxies.")
STALLED = Gauge(
    "hub_stalled_seconds", "Time since the server last got its turn; it answers nothing meanwhile."
)

CONNECTIONS_MAX = 4096
# Files that the rest of the process may open: databases, publications, builds, large answers.
FILES_RESERVED = 384


class ConnectionLimits(NamedTuple):
    """What one connection, or one client address, may have."""

    per_network: int = 128
    head_bytes: int = 64 * 1024
    headers: int = 100
    # Requests that were sent without waiting for an answer.
    pipelined: int = 100
    tick_seconds: float = 1
    # Ticks for the head of a request, from its first byte; for the first, from the connection on.
    head_ticks: int = 10
    # Ticks without a request after an answer. Clients keep idle connections as well (httpx for 5
    # seconds, aiohttp for 15): a request on one that is just being closed would fail.
    idle_ticks: int = 20
    # The same for proxies: Google's load balancers keep connections for 600 seconds, others for 60.
    proxy_idle_ticks: int = 650
    # Ticks in which the client takes nothing of an answer.
    blocked_ticks: int = 60


class Connections:
    """The open connections of a server: ``total`` is their number, ``by_network`` has those of each
    client.

    ``proxies`` are addresses and networks, or ``*`` for all, whose connections do not count by
    network, as they come from many clients.
    """

    def __init__(
        self, total_max: int, proxies: tuple[str, ...] = (), limits: ConnectionLimits | None = None
    ) -> None:
        self.limits = limits or ConnectionLimits()
        self.total = 0
        # By monotonic time: when the server that has them last got its turn.
        self.turned_at = time.monotonic()
        self.by_network: defaultdict[str, set[_LimitedProtocol]] = defaultdict(set)
        self._total_max = total_max
        self._proxies = proxies
        self._proxy_networks = [found for proxy in proxies if (found := _network_of(proxy))]

    def enter(self, connection: "_LimitedProtocol", address: str) -> RequestError | None:
        """Count a connection; with an error it is refused, and does not count. Where its client has
        too many, the one that is idle for longest is closed instead.
        """
        if self.total >= self._total_max:
            LIMITS_HIT.count("connections")
            return RequestError(
                "unavailable", "The server has too many connections. Try again in a moment."
            )
        theirs = self.by_network[network(address)]
        if len(theirs) >= self.limits.per_network and not self._is_proxy(address):
            idle = [one for one in theirs if one.is_idle()]
            if not idle:
                LIMITS_HIT.count("client-connections")
                return RequestError(
                    "rate_limited",
                    f"Your address already has {self.limits.per_network} open connections. Close "
                    "some, or reuse one for several requests.",
                )
            min(idle, key=lambda one: one.asked_at).transport.close()
        self.total += 1
        theirs.add(connection)
        return None

    def leave(self, connection: "_LimitedProtocol", address: str) -> None:
        """Count a connection no more that ``enter`` has counted."""
        client = network(address)
        self.total -= 1
        self.by_network[client].remove(connection)
        if not self.by_network[client]:
            del self.by_network[client]

    def idle_ticks(self, address: str) -> int:
        """Ticks that a connection from this address may be idle."""
        limits = self.limits
        return limits.proxy_idle_ticks if self._is_proxy(address) else limits.idle_ticks

    def readings(self) -> Iterator[Reading]:
        """The gauges of the server."""
        yield Reading(CONNECTIONS, self.total)
        yield Reading(STALLED, time.monotonic() - self.turned_at)

    def protocol(self, **options: Any) -> asyncio.Protocol:
        """The protocol of a new connection; ``options`` are uvicorn's."""
        return _LimitedProtocol(self, **options)

    def _is_proxy(self, address: str) -> bool:
        if "*" in self._proxies or address in self._proxies:
            return True
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in one for one in self._proxy_networks)


class _LimitExceeded(Exception):
    """Raised to the parser, which then stops."""


class _LimitedProtocol(HttpToolsProtocol):
    """One connection. An answer to a head that is too large is followed by reading for a while,
    without keeping anything: to close at once would take the answer from a client who still sends.
    """

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections
        self._limits = connections.limits
        self._address: str | None = None  # None: not counted
        self._idle_ticks_max = 0
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        # Bytes since the parser last told of anything, which it keeps until it does.
        self._untold_bytes = 0
        self._has_exceeded = self._is_refused = False
        # All of a request has come, and nothing of the next one.
        self._is_between = False
        # When the last request began, by monotonic time.
        self.asked_at = 0.0
        # Ticks that the client has owed a head, and has taken nothing. Counted, as a clock would
        # blame clients for time in which this process was stopped.
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
        self._untold_bytes += len(data)
        super().data_received(data)
        if self._untold_bytes > self._limits.head_bytes and not self._is_refused:
            self._has_exceeded = True
            self.send_400_response("")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._blocked_ticks = 0

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined:
            raise _LimitExceeded
        super().on_message_begin()
        self._head_bytes = self._untold_bytes = self._head_ticks = 0
        self._is_between = False
        self.asked_at = time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if len(self.headers) >= self._limits.headers:
            self._exceed()
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._untold_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Leave idle connections to ``_tick``, as all others that wait for a client."""

    def is_idle(self) -> bool:
        """Whether it waits for a next request, and would be gone at once if it were closed."""
        if not self._is_between or self._is_answering() or self.transport.is_closing():
            return False
        # What is not sent yet would keep it open.
        return not self.transport.get_write_buffer_size()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be read: with 431 if its head is too large."""
        if self._is_answering():
            # It would become a part of the answer that is being sent.
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
        self._untold_bytes = 0
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
        """Close the connection if its client has let us wait too long."""
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
    """Raise the soft limit of open files to the hard one; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Where there is no hard limit, some systems refuse a soft one without an end.
    wanted = hard
    if hard == resource.RLIM_INFINITY:
        wanted = max(soft, CONNECTIONS_MAX + FILES_RESERVED)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def connections_max(open_files: int) -> int:
    """How many connections there may be, where the process may have so many files open."""
    return min(CONNECTIONS_MAX, open_files - min(FILES_RESERVED, open_files // 2))


def _network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
