"""Limits that all nodes of a hub count together, in Redis or Valkey, with the library ``limits``.

A hub does not depend on Redis. While Redis is unavailable, each node counts for itself, and only
one request every ``RETRY_SECONDS`` tries whether it is back. No request waits longer than
``ANSWER_SECONDS``. The work runs in other threads, so a slow name server or an encrypted connection
that never completes blocks no request.

The only importer of redis, which is an optional dependency.
"""

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter

from builder.model.errors import OperatorError
from builder.model.metrics import Gauge
from builder.pipeline.background import Failures
from publisher.log import log_event
from server.throttle import SharedAway

LIMITS_FAILURES = Gauge(
    "hub_limits_failures_in_row",
    "Failed attempts to count limits in Redis since the last success. Above 0, this node counts "
    "for itself.",
    part="limits",
    key="failures",
)

try:
    from redis.backoff import NoBackoff
    from redis.exceptions import AuthenticationError, RedisError
    from redis.retry import Retry
except ImportError as error:
    raise OperatorError(
        f"--limits needs the redis library ({error}). Install it with `pip install redis`."
    ) from None

ANSWER_SECONDS = 0.25
RETRY_SECONDS = 5.0
THREADS = 4

log = logging.getLogger("hub.limits")

_URL = re.compile(r"(?:(?:redis|valkey)s?://|unix:///)\S+")
_R = TypeVar("_R")


class _Windows(RedisStorage):
    """The library's storage, with windows that end by this machine's monotonic clock."""

    def get_expiry(self, key: str) -> float:
        left_ms = self.get_connection(True).pttl(self.prefixed_key(key))
        return time.monotonic() + max(left_ms, 0) / 1000


class SharedCounts:
    """See ``Shared``. While entered, counts at ``url`` under ``prefix``, which is the same for all
    nodes of a hub. For any number of threads. Raises OperatorError where the URL is invalid.
    """

    def __init__(self, url: str, prefix: str) -> None:
        try:
            if not _URL.fullmatch(url):
                raise ValueError(url)
            storage = _Windows(
                # Valkey has the same protocol, and the library of Redis.
                re.sub("^valkey", "redis", url),
                key_prefix=f"hub:{prefix}",
                socket_timeout=ANSWER_SECONDS,
                socket_connect_timeout=ANSWER_SECONDS,
                retry=Retry(NoBackoff(), 0),
            )
        except (ValueError, TypeError):
            # Shows neither the URL nor the library's message: both may have a password.
            raise OperatorError(
                "--limits is no address of a Redis. Give one such as redis://HOST:6379/0, "
                "rediss://:PASSWORD@HOST:6379/0, valkey://HOST or unix:///run/redis/redis.sock, "
                "with special characters of the password as in %2F."
            ) from None
        self._client = storage.storage
        self._limiter = FixedWindowRateLimiter(storage)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="limits")
        self._turn = threading.Lock()
        self._failures = Failures()
        self._again_at = 0.0

    def __enter__(self) -> Self:
        with contextlib.suppress(SharedAway):  # it is in the log, and the hub works without Redis
            self.ask(lambda limiter, key: limiter.storage.get(key), "start")
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def ask(self, work: Callable[[FixedWindowRateLimiter, str], _R], client: str) -> _R:
        """See ``Shared``. Waits at most ``ANSWER_SECONDS``."""
        with self._turn:
            if time.monotonic() < self._again_at:
                raise SharedAway
            if is_trial := self._failures.count > 0:
                # other requests do not try meanwhile
                self._again_at = time.monotonic() + RETRY_SECONDS
        future = self._threads.submit(work, self._limiter, client)
        try:
            done = future.result(ANSWER_SECONDS)
        except (RedisError, OSError) as error:  # a TimeoutError is an OSError
            future.cancel()
            self._note_away(error)
            raise SharedAway from error
        if is_trial:
            self._note_back()
        return done

    def status(self) -> dict[str, Any]:
        """Returns the state that the last request found, without secrets. ``status`` is ``ok``, or
        ``alone`` while each node counts for itself.
        """
        with self._turn:
            return {"status": "alone" if self._failures.count else "ok", **self._failures.status()}

    def _note_away(self, error: Exception) -> None:
        with self._turn:
            is_first = not self._failures.count
            self._failures.add("Redis cannot be used. The log has the cause.")
            self._again_at = time.monotonic() + RETRY_SECONDS
        if is_first:
            log_event(
                log,
                logging.WARNING,
                "limits",
                status="alone",
                reason=_reason(error),
                retry_seconds=RETRY_SECONDS,
            )

    def _note_back(self) -> None:
        with self._turn:
            self._failures.clear()
            self._again_at = 0.0
        log_event(log, logging.INFO, "limits", status="ok")


def _reason(error: Exception) -> str:
    if isinstance(error, AuthenticationError):
        return f"Redis refused the sign-in: {error} Correct user and password in --limits."
    return str(error) or f"Redis did not answer within {ANSWER_SECONDS:g} s."
