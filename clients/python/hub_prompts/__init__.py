"""Read prompts from a hub: cached, verified, and available when the hub is down.

    from hub_prompts import Hub

    hub = Hub("https://prompts.example.org")
    text = hub.get("ada/code-review@production").fill(language="Python", diff="...")

Only the standard library, Python 3.9 or later; this file also works on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import http.client
import json
import logging
import math
import os
import re
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Callable, NamedTuple
from urllib import request

__version__ = "1.0.0"
# The build inserts the address of its site here.
BAKED_URL = ""

ANSWER_BYTES_MAX = 8 * 1024 * 1024
FILLED_CHARS_MAX = 50_000_000
# The most prompts in memory, and the most on disk. Above this, the oldest are removed.
PROMPTS_MAX = 500
# The most requests at a time. Further prompts wait.
FLIGHTS_MAX = 16
# After a failure: the time without a retry, and the time for which other addresses come first.
RETRY_SECONDS = 5
DOWN_SECONDS = 30
# How often the versions of the lock file are looked up in the list of withdrawals.
WITHDRAWALS_SECONDS = 300
WITHDRAWALS = "/api/v1/withdrawn.jsonl"

_log = logging.getLogger("hub_prompts")


class HubError(Exception):
    """Any failure to read or fill in a prompt."""


class InvalidName(HubError, ValueError):
    """The name is not OWNER/NAME or OWNER/NAME@REF."""


class LockError(HubError, ValueError):
    """The lock file cannot be used, or does not have this version."""


class NotFound(HubError, LookupError):
    """The hub has no such prompt, version or label."""


class Withdrawn(NotFound):
    """The prompt or version was withdrawn."""


class Unavailable(HubError):
    """No address gave a usable answer in time, and there is no copy."""


class InvalidValue(HubError, ValueError):
    """A value is not of its variable's type, or none of its enum."""


class MissingVariable(InvalidValue):
    """A required variable has no value."""


class UnknownVariable(InvalidValue):
    """The prompt has no variable of this name."""


class Got(NamedTuple):
    """For ``on_get``: a call of ``get`` that returned a prompt. ``source`` is memory, disk, network
    or fallback, which has no version. ``error``: why it is a fallback, or a copy in an outage.
    Without a call: ``source`` is withdrawn, for a version of the lock file that the hub has
    withdrawn, once; ``error`` says why.
    """

    repo: str
    version: str | None
    source: str
    seconds: float
    error: Exception | None


