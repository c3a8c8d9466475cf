"""The whole hub as one ASGI application: who answers which request."""

from collections.abc import Callable
from typing import Any

from a2wsgi import WSGIMiddleware

from builder.routes import HEALTH_URL, is_publish_url
from builder.serve import ReadApp, Receive, Scope, Send

# A publisher holds a thread until its version can be read.
PUBLISHERS_AT_ONCE = 64


class Hub:
    """Reads, and beside them the publish service, a WSGI application."""

    def __init__(self, reads: ReadApp, publisher: Callable[..., Any]) -> None:
        self._reads = reads
        self._publisher = WSGIMiddleware(publisher, PUBLISHERS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_for_publisher(scope):
            root = self._reads.settings.base_path
            await self._publisher({**scope, "root_path": root}, receive, send)
        else:
            await self._reads(scope, receive, send)

    def _is_for_publisher(self, scope: Scope) -> bool:
        below = self._reads.below_base(scope["path"])
        return below is not None and (
            below == HEALTH_URL or (scope["method"] == "POST" and is_publish_url(below))
        )
