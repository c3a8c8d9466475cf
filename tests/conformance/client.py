"""An HTTP client that sends exactly the given requests to a deployment, and keeps the answers.

A path is relative to the deployment's address, and is sent as it is: the client resolves, escapes
and normalizes nothing.
"""

import contextlib
import http.client
import json
import shlex
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPMessage
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from builder.model.routes import API_ROOTS
from tests.conformance.deployment import Deployment

TIMEOUT_SECONDS = 120
KEPT_BYTES_MAX = 128 * 1024 * 1024
# The window of the contract's limit is a minute. A host that requires a longer wait breaks it.
WAIT_SECONDS_MAX = 120
BRIEF_BYTES = 70
# The smallest that a host must take (RFC 9112 recommends 8,000 bytes for the whole line).
LONG_QUERY_CHARS = 4000

USER_AGENT = "hub-conformance/1.0"


class NoAnswer(Exception):
    """Nothing that is HTTP came back; the message says what did."""


class Answer(NamedTuple):
    """A request and its answer. ``body`` is as it was sent, compressed or not."""

    method: str
    url: str
    target: str
    sent: Mapping[str, str]
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def plain_body(self) -> bytes | None:
        """The body, decompressed if it says that it is; None where it cannot be."""
        encoding = self.headers.get("Content-Encoding")
        if encoding is None:
            return self.body
        if encoding != "gzip":
            return None
        try:
            return zlib.decompress(self.body, zlib.MAX_WBITS | 16)
        except zlib.error:
            return None

    @property
    def code(self) -> str | None:
        """The code of an error's envelope; None if it has none."""
        error = self.json.get("error") if isinstance(self.json, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, str) else None

    @property
    def request(self) -> str:
        """The request in one line."""
        headers = "".join(f" [{key}: {value[:60]}]" for key, value in self._shown_headers())
        return f"{self.method} {shorten(self.target, 160)}{headers}"

    @property
    def brief(self) -> str:
        """The answer in one line."""
        media = self.headers.get("Content-Type", "without Content-Type")
        start = self.body[:BRIEF_BYTES].decode("utf-8", "backslashreplace")
        more = "…" if len(self.body) > BRIEF_BYTES else ""
        shown = json.dumps(start, ensure_ascii=False)[1:-1].replace('\\"', '"')
        return f"{self.status} {media} {shown}{more}" if start else f"{self.status} {media}, empty"

    @property
    def curl(self) -> str:
        """A command that sends the same request again."""
        words = ["curl", "-sgi", "--path-as-is"]
        if self.method == "HEAD":
            words.append("--head")
        elif self.method != "GET":
            words += ["-X", self.method]
        for key, value in self._shown_headers():
            words += ["-H", f"{key}: {value}"]
        return shorten(shlex.join([*words, self.url]), 400)

    def _shown_headers(self) -> Iterator[tuple[str, str]]:
        """The headers that were sent; a token is no business of a report."""
        for key, value in self.sent.items():
            yield key, "Bearer …" if key == "Authorization" else value