# From left to right: an escaped opening is matched before it can open anything.
_VARIABLE = re.compile(r"\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}")
_MARKER = re.compile(
    r"""(?m)^[ \t]*\{\{[ \t]*role[ \t]+(["'])(system|user|assistant|tool)\1[ \t]*\}\}[ \t]*\r*$"""
)
_BLANK = " \t\r\n"
# By type: the allowed types of a value, and the pattern of its text.
_FITS: dict[str, tuple[Any, str]] = {
    "string": (str, ""),
    "integer": (object, r"-?(0|[1-9][0-9]*)(\.0+)?\Z"),
    "number": (object, r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z"),
    "boolean": (object, r"(true|false)\Z"),
    "array": ((list, tuple), ""),
    "object": (dict, ""),
}


@dataclass(frozen=True)
class Prompt:
    """One version of a prompt; safe to share between threads. ``id`` is OWNER/NAME; ``sha256`` the
    hash of ``content``, the published file; ``body`` the text after its front matter; ``version``
    is None for a fallback.
    """

    id: str
    version: str | None
    sha256: str
    content: str = field(repr=False)
    body: str = field(repr=False)
    variables: list[dict[str, Any]] = field(repr=False)
    _parameters: dict[str, Any] = field(repr=False)

    @property
    def parameters(self) -> dict[str, Any]:
        """The author's settings for a model; a copy of your own."""
        return copy.deepcopy(self._parameters)

    def fill(self, /, **values: Any) -> str:
        r"""``body`` with values in place of its ``{{variables}}``, and ``{{`` for ``\{{``.

        A variable without a value, or with None, gets its default, or nothing if it is optional.
        Texts stay as they are; other values become JSON as RFC 8785 writes it. Values are not
        searched for variables.
        Raises UnknownVariable, InvalidValue or MissingVariable.
        """
        return _filled(self.body, self._texts(values))

    def messages(self, /, **values: Any) -> list[dict[str, str]]:
        """The conversation, filled in as by ``fill``: a list of ``{"role", "content"}``. A prompt
        without role markers is one message of the user.
        """
        texts = self._texts(values)
        parts = _MARKER.split(self.body.removeprefix("\ufeff"))  # text, then quote, role, text, ...
        if len(parts) == 1:
            return [{"role": "user", "content": _filled(self.body, texts)}]
        found = zip(["system", *parts[2::3]], map(_trimmed, parts[::3]))
        return [{"role": role, "content": _filled(text, texts)} for role, text in found if text]

    def _texts(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The text for each variable."""
        declared = {variable["name"]: variable for variable in self.variables}
        used = [name for name in _VARIABLE.findall(self.body) if name]
        known = dict.fromkeys([*declared, *used])
        unknown = [name for name in values if name not in known]
        # A fallback may use fewer variables than the prompt it replaces.
        if unknown and self.version:
            has = ", ".join(list(known)[:10]) or "none"
            raise UnknownVariable(f"{self.id} has no variable {unknown[0]}. It has {has}.")
        texts = {}
        for name in known:
            variable, value = declared.get(name, {}), values.get(name)
            if value is not None:
                texts[name] = _checked(name, variable, value)
            elif variable.get("default") is not None:
                texts[name] = _text(name, variable["default"])
            elif not variable.get("required", True):
                texts[name] = ""
        missing = list(dict.fromkeys(name for name in used if name not in texts))
        if missing:
            raise MissingVariable(f"{self.id} needs a value for {', '.join(missing[:10])}.")
        if len(self.body) + sum(len(texts[name]) for name in used) > FILLED_CHARS_MAX:
            raise InvalidValue(f"{self.id} gets longer than {FILLED_CHARS_MAX:,} characters.")
        return texts


def _filled(text: str, texts: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: texts[found[1]] if found[1] else "{{", text)


def _text(name: str, value: Any) -> str:
    """A text as it is, any other value as RFC 8785 writes it."""
    if isinstance(value, str):
        return value
    try:
        plain = json.dumps(value, allow_nan=False)
        return _canonical(json.loads(plain, parse_int=float)).encode().decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"{name} is neither text nor JSON: {error}.") from None


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_canonical(key)}:{_canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return _number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """The number as JavaScript writes it, which RFC 8785 requires."""
    if not math.isfinite(value):
        raise ValueError("the number is too large for a double")
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return repr(value).replace("e-0", "e-") if value else "0"


def _checked(name: str, variable: Mapping[str, Any], value: Any) -> str:
    choices = variable.get("enum") or []
    if not isinstance(choices, list):
        raise InvalidValue(f"The enum of {name} is not a list.")
    text, enum = _text(name, value), [_text(name, one) for one in choices]
    if enum and text not in enum:
        raise InvalidValue(f"{name} must be one of {enum!r:.500}, not {text!r:.60}.")
    kind = str(variable.get("type", "string"))
    classes, pattern = _FITS.get(kind, (object, ""))
    read = value
    if kind in ("array", "object") and isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            read = json.loads(value)
    if not isinstance(read, classes) or not re.match(pattern, text):
        got = f"{type(value).__name__} {value!r:.60}"
        raise InvalidValue(f"{name} must be of type {kind}, not {got}.")
    return text


def _trimmed(text: str) -> str:
    """The text without blank lines at both ends, and without the last line break."""
    first, last = len(text) - len(text.lstrip(_BLANK)), len(text.rstrip(_BLANK))
    end = f"{text}\n".index("\n", last)
    return text[text.rfind("\n", 0, first) + 1 : end].rstrip("\r") if last else ""


_NAME = "[a-z0-9]+(?:-[a-z0-9]+)*"
_VERSION = r"(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){2}"
_LABEL = "[a-z0-9](?:[a-z0-9._-]{0,34}[a-z0-9])?"
_REFERENCE = re.compile(f"({_NAME}/{_NAME})(?:@(?:({_VERSION})|({_LABEL})))?")
_LOCKED = re.compile(
    f" *({_NAME}/{_NAME}) +({_LABEL}) +({_VERSION}) +([0-9a-f]{{64}})"
    "(?: +files:([0-9a-f]{64}))?(?: .*)?"
)
_LOOPBACK = re.compile(r"https?://(localhost|127(\.[0-9]+){3}|\[::1\])([:/].*)?")
_PRIVATE_WAY = re.compile(rf"https://.*|{_LOOPBACK.pattern}")
_FENCE = r"---[ \t]*(?:\r?\n|\Z)"
_FRONT_MATTER = re.compile(f"(?:{_FENCE}(?:(?!{_FENCE}).*\n)*{_FENCE})?")
# Errors of reading an answer that is not the expected JSON.
_MISFITS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _whole_sha256(record: Mapping[str, Any]) -> str | None:
    """The hash of a version's text and files, as `sha256sum` lists them; None without files."""
    lines = [f"{record['sha256']}  -\n"] + [
        f"{one['sha256']} {'*' if one['executable'] else ' '}{one['path']}\n"
        for one in sorted(record.get("files", ()), key=lambda one: one["path"])
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest() if lines[1:] else None


class _Wanted(NamedTuple):
    """The version to read, with the expected hashes if there are any, ``whole`` that of text and
    files; or the label; or the latest.
    """

    repo: str
    version: str | None = None
    label: str | None = None
    sha256: str | None = None
    whole: str | None = None

    @property
    def path(self) -> str:
        """The path of the file, which every host has."""
        part = f"/labels/{self.label}" if self.label else ""
        part = f"/versions/{self.version}" if self.version else part
        return f"/api/v1/repos/{self.repo}{part}.json"

    def parse(self, answer: bytes | bytearray) -> Prompt:
        """The prompt of a record. Raises Unavailable if it is another prompt or no record."""
        with contextlib.suppress(*_MISFITS):
            record = json.loads(answer)["data"]
            content, variables, parameters = map(record.get, ("content", "variables", "parameters"))
            body, version = record.get("body", content), record.get("version")
            version = version or record["latest_version"]
            sha256 = hashlib.sha256(content.encode()).hexdigest()
            if (
                f"{record['owner']}/{record['name']}" == self.repo
                and record.get("label") == self.label
                and version == (self.version or version)
                and re.fullmatch(_VERSION, version)
                and record["sha256"] == sha256 == (self.sha256 or sha256)
                and (self.whole is None or self.whole == _whole_sha256(record))
                and content.endswith(body)
                and _FRONT_MATTER.fullmatch(content[: len(content) - len(body)])
                and (type(parameters), type(variables)) == (dict, list)
                and all(_VARIABLE.fullmatch(f"{{{{{one['name']}}}}}") for one in variables)
            ):
                return Prompt(self.repo, version, sha256, content, body, variables, parameters)
        raise Unavailable(f"no record of {self.repo} with the expected SHA-256.")


def _read_lock(path: str | os.PathLike[str]) -> dict[str, dict[str, _Wanted]]:
    """The pins of a lock file, by prompt, then by ref and by version. Raises LockError."""
    pins: dict[str, dict[str, _Wanted]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError) as error:
        raise LockError(f"Cannot read {path}: {error}. Create it with `hub lock`.") from error
    for number, line in enumerate(lines, start=1):
        if line.strip(" \r") and not line.lstrip(" ").startswith("#"):
            found = _LOCKED.fullmatch(line.rstrip("\r"))
            repo, ref, version, *hashes = found.groups() if found else [""] * 5
            pin, by_ref = _Wanted(repo, version, None, *hashes), pins.setdefault(repo, {})
            is_edited = re.fullmatch(_VERSION, ref) and ref != version
            agrees = by_ref.setdefault(ref, pin) == by_ref.setdefault(version, pin) == pin
            if not found or is_edited or not agrees:
                raise LockError(f"{path}, line {number} is not locked. Run `hub lock`.")
    return pins


@dataclass
class _Entry:
    """A prompt in memory, its source, and the last error. Times are ``time.monotonic``'s."""

    wanted: _Wanted
    prompt: Prompt | None = None
    source: str = "network"
    etag: str = ""
    error: HubError | None = None
    fresh_until: float = 0
    stale_until: float = 0
    usable_until: float = 0
    retry_at: float = 0
    flight: Future[None] | None = None

    def renew(self, source: str, caching: str, age: float = 0) -> None:
        """Set the lifetimes by this Cache-Control, from when the hub confirmed the prompt, ``age``
        seconds ago.
        """
        # The defaults, for plain file hosts without the header, are the hub's own values for a
        # label.
        seconds = {"max-age": 15, "stale-while-revalidate": 60, "stale-if-error": 86400}
        if "no-store" in caching or "no-cache" in caching:
            seconds = dict.fromkeys(seconds, 0)
        seconds.update((name, int(n)) for name, n in re.findall(r"([a-z-]+)=([0-9]{1,9})", caching))
        self.fresh_until = time.monotonic() - age + seconds["max-age"]
        self.stale_until = self.fresh_until + seconds["stale-while-revalidate"]
        self.usable_until = self.fresh_until + seconds["stale-if-error"]
        if self.wanted.version and "no-store" not in caching:  # A version's text never changes.
            self.usable_until = float("inf")
        self.source, self.error, self.retry_at = source, None, 0

    def fail(self, error: HubError) -> None:
        self.error, self.retry_at = error, time.monotonic() + RETRY_SECONDS


@contextlib.contextmanager
def _disk_trouble(repo: str) -> Iterator[None]:
    """Log an error of the copy on disk. No read fails because of one."""
    try:
        yield
    except FileNotFoundError:
        pass
    except (OSError, Unavailable, *_MISFITS) as error:
        _log.warning("Cannot use the copy of %s on disk: %s", repo, error)


class _Reading:
    """A request and its answer, in a thread of its own, because nothing else limits the time of a
    name look-up, or of headers that come byte by byte. After ``give_up`` no thread waits any more,
    neither for it nor for the server.
    """

    def __init__(self, opener: request.OpenerDirector, url: str, headers: dict[str, str]) -> None:
        self.answer, self._is_over = bytearray(), False
        self._request, self._socket = request.Request(url, headers=headers), None
        self._request.connect = self._connect  # type: ignore[attr-defined]
        self._opener, self._result = opener, Future()

    def wait(self, seconds: float) -> Any:
        """The response, whose body is in ``answer``; raises its error, or TimeoutError."""
        _in_thread(self._run, seconds)
        if not wait([self._result], seconds).done:
            raise TimeoutError("no answer within its time")
        return self._result.result()

    def give_up(self) -> None:
        self._is_over = True
        if self._socket:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def _run(self, seconds: float) -> None:
        try:
            self._result.set_result(self._read(seconds))
        except BaseException as error:
            self._result.set_exception(error)

    def _read(self, seconds: float) -> Any:
        with self._opener.open(self._request, timeout=seconds) as response:
            while chunk := response.read1(65536):
                self.answer += chunk
                if len(self.answer) > ANSWER_BYTES_MAX:
                    raise Unavailable(f"{self._request.full_url} is too large.")
        return response

    def _connect(self, *address: Any) -> socket.socket:
        connection = socket.create_connection(*address)
        # A duplicate, because TLS detaches the first socket.
        self._socket = connection.dup()
        if self._is_over:
            self.give_up()
        return connection


def _in_thread(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a daemon thread, so that the process does not wait for it at its end."""
    threading.Thread(target=function, args=arguments, name="hub-prompts", daemon=True).start()


def _connected(kind: type, connect: Any, *arguments: Any, **options: Any) -> Any:
    connection = kind(*arguments, **options)
    connection._create_connection = connect
    return connection


class _Handler(request.HTTPHandler, request.HTTPSHandler):
    """Connects with the request's own function."""

    def http_open(self, req: Any) -> Any:
        return self.do_open(partial(_connected, http.client.HTTPConnection, req.connect), req)

    def https_open(self, req: Any) -> Any:
        options = {"context": self._context} if self._context else {}
        opened = partial(_connected, http.client.HTTPSConnection, req.connect)
        return self.do_open(opened, req, **options)


class _Proxies(request.ProxyHandler):
    """Proxies of the environment, except for addresses of this machine."""

    def proxy_open(self, req: Any, proxy: str, type: str) -> Any:
        if _LOOPBACK.fullmatch(req.full_url):
            return None
        return super().proxy_open(req, proxy, type)


class _Hub:
    """The common part of Hub and AsyncHub: everything except waiting."""

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        token: str | None = None,
        lock: str | os.PathLike[str] | None = None,
        timeout: float = 5.0,
        disk: str | os.PathLike[str] | bool = True,
        headers: Mapping[str, str] | None = None,
        on_get: Callable[[Got], object] | None = None,
    ) -> None:
        given = url or os.environ.get("HUB_URL") or BAKED_URL
        urls = given.split() if isinstance(given, str) else given
        for one in urls or [""]:
            if not re.fullmatch(r"https?://[A-Za-z0-9._~:\[\]-][A-Za-z0-9._~:\[\]/-]*", one):
                raise ValueError(f"No hub: {one!r}. Pass https://HOST[/PATH], or set HUB_URL.")
        self.addresses, self.timeout = [one.rstrip("/") for one in urls], timeout
        self._headers = {"User-Agent": f"hub-prompts/{__version__}", **(headers or {})}
        # HUB_TOKEN belongs to HUB_URL. It is not sent to a hub that a program names.
        is_private = all(map(_PRIVATE_WAY.fullmatch, self.addresses))
        if token is None and not url and is_private:
            token = os.environ.get("HUB_TOKEN")
        if token and not re.fullmatch(r"\w+", token, re.ASCII):
            raise ValueError("The token is not one. A token is hub_ and 38 letters and digits.")
        if token and not is_private:
            raise ValueError(f"{given} is plain http: others could read the token. Use https.")
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        self._on_get, self._pins = on_get, _read_lock(lock) if lock is not None else {}
        # Versions of the lock file that are not known to be withdrawn, and when to look again.
        self._alive = {pin for by_ref in self._pins.values() for pin in by_ref.values()}
        self._look_at = 0.0
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        default = os.path.join(cache, "hub-prompts") if disk and os.path.isabs(cache) else ""
        self._folder = default if isinstance(disk, bool) else os.fspath(disk)
        # The opener follows no redirects, so headers reach no other host and no other host is
        # trusted.
        self._opener = request.OpenerDirector()
        self._opener.add_handler(_Proxies())
        self._opener.add_handler(_Handler())
        self._entries: dict[str, _Entry] = {}
        self._down: dict[str, float] = {}
        self._start_threads()

    def _start_threads(self) -> None:
        """Runs again in each forked process, because a fork copies no threads."""
        self._lock, self._threads, self._waiting = threading.Lock(), 0, deque()
        for entry in list(self._entries.values()):
            entry.flight = None
        self._process = os.getpid()

    def _wanted(self, reference: str) -> _Wanted:
        found = isinstance(reference, str) and _REFERENCE.fullmatch(reference)
        if not found or len(reference) > 200:
            raise InvalidName(f"{str(reference)[:200]!r} is not OWNER/NAME or OWNER/NAME@REF.")
        repo, version, label = found.groups()
        pins = self._pins.get(repo)
        if not pins:
            return _Wanted(repo, version, None if label == "latest" else label)
        only = {*pins.values()} if reference == repo else ()
        pin = pins.get(version or label or "latest") or (len(only) == 1 and only.pop())
        if not pin:
            raise LockError(f"The lock file does not have {reference}. Run `hub lock {reference}`.")
        return pin

    def _begin(self, reference: str, now: float) -> tuple[_Entry, Any]:
        """The entry in memory, and its flight if the call must wait for that."""
        if not isinstance(reference, str):
            self._wanted(reference)
        entry = self._entries.get(reference)
        if entry and now < entry.fresh_until:
            return entry, None
        if self._process != os.getpid():
            self._start_threads()
        with self._lock:
            entry = self._entries.pop(reference, None) or _Entry(self._wanted(reference))
            self._entries[reference] = entry
            if len(self._entries) > PROMPTS_MAX:
                del self._entries[next(iter(self._entries))]
            if now < max(entry.fresh_until, entry.retry_at):
                return entry, None
            if not entry.flight or entry.flight.done():
                entry.flight = Future()
                self._waiting.append((entry.flight, reference, entry, now))
                if self._threads < FLIGHTS_MAX:
                    self._threads += 1
                    _in_thread(self._fly)
        # While the hub is known to be down, calls use the copy without waiting.
        until = entry.usable_until if entry.error else entry.stale_until
        return entry, entry.flight if not entry.prompt or now >= until else None

    def _end(self, reference: str, entry: _Entry, flight: Any, started: float) -> Prompt:
        if flight and not flight.done():
            reason = f"no answer within {self.timeout:g} seconds."
            entry.fail(Unavailable(f"Cannot read {reference}: {reason}"))
        error, prompt = entry.error, entry.prompt
        if not prompt or (error and time.monotonic() >= entry.usable_until):
            # Another thread sets the error before it removes the prompt.
            error = error or entry.error
            raise type(error)(str(error))
        source, entry.source = entry.source, "memory"
        self._tell(Got(reference, prompt.version, source, time.monotonic() - started, error))
        return prompt

    def _fall_back(self, reference: str, text: str, error: Exception, started: float) -> Prompt:
        _log.warning("Using the fallback: %s", error)
        sha256 = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        prompt = Prompt(str(reference).partition("@")[0], None, sha256, text, text, [], {})
        self._tell(Got(reference, None, "fallback", time.monotonic() - started, error))
        return prompt

    def _tell(self, got: Got) -> None:
        try:
            if self._on_get:
                self._on_get(got)
        except Exception:
            _log.exception("on_get failed")

    def _fly(self) -> None:
        """Refresh the waiting entries. Each flight has a time limit, so no thread is lost."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                flight, *refreshed = self._waiting.popleft()
            self._refresh(*refreshed)
            flight.set_result(None)
            self._look_for_withdrawn()

    def _look_for_withdrawn(self) -> None:
        """Report each version of the lock file that was withdrawn, once. Never raises."""
        with self._lock:
            if not self._alive or time.monotonic() < self._look_at:
                return
            self._look_at = time.monotonic() + WITHDRAWALS_SECONDS
        for address in self.addresses:
            reading = _Reading(self._opener, address + WITHDRAWALS, dict(self._headers))
            try:
                if reading.wait(self.timeout).status == 200:
                    lines = map(json.loads, reading.answer.splitlines())
                    return self._tell_of_withdrawn(
                        {(f"{one['owner']}/{one['name']}", one["version"]): one for one in lines}
                    )
            except Exception as error:  # Another address, or the next time.
                _log.debug("%s%s: %s", address, WITHDRAWALS, error)
            finally:
                reading.give_up()

    def _tell_of_withdrawn(self, lines: dict[tuple[str, str | None], dict[str, str]]) -> None:
        for pin in sorted(self._alive):
            line = lines.get((pin.repo, pin.version)) or lines.get((pin.repo, None))
            if line:
                self._alive.discard(pin)
                words = "was withdrawn on {at:.10} ({reason}). {note}".format_map(line)
                why = f"{pin.repo} {pin.version} {''.join(filter(str.isprintable, words))[:500]}"
                error = Withdrawn(why.strip())
                _log.warning("The lock file has a withdrawn version: %s", error)
                self._tell(Got(f"{pin.repo}@{pin.version}", pin.version, "withdrawn", 0.0, error))

    def _refresh(self, reference: str, entry: _Entry, started: float) -> None:
        """Update an entry for all calls that wait for it. Never raises."""
        try:
            if not entry.prompt and not entry.error:
                self._load(entry)
                if time.monotonic() < entry.stale_until:
                    return
            self._fetch(entry, started + self.timeout)
        except NotFound as error:
            entry.fail(type(error)(f"No {reference}: {error}"))
            entry.prompt = None
            with _disk_trouble(entry.wanted.repo):
                os.unlink(self._place(entry.wanted))
        except Exception as error:
            entry.fail(Unavailable(f"Cannot read {reference}: {error}"))
            message = "%s (using the last copy)" if entry.prompt else "%s"
            _log.warning(message, entry.error, exc_info=not isinstance(error, Unavailable))

    def _fetch(self, entry: _Entry, end: float) -> None:
        """Request the addresses in turn, each within its share of the time."""
        errors: list[HubError] = []
        order = sorted(self.addresses, key=lambda one: self._down.get(one, 0) > time.monotonic())
        for place, address in enumerate(order):
            now = time.monotonic()
            try:
                return self._ask(address, entry, now + (end - now) / (len(order) - place))
            except Withdrawn:
                raise
            # A mirror may not have it yet, so errors of other addresses count first.
            except NotFound as error:
                errors.append(error)
            except Unavailable as error:
                errors.insert(0, error)
                self._down[address] = now + DOWN_SECONDS
        raise errors[0]

    def _ask(self, address: str, entry: _Entry, end: float) -> None:
        url, headers = address + entry.wanted.path, dict(self._headers)
        if entry.prompt and entry.etag:
            headers["If-None-Match"] = entry.etag
        reading = _Reading(self._opener, url, headers)
        try:
            response = reading.wait(max(0.001, end - time.monotonic()))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(f"{url}: {error}.") from error
        finally:
            reading.give_up()
        answer = reading.answer
        status, caching = response.status, response.headers.get("Cache-Control", "").lower()
        if status == 200:
            entry.prompt, entry.etag = entry.wanted.parse(answer), response.headers.get("ETag", "")
            if self._folder and "no-store" not in caching:
                self._keep(entry, caching, answer)
        elif status == 304 and "If-None-Match" in headers:
            with _disk_trouble(entry.wanted.repo):
                os.utime(self._place(entry.wanted))
        else:
            message = f"{url}: status {status} {response.headers.get('Location', '')}".rstrip()
            with contextlib.suppress(*_MISFITS):
                message = str(json.loads(answer)["error"]["message"])
            kind = {404: NotFound, 410: Withdrawn}.get(status, Unavailable)
            raise kind("".join(filter(str.isprintable, message))[:500])
        entry.renew("network", caching)

    # A copy is a line about the answer, then the answer. The file's time is when the hub last
    # confirmed it.

    def _place(self, wanted: _Wanted) -> str:
        key = hashlib.sha256(f"{self.addresses[0]} {wanted.path}".encode()).hexdigest()
        return os.path.join(self._folder, f"{key}.hub") if self._folder else ""

    def _load(self, entry: _Entry) -> None:
        with _disk_trouble(entry.wanted.repo), open(self._place(entry.wanted), "rb") as file:
            about, _, answer = file.read(ANSWER_BYTES_MAX + 10_000).partition(b"\n")
            # A time in the future counts as one as far in the past.
            age = abs(time.time() - os.fstat(file.fileno()).st_mtime)
            etag, caching = map(str, json.loads(about))
            entry.prompt, entry.etag = entry.wanted.parse(answer), etag
            entry.renew("disk", caching, age)

    def _keep(self, entry: _Entry, caching: str, answer: bytearray) -> None:
        with _disk_trouble(entry.wanted.repo):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".hub", delete=False) as file:
                file.write(json.dumps([entry.etag, caching]).encode() + b"\n" + answer)
            os.replace(file.name, self._place(entry.wanted))
            files = [one for one in os.scandir(self._folder) if one.name.endswith(".hub")]
            for one in sorted(files, key=lambda one: -one.stat().st_mtime)[PROMPTS_MAX:]:
                os.unlink(one)


class Hub(_Hub):
    """Reads prompts from a hub.

    ``url``: its address, or several, tried in turn when one fails; default HUB_URL.
    ``token``: for a private hub, sent to these addresses alone; by default HUB_TOKEN, if no ``url``
    is given. ``lock``: a file of ``hub lock``: a prompt in it is read at that version and hash.
    ``timeout``: the most seconds that a call waits in all. ``disk``: the folder of the copies for
    outages, by default below XDG_CACHE_HOME; False for none. ``headers``: sent with each request.
    ``on_get``: called with a Got at each read. Raises ValueError and LockError.
    """

    def get(self, reference: str, *, fallback: str | None = None) -> Prompt:
        """The prompt OWNER/NAME or OWNER/NAME@REF. REF is a version, a label or latest.

        A copy is used as long as the hub's Cache-Control allows, and refreshed in the background.
        If
        the hub is down, it is used for stale-if-error (RFC 5861), and a version at any age.
        NotFound and Withdrawn
        are answers, not outages: they end the use of a copy, because a withdrawn text
        must not live on in caches. ``fallback`` is the text to use instead of any error but
        InvalidName.

        Raises NotFound, Withdrawn, Unavailable, InvalidName or LockError.
        """
        started = time.monotonic()
        try:
            entry, flight = self._begin(reference, started)
            if flight:
                wait([flight], self.timeout)
            return self._end(reference, entry, flight, started)
        except Exception as error:
            if fallback is None or isinstance(error, InvalidName):
                raise
            return self._fall_back(reference, fallback, error, started)


class AsyncHub(_Hub):
    """As Hub, for asyncio: ``await hub.get(...)``. Tasks share requests as threads do."""

    async def get(self, reference: str, *, fallback: str | None = None) -> Prompt:
        """As ``Hub.get``."""
        started = time.monotonic()
        try:
            entry, flight = self._begin(reference, started)
            if flight:  # The flight continues if this task is cancelled.
                await asyncio.wait([asyncio.wrap_future(flight)], timeout=self.timeout)
            return self._end(reference, entry, flight, started)
        except Exception as error:
            if fallback is None or isinstance(error, InvalidName):
                raise
            return self._fall_back(reference, fallback, error, started)
