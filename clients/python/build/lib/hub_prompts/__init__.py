"""Read prompts from a hub: cached, verified, and still there when the hub is down.

    from hub_prompts import Hub

    hub = Hub("https://prompts.example.org")
    prompt = hub.get("ada/code-review@production")
    text = prompt.fill(language="Python", diff="...")

Only the standard library, Python 3.9 or later; this file also works on its own.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import copy
import difflib
import functools
import hashlib
import http.client
import io
import json
import logging
import math
import os
import re
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple
from urllib.parse import urlsplit

__version__ = "1.0.0"
__all__ = [
    "AsyncHub", "Got", "Hub", "HubError", "InvalidName", "InvalidValue", "LockError",
    "MissingVariable", "NotFound", "Prompt", "Unavailable", "UnknownVariable", "Withdrawn",
]  # fmt: skip

# The build puts the address of its site here.
BAKED_URL = ""

ANSWER_BYTES_MAX = 8 * 1024 * 1024
FILLED_CHARS_MAX = 50_000_000
# Prompts in memory. What is stored longest goes first, here and on the disk.
PROMPTS_MAX = 500
COPIES_MAX = 1000
COPIES_BYTES_MAX = 64 * 1024 * 1024
LOCK_BYTES_MAX = 1001 * 1000
REFERENCE_CHARS_MAX = 200
THREADS_MAX = 16
# How long a failure is remembered, so that not every call waits for a hub that is down.
RETRY_SECONDS = 5
RETRY_SECONDS_MAX = 300
# How long other addresses come first after a failure.
DOWN_SECONDS = 30

_log = logging.getLogger("hub_prompts")


class HubError(Exception):
    """Any failure of this module."""


class InvalidName(HubError, ValueError):
    """The name is not ``OWNER/NAME`` or ``OWNER/NAME@REF``."""


class LockError(HubError):
    """The lock file cannot be used, or does not have the version that you ask for."""


class NotFound(HubError, LookupError):
    """The hub has no such prompt, version or label."""


class Withdrawn(NotFound):
    """The prompt or version was withdrawn."""


class Unavailable(HubError):
    """No address gave a usable answer in time, and there is no copy."""

    retry_seconds: float = RETRY_SECONDS


class MissingVariable(HubError, ValueError):
    """Required variables have no value."""


class UnknownVariable(HubError, ValueError):
    """The prompt has no variable of this name."""


class InvalidValue(HubError, ValueError):
    """A value is not of its variable's type, or none of its enum."""


class Got(NamedTuple):
    """What ``on_get`` is told of each call of ``get`` that returns a prompt. ``repo`` is
    ``OWNER/NAME[@REF]`` as asked; ``version`` is None for a fallback, whose reason is ``error``.
    ``source`` is memory, disk, network or fallback.
    """

    repo: str
    version: str | None
    source: str
    seconds: float
    error: Exception | None = None


# From left to right: an escaped opening is taken before it can open anything.
_VARIABLE = re.compile(r"\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_FITS: dict[str, Callable[[Any, str], object]] = {
    "string": lambda value, text: not isinstance(value, (dict, list, tuple)),
    "integer": lambda value, text: _INTEGER.fullmatch(text),
    "number": lambda value, text: _NUMBER.fullmatch(text),
    "boolean": lambda value, text: text in ("true", "false"),
    "array": lambda value, text: isinstance(value, (list, tuple, str)),
    "object": lambda value, text: isinstance(value, (dict, str)),
}
_MARKER = re.compile(
    r"""^[ \t]*\{\{[ \t]*role[ \t]+(["'])(system|user|assistant|tool)\1[ \t]*\}\}[ \t]*\r*$""",
    re.MULTILINE,
)
_BLANK = " \t\r\n"


