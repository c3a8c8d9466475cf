"""The streamable HTTP endpoint of MCP, as an ASGI application.

Stateless: no session and no stream; each answer is JSON. This module checks the HTTP side of a
request. The SDK speaks the protocol, except for the tool calls that ``calls`` answers.
"""

import contextlib
import json
import traceback
from collections.abc import AsyncIterator
from logging import getLogger
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json

from builder.model.caching import CACHE_CONTROL
from builder.model.routes import JSON
from mcp_app.calls import Calls
from server.access import Access
from server.answer_headers import Headers, exhausted
from server.answers import Answer, send_answer
from server.app import Receive, Scope, Send
from server.bodies import is_long, read_ahead
from server.throttle import Throttle, client_of

BODY_BYTES_MAX = 256 * 1024
BODY_SECONDS_MAX = 30

# JSON-RPC 2.0 leaves the codes from -32099 to -32000 to implementations.
REFUSED = -32000

log = getLogger("hub.mcp")

_FIXED: Headers = [
    (b"cache-control", CACHE_CONTROL["none"].encode()),
    (b"x-content-type-options", b"nosniff"),
]
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"POST, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, "
        b"MCP-Session-Id, Mcp-Method, Mcp-Name, traceparent, tracestate",
    ),
    (b"access-control-max-age", b"86400"),
]
_EXPOSED = b"MCP-Protocol-Version, MCP-Session-Id, Retry-After, RateLimit, RateLimit-Policy"
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_ALWAYS: Headers = [
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", JSON.encode()),
]
# The server would read the unread rest of a body as the next request.
_CLOSE: Headers = [(b"connection", b"close")]


