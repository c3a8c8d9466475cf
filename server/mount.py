"""The whole hub as one ASGI application: routes requests, and starts and ends the parts."""

import contextlib
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from a2wsgi import WSGIMiddleware

from builder.model.errors import OperatorError, RequestError
from builder.model.metrics import Counter, Histogram
from builder.model.routes import API_ROOTS, BY_NAME
from builder.model.service_urls import (
    HEALTH_URL,
    MCP_URLS,
    READY_URL,
    TRUSTED_URL,
    WRITING_URL,
    is_account_url,
    is_check_url,
    is_compare_url,
    write_methods,
)
from server.answers import error_answer, send_answer
from server.app import ReadApp, Receive, RunningApp, Scope, Send
from server.bodies import VISITOR_BYTES_MAX, in_time, is_chunked, is_long, read_ahead
from server.guard import Guard

REQUEST_CLASSES = ("read", "page", "search", "publish", "account", "mcp", "other")
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
REQUESTS = Counter(
    "hub_requests_total",
    "Requests answered. read: the API's files; page: pages and their assets; search: `?q=`; "
    "publish: publications, checks, label changes and token exchanges; other: health, and all "
    "requests before there is a site.",
    **{"class": REQUEST_CLASSES},
    status=STATUS_CLASSES,
)
REQUEST_SECONDS = Histogram(
    "hub_request_duration_seconds",
    "Time from a request's head to the first byte of its answer.",
    **{"class": REQUEST_CLASSES},
)

