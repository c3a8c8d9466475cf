"""A private hub: identifies the reader before any other work on a request.

Threads look up in the accounts whether a reader may read. A result counts for KNOWN_SECONDS, so an
ended session or token can read for that long. While the accounts cannot be read, no request may
read.
"""

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from cachetools import TLRUCache

from builder.model.caching import private_cache
from builder.model.errors import RequestError
from builder.model.matching import is_page_path, match_url
from builder.model.messages import MESSAGES
from builder.model.routes import OPEN_ROOTS, WELL_KNOWN
from builder.model.service_urls import LOGIN_URL, MCP_URL
from server.answer_headers import MEMBERS_ONLY, Headers
from server.answers import Answer, error_answer, send_answer
from server.throttle import READER

# Seconds for which the result about a reader counts, and the most readers in memory. The oldest
# results go first.
KNOWN_SECONDS = 5
KNOWN_MAX = 10_000
# Each look-up waits for the database, which handles them one after another anyway.
LOOKUPS_AT_ONCE = 4
# The longest path to return to after sign-in, which a cookie keeps. For a longer one, sign-in leads
# to the default page.
PAGE_CHARS_MAX = 1500

log = logging.getLogger("hub.serve")

# Returns the reader, by the headers Cookie and Authorization; each is empty if the request lacks
# it.
Check = Callable[[str, str], str]

_NOT_STORED = (b"cache-control", b"no-store")


# A reader, or the error for a request that may not read.
_Found = str | RequestError


class Guard:
    """Admits members. ``check`` returns the reader, or raises RequestError for a request that may
    not read; it runs in a thread and may block. ``root`` is the path of the base URL.
    """

    def __init__(
        self, check: Check, root: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._check = check
        self._root = root
        self._clock = clock
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, "members")
        # The result, and the time until which it counts. By a hash of the secrets, so that memory
        # holds no secret.
        self._known: TLRUCache[bytes, tuple[float, _Found]] = TLRUCache(
            KNOWN_MAX, ttu=lambda key, known, now: known[0], timer=clock
        )
        self._asking: dict[bytes, asyncio.Future[_Found]] = {}

    def close(self) -> None:
        self._threads.shutdown()

    def is_open(self, path: str) -> bool:
        """True if anyone may read a URL's path."""
        below = path.removeprefix(self._root)
        # Only paths of the table are open, so nothing else is open below such a root.
        is_open_file = below.startswith(OPEN_ROOTS) and match_url(below) is not None
        return is_open_file or below.startswith(WELL_KNOWN)

    async def pass_on(
        self, app: Callable[..., Awaitable[None]], scope: dict[str, Any], receive: Any, send: Any
    ) -> None:
        """Pass a member's request to an application; send others to sign in, or answer 401."""
        # OPTIONS reveals nothing about the hub, and carries no secrets
        if scope["method"] != "OPTIONS":
            found = await self._look_up(scope)
            if isinstance(found, RequestError):
                await send_answer(self._refused(found, scope), scope, send)
                return
            scope = {**scope, READER: found}
        await self.pass_back(app, scope, receive, send)

    async def pass_back(
        self, app: Callable[..., Awaitable[None]], scope: dict[str, Any], receive: Any, send: Any
    ) -> None:
        """Let an application answer, with headers that keep the answer private to the reader."""
        # MCP checks origins itself, and a page needs the reader's token to call it.
        keeps_origins = scope["path"].removeprefix(self._root).rstrip("/") == MCP_URL

        async def send_private(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": _private(event.get("headers", ()), keeps_origins)}
            await send(event)

        await app(scope, receive, send_private)

    async def _look_up(self, scope: dict[str, Any]) -> _Found:
        """The reader who sent a request, or the error for a request that may not read."""
        cookies = [value for name, value in scope["headers"] if name == b"cookie"]
        tokens = [value for name, value in scope["headers"] if name == b"authorization"]
        cookie = b"; ".join(cookies).decode("latin-1")
        authorization = tokens[0].decode("latin-1") if tokens else ""
        key = hashlib.sha256(f"{cookie}\n{authorization}".encode()).digest()
        if known := self._known.get(key):
            return known[1]
        # Concurrent requests of a reader share one look-up.
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.ensure_future(self._ask(key, cookie, authorization))
            self._asking[key] = asking
            asking.add_done_callback(lambda _: self._asking.pop(key))
        return await asyncio.shield(asking)

    async def _ask(self, key: bytes, cookie: str, authorization: str) -> _Found:
        # Counted from before the look-up, which may miss a session that ends meanwhile.
        until = self._clock() + KNOWN_SECONDS
        loop = asyncio.get_running_loop()
        found: _Found
        try:
            found = await loop.run_in_executor(self._threads, self._check, cookie, authorization)
        except RequestError as error:
            # without the traceback and the request's data
            found = RequestError(error.code, str(error))
        except Exception:
            # Last resort for any error: the log gets the cause, and the request is refused.
            log.error("Cannot look up who reads\n%s", traceback.format_exc())
            found = RequestError("internal_error", MESSAGES["internal_error"])
        if isinstance(found, str) or found.status == 401:
            self._known[key] = until, found
        return found

    def _refused(self, error: RequestError, scope: dict[str, Any]) -> Answer:
        if error.status == 401:
            below = scope["path"].removeprefix(self._root) or "/"
            if scope["method"] in ("GET", "HEAD") and is_page_path(below):
                return self._to_login(scope)
        answer = error_answer(error)
        if error.status == 401:
            answer.headers.append((b"www-authenticate", b"Bearer"))
        return answer._replace(headers=_private(answer.headers, keeps_origins=False))

    def _to_login(self, scope: dict[str, Any]) -> Answer:
        path = scope.get("raw_path") or quote(scope["path"]).encode()
        page = b"?".join(filter(None, (path.partition(b"?")[0], scope["query_string"])))
        quoted = quote(page, safe="/%?&=+:@!$'()*,;~-._")
        location = self._root + LOGIN_URL
        if len(quoted) <= PAGE_CHARS_MAX:
            location += f"?page={quoted}"
        headers = [_NOT_STORED, (b"location", location.encode()), (b"content-length", b"0")]
        return Answer(303, headers, b"")


def _private(headers: Headers, keeps_origins: bool) -> Headers:
    """The headers of an answer that only its reader may cache."""
    kept = [
        (name, private_cache(value.decode()).encode() if name == b"cache-control" else value)
        for name, value in ((name.lower(), value) for name, value in headers)
        if keeps_origins or not name.startswith(b"access-control-")
    ]
    return kept if keeps_origins else kept + MEMBERS_ONLY