def shorten(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


class Client:
    """Sends requests to one deployment. ``say`` receives a message before each wait."""

    def __init__(self, deployment: Deployment, say: Callable[[str], None] = lambda _: None) -> None:
        parts = urlsplit(deployment.base_url)
        self.deployment = deployment
        self.address = deployment.base_url
        self.root = parts.path
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.waited_seconds = 0
        self.api_asked_at = float("-inf")
        self.say = say
        self._parts = parts
        self._connection: http.client.HTTPConnection | None = None
        self._kept: OrderedDict[str, Answer] = OrderedDict()
        self._kept_bytes = 0
        self._base_url: str | None = None

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def get(self, path: str) -> Answer:
        """The answer to a plain GET, requested once: later calls return the same answer."""
        answer = self._kept.get(path)
        if answer is None:
            answer = self.ask("GET", path)
            self._kept[path] = answer
            self._kept_bytes += len(answer.body)
            while self._kept_bytes > KEPT_BYTES_MAX:
                _, oldest = self._kept.popitem(last=False)
                self._kept_bytes -= len(oldest.body)
        return answer

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None,
        body: bytes | None = None, *, is_patient: bool = True,
    ) -> Answer:  # fmt: skip
        """The answer to a request. Raises NoAnswer.

        ``is_patient``: when a rate limit requires it, wait and send the request again.
        """
        while True:
            answer = self._ask(method, path, dict(headers or {}), body)
            wait_seconds = _told_to_wait(answer) if is_patient else 0
            if not wait_seconds:
                return answer
            self.say(f"the rate limit of {self.address} says to wait {wait_seconds} s")
            self.waited_seconds += wait_seconds
            time.sleep(wait_seconds)

    def _ask(self, method: str, path: str, sent: dict[str, str], body: bytes | None) -> Answer:
        target = self.root + path
        if path.startswith(API_ROOTS):
            self.api_asked_at = time.monotonic()
        # The other headers are said in reports; these are the same each time.
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        if self.deployment.member:
            headers["Authorization"] = f"Bearer {self.deployment.member}"
        headers |= sent
        if method == "POST":
            self.close()  # a new connection, as a POST must not be sent twice
        for is_last in (False, True):
            is_new = self._connection is None
            if self._connection is None:
                self._connection = self._connect()
            try:
                self._connection.request(method, target, body, headers)
                response = self._connection.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # A connection that was kept may have been closed from the other side meanwhile.
                if is_last or is_new:
                    raise NoAnswer(f"{method} {self.origin}{target}: {_reason(error)}") from None
                continue
            if response.will_close:
                self.close()
            return Answer(
                method, self.origin + target, path, sent, response.status, response.headers, data
            )
        raise AssertionError("unreachable")

    def raw(self, path: bytes) -> Answer:
        """The answer to a GET for a path that no client library would send. Raises NoAnswer."""
        target = self.root.encode() + path
        request = b"GET %b HTTP/1.1\r\nHost: %b\r\nUser-Agent: %b\r\nConnection: close\r\n\r\n"
        with contextlib.closing(self._connect()) as connection:
            try:
                connection.connect()
                connection.sock.sendall(
                    request % (target, self._parts.netloc.encode(), USER_AGENT.encode())
                )
                response = http.client.HTTPResponse(connection.sock, method="GET")
                with contextlib.closing(response):
                    response.begin()
                    body = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise NoAnswer(f"GET {path[:100]!r}: {_reason(error)}") from None
        shown = path.decode("utf-8", "backslashreplace")
        return Answer(
            "GET", self.address + shown, shown, {}, response.status, response.headers, body
        )

    def _connect(self) -> http.client.HTTPConnection:
        kind = (
            http.client.HTTPSConnection
            if self._parts.scheme == "https"
            else http.client.HTTPConnection
        )
        return kind(self._parts.hostname, self._parts.port, timeout=TIMEOUT_SECONDS)

    # Records name addresses by the base URL, which may differ from the address under test

    @property
    def base_url(self) -> str:
        """The base URL that the deployment says it has; what it was built with."""
        if self._base_url is None:
            hub = self.get("/api/v1/hub.json").json
            self._base_url = str(hub["data"]["base_url"])
        return self._base_url

    def path_of(self, url: str, page: str = "/") -> str | None:
        """The path at which to request a URL of a record, or of a link on ``page``; None for
        another site.
        """
        joined = urljoin(self.base_url + page, url).partition("#")[0]
        for base in (self.base_url, self.address):
            if joined == base:
                return "/"
            if joined.startswith(f"{base}/"):
                return joined[len(base) :]
        return None


def _told_to_wait(answer: Answer) -> int:
    text = answer.headers.get("Retry-After", "")
    if answer.status != 429 or not text.isdigit() or int(text) > WAIT_SECONDS_MAX:
        return 0
    return max(1, int(text))


def _reason(error: Exception) -> str:
    return f"no answer ({type(error).__name__}: {error})"


def header_list(answer: Answer, name: str) -> set[str]:
    """The members of a header that is a list, in lower case."""
    values = answer.headers.get_all(name) or []
    return {part.strip().lower() for value in values for part in value.split(",") if part.strip()}


@contextlib.contextmanager
def asking(deployment: Deployment, say: Callable[[str], None]) -> Iterator[Client]:
    client = Client(deployment, say)
    with contextlib.closing(client):
        yield client
