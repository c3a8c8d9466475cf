"""Requests a vendor's API, whose answers are then imported as the documents of an export.

Sends one request at a time, at most ``PER_SECOND`` a second. Failures that may be temporary are
tried again after growing pauses, or after the pause that the API requests. Answers are bounded in
time, bytes and number. Redirects to another origin are not followed, and keys are never printed.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import requests

from builder.model.errors import OperatorError, cut
from moving.importers.items import Document, Rejection
from moving.vendors.documents import parse_json
from publisher.outside.fetch import TooLarge, bounded, cause_of
from publisher.outside.private_way import is_private_way

USER_AGENT = "hubctl-import/1.0"
PER_SECOND = 5
TIMEOUT_SECONDS = 120
ANSWER_BYTES_MAX = 16 * 1024 * 1024
# Requests of a whole download. It ends with an error after these.
REQUESTS_MAX = 200_000
TOTAL_BYTES_MAX = 1024**3
# Pauses before further attempts. After the last one, the request fails.
PAUSES_SECONDS = (1, 2, 4, 8, 16)
PAUSE_SECONDS_MAX = 300

_REDIRECTS_MAX = 3
_PASSING = {408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_SAID_CHARS_MAX = 300
# Shorter values may be words of an error's text, so they are not hidden.
_SECRET_CHARS_MIN = 8
_AGAIN = "Run the same command again later."

Progress = Callable[[str, int, int], None]


class ApiError(OperatorError):
    """An API gave no usable answer. ``status``: of HTTP, None without an answer. ``answer``: its
    JSON, None if it is none.
    """

    def __init__(self, message: str, status: int | None = None, answer: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.answer = answer

    def with_more(self, message: str) -> "ApiError":
        """The same error with more text."""
        return ApiError(f"{self} {message}", self.status, self.answer)


class Api:
    """A vendor's API at ``url``. ``keys``: the values of the vendor's environment variables.
    ``headers``: sent with each request.

    ``pause`` waits for seconds; ``clock`` returns monotonic seconds.
    """

    def __init__(
        self,
        url: str,
        keys: Mapping[str, str],
        headers: Mapping[str, str],
        progress: Progress,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url.rstrip("/")
        self._keys = keys
        # Other variables are settings, which messages may show.
        secrets = {value for name, value in keys.items() if name.endswith("_KEY")}
        secrets |= {value.rpartition(" ")[2] for value in headers.values()}
        self._secrets = sorted((s for s in secrets if len(s) >= _SECRET_CHARS_MIN), key=len)[::-1]
        self._headers = {"Accept": "application/json", "User-Agent": USER_AGENT, **headers}
        self._progress = progress
        self._pause = pause
        self._clock = clock
        self._session = bounded(requests.Session(), TIMEOUT_SECONDS, ANSWER_BYTES_MAX)
        self._next_at = float("-inf")
        self._requests = 0
        self._bytes = 0
        self._counted = (0, 0)
        self._has_answered = False

    def close(self) -> None:
        self._session.close()

    def key(self, name: str) -> str:
        """The value of an environment variable of KEYS or OPTIONAL_KEYS; empty if it is not set."""
        return self._keys.get(name, "")

    def count(self, done: int, total: int) -> None:
        """Show the progress of the download, in prompts."""
        self._counted = (done, total)
        self._progress("Downloading prompts", done, total)

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The JSON at a path below the API's URL. Raises ApiError."""
        url = f"{self._url}/{path.lstrip('/')}"
        for pause in (*PAUSES_SECONDS, None):
            requested_wait = 0.0
            try:
                answer = self._send(url, params)
            # requests parses the target of a redirect, and raises ValueError for some.
            except (requests.RequestException, ValueError) as error:
                fault = self._silence(f"GET {url}", error)
                may_pass = not isinstance(error, TooLarge) and (
                    self._has_answered or isinstance(error, requests.Timeout)
                )
            else:
                self._has_answered = True
                self._bytes += len(answer.content)
                if self._bytes > TOTAL_BYTES_MAX:
                    raise ApiError(f"{self._url} sends more than {TOTAL_BYTES_MAX:,} bytes.")
                value = _json(answer)
                if answer.ok and not answer.next and value is not None:
                    return value
                fault = self._refusal(f"GET {url}", answer, value)
                may_pass = answer.status_code in _PASSING
                requested_wait = _retry_after(answer)
            if not may_pass:
                raise fault
            if requested_wait > PAUSE_SECONDS_MAX:
                raise fault.with_more(f"It asks to wait {requested_wait:,.0f} seconds. {_AGAIN}")
            if pause is None:
                raise fault.with_more(f"Tried {len(PAUSES_SECONDS) + 1} times. {_AGAIN}")
            wait = requested_wait or pause
            self._progress(f"Waiting {wait:.0f} seconds to ask again", *self._counted)
            self._pause(wait)
        raise AssertionError("the last try ends in an answer or an error")

    def _send(self, url: str, params: Mapping[str, str | int] | None) -> requests.Response:
        """The answer, after redirects within the same origin."""
        for _ in range(_REDIRECTS_MAX + 1):
            self._wait_turn()
            answer = self._session.get(
                url, params=params, headers=self._headers, allow_redirects=False
            )
            if not answer.next or _origin(answer.next.url) != _origin(url):
                break
            url, params = answer.next.url, None
        return answer

    def _wait_turn(self) -> None:
        self._requests += 1
        if self._requests > REQUESTS_MAX:
            raise ApiError(f"{self._url} was asked {REQUESTS_MAX:,} times, and there is no end.")
        early = self._next_at - self._clock()
        if early > 0:
            self._pause(early)
        self._next_at = self._clock() + 1 / PER_SECOND

    def _silence(self, request: str, error: Exception) -> ApiError:
        if isinstance(error, TooLarge):
            why = f"is larger than {ANSWER_BYTES_MAX:,} bytes"
        elif isinstance(error, requests.Timeout):
            why = f"did not come in {TIMEOUT_SECONDS} seconds"
        else:
            why = f"did not come ({self._clean(cause_of(error))})"
        return ApiError(f"The answer to {request} {why}.")

    def _refusal(self, request: str, answer: requests.Response, value: Any) -> ApiError:
        status = answer.status_code
        message = f"{request} answers HTTP {status}"
        if answer.next:
            target = self._clean(answer.next.url)
            message += f". It leads to {target}, which is not followed. Check the address."
        elif answer.ok:
            message = f"{request} answers with something that is not JSON. Check the address."
        else:
            said = _said(value)
            message = f"{message}: {self._clean(said)}" if said else message
            message = message.rstrip(".") + "."
            if status in (401, 403):
                message += f" Check {' and '.join(self._keys)}."
        return ApiError(message, status, value)

    def _clean(self, text: str) -> str:
        """The vendor's text in one line, without keys."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        line = "".join(char if char.isprintable() else " " for char in text)
        return cut(" ".join(line.split()), _SAID_CHARS_MAX)


def ask(
    module: ModuleType,
    url: str,
    progress: Progress,
    environ: Mapping[str, str] = os.environ,
    **settings: Any,
) -> Iterator[Document | Rejection]:
    """The prompts of a vendor's API as documents, each requested when it is read.

    ``settings``: ``pause`` and ``clock`` of Api. Raises OperatorError.
    """
    keys = _read_keys(module, environ)
    url = _check_url(module, url)
    api = Api(url, keys, module.headers(keys), progress, **settings)
    with contextlib.closing(api):
        for one in module.download(api):
            # As strict as with an export.
            is_document = isinstance(one, Document)
            yield parse_json(one.where, json.dumps(one.value).encode()) if is_document else one


def _read_keys(module: ModuleType, environ: Mapping[str, str]) -> dict[str, str]:
    optional = getattr(module, "OPTIONAL_KEYS", ())
    keys = {name: environ.get(name, "").strip() for name in (*module.KEYS, *optional)}
    missing = [name for name in module.KEYS if not keys[name]]
    if missing:
        raise OperatorError(
            f"{module.TITLE}'s API needs {' and '.join(missing)} in the environment. Set "
            f"{'it' if len(missing) == 1 else 'them'}, for example with "
            f"`export {missing[0]}=…`, and run the command again."
        )
    for name, value in keys.items():
        if not (value.isascii() and value.isprintable()):
            raise OperatorError(
                f"{name} has characters that no key has, such as a line break in its middle. "
                "Copy it again."
            )
    return keys


def _check_url(module: ModuleType, url: str) -> str:
    if not is_private_way(url) or urlsplit(url).query or urlsplit(url).fragment:
        raise OperatorError(
            f"This is no address to send the keys of {module.TITLE} to. Pass one like "
            f"{module.API_URL}, with https, and without user name, ? and #."
        )
    return url.rstrip("/")


def _json(answer: requests.Response) -> Any:
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return None


def _said(value: Any) -> str:
    """The error message in an answer, in any of the usual forms of APIs."""
    for _ in range(2):
        if isinstance(value, dict):
            found = (value.get(key) for key in ("error", "message", "detail"))
            value = next(filter(None, found), "")
    return value if isinstance(value, str) else ""


def _retry_after(answer: requests.Response) -> float:
    """The seconds that an answer requests to wait; 0 if it has no valid Retry-After."""
    said = answer.headers.get("Retry-After", "").strip()
    if said.isdecimal() and said.isascii():
        return float(said[:10])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of a URL. Raises ValueError."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
