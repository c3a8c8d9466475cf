"""Answers of the publish service to programs: JSON, and errors in the envelope of the API."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from flask import Response, g, request
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import (
    ClientDisconnected,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from builder.model.caching import CACHE_CONTROL
from builder.model.envelopes import json_bytes
from builder.model.errors import OperatorError, RequestError
from builder.model.routes import API, BY_NAME, HTML, JSON
from builder.model.service_urls import PUBLISH_URL, is_account_url, is_compare_url
from publisher.web.pages.frame import Frame
from publisher.web.published import is_browser
from publisher.write.idempotency import TooManyKept
from server import answers
from server.answer_headers import RETRY_SECONDS

# The errors of libraries and of the operator's side, as clients get them; the first match counts.
_MEANT: dict[type[Exception], tuple[str, str]] = {
    CSRFError: (
        "invalid_parameter",
        "This form has expired, or was sent from another page. Allow cookies, open the page "
        "again, and send the form again.",
    ),
    RequestEntityTooLarge: ("content_too_large", "The form is too large. Send less."),
    ClientDisconnected: (
        "invalid_parameter",
        "The form arrived incomplete. Open the page and send it again.",
    ),
    OperatorError: (
        "unavailable",
        "The server has a problem that only its operator can fix; the log has the cause. Try "
        "again later.",
    ),
    NotFound: (
        "not_found",
        f"Nothing at this address. Publish with POST {PUBLISH_URL}; {API}/openapi.json lists all "
        "endpoints.",
    ),
    Exception: ("internal_error", "The server failed. Send the same request again in a moment."),
}


def json_answer(status: int, body: bytes) -> Response:
    headers = {"Cache-Control": CACHE_CONTROL["none"], "X-Content-Type-Options": "nosniff"}
    return Response(body, status, headers, content_type=JSON)


def monitored(found: dict[str, Any], *, is_well: bool) -> Response:
    """Returns the answer to a monitor."""
    if not is_well:
        g.headers["Retry-After"] = str(RETRY_SECONDS)
    return json_answer(200 if is_well else 503, json_bytes(found))


def error_answer(frame: Frame, error: Exception) -> Response:
    shown = _as_request_error(error)
    g.fields["code"] = shown.code
    if shown.status >= 500:
        g.failure = error  # for the log
    if isinstance(error, TooManyKept):
        g.headers["Retry-After"] = str(error.wait_seconds)
    if shown.status == 404 and is_compare_url(request.path) and is_browser():
        with suppress(FileNotFoundError):  # the first build may not have ended
            body = Path(frame.service.settings.out, BY_NAME["not_found_page"].file).read_bytes()
            return Response(body, shown.status, content_type=HTML)
    response = frame.error(shown) if is_account_url(request.path) else _envelope(shown)
    if shown.status == 503:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
    return response


def _envelope(shown: RequestError) -> Response:
    answer = answers.error_answer(shown)
    # Names of headers ignore case, so these replace those of the read server.
    response = Response(answer.body, answer.status)
    response.headers.update({key.decode(): value.decode() for key, value in answer.headers})
    if shown.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _as_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, MethodNotAllowed):
        methods = " or ".join(sorted(error.valid_methods or ()))
        return RequestError(
            "method_not_allowed", f"This address does not accept this method. Send {methods}."
        )
    if isinstance(error, NotFound) and is_account_url(request.path):
        return RequestError(
            "not_found",
            "This page of the account settings does not exist. Go back to your account.",
        )
    return next(RequestError(*said) for kind, said in _MEANT.items() if isinstance(error, kind))