class Refusal(Exception):
    """A request that HTTP or JSON-RPC rejects. ``code`` is JSON-RPC's."""

    def __init__(
        self, status: int, message: str, code: int = REFUSED, headers: Headers | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or []


class Endpoint:
    """The ASGI application of an SDK ``Server``, between entering and leaving ``running()``.

    ``calls`` answers what it can before the SDK. ``throttle`` counts requests by client.
    ``connect_url``: of the page that says how clients connect.
    """

    def __init__(
        self,
        server: Server,
        access: Access,
        *,
        calls: Calls | None = None,
        throttle: Throttle | None = None,
        connect_url: str = "",
    ) -> None:
        self._sdk = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._access = access
        self._calls = calls
        self._throttle = throttle
        self._connect_url = connect_url
        policy = [(b"ratelimit-policy", throttle.policy.encode())] if throttle else []
        self._headers = [*_FIXED, *policy]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answers requests while entered. Can be entered once."""
        async with self._sdk.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        cors = _cors(origin) if origin is not None and self._access.admits(origin) else []
        try:
            self._check(scope, headers)
            if scope["method"] == "OPTIONS":
                answer = Answer(204, [*_PREFLIGHT, (b"content-length", b"0")], b"")
            elif scope["method"] != "POST":
                told = f"This is an MCP server: clients send POST. To connect: {self._connect_url}"
                raise Refusal(405, told, headers=[(b"allow", b"POST, OPTIONS")])
            else:
                answer = await self._post(scope, headers, receive)
        except Refusal as refusal:
            answer = _refused(refusal)
        except Exception:
            # Last resort for any error: the log gets the cause.
            log.error("cannot answer %s\n%s", scope["method"], traceback.format_exc())
            answer = _refused(
                Refusal(500, "The server failed. Try again in a moment.", types.INTERNAL_ERROR)
            )
        await send_answer(
            answer._replace(headers=[*answer.headers, *self._headers, *cors]), scope, send
        )

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if len(headers) < len(scope["headers"]):
            lines = [name for name, _ in scope["headers"]]
            if lines.count(b"host") > 1 or lines.count(b"origin") > 1:
                raise Refusal(400, "Send one Host header, and at most one Origin header.")
        if not self._access.serves(headers.get(b"host")):
            raise Refusal(
                421,
                "This host name is not served here. The operator can allow it with --mcp-origin.",
            )
        if not self._access.admits(headers.get(b"origin")):
            raise Refusal(
                403, "This origin is not allowed. The operator can allow it with --mcp-origin."
            )

    async def _post(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Answer:
        """The answer to a message. Raises Refusal."""
        if self._throttle:
            wait_seconds = self._throttle.hit(client_of(scope))
            if wait_seconds:
                raise _too_many(self._throttle, wait_seconds)
        body = await _read_body(scope, receive)
        message = _read_message(body)
        is_call = message["method"] == "tools/call" and {"id", "params"} <= message.keys()
        if self._calls and is_call and len(headers) == len(scope["headers"]):
            spoken = {
                name.decode(): headers[name].decode("latin-1").strip(" \t")
                for name in _ROUTING
                if name in headers
            }
            result = await self._calls.answer(spoken, message)
            if result is not None:
                id_ = json.dumps(message["id"]).encode()
                return _json_answer(200, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_, result))
        return await self._through_sdk(scope, body, receive)

    async def _through_sdk(self, scope: Scope, body: bytes, receive: Receive) -> Answer:
        """The answer of the SDK's own application to a message."""
        parts: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[dict[str, Any]] = []

        async def take() -> dict[str, Any]:
            return parts.pop() if parts else await receive()

        async def keep(event: dict[str, Any]) -> None:
            sent.append(event)

        # Every client gets JSON, whatever it says that it sends and accepts. The HTTP parser leaves
        # white space after the other values.
        headers = [
            (name, value.strip(b" \t"))
            for name, value in scope["headers"]
            if name not in (b"accept", b"content-type")
        ]
        headers += _ALWAYS
        await self._sdk.handle_request({**scope, "headers": headers}, take, keep)
        start, *rest = sent
        return Answer(
            start["status"], list(start["headers"]), b"".join(event["body"] for event in rest)
        )


def _cors(origin: bytes) -> Headers:
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises Refusal."""
    receive = await read_ahead(scope, receive, BODY_BYTES_MAX, BODY_SECONDS_MAX)
    event = await receive()
    if is_long(scope, BODY_BYTES_MAX) or len(event["body"]) > BODY_BYTES_MAX:
        raise Refusal(
            413,
            f"The message is larger than {BODY_BYTES_MAX // 1024} KiB. Send a shorter one.",
            headers=_CLOSE,
        )
    if event["more_body"]:
        raise Refusal(
            408, f"The body took longer than {BODY_SECONDS_MAX} s. Send it again.", headers=_CLOSE
        )
    return event["body"]


def _read_message(body: bytes) -> dict[str, Any]:
    """A request or notification of JSON-RPC 2.0. Raises Refusal for anything else: the SDK's errors
    would repeat parts of it, which may be aimed at a model.
    """
    try:
        # The SDK's own parser: a message that the SDK would reject must not get through another
        # way.
        message = from_json(body, allow_inf_nan=False)
    except (ValueError, RecursionError):
        raise Refusal(
            400, "The body is not valid JSON in UTF-8. Send a JSON-RPC message.", types.PARSE_ERROR
        ) from None
    if not (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and type(message.get("method")) is str
        and type(message.get("id", 0)) in (int, str)
        and type(message.get("params", {})) is dict
        and message.keys().isdisjoint({"result", "error"})
    ):
        raise Refusal(
            400,
            'The body must be one message: {"jsonrpc": "2.0", "id": 1, "method": …, "params": …}.',
            types.INVALID_REQUEST,
        )
    return message


def _too_many(throttle: Throttle, wait_seconds: int) -> Refusal:
    return Refusal(
        429,
        f"Too many requests in a minute. Try again in {wait_seconds} s.",
        headers=[
            (b"retry-after", b"%d" % wait_seconds),
            (b"ratelimit", exhausted(wait_seconds).encode()),
        ],
    )


def _refused(refusal: Refusal) -> Answer:
    """The refusal as an error of JSON-RPC, without the request's id, which may be unread."""
    error = {"code": refusal.code, "message": str(refusal)}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}, ensure_ascii=False)
    answer = _json_answer(refusal.status, body.encode())
    answer.headers.extend(refusal.headers)
    return answer


def _json_answer(status: int, body: bytes) -> Answer:
    headers = [(b"content-type", JSON.encode()), (b"content-length", b"%d" % len(body))]
    return Answer(status, headers, body)