@dataclass(frozen=True)
class Prompt:
    """One version of a prompt. It never changes, and threads can share it.

    ``id`` is ``OWNER/NAME``. ``content`` is the published file, ``sha256`` the hash of its bytes,
    and ``body`` the text after its front matter. ``version`` is None if this is a fallback.
    """

    id: str
    version: str | None
    sha256: str
    content: str = field(repr=False)
    body: str = field(repr=False)
    _variables: list[dict[str, Any]] = field(default_factory=list, repr=False, compare=False)
    _parameters: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def variables(self) -> list[dict[str, Any]]:
        """The declared variables: name, description, type, required, default, example, enum."""
        return copy.deepcopy(self._variables)

    @property
    def parameters(self) -> dict[str, Any]:
        """The author's settings for a model, such as ``temperature``; a copy of your own."""
        return copy.deepcopy(self._parameters)

    def fill(self, /, **values: Any) -> str:
        r"""``body`` with values in the place of its ``{{variables}}``, and ``{{`` for ``\{{``.

        A variable without a value, or with None, gets its default, or nothing if it is optional.
        Texts stay as they are; other values become JSON. Values are not searched for variables.
        Raises UnknownVariable, InvalidValue or MissingVariable.
        """
        return _filled(self.body, self._texts(values))

    def messages(self, /, **values: Any) -> list[dict[str, str]]:
        """The conversation, filled in as by ``fill``: a list of ``{"role", "content"}``.

        A body without ``{{role "..."}}`` markers is one message of the user.
        """
        texts = self._texts(values)
        found = _messages(self.body)
        parts = [("user", self.body)] if found is None else found
        return [{"role": role, "content": _filled(part, texts)} for role, part in parts]

    def _texts(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The texts of all variables, by name; those of ``_filled``."""
        declared = {variable["name"]: variable for variable in self._variables}
        used = [name for name in _VARIABLE.findall(self.body) if name]
        known = dict.fromkeys([*declared, *used])
        unknown = next((name for name in values if name not in known), None)
        # A fallback may use less than the prompt that it stands for.
        if unknown is not None and self.version is not None:
            near = difflib.get_close_matches(unknown, list(known)[:200], 1)
            advice = f"Did you mean {near[0]}?" if near else f"It has: {_told(known)}."
            raise UnknownVariable(f"{self.id} has no variable {unknown}. {advice}")
        texts = {}
        for name in known:
            variable, value = declared.get(name, {}), values.get(name)
            if value is not None:
                texts[name] = _checked(name, variable, value)
            elif variable.get("default") is not None:
                texts[name] = _text(variable["default"])
            elif not variable.get("required", True):
                texts[name] = ""
        missing = dict.fromkeys(name for name in used if name not in texts)
        if missing:
            raise MissingVariable(f"{self.id} needs a value for: {_told(missing)}.")
        if len(self.body) + sum(len(texts[name]) for name in used) > FILLED_CHARS_MAX:
            raise InvalidValue(
                f"{self.id} would have more than {FILLED_CHARS_MAX:,} characters. "
                "Pass shorter values."
            )
        return texts


def _filled(text: str, texts: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: texts[found[1]] if found[1] else "{{", text)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _checked(name: str, variable: Mapping[str, Any], value: Any) -> str:
    try:
        text = _text(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"{name} is neither text nor JSON: {error}.") from None
    enum = [_text(one) for one in variable.get("enum") or ()]
    if enum and text not in enum:
        raise InvalidValue(f"{name} must be one of: {_told(enum)}. It is {text[:60]!r}.")
    kind = variable.get("type", "string")
    if kind in _FITS and not _FITS[kind](value, text):
        raise InvalidValue(f"{name} must be of type {kind}. It is {text[:60]!r}.")
    return text


def _told(texts: Any) -> str:
    shown = [repr(text[:60])[1:-1] for text in texts][:11]
    return ", ".join([*shown[:10], *(["..."] if shown[10:] else [])]) or "none"


def _messages(body: str) -> list[tuple[str, str]] | None:
    """Role and text of each message; None if there is no marker."""
    body = body[1:] if body.startswith("\ufeff") else body
    markers = list(_MARKER.finditer(body))
    if not markers:
        return None
    roles = ["system", *(marker[2] for marker in markers)]
    starts = [0, *(marker.end() for marker in markers)]
    ends = [*(marker.start() for marker in markers), len(body)]
    parts = [_trimmed(body[start:end]) for start, end in zip(starts, ends)]
    return [one for one in zip(roles, parts) if one[1]]


def _trimmed(text: str) -> str:
    """Without blank lines at both ends, and without the last line break."""
    first = len(text) - len(text.lstrip(_BLANK))
    end = text.find("\n", len(text.rstrip(_BLANK)))
    lines = text[text.rfind("\n", 0, first) + 1 : end if end >= 0 else len(text)]
    return lines.rstrip("\r") if first < len(text) else ""


_NAME = "[a-z0-9]+(?:-[a-z0-9]+)*"
_VERSION = r"(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){2}"
_LABEL = "[a-z0-9](?:[a-z0-9._-]{0,34}[a-z0-9])?"
_REFERENCE = re.compile(f"({_NAME}/{_NAME})(?:@(?:({_VERSION})|({_LABEL})))?")
_LOCKED = re.compile(
    f" *({_NAME}/{_NAME}) +({_VERSION}|{_LABEL}) +({_VERSION}) +([0-9a-f]{{64}})(?: .*)?"
)
_FENCE = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


class _Wanted(NamedTuple):
    """What to read: a version, which may have to have a hash; or a label; or the latest."""

    repo: str
    version: str | None = None
    label: str | None = None
    sha256: str | None = None

    @property
    def path(self) -> str:
        """Of the file, which has this path on every host."""
        part = f"/versions/{self.version}" if self.version else ""
        part = f"/labels/{self.label}" if self.label else part
        return f"/api/v1/repos/{self.repo}{part}.json"

    def parse(self, answer: bytes) -> Prompt:
        """The prompt of a record. Raises Unavailable if it is none, or another one."""
        try:
            record = json.loads(answer)["data"]
            content, variables = record["content"], record["variables"]
            body, parameters = record.get("body", content), record["parameters"]
            version = record.get("version") or record["latest_version"]
            sha256 = hashlib.sha256(content.encode()).hexdigest()
            front = content[: len(content) - len(body)]
            fences = [found.end() for found in _FENCE.finditer(content)][:2]
            is_whole = (
                f"{record['owner']}/{record['name']}" == self.repo
                and record.get("label") == self.label
                and (version == self.version or not self.version)
                and re.fullmatch(_VERSION, version)
                and record["sha256"] == sha256
                and front + body == content
                and (not front or (front.startswith("---") and fences[1:] == [len(front)]))
                and isinstance(parameters, dict)
                and all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", one["name"]) for one in variables)
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            is_whole = False
        if not is_whole:
            raise Unavailable(f"the answer is no record of {self.repo}, or its SHA-256 differs.")
        if self.sha256 not in (None, sha256):
            raise Unavailable(f"{self.repo} {version} does not have the SHA-256 of the lock file.")
        return Prompt(self.repo, version, sha256, content, body, variables, parameters)


def _read_lock(path: str | os.PathLike[str]) -> dict[str, dict[str, _Wanted]]:
    """What a lock file pins, by prompt and by ref. Raises LockError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LOCK_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise LockError(f"Cannot read {path}: {error}. Create it with `hub lock`.") from error
    if len(text) > LOCK_BYTES_MAX:
        raise LockError(f"{path} is too large. It may have 1,000 prompts.")
    pins: dict[str, dict[str, _Wanted]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        found = _LOCKED.fullmatch(line.rstrip("\r"))
        if not found and line.strip(" \r") and not line.lstrip(" ").startswith("#"):
            raise LockError(f"{path}, line {number} is not locked. Run `hub lock`.")
        if found:
            repo, ref, version, sha256 = found.groups()
            pin = _Wanted(repo, version, None, sha256)
            is_edited = re.fullmatch(_VERSION, ref) and ref != version
            if is_edited or pins.setdefault(repo, {}).setdefault(ref, pin) != pin:
                raise LockError(f"{path}, line {number} contradicts itself or another line.")
    return pins


# Hosts of plain files may send no Cache-Control: these are the hub's own.
_FRESH = {"max-age": 15, "stale-while-revalidate": 60, "stale-if-error": 86400}
_FRESH_VERSION = {"max-age": 300, "stale-while-revalidate": 3600, "stale-if-error": 86400}


class _Entry:
    """A prompt in memory, until when it may be used, and what went wrong last. Times are those of
    ``time.monotonic``.
    """

    def __init__(self, prompt: Prompt | None = None, source: str = "memory") -> None:
        self.prompt, self.source = prompt, source
        self.fresh_until = self.stale_until = self.usable_until = self.retry_at = 0.0
        self.error: HubError | None = None
        self.is_kept, self.address = True, ""
        self.cache_control: str | None = None
        self.validator: dict[str, str] = {}

    def fail(self, error: HubError) -> None:
        self.error = error
        seconds = getattr(error, "retry_seconds", RETRY_SECONDS)
        self.retry_at = time.monotonic() + min(max(seconds, RETRY_SECONDS), RETRY_SECONDS_MAX)

    def renew(self, wanted: _Wanted, cache_control: str | None, age: float) -> None:
        """Count from a check by the hub, ``age`` seconds ago."""
        told = (cache_control or "").lower()
        directives = dict(_FRESH_VERSION if wanted.version else _FRESH)
        directives.update((key, int(value)) for key, value in
                          re.findall(r'([a-z-]+)="?([0-9]{1,9})', told))  # fmt: skip
        if re.search("no-cache|no-store|must-revalidate", told):
            directives.update({"stale-while-revalidate": 0, "stale-if-error": 0})
        if re.search("no-cache|no-store", told):
            directives["max-age"] = 0
        self.cache_control, self.is_kept = cache_control, "no-store" not in told
        self.error, self.retry_at = None, 0.0
        checked_at = time.monotonic() - age
        self.fresh_until = checked_at + directives["max-age"]
        self.stale_until = self.fresh_until + directives["stale-while-revalidate"]
        self.usable_until = self.fresh_until + directives["stale-if-error"]
        if wanted.version and self.is_kept:  # the same text for ever, unless it is withdrawn
            self.usable_until = math.inf


# Until when this thread may read an answer, in all: a timeout is for each single read.
_limit = threading.local()


class _TimedFile(io.RawIOBase):
    def __init__(self, file: Any, sock: Any) -> None:
        self._file, self._sock = file, sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        left = _limit.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = io.BufferedReader(_TimedFile(self.fp.detach(), sock))


class _Http(urllib.request.HTTPHandler):
    class Connection(http.client.HTTPConnection):
        response_class = _Response

    def http_open(self, req: Any) -> Any:
        return self.do_open(self.Connection, req)


class _Https(urllib.request.HTTPSHandler):
    class Connection(http.client.HTTPSConnection):
        response_class = _Response

    def https_open(self, req: Any) -> Any:
        return self.do_open(self.Connection, req, context=_tls())


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows within a host, so that neither trust nor headers go elsewhere."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any):
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        is_upgrade = (old.scheme, new.scheme) == ("http", "https") and old.hostname == new.hostname
        if is_upgrade or (old.scheme, old.netloc) == (new.scheme, new.netloc):
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        raise Unavailable(
            f"{req.full_url} redirects to {new.scheme}://{new.netloc}. Use that host."
        )


class _AnyStatus(urllib.request.HTTPDefaultErrorHandler):
    def http_error_default(self, req: Any, fp: Any, code: Any, msg: Any, hdrs: Any) -> Any:
        return fp


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def error(self) -> tuple[str, str]:
        """The hub's code and message; both empty if this is no answer of a hub."""
        try:
            error = json.loads(self.body)["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, LookupError, TypeError, RecursionError):
            return "", ""
        return code, "".join(filter(str.isprintable, message))[:500]


class _Hub:
    """What Hub and AsyncHub share: all but how they wait."""

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        lock: str | os.PathLike[str] | None = None,
        timeout: float = 5.0,
        disk: str | os.PathLike[str] | bool = True,
        headers: Mapping[str, str] | None = None,
        on_get: Callable[[Got], object] | None = None,
    ) -> None:
        given = url or os.environ.get("HUB_URL") or BAKED_URL
        urls = given.split() if isinstance(given, str) else list(given)
        self.addresses = [one.rstrip("/") for one in urls]
        for address in self.addresses:
            parts = urlsplit(address)
            is_plain = not (parts.query or parts.fragment or parts.username)
            if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
                raise ValueError(f"{address} is not the address of a hub, https://HOST[/PATH].")
        if not self.addresses:
            raise ValueError("No hub. Pass its address, or set HUB_URL.")
        if not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {timeout}.")
        self.timeout, self._on_get = timeout, on_get
        self._headers = {"User-Agent": f"hub-prompts/{__version__}", "Accept": "application/json"}
        self._headers.update(headers or {})
        self._pins = _read_lock(lock) if lock is not None else {}
        self._folder = _copies_folder(disk)
        self._opener = urllib.request.build_opener(_Http, _Https, _Redirects, _AnyStatus)
        self._entries: dict[str, _Entry] = {}
        self._down: dict[str, float] = {}
        self._reset()
        _hubs.add(self)

    def _reset(self) -> None:
        """Forget all threads; also in a forked process, which has none of them."""
        self._lock = threading.Lock()
        self._jobs: collections.deque[Callable[[], None]] = collections.deque()
        self._flights: dict[str, concurrent.futures.Future[tuple[_Entry, str]]] = {}
        self._workers = 0

    def _wanted(self, reference: str) -> _Wanted:
        found = _REFERENCE.fullmatch(reference if isinstance(reference, str) else "")
        if not found or len(reference) > REFERENCE_CHARS_MAX:
            raise InvalidName(
                f"{str(reference)[:REFERENCE_CHARS_MAX]!r} is not OWNER/NAME or OWNER/NAME@REF, "
                "like ada/code-review@production."
            )
        repo, version, label = found.groups()
        if repo not in self._pins:
            return _Wanted(repo, version, None if label == "latest" else label)
        pins = {pin.version: pin for pin in self._pins[repo].values()}
        pin = self._pins[repo].get(version or label or "latest") or pins.get(version)
        if pin is None and "@" not in reference and len(pins) == 1:
            (pin,) = pins.values()
        if pin is None:
            raise LockError(f"The lock file does not have {reference}. Run `hub lock {reference}`.")
        return pin

    def _begin(self, reference: str, now: float) -> Any:
        """A prompt and its source if there is no need to wait, else a future of an entry and its
        source. Raises HubError.
        """
        entry = self._entries.get(reference)
        if entry and entry.prompt and now < entry.fresh_until:
            return entry.prompt, "memory"
        wanted = self._wanted(reference)
        with self._lock:
            entry = self._entries.get(reference)
            if entry and (now < entry.fresh_until or now < entry.retry_at):
                return _outcome(entry, "memory")
            flight = self._flights.get(reference)
            if flight is None:
                flight = self._flights[reference] = concurrent.futures.Future()
                end = now + self.timeout
                self._start(functools.partial(self._fly, reference, wanted, entry, end, flight))
            # Where the hub is known to be down, no call waits again.
            may_wait = not entry or now >= (
                entry.usable_until if entry.error else entry.stale_until
            )
            if entry and entry.prompt and not may_wait:
                return entry.prompt, "memory"
        return flight

    def _start(self, job: Callable[[], None]) -> None:
        """Let a thread do this. Not those of an executor, for which Python waits when it ends."""
        self._jobs.append(job)
        if self._workers < THREADS_MAX:
            self._workers += 1
            try:
                threading.Thread(target=self._work, name="hub-prompts", daemon=True).start()
            except RuntimeError:  # no more threads, or Python is about to end
                self._workers -= 1
                if not self._workers:
                    _log.exception("Cannot start a thread")

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._workers -= 1
                    return
                job = self._jobs.popleft()
            job()

    def _fly(
        self, reference: str, wanted: _Wanted, entry: _Entry | None, end: float, flight: Any
    ) -> None:
        """Bring an entry up to date, for all who wait for the flight."""
        result: Any = None
        try:
            if entry is None:
                entry = self._load(wanted)
                if entry:
                    self._store(reference, entry)
                    if time.monotonic() < entry.stale_until:
                        flight.set_result((entry, "disk"))
                    if time.monotonic() < entry.fresh_until:
                        return
            result = self._refreshed(reference, wanted, entry, end)
            self._store(reference, result[0])
        except BaseException as error:  # a fault of ours: who waits must know
            _log.exception("Cannot read %s", reference)
            if not flight.done():
                flight.set_exception(error)
        finally:
            with self._lock:
                self._flights.pop(reference, None)
            if result and not flight.done():
                flight.set_result(result)

    def _store(self, reference: str, entry: _Entry) -> None:
        with self._lock:
            self._entries.pop(reference, None)
            self._entries[reference] = entry
            while len(self._entries) > PROMPTS_MAX:
                del self._entries[next(iter(self._entries))]

    def _refreshed(
        self, reference: str, wanted: _Wanted, entry: _Entry | None, end: float
    ) -> tuple[_Entry, str]:
        try:
            return self._fetch(wanted, entry, end), "network"
        except NotFound as error:
            self._forget(wanted)
            result, failure = _Entry(), type(error)(f"No {reference}: {error}")
        except Unavailable as error:
            result = entry or _Entry()
            failure = Unavailable(f"Cannot read {reference}: {error}")
            failure.retry_seconds = error.retry_seconds
            if result.prompt:
                _log.warning("%s Using the copy of version %s", failure, result.prompt.version)
        result.fail(failure)
        return result, result.source

    def _fetch(self, wanted: _Wanted, entry: _Entry | None, end: float) -> _Entry:
        """Ask the addresses in turn. NotFound needs the word of all, unless there is no copy."""
        has_copy = entry is not None and entry.prompt is not None
        missing: NotFound | None = None
        failure = Unavailable(f"no time left of {self.timeout:g} seconds.")
        for attempt in range(1 if has_copy else 2):
            now = time.monotonic()
            order = sorted(self.addresses, key=lambda one: self._down.get(one, 0) > now)
            for place, address in enumerate(order):
                left = end - time.monotonic()
                if left <= 0:
                    break
                try:
                    share = time.monotonic() + left / (len(order) - place)
                    found = self._ask(address, wanted, entry, share)
                    self._down.pop(address, None)
                    return found
                except Withdrawn:
                    raise
                except NotFound as error:
                    missing = error
                except Unavailable as error:
                    failure, self._down[address] = error, time.monotonic() + DOWN_SECONDS
            if missing and not (has_copy and self._down):
                raise missing
            if not attempt and not has_copy:
                time.sleep(max(0.0, min(0.2, end - time.monotonic())))
        raise failure

    def _ask(self, address: str, wanted: _Wanted, entry: _Entry | None, end: float) -> _Entry:
        validator = entry.validator if entry and entry.address == address else {}
        answer = self._request(address + wanted.path, validator, end)
        age = answer.headers.get("Age", "")
        seconds = float(age) if re.fullmatch("[0-9]{1,9}", age) else 0.0
        if answer.status == 304 and validator and entry:
            told = answer.headers.get("Cache-Control", entry.cache_control)
            entry.renew(wanted, told, seconds)
            self._touch(wanted, entry)
            return entry
        if answer.status == 200:
            fresh = _Entry(wanted.parse(answer.body))
            fresh.address = address
            fresh.renew(wanted, answer.headers.get("Cache-Control"), seconds)
            validators = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
            for name in filter(answer.headers.__contains__, validators):
                fresh.validator = fresh.validator or {validators[name]: answer.headers[name]}
            self._keep(wanted, fresh, answer.body)
            return fresh
        code, message = answer.error()
        is_told = code == "withdrawn" or code.endswith("not_found")
        # A host that is no hub, or only half of one, says the same of everything.
        if answer.status in (404, 410) and (is_told or self._is_hub(address, end)):
            kind = Withdrawn if answer.status == 410 else NotFound
            raise kind(message or f"{address} has no such prompt, version or label.")
        failure = Unavailable(f"{address} answered with status {answer.status}. {message}")
        after = answer.headers.get("Retry-After", "")
        failure.retry_seconds = int(after) if re.fullmatch("[0-9]{1,9}", after) else RETRY_SECONDS
        raise failure

    def _is_hub(self, address: str, end: float) -> bool:
        answer = self._request(f"{address}/api/v1/hub.json", {}, end)
        with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
            return answer.status == 200 and bool(json.loads(answer.body)["data"])
        return False

    def _request(self, url: str, headers: Mapping[str, str], end: float) -> _Answer:
        _limit.end = end
        request = urllib.request.Request(url, headers={**self._headers, **headers})
        try:
            left = max(0.001, end - time.monotonic())
            with self._opener.open(request, timeout=left) as answer:
                body = answer.read(ANSWER_BYTES_MAX + 1)
                if len(body) > ANSWER_BYTES_MAX:
                    raise Unavailable(f"{url} has more than {ANSWER_BYTES_MAX:,} bytes.")
                return _Answer(answer.status, answer.headers, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):  # too many redirects, or to a file:
                error.close()
            raise Unavailable(f"{url}: {error}.") from error

    # The copies on the disk: a line about the answer, then the answer. When the hub last confirmed
    # it is the file's time.

    def _place(self, wanted: _Wanted) -> str:
        key = f"{self.addresses[0]} {wanted.path}"
        return os.path.join(self._folder, hashlib.sha256(key.encode()).hexdigest() + ".json")

    def _load(self, wanted: _Wanted) -> _Entry | None:
        if not self._folder:
            return None
        place = self._place(wanted)
        try:
            with open(place, "rb") as file:
                about, _, answer = file.read(ANSWER_BYTES_MAX + 10_000).partition(b"\n")
                # A time to come is no better than one that is as long ago.
                age = abs(time.time() - os.fstat(file.fileno()).st_mtime)
            entry = _Entry(wanted.parse(answer), "disk")
            entry.address, entry.validator, told = json.loads(about)
            entry.renew(wanted, told, age)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError, Unavailable) as error:
            _log.warning("Ignored the copy %s: %s", place, error)
            return None
        return entry

    def _keep(self, wanted: _Wanted, entry: _Entry, answer: bytes) -> None:
        if not self._folder or not entry.is_kept:
            return
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            about = json.dumps([entry.address, entry.validator, entry.cache_control]).encode()
            handle, temporary = tempfile.mkstemp(".tmp", "hub-", self._folder)
            try:
                with open(handle, "wb") as file:
                    file.write(about + b"\n" + answer)
                os.replace(temporary, self._place(wanted))
            except BaseException:
                os.unlink(temporary)
                raise
            self._make_room()
        except OSError as error:
            _log.warning("Cannot keep a copy of %s in %s: %s", wanted.repo, self._folder, error)

    def _make_room(self) -> None:
        found = []
        for one in os.scandir(self._folder):
            if re.fullmatch(r"[0-9a-f]{64}\.json|hub-.*\.tmp", one.name):
                with contextlib.suppress(FileNotFoundError):  # another process removed it
                    found.append((one.stat().st_mtime, one.stat().st_size, one.path))
        size, count = sum(one[1] for one in found), len(found)
        for _, bytes_of_it, path in sorted(found):
            if count <= COPIES_MAX and size <= COPIES_BYTES_MAX:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            size, count = size - bytes_of_it, count - 1

    def _touch(self, wanted: _Wanted, entry: _Entry) -> None:
        if self._folder and entry.is_kept:
            try:
                os.utime(self._place(wanted))
            except OSError:
                entry.validator = {}  # so that the next answer is whole, and kept

    def _forget(self, wanted: _Wanted) -> None:
        if self._folder:
            try:
                os.unlink(self._place(wanted))
            except FileNotFoundError:
                pass
            except OSError as error:
                _log.warning("Cannot remove the copy of %s: %s", wanted.repo, error)

    # The ends of a call.

    def _end(self, reference: str, flight: Any) -> tuple[Prompt, str]:
        """The prompt that a flight has brought; or, if it is late, the copy."""
        if flight.done():
            return _outcome(*flight.result())
        with self._lock:
            entry = self._entries.setdefault(reference, _Entry())
            entry.fail(
                Unavailable(f"Cannot read {reference}: no answer within {self.timeout:g} seconds.")
            )
        return _outcome(entry, entry.source)

    def _fall_back(self, reference: str, text: str, error: Exception, started: float) -> Prompt:
        _log.warning("Using the fallback: %s", error)
        name = str(reference).partition("@")[0]
        sha256 = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return self._tell(
            reference, Prompt(name, None, sha256, text, text), "fallback", started, error
        )

    def _tell(
        self, reference: str, prompt: Prompt, source: str, started: float,
        error: Exception | None = None,
    ) -> Prompt:  # fmt: skip
        if self._on_get:
            seconds = time.monotonic() - started
            try:
                self._on_get(Got(reference, prompt.version, source, seconds, error))
            except Exception:
                _log.exception("on_get failed")
        return prompt


def _outcome(entry: _Entry, source: str) -> tuple[Prompt, str]:
    """The prompt of an entry, where it may be used. Raises the error of the entry."""
    if entry.prompt and (not entry.error or time.monotonic() < entry.usable_until):
        return entry.prompt, source
    assert entry.error
    raise type(entry.error)(*entry.error.args)


def _copies_folder(disk: str | os.PathLike[str] | bool) -> str:
    """Where copies are kept; empty for nowhere."""
    if not isinstance(disk, bool):
        return os.fspath(disk)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "hub-prompts") if disk and os.path.isabs(base) else ""


