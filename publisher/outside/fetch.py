"""Requests to other servers, with a limit on time and size.

No answer takes longer than ``TIMEOUT_SECONDS``, from the first byte sent to the last byte received.
None has more than ``DOCUMENT_BYTES_MAX`` bytes. A caller can set other bounds.

The library's own timeouts count for each read of a socket. A server that sends a byte now and then,
in the headers too, could hold a thread as long as it likes.
"""

import http.client
import io
import json
import socket
import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
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
        self._pools = {
            "http": partial(_HTTPPool, seconds=seconds),
            "https": partial(_HTTPSPool, seconds=seconds),
        }
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*args, **options)
        manager.pool_classes_by_scheme = self._pools
        return manager

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
            response.raw = io.BytesIO(_read(raw, bytes_max))
        return response


def _read(raw: Any, bytes_max: int) -> bytes:
    body = bytearray()
    try:
        for part in raw.stream(_PART_BYTES, decode_content=True):
            body += part
            if len(body) > bytes_max:
                raise TooLarge
    except ReadTimeoutError as error:
        raise requests.ReadTimeout from error
    except HTTPError as error:
        raise requests.ConnectionError from error
    return bytes(body)


class _Timed:
    """A connection whose answers end in time. The time counts from when it is opened or, if it is
    used again, from when the next request begins.
    """

    def __init__(self, *args: Any, seconds: float | None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._is_used = False
        self._begin()

    def request(self, *args: Any, **options: Any) -> None:
        if self._is_used:
            self._begin()
        self._is_used = True
        super().request(*args, **options)

    def _begin(self) -> None:
        seconds = TIMEOUT_SECONDS if self._seconds is None else self._seconds
        self.response_class = partial(_TimedResponse, end=time.monotonic() + seconds)


class _TimedHTTP(_Timed, HTTPConnection):
    pass


class _TimedHTTPS(_Timed, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _TimedHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _TimedHTTPS


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, end: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_TimedFile(self.fp.detach(), sock, end))


class _TimedFile(io.RawIOBase):
    """Reads from a socket until a moment of the monotonic clock; then raises TimeoutError."""

    def __init__(self, file: io.RawIOBase, sock: socket.socket, end: float) -> None:
        self._file = file
        self._sock = sock
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_seconds = self._end - time.monotonic()
        if left_seconds <= 0:
            raise TimeoutError
        self._sock.settimeout(left_seconds)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _send_no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Returns the request without credentials. Without this, requests would look for some in
    ~/.netrc.
    """
    return request
