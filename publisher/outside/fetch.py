"""Requests to other servers, with a limit on time and size.

No wait for a server takes longer than ``TIMEOUT_SECONDS``, nor does the body of an answer. None has
more than ``DOCUMENT_BYTES_MAX`` bytes. A caller can set other bounds.

The library's own timeouts count for each read of a socket, so a server that sends a byte now and
then could hold a thread as long as it likes. In the headers, only servers that the operator has
named can do that.
"""

import io
import json
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, ReadTimeoutError

from builder.model.errors import HubError
from publisher.outside.private_way import is_loopback

TIMEOUT_SECONDS = 5
DOCUMENT_BYTES_MAX = 1024 * 1024

_PART_BYTES = 16 * 1024


class FetchError(HubError):
    """The reason why there is no document, as the end of a sentence."""


def fetch_json(url: str) -> dict[str, Any]:
    """Returns the JSON object at a URL. Follows no redirect and sends no credentials.

    Raises FetchError.
    """
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    try:
        with bounded(requests.Session()) as session:
            answer = session.get(url, headers=headers, allow_redirects=False)
    except requests.Timeout as error:
        raise FetchError(f"no answer in {TIMEOUT_SECONDS} seconds") from error
    except TooLarge as error:
        raise FetchError(f"its answer is larger than {DOCUMENT_BYTES_MAX:,} bytes") from error
    # The library parses the target of a redirect, and raises ValueError for some.
    except (requests.RequestException, ValueError) as error:
        raise FetchError(f"no connection ({type(error).__name__})") from error
    if answer.status_code != 200:
        raise FetchError(f"{url} answers HTTP {answer.status_code}")
    try:
        document = json.loads(answer.content)
    except (ValueError, RecursionError) as error:
        raise FetchError(f"{url} is not JSON") from error
    if not isinstance(document, dict):
        raise FetchError(f"{url} is not a JSON object")
    return document


def bounded(
    session: requests.Session, seconds: float | None = None, bytes_max: int | None = None
) -> requests.Session:
    """Returns the same session. From now on, its requests raise requests.Timeout or TooLarge, and
    send no credentials but those that the caller gives. Without ``seconds`` and ``bytes_max``, the
    bounds are those of this module.
    """
    session.auth = _send_no_credentials
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Bounded(seconds, bytes_max))
    return session


def cause_of(error: Exception) -> str:
    """Returns the cause of an error of the library, as the end of a sentence."""
    cause: BaseException | None = error
    while cause is not None:
        last = cause
        inner = getattr(cause, "reason", None)  # for an ssl.SSLError, it is text
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    return f"{type(last).__name__}: {last}" if str(last) else type(last).__name__


class TooLarge(requests.RequestException):
    """The answer has more bytes than the limit."""


class _Bounded(HTTPAdapter):
    """Reads the whole answer before it returns it."""

    def __init__(self, seconds: float | None, bytes_max: int | None) -> None:
        self._seconds = seconds
        self._bytes_max = bytes_max
        super().__init__()

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        *args: Any,
        **options: Any,
    ) -> requests.Response:
        seconds = TIMEOUT_SECONDS if self._seconds is None else self._seconds
        bytes_max = DOCUMENT_BYTES_MAX if self._bytes_max is None else self._bytes_max
        if is_loopback(urlsplit(request.url or "").hostname or ""):
            options["proxies"] = {}  # otherwise a proxy of the environment would get local requests
        response = super().send(request, True, seconds, *args, **options)
        with response.raw as raw:
            response.raw = io.BytesIO(_read(raw, bytes_max, time.monotonic() + seconds))
        return response


def _read(raw: Any, bytes_max: int, end: float) -> bytes:
    body = bytearray()
    try:
        while part := raw.read1(_PART_BYTES, decode_content=True):
            body += part
            if len(body) > bytes_max:
                raise TooLarge
            if time.monotonic() > end:
                raise requests.ReadTimeout
    except ReadTimeoutError as error:
        raise requests.ReadTimeout from error
    except HTTPError as error:
        raise requests.ConnectionError from error
    return bytes(body)


def _send_no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Returns the request without credentials. Without this, requests would look for some in
    ~/.netrc.
    """
    return request
