"""The embedded read server, ASGI: answers every read from the table of routes and the site's files.

Only searches (``q``) and lists by several tags are computed, in the thread of queries. A path
becomes a file only through the table, parameter by parameter, so no path leads out of the site.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from builder.model import names
from builder.model.envelopes import has_rows
from builder.model.errors import LANGFUSE_INVALID, LANGFUSE_NOT_FOUND, RequestError
from builder.model.matching import Match, fits, langfuse_page, match_url
from builder.model.messages import MESSAGES, misplaced
from builder.model.names import Version
from builder.model.plural import counted
from builder.model.routes import (
    BY_NAME,
    HTML,
    JSON,
    LANGFUSE_NOT_FILTERS,
    LANGFUSE_ROOT,
    LATEST_TEXTS,
    LIST_PARAMETERS,
    PARAMETERS,
    TEXT_PARAMETERS,
    has_json_errors,
    is_api_path,
)
from builder.model.service_urls import write_methods
from builder.model.settings import Settings
from builder.search.queries import ListQuery, Queries, parse_list_query, parse_parameters
from builder.search.query_thread import QueryThread
from builder.store.site import is_built
from server.answer_headers import PREFLIGHT, READ_METHODS
from server.answers import Answer, Body, FileBodies, FileBytes, error_answer
from server.missing import LATEST_ELSEWHERE, WITHDRAWN, reasons, withdrawn
from server.missing import MESSAGES as WHY_MISSING
from server.throttle import Throttle, client_of

RESOLVED_MAX = 50_000
RESOLVED_QUERY_BYTES_MAX = 200

log = logging.getLogger("hub.serve")

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class RunningApp(Protocol):
    """An ASGI application that answers only while ``running()`` is entered."""

    def running(self) -> AbstractAsyncContextManager[Any]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class ReadApp:
    """The ASGI application. ``throttle`` counts the reads of each client; None for no limit. It and
    ``queries`` may be shared with others.
    """

    def __init__(
        self, settings: Settings, queries: QueryThread, throttle: Throttle | None = None
    ) -> None:
        self.settings = settings
        self._base_path = settings.base_path
        self._files = FileBodies(settings.out)
        self._throttle = throttle
        self._policy = [(b"ratelimit-policy", throttle.policy.encode())] if throttle else []
        self._queries = queries
        self._resolved: dict[tuple[str, bytes], Match] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            is_api = self._is_api(scope["path"])
            answer = await self._answer(scope, is_api)
            headers = answer.headers + self._policy if is_api else answer.headers
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            if isinstance(answer.body, FileBytes) and scope["method"] != "HEAD":
                await _send_pieces(answer.body, receive, send)
                return
            body = b"" if scope["method"] == "HEAD" else answer.body
            await send({"type": "http.response.body", "body": body})

    def _is_api(self, path: str) -> bool:
        below = self.below_base(path)
        return below is not None and is_api_path(below)

    def below_base(self, path: str) -> str | None:
        """The path relative to the base URL; None if it is not below that."""
        if not f"{path}/".startswith(f"{self._base_path}/"):
            return None
        return path[len(self._base_path) :] or "/"

    async def _answer(self, scope: Scope, is_api: bool) -> Answer:
        path = scope["path"]
        try:
            if scope["method"] == "OPTIONS":
                return _preflight()
            if self._throttle and is_api:
                wait_seconds = self._throttle.hit(client_of(scope))
                if wait_seconds:
                    return self._rate_limited(wait_seconds)
            if scope["method"] not in ("GET", "HEAD"):
                return self._not_allowed(path)
            body = await self._find_body(path, scope["query_string"])
            return body.answer(dict(scope["headers"]))
        except _Withdrawn as error:
            return error.answer
        except RequestError as error:
            if error.status == 404 and not has_json_errors(self.below_base(path) or path):
                page = self._redirected(path) or await self._not_found_page()
                return page or error_answer(error)
            return error_answer(error)
        except Exception:
            # Last resort for any error: the log gets the cause, the client the envelope.
            log.error("Cannot answer a %s request\n%s", scope["method"], traceback.format_exc())
            return error_answer(RequestError("internal_error", MESSAGES["internal_error"]))

    async def _find_body(self, path: str, query: bytes) -> Body:
        """The representation at a URL. Raises RequestError."""
        found: Match | ListQuery | None = self._resolved.get((path, query))
        if found is None:
            found = self._resolve(path, query)
            if isinstance(found, Match) and len(query) <= RESOLVED_QUERY_BYTES_MAX:
                if len(self._resolved) >= RESOLVED_MAX:
                    self._resolved.clear()
                self._resolved[path, query] = found
        if isinstance(found, ListQuery):
            return await self._compute(found)
        route, file = found.route, self._file_of(found, path)
        body = await self._files.get(file, route.media, route.cache)
        if body is None:
            raise await self._missing(found)
        return body

    def _file_of(self, found: Match, path: str) -> str:
        """The file at a path. If no version has a file `a`, whose page is the file `a.html`, this
        is the address of the page of `a.html`.
        """
        is_page = found.route.name == "file_page" and path.endswith(".html")
        return found.file + ".html" * (is_page and not self._files.exists(found.file))

    def _resolve(self, path: str, query: bytes) -> Match | ListQuery:
        """The row or the list that a URL names, from its grammar alone. Raises RequestError."""
        below = self.below_base(path)
        if below is None:
            raise RequestError(
                "not_found", f"Nothing at this address. The site is at {self.settings.base_url}."
            )
        path = below
        found = match_url(path)
        if found is None:
            raise _unmatched(path)
        if query and found.route.is_api and found.route.scope != "langfuse":
            _check_taken(found, path, query)
        if found.route.name == "repos" and path == found.route.url:
            wanted = parse_list_query(query)
            return wanted.match() or wanted
        if found.route.name in LATEST_TEXTS and query and path == found.url:
            return _requested_text(found, parse_parameters(query))
        if found.route.name == "langfuse_prompt" and query:
            return _langfuse(found, query)
        if found.route.name == "langfuse_list" and query and path == found.url:
            return _langfuse_list(query)
        return found

    async def _compute(self, wanted: ListQuery) -> Body:
        data = await self._queries.run(Queries.answer, wanted)
        if wanted.q is None:
            return Body(data, JSON, "list")
        return Body(data, JSON, "query" if has_rows(data) else "nothing")

    async def _missing(self, found: Match) -> RequestError:
        """The error for a URL of the table that has no file."""
        route, params = found
        if not is_built(self.settings.out):
            return RequestError("unavailable", "The site is being built. Try again in a moment.")
        body = await self._withdrawn(found)
        if body:
            return _Withdrawn(body)
        reason = next(
            one
            for one in reasons(route)
            if not one.witness or self._files.exists(one.witness.format_map(params))
        )
        is_latest = reason.code == "label_not_found" and params["label"] == names.LATEST
        message = LATEST_ELSEWHERE if is_latest else reason.message
        return RequestError(reason.code, message.format_map(params))

    async def _withdrawn(self, found: Match) -> Body | None:
        """The body that says why a file was withdrawn; None if it was not."""
        media = JSON if found.route.has_json_errors else HTML
        for template in withdrawn(found.route):
            body = await self._files.get(template.format_map(found.params), media, "none")
            if body:
                return body
        return None

    def _redirected(self, path: str) -> Answer | None:
        """A redirect to the page without the final slash; None if there is no such page."""
        below = self.below_base(path)
        if below is None or not below.endswith("/"):
            return None
        path = below.rstrip("/")
        page = match_url(path)
        if not page or page.route.media != HTML:
            return None
        if not self._files.exists(self._file_of(page, path)):
            return None
        url = path if page.route.name == "file_page" else page.url
        location = (self._base_path + url).encode()
        headers = Body(b"", HTML, page.route.cache).headers
        return Answer(308, [*headers, (b"location", location), (b"content-length", b"0")], b"")

    async def _not_found_page(self) -> Answer | None:
        body = await self._files.get(BY_NAME["not_found_page"].file, HTML, "not_found")
        return body and body.plain._replace(status=404)

    def _not_allowed(self, path: str) -> Answer:
        methods = write_methods(self.below_base(path) or "")
        if methods:
            error = RequestError(
                "method_not_allowed",
                "This address takes GET and HEAD to read, and "
                f"{' and '.join(methods)} to {'publish' if 'POST' in methods else 'move a label'}.",
            )
            return error_answer(error, allow=", ".join((READ_METHODS, *methods)))
        return error_answer(RequestError("method_not_allowed", MESSAGES["method_not_allowed"]))

    def _rate_limited(self, wait_seconds: int) -> Answer:
        error = RequestError(
            "rate_limited",
            f"Too many reads in a minute. Try again in {counted(wait_seconds, 'second')}, and "
            "cache answers as long as Cache-Control says.",
        )
        answer = error_answer(error, wait_seconds)
        answer.headers.append((b"ratelimit", self._throttle.exhausted(wait_seconds).encode()))
        return answer


class _Withdrawn(RequestError):
    """The requested text was withdrawn; ``answer`` says why."""

    def __init__(self, body: Body) -> None:
        super().__init__(WITHDRAWN, "")
        self.answer = body.plain._replace(status=self.status)


def _check_taken(found: Match, path: str, query: bytes) -> None:
    """Raises RequestError if a URL does not accept a parameter, or not together with
    another one.
    """
    taken = ()
    if path == found.url and found.route.name in ("repos", *LATEST_TEXTS):
        taken = LIST_PARAMETERS if found.route.name == "repos" else TEXT_PARAMETERS
    given = parse_parameters(query)
    strange = any(key in given and key not in taken for key in PARAMETERS)
    if strange or given.keys() >= {*TEXT_PARAMETERS}:
        meant = {key: given[key] for key in TEXT_PARAMETERS if fits(key, given.get(key, ""))}
        raise RequestError("invalid_parameter", misplaced({**found.params, **meant}))


def _requested_text(latest: Match, query: Mapping[str, str]) -> Match:
    """The text that a query names instead of the latest. Raises RequestError."""
    version, label = query.get("version"), query.get("label")
    if version is not None:
        params = {**latest.params, "version": str(Version.parse(version))}
        return Match(BY_NAME[f"version_{latest.route.name}"], params)
    if label is not None:
        params = {**latest.params, "label": names.check_label(label)}
        return Match(BY_NAME[f"label_{latest.route.name}"], params)
    return latest


def _langfuse_parameters(query: bytes) -> dict[str, str]:
    """Raises RequestError."""
    try:
        return parse_parameters(query)
    except RequestError as error:
        raise RequestError(LANGFUSE_INVALID, str(error)) from None


def _langfuse_list(query: bytes) -> Match:
    """The page of a list that a query names. Raises RequestError."""
    given = _langfuse_parameters(query)
    page, tag = given.get("page", "1"), given.get("tag")
    if (
        any(key in given for key in LANGFUSE_NOT_FILTERS)
        or not fits("page", page)
        or (tag is not None and not fits("tag", tag))
    ):
        raise RequestError(LANGFUSE_INVALID, MESSAGES[LANGFUSE_INVALID])
    return langfuse_page(tag, int(page))


def _langfuse(default: Match, query: bytes) -> Match:
    """The version that a query names instead of the default. Raises RequestError."""
    given = _langfuse_parameters(query)
    ordinal, label = given.get("version"), given.get("label")
    if ordinal is not None and label is not None:
        raise RequestError(LANGFUSE_INVALID, MESSAGES[LANGFUSE_INVALID])
    if ordinal is None and label is None:
        return default
    ref = label if ordinal is None else ordinal
    if not (fits("ordinal", ref) if label is None else names.is_read_label(ref)):
        message = WHY_MISSING[LANGFUSE_NOT_FOUND].format_map(default.params)
        raise RequestError(LANGFUSE_NOT_FOUND, message)
    return Match(BY_NAME["langfuse_ref"], {**default.params, "ref": ref})


def _unmatched(path: str) -> RequestError:
    """The error for a path that matches no row of the table: an invalid name, or no such
    address.
    """
    if f"{path}/".startswith(f"{LANGFUSE_ROOT}/"):
        return RequestError(LANGFUSE_NOT_FOUND, MESSAGES[LANGFUSE_NOT_FOUND])
    segments = path.split("/")[1:]
    try:
        if segments[:3] == ["api", "v1", "repos"] and len(segments) in (5, 6, 7, 8):
            names.check_owner(segments[3])
            names.check_repo(segments[4])
            if len(segments) > 6 and segments[5] == "versions":
                Version.parse(segments[6])
            if len(segments) > 6 and segments[5] == "labels":
                names.check_label(segments[6])
        elif segments[:3] == ["api", "v1", "users"] and len(segments) == 4:
            owner = names.check_owner(segments[3])
            return RequestError("user_not_found", f"No user {owner!r}.")
    except RequestError as error:
        return error
    return RequestError("not_found", MESSAGES["not_found"])


async def _send_pieces(data: FileBytes, receive: Receive, send: Send) -> None:
    """Send a body as fast as its reader reads; stop when the client disconnects."""
    gone = asyncio.create_task(_wait_until_gone(receive))
    try:
        for piece in data.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Without this, one fast reader would delay all others.
            await asyncio.sleep(0)
            if gone.done():
                return
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _preflight() -> Answer:
    body = Body(b"", JSON, "list")
    headers = [*body.headers, *PREFLIGHT, (b"content-length", b"0")]
    return Answer(204, headers, b"")
