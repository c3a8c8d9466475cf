"""Asks a vendor's API, politely, and keeps the answers in a folder, which is then imported as any
export is.

One request at a time, at most ``PER_SECOND`` a second. What may pass is tried again after growing
pauses, or after the pause that the API asks for. Answers are bounded in time, in bytes and in
number. No redirect to another place is followed, and no key is ever printed or kept.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import requests

from builder.model.errors import OperatorError, cut
from moving.vendors.kept import Kept, file_part
from publisher.outside.fetch import TooLarge, bounded, cause_of
from publisher.outside.private_way import is_private_way

__all__ = ["Api", "ApiError", "download_to", "file_part", "is_remote"]

USER_AGENT = "hubctl-import/1.0"
PER_SECOND = 5
TIMEOUT_SECONDS = 120
ANSWER_BYTES_MAX = 16 * 1024 * 1024
# Of a whole download.
REQUESTS_MAX = 200_000
KEPT_BYTES_MAX = 4 * 1024**3
# Before each further try.
PAUSES_SECONDS = (1, 2, 4, 8, 16)
PAUSE_SECONDS_MAX = 300

_REDIRECTS_MAX = 3
_PASSING = {408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_SAID_CHARS_MAX = 300
# Shorter values are names, which words of an error may have in them.
_SECRET_CHARS_MIN = 8
_AGAIN = "Run the same command again later to continue the download."

Progress = Callable[[str, int, int], None]


class ApiError(OperatorError):
    """An API gave no answer that is of use. ``status`` is that of HTTP, None without an answer;
    ``answer`` is its JSON, None where it is none.
    """

    def __init__(self, message: str, status: int | None = None, answer: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.answer = answer

    def with_more(self, message: str) -> "ApiError":
        """The same, and what else is to be told."""
        return ApiError(f"{self} {message}", self.status, self.answer)


class Api:
    """A vendor's API at ``url``, and the folder that keeps its answers. ``keys`` has the values of
    the vendor's environment variables, ``headers`` what is sent with each request.

    ``pause`` waits for seconds, ``clock`` gives seconds that never go back.
    """

    def __init__(
        self,
        url: str,
        kept: Kept,
        keys: Mapping[str, str],
        headers: Mapping[str, str],
        progress: Progress,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url.rstrip("/")
        self._kept = kept
        self._keys = keys
        # What else is in the environment is a setting, and may be told.
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
        self._kept_bytes = 0
        self._counted = (0, 0)
        self._has_answered = False

    def close(self) -> None:
        self._session.close()

    def key(self, name: str) -> str:
        """The value of an environment variable of KEYS or OPTIONAL_KEYS; empty if it is not set."""
        return self._keys.get(name, "")

    def count(self, done: int, total: int) -> None:
        """Show how far the download is, in prompts."""
        self._counted = (done, total)
        self._progress("Downloading prompts", done, total)

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The JSON at a path below the API's URL, asked for now. Raises ApiError."""
        return self._ask(path, params)

    def keep(self, file: str, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The JSON at a path, which the folder keeps as ``file``; it is asked for unless this
        download has kept it already. Make the parts of ``file`` with ``file_part``. Raises
        ApiError, and then keeps nothing.
        """
        try:
            return self._kept.read(file)
        except KeyError:
            answer = self._ask(path, params)
        self.write(file, answer)
        return answer

    def write(self, file: str, value: Any) -> None:
        """Keep what is made of several answers as ``file``. Raises OperatorError."""
        self._kept_bytes += self._kept.write(file, value)
        if self._kept_bytes > KEPT_BYTES_MAX:
            raise ApiError(f"{self._url} sends more than {KEPT_BYTES_MAX:,} bytes of prompts.")

    def _ask(self, path: str, params: Mapping[str, str | int] | None) -> Any:
        url = f"{self._url}/{path.lstrip('/')}"
        for pause in (*PAUSES_SECONDS, None):
            asked = 0.0
            try:
                answer = self._send(url, params)
            # The library looks at where a redirect leads, and raises ValueError for some of these.
            except (requests.RequestException, ValueError) as error:
                fault = self._silence(f"GET {url}", error)
                may_pass = not isinstance(error, TooLarge) and (
                    self._has_answered or isinstance(error, requests.Timeout)
                )
            else:
                self._has_answered = True
                value = _json(answer)
                if answer.ok and not answer.next and value is not None:
                    return value
                fault = self._refusal(f"GET {url}", answer, value)
                may_pass = answer.status_code in _PASSING
                asked = _retry_after(answer)
            if not may_pass:
                raise fault
            if asked > PAUSE_SECONDS_MAX:
                raise fault.with_more(f"It asks to wait {asked:,.0f} seconds. {_AGAIN}")
            if pause is None:
                raise fault.with_more(f"Tried {len(PAUSES_SECONDS) + 1} times. {_AGAIN}")
            wait = asked or pause
            self._progress(f"Waiting {wait:.0f} seconds to ask again", *self._counted)
            self._pause(wait)
        raise AssertionError("the last try ends in an answer or an error")

    def _send(self, url: str, params: Mapping[str, str | int] | None) -> requests.Response:
        """An answer, after redirects within the same origin."""
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
        """What a stranger says, in one line, without keys."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        line = "".join(char if char.isprintable() else " " for char in text)
        return cut(" ".join(line.split()), _SAID_CHARS_MAX)


def is_remote(module: ModuleType, source: str) -> bool:
    """Whether a source is the address of an API, and not an export on this machine.

    Raises OperatorError if the vendor has no API to import from.
    """
    is_url = "://" in source
    if is_url and not hasattr(module, "download"):
        raise OperatorError(
            f"{module.TITLE} has no API to import from. Pass a file or folder that was exported."
        )
    return is_url


def download_to(
    module: ModuleType,
    url: str,
    folder: str,
    progress: Progress,
    environ: Mapping[str, str] = os.environ,
    **settings: Any,
) -> None:
    """Download what a vendor's API has into ``folder``.

    ``settings``: ``pause`` and ``clock`` of Api. Raises OperatorError, after which the same call
    continues the download.
    """
    keys = _read_keys(module, environ)
    url = _check_url(module, url)
    vendor = module.__name__.rpartition(".")[2].replace("_", "-")
    with Kept(folder, vendor, url) as kept:
        api = Api(url, kept, keys, module.headers(keys), progress, **settings)
        with contextlib.closing(api):
            module.download(api)
        kept.finish()


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
            f"{module.API_URL or 'https://HOST'}, with https, and without user name, ? and #."
        )
    return url.rstrip("/")


def _json(answer: requests.Response) -> Any:
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return None


def _said(value: Any) -> str:
    """What an answer says of an error, in the ways that APIs do."""
    for _ in range(2):
        if isinstance(value, dict):
            found = (value.get(key) for key in ("error", "message", "detail"))
            value = next(filter(None, found), "")
    return value if isinstance(value, str) else ""


def _retry_after(answer: requests.Response) -> float:
    """For how many seconds an answer asks to wait; 0 where it says nothing that is understood."""
    said = answer.headers.get("Retry-After", "").strip()
    if said.isdecimal() and said.isascii():
        return float(said[:10])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Raises ValueError."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