# Requests that each pool answers at once; each holds a thread. The pools are separate, so no kind
# waits for another. A publisher waits until its version can be read.
PUBLISHERS_AT_ONCE = 64
VISITORS_AT_ONCE = 16
JOBS_AT_ONCE = 16
# Checks of drafts. Those with long bodies hold a thread while the body arrives.
CHECKS_AT_ONCE, LONG_CHECKS_AT_ONCE = 16, 8
# Each takes up to a second of the processor, and more of them at once are not faster.
COMPARISONS_AT_ONCE = 2
MONITORS_AT_ONCE = 2
# The longest time for the whole body of a request: without a token, and of a publisher with one.
# After it, the request fails.
VISITOR_SECONDS = 10
PUBLISHER_SECONDS = 30

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Hub:
    """Routes requests to the reads, the publish service (a WSGI application), and MCP if there is
    one.

    Where a request needs no token, a short body is read before the publish service is called; if it
    does not arrive in time, the service gets a TimeoutError. While ``is_ready()`` is false, only
    the status of the builds is answered; all else gets 503. With a ``guard``, only members read.
    ``is_measured``: requests are counted and timed for the metrics.
    """

    def __init__(
        self,
        reads: ReadApp,
        publisher: Callable[..., Any],
        mcp: RunningApp | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        guard: Guard | None = None,
        *,
        is_measured: bool = False,
    ) -> None:
        self._reads = reads
        self._mcp = mcp
        self._is_ready = is_ready
        self._guard = guard
        self._root = reads.settings.base_path
        wsgi = partial(WSGIMiddleware, publisher)
        publishers = wsgi(PUBLISHERS_AT_ONCE)
        self._publish = self._passed(publishers, publishers, PUBLISHER_SECONDS, ahead_max=-1)
        self._write = self._passed(publishers, publishers, PUBLISHER_SECONDS)
        self._check = self._passed(wsgi(CHECKS_AT_ONCE), wsgi(LONG_CHECKS_AT_ONCE), VISITOR_SECONDS)
        self._visit = self._passed(wsgi(VISITORS_AT_ONCE))
        self._exchange = self._passed(wsgi(JOBS_AT_ONCE))
        self._compare = self._passed(wsgi(COMPARISONS_AT_ONCE))
        self._monitor = self._passed(wsgi(MONITORS_AT_ONCE))
        # A pool of its own, since it may have to wait for the accounts database.
        self._monitor_ready = self._passed(wsgi(MONITORS_AT_ONCE))
        # By whole paths, since it is looked up with each request.
        self._apps: dict[str, App] = {
            self._root + HEALTH_URL: self._monitor,
            self._root + READY_URL: self._monitor_ready,
            self._root + TRUSTED_URL: self._exchange,
        }
        if mcp:
            self._apps |= {self._root + url: mcp for url in MCP_URLS}
        self._is_measured = is_measured
        self._classes: dict[App | None, str] = {
            mcp: "mcp",
            **dict.fromkeys((self._visit, self._write, self._compare), "account"),
            **dict.fromkeys((self._publish, self._check, self._exchange), "publish"),
        }
        self._api_roots = tuple(f"{self._root}{root}/" for root in API_ROOTS)
        self._list_path = self._root + BY_NAME["repos"].url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            app = self._app_for(scope)
            answer = self._guarded(app, self._guard, scope) if self._guard else app
            if self._is_measured:
                await self._measure(self._class_of(app, scope), answer, scope, receive, send)
            else:
                await answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await run_lifespan(receive, send, self._running())

    def _guarded(self, app: App, guard: Guard, scope: Scope) -> App:
        """The application on a private hub: behind the guard, unless it checks the reader itself or
        reveals nothing.
        """
        if app in (self._monitor, self._monitor_ready, _say_not_ready):
            return app
        asks_itself = app in (self._visit, self._write, self._publish, self._exchange)
        if asks_itself or guard.is_open(scope["path"]):
            return partial(guard.pass_back, app)
        return partial(guard.pass_on, app)

    def _app_for(self, scope: Scope) -> App:
        path = scope["path"]
        app = self._apps.get(path)
        if not self._is_ready() and app not in (self._monitor, self._monitor_ready):
            return _say_not_ready
        if app:
            return app
        below = self._reads.below_base(path) or ""
        if is_compare_url(below):
            return self._compare
        if is_account_url(below):
            is_writing = scope["method"] == "POST" and below.startswith(f"{WRITING_URL}/")
            return self._write if is_writing else self._visit
        if is_check_url(below) and scope["method"] != "OPTIONS":
            return self._check
        if scope["method"] in write_methods(below):
            return self._publish
        return self._reads

    def _passed(
        self,
        app: App,
        long_app: App | None = None,
        seconds: float = 0.0,
        ahead_max: int = VISITOR_BYTES_MAX,
    ) -> App:
        """``app`` below the base URL, with a body that was read ahead. With a ``long_app``, it gets
        bodies of more than ``ahead_max`` bytes, or of unknown length, which have to arrive within
        ``seconds`` while it runs: it checks or counts the sender before it reads the body.
        """

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            answering = app
            if long_app and (is_long(scope, ahead_max) or is_chunked(scope)):
                answering, receive = long_app, in_time(receive, seconds)
            else:
                receive = await read_ahead(scope, receive, VISITOR_BYTES_MAX, VISITOR_SECONDS)
            await answering({**scope, "root_path": self._root}, receive, send)

        return answer

    async def _measure(
        self, kind: str, app: App, scope: Scope, receive: Receive, send: Send
    ) -> None:
        began = time.perf_counter()
        status = 0

        def noting(message: dict[str, Any]) -> Awaitable[None]:
            nonlocal status
            if not status:
                status = message["status"]
                REQUESTS.count(kind, STATUS_CLASSES[status // 100 - 2])
                REQUEST_SECONDS.observe(time.perf_counter() - began, kind)
            return send(message)

        try:
            await app(scope, receive, noting)
        finally:
            if not status:
                REQUESTS.count(kind, "5xx")  # the server itself answers 500

    def _class_of(self, app: App, scope: Scope) -> str:
        if app is not self._reads:
            return self._classes.get(app, "other")
        path = scope["path"]
        if not path.startswith(self._api_roots):
            return "page"
        is_search = path == self._list_path and b"q=" in scope["query_string"]
        return "search" if is_search else "read"

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        with contextlib.ExitStack() as stack:
            if self._guard:
                stack.callback(self._guard.close)
            async with self._mcp.running() if self._mcp else contextlib.nullcontext():
                yield


async def _say_not_ready(scope: Scope, receive: Receive, send: Send) -> None:
    error = RequestError("unavailable", "The site is being built. Try again in a moment.")
    await send_answer(error_answer(error), scope, send)


async def run_lifespan(
    receive: Receive, send: Send, running: AbstractAsyncContextManager[Any]
) -> None:
    """Speak ASGI's lifespan protocol for an application that starts by entering ``running`` and
    ends by leaving it. An error in either stops the server with a message, and is raised, too.
    """
    await receive()
    phase = "startup"
    try:
        async with running:
            await send({"type": "lifespan.startup.complete"})
            phase = "shutdown"
            await receive()
    except Exception as error:
        # Servers show only this message. An OperatorError's text is complete; a defect needs its
        # traceback.
        reason = str(error) if isinstance(error, OperatorError) else traceback.format_exc()
        await send({"type": f"lifespan.{phase}.failed", "message": reason})
        raise
    await send({"type": "lifespan.shutdown.complete"})
