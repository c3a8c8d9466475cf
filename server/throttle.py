"""Rate limits by client and time: the library ``limits`` with a storage of its own.

Each process counts for itself. The library's memory storage
starts a thread that looks through all clients a hundred times a second. This one forgets clients
once a minute, and a hit costs less than a tenth of a small read.
"""

import ipaddress
import math
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from builder.model.metrics import LIMITS_HIT
from server import answer_headers
from server.answer_headers import IPV6_CLIENT_BITS, WINDOW_SECONDS

_REMEMBERED = 4096


class _WindowStorage(Storage):
    """Counts by key, each for the window that began with its first hit. Not safe for concurrent
    threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[str, list[float]] = {}  # key: [count, end by the monotonic clock]
        self._sweep_at = 0.0

    base_exceptions = ()

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        now = time.monotonic()
        window = self._windows.get(key)
        if window is None or window[1] <= now:
            if now >= self._sweep_at:
                self._windows = {k: w for k, w in self._windows.items() if w[1] > now}
                self._sweep_at = now + WINDOW_SECONDS
            self._windows[key] = window = [0, now + expiry]
        window[0] += amount
        return int(window[0])

    def get(self, key: str) -> int:
        window = self._windows.get(key)
        return int(window[0]) if window and window[1] > time.monotonic() else 0

    def get_expiry(self, key: str) -> float:
        window = self._windows.get(key)
        return window[1] if window else time.monotonic()

    def check(self) -> bool:
        return True

    def reset(self) -> int:
        count = len(self._windows)
        self._windows.clear()
        return count

    def clear(self, key: str) -> None:
        self._windows.pop(key, None)


@lru_cache(maxsize=_REMEMBERED)
def network(address: str) -> str:
    """The key under which requests from an address count: the /64 of an IPv6 address, or the IPv4
    address, also if it is written as ``::ffff:192.0.2.7``. Other text stays as it is.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # clients of a Unix socket have no address
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), IPV6_CLIENT_BITS), strict=False))


# The key of a request's scope under which a guard stores the reader's name.
READER = "hub.reader"


def client_of(scope: Mapping[str, Any]) -> str:
    """The key under which a request counts: the reader's token or session on a private hub, else
    the network of the address.
    """
    reader, client = scope.get(READER), scope["client"]
    return reader or (network(client[0]) if client else "")


class Throttle:
    """Counts the requests of each client, except those that it refuses.

    ``limit`` is the number of requests in ``minutes`` from a client's first one; 0: no limit, and
    no ``policy``. ``name`` is its name in the headers and in the metrics, which must know it.
    """

    def __init__(self, limit: int, name: str = "read", minutes: int = 1) -> None:
        self.policy = answer_headers.policy(limit, name, minutes) if limit else ""
        self._name = name
        LIMITS_HIT.count(name, by=0)  # an unknown name fails here, not at the first refusal
        self._item = RateLimitItemPerMinute(limit, minutes)
        self._limiter = FixedWindowRateLimiter(_WindowStorage())
        self._turn = threading.Lock()

    def hit(self, client: str) -> int:
        """Count a request. Returns 0 if it may continue, else the whole seconds until the client
        may try again.
        """
        with self._turn:
            if not self.policy or self._limiter.hit(self._item, client):
                return 0
            wait_seconds = self._seconds_left(client)
            self._uncount(client)
        LIMITS_HIT.count(self._name)
        return wait_seconds

    def spend(self, client: str, amount: int) -> None:
        """Count an amount of what the limit is in, also beyond the limit."""
        with self._turn:
            self._limiter.hit(self._item, client, cost=amount)

    def wait_seconds(self, client: str) -> int:
        """Returns 0 while the limit is not reached, else the whole seconds until its window ends.
        Counts nothing.
        """
        with self._turn:
            if self._limiter.test(self._item, client):
                return 0
            wait_seconds = self._seconds_left(client)
        LIMITS_HIT.count(self._name)
        return wait_seconds

    def give_back(self, client: str) -> None:
        """Uncount a request that ``hit`` allowed."""
        with self._turn:
            self._uncount(client)

    def forget(self, client: str) -> None:
        """Uncount all of the client's requests so far."""
        with self._turn:
            self._limiter.clear(self._item, client)

    def exhausted(self, wait_seconds: int) -> str:
        """The RateLimit header for a client that must wait ``wait_seconds``."""
        return answer_headers.exhausted(wait_seconds, self._name)

    def _seconds_left(self, client: str) -> int:
        end = self._limiter.get_window_stats(self._item, client).reset_time
        return max(1, math.ceil(end - time.monotonic()))

    def _uncount(self, client: str) -> None:
        key = self._item.key_for(client)
        # Counts of a window that has ended do not matter in the next.
        if self._limiter.storage.get(key):
            self._limiter.storage.incr(key, self._item.get_expiry(), -1)