_hubs: weakref.WeakSet[_Hub] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [one._reset() for one in list(_hubs)])


class Hub(_Hub):
    """Reads prompts from a hub.

    ``url``: the hub's address, or several of the same hub: the next one is asked when one fails.
    Default: HUB_URL. ``lock``: a file of ``hub lock``; a prompt in it is read at that version and
    hash. ``timeout``: seconds that a call waits at most, in all. ``disk``: the folder of the
    copies for outages, by default below XDG_CACHE_HOME; False for none. ``headers``: sent with
    each request; no token ever is. ``on_get``: called with a Got at each read.

    Raises ValueError for a wrong address, and LockError.
    """

    def get(self, reference: str, *, fallback: str | None = None) -> Prompt:
        """The prompt ``OWNER/NAME[@REF]``; REF is a version, a label or latest.

        A copy in memory is used as long as the hub's Cache-Control says, and checked in the
        background. When the hub is down, a copy from memory or disk is used: of a version at any
        age, of a label or the latest as long as the hub allows. NotFound and Withdrawn are
        answers, not outages: they end the use of a copy, because nobody should read a withdrawn
        text, also not from a cache. ``fallback`` is the text to use instead of any error.

        Raises NotFound, Withdrawn, Unavailable, InvalidName or LockError.
        """
        started = time.monotonic()
        try:
            found = self._begin(reference, started)
            if isinstance(found, concurrent.futures.Future):
                concurrent.futures.wait([found], self.timeout)
                found = self._end(reference, found)
        except Exception as error:
            if fallback is None:
                raise
            return self._fall_back(reference, fallback, error, started)
        return self._tell(reference, *found, started)


class AsyncHub(_Hub):
    """As Hub, for asyncio: ``await hub.get(...)``."""

    async def get(self, reference: str, *, fallback: str | None = None) -> Prompt:
        """As ``Hub.get``. Tasks that ask for the same prompt share one request."""
        started = time.monotonic()
        try:
            found = self._begin(reference, started)
            if isinstance(found, concurrent.futures.Future):
                await _landed(found, self.timeout)
                found = self._end(reference, found)
        except Exception as error:
            if fallback is None:
                raise
            return self._fall_back(reference, fallback, error, started)
        return self._tell(reference, *found, started)


async def _landed(flight: Any, seconds: float) -> None:
    """Wait for a flight, which goes on if the task is cancelled."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
            loop.call_soon_threadsafe(lambda: waiter.done() or waiter.set_result(None))

    flight.add_done_callback(wake)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(waiter, seconds)
