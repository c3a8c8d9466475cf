"""The whole hub as one ASGI application: who answers which request, and how it starts and ends."""

import contextlib
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from a2wsgi import WSGIMiddleware

from builder.errors import OperatorError
from builder.routes import HEALTH_URL, MCP_URLS, TRUSTED_URL, is_account_url, is_publish_url
from builder.serve import ReadApp, Receive, Scope, Send

# A publisher holds a thread until its version can be read.
PUBLISHERS_AT_ONCE = 64

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RunningApp(Protocol):
    """An ASGI application that answers only inside ``running()``."""

    def running(self) -> AbstractAsyncContextManager[Any]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Hub:
    """Reads, and beside them the publish service, a WSGI application, and MCP where it is given."""

    def __init__(
        self, reads: ReadApp, publisher: Callable[..., Any], mcp: RunningApp | None = None
    ) -> None:
        self._reads = reads
        self._mcp = mcp
        self._publisher = WSGIMiddleware(publisher, PUBLISHERS_AT_ONCE)
        self._root = reads.settings.base_path
        # Looked up with each request, so by whole paths.
        self._apps: dict[str, App] = dict.fromkeys(
            (self._root + url for url in (HEALTH_URL, TRUSTED_URL)), self._publish
        )
        if mcp:
            self._apps |= {self._root + url: mcp for url in MCP_URLS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._app_for(scope)(scope, receive, send)
        elif scope["type"] == "lifespan":
            await run_lifespan(receive, send, self._running())

    def _app_for(self, scope: Scope) -> App:
        path = scope["path"]
        app = self._apps.get(path)
        if app:
            return app
        below = self._reads.below_base(path) or ""
        if is_account_url(below) or (scope["method"] == "POST" and is_publish_url(below)):
            return self._publish
        return self._reads

    async def _publish(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._publisher({**scope, "root_path": self._root}, receive, send)

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        with contextlib.closing(self._reads):
            async with self._mcp.running() if self._mcp else contextlib.nullcontext():
                yield


async def run_lifespan(
    receive: Receive, send: Send, running: AbstractAsyncContextManager[Any]
) -> None:
    """Speak ASGI's lifespan protocol for an application that starts by entering ``running`` and
    ends by leaving it. What either raises stops the server, with a message; it is raised, too.
    """
    await receive()
    phase = "startup"
    try:
        async with running:
            await send({"type": "lifespan.startup.complete"})
            phase = "shutdown"
            await receive()
    except Exception as error:
        # Servers show the message only: an operator's tells all, a defect's has to.
        told = str(error) if isinstance(error, OperatorError) else traceback.format_exc()
        await send({"type": f"lifespan.{phase}.failed", "message": told})
        raise
    await send({"type": "lifespan.shutdown.complete"})
