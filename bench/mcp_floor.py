"""Servers that the MCP endpoint is compared with, as processes of their own.

``bare`` is the least that Python can do: it reads a request and sends the answer of the last PUT.
``sdk`` is the hub's handlers behind the MCP SDK's own transport, stateless and with answers in
JSON, without the hub's endpoint. Both run as ``hubctl serve`` does, with the same settings.
"""

import argparse
import contextlib
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from builder.model.settings import Settings
from builder.search.query_thread import QueryThread
from mcp_app.reader import Catalogue
from mcp_app.server import make_server
from server.app import Receive, Scope, Send
from server.listening import listen, run
from server.mount import run_lifespan

HOST = "127.0.0.1"


class Bare:
    """Answers every request with the body of the last PUT and the hub's headers."""

    def __init__(self) -> None:
        self._keep(b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await run_lifespan(receive, send, contextlib.nullcontext())
        parts = []
        is_more = True
        while is_more:
            event = await receive()
            parts.append(event.get("body", b""))
            is_more = event.get("more_body", False)
        if scope["method"] == "PUT":
            self._keep(b"".join(parts))
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})

    def _keep(self, body: bytes) -> None:
        self._body = body
        self._headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]


class Sdk:
    """The SDK's transport over the whole catalogue."""

    def __init__(self, settings: Settings, queries: QueryThread) -> None:
        server = make_server(Catalogue(settings, queries))
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await run_lifespan(receive, send, self._manager.run())
        await self._manager.handle_request(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("bare", "sdk"))
    parser.add_argument("--port", type=int, required=True, metavar="N")
    parser.add_argument("--base-url", default="http://127.0.0.1:8000", metavar="URL")
    parser.add_argument("--out", metavar="DIR", help="the site; for sdk")
    parser.add_argument("--state", metavar="DIR", help="with the search index; for sdk")
    options = parser.parse_args()
    with listen(HOST, options.port) as listener, contextlib.ExitStack() as stack:
        app: Any = Bare()
        if options.kind == "sdk":
            settings = Settings(out=options.out, state=options.state, base_url=options.base_url)
            app = Sdk(settings, stack.enter_context(contextlib.closing(QueryThread(settings))))
        run(app, listener, (HOST,), None)


if __name__ == "__main__":
    main()
