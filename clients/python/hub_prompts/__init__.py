"""Read prompts from a hub: cached, verified, and still there when the hub is down.

    from hub_prompts import Hub

    hub = Hub("https://prompts.example.org")
    text = hub.get("ada/code-review@production").fill(language="Python", diff="...")

Only the standard library, Python 3.9 or later; this file also works on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import difflib
import hashlib
import http.client
import json
import logging
import math
import os
import re
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple
from urllib import request

__version__ = "1.0.0"
# The build puts the address of its site here.
BAKED_URL = ""

ANSWER_BYTES_MAX = 8 * 1024 * 1024
FILLED_CHARS_MAX = 50_000_000
LOCK_CHARS_MAX = 1_001_000
# Prompts in memory, and on the disk: the oldest go first.
PROMPTS_MAX = 500
THREADS_MAX = 16
# How long a failure is remembered, and for how long other addresses come first after one.
RETRY_SECONDS = 5
DOWN_SECONDS = 30

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
    or fallback, which has no version, but an error.
    """

    repo: str
    version: str | None
    source: str
    seconds: float
    error: Exception | None


# From left to right: an escaped opening is taken before it can open anything.
_VARIABLE = re.compile(r"\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_FITS: dict[str, Callable[[Any, str], object]] = {
    "string": lambda value, text: not isinstance(value, (dict, list, tuple)),
    "integer": lambda value, text: re.fullmatch(r"-?(0|[1-9][0-9]*)(\.0+)?", text),
    "number": lambda value, text: _NUMBER.fullmatch(text),
    "boolean": lambda value, text: text in ("true", "false"),
    "array": lambda value, text: isinstance(value, (list, tuple, str)),
    "object": lambda value, text: isinstance(value, (dict, str)),
}


@dataclass(frozen=True)
class Prompt:
    """One version of a prompt, which threads can share. ``id`` is OWNER/NAME; ``sha256`` the hash
    of ``content``, the published file; ``body`` the text after its front matter; ``version`` None
    if this is a fallback.
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
        r"""``body`` with values in the place of its ``{{variables}}``, and ``{{`` for ``\{{``.

        A variable without a value, or with None, gets its default, or nothing if it is optional.
        Texts stay as they are; other values become JSON. Values are not searched for variables.
        Raises UnknownVariable, InvalidValue or MissingVariable.
        """
        return _filled(self.body, self._texts(values))

    def messages(self, /, **values: Any) -> list[dict[str, str]]:
        """The conversation, filled in as by ``fill``: a list of ``{"role", "content"}``. A prompt
        that is no conversation is one message of the user.
        """
        texts = self._texts(values)
        found = _messages(self.body)
        parts = [("user", self.body)] if found is None else found
        return [{"role": role, "content": _filled(part, texts)} for role, part in parts]

    def _texts(self, values: Mapping[str, Any]) -> dict[str, str]:
        """What stands in the place of each variable."""
        declared = {variable["name"]: variable for variable in self.variables}
        used = [name for name in _VARIABLE.findall(self.body) if name]
        known = dict.fromkeys([*declared, *used])
        for name in values:
            # A fallback may use less than the prompt that it stands for.
            if name not in known and self.version:
                near = difflib.get_close_matches(name, list(known)[:200], 1) or list(known)[:10]
                raise UnknownVariable(
                    f"{self.id} has no variable {name}. Did you mean {', '.join(near) or 'none'}?"
                )
        texts = {}
        for name in known:
            variable, value = declared.get(name, {}), values.get(name)
            if value is not None:
                texts[name] = _checked(name, variable, value)
            elif variable.get("default") is not None:
                texts[name] = _text(variable["default"])
            elif not variable.get("required", True):
                texts[name] = ""
        missing = list(dict.fromkeys(name for name in used if name not in texts))
        if missing:
            raise MissingVariable(f"{self.id} needs a value for {', '.join(missing[:10])}.")
        if len(self.body) + sum(len(texts[name]) for name in used) > FILLED_CHARS_MAX:
            raise InvalidValue(f"{self.id} gets longer than {FILLED_CHARS_MAX:,} characters.")
        return texts


def _is_variable(one: dict[str, Any]) -> bool:
    has_types = isinstance(one.get("enum") or [], list) and isinstance(one.get("type", ""), str)
    return has_types and bool(_VARIABLE.fullmatch(f"{{{{{one['name']}}}}}"))


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
        raise InvalidValue(f"{name} must be one of {enum!r:.500}, not {text!r:.60}.")
    kind = variable.get("type", "string")
    if kind in _FITS and not _FITS[kind](value, text):
        raise InvalidValue(f"{name} must be of type {kind}, not {text!r:.60}.")
    return text


_MARKER = re.compile(
    r"""^[ \t]*\{\{[ \t]*role[ \t]+(["'])(system|user|assistant|tool)\1[ \t]*\}\}[ \t]*\r*$""",
    re.MULTILINE,
)
_BLANK = " \t\r\n"


def _messages(body: str) -> list[tuple[str, str]] | None:
    """Role and text of each message; None where there is no marker."""
    body = body[1:] if body.startswith("\ufeff") else body
    markers = list(_MARKER.finditer(body))
    starts = [("system", 0), *((marker[2], marker.end()) for marker in markers)]
    ends = [*(marker.start() for marker in markers), len(body)]
    parts = [(role, _trimmed(body[start:end])) for (role, start), end in zip(starts, ends)]
    return [one for one in parts if one[1]] if markers else None


def _trimmed(text: str) -> str:
    """Without blank lines at both ends, and without the last line break."""
    first, last = len(text) - len(text.lstrip(_BLANK)), len(text.rstrip(_BLANK))
    end = f"{text}\n".index("\n", last)
    return text[text.rfind("\n", 0, first) + 1 : end].rstrip("\r") if last else ""


_NAME = "[a-z0-9]+(?:-[a-z0-9]+)*"
_VERSION = r"(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){2}"
_LABEL = "[a-z0-9](?:[a-z0-9._-]{0,34}[a-z0-9])?"
_REFERENCE = re.compile(f"({_NAME}/{_NAME})(?:@(?:({_VERSION})|({_LABEL})))?")
_LOCKED = re.compile(f" *({_NAME}/{_NAME}) +({_LABEL}) +({_VERSION}) +([0-9a-f]{{64}})(?: .*)?")
_FENCE = r"---[ \t]*(?:\r?\n|\Z)"
_FRONT_MATTER = re.compile(f"(?:{_FENCE}(?:(?!{_FENCE}).*\n)*{_FENCE})?")


class _Wanted(NamedTuple):
    """What to read: a version, which may have to have a hash; a label; or else the latest."""

    repo: str
    version: str | None = None
    label: str | None = None
    sha256: str | None = None

    @property
    def path(self) -> str:
        """Of the file, which every host has."""
        part = f"/labels/{self.label}" if self.label else ""
        part = f"/versions/{self.version}" if self.version else part
        return f"/api/v1/repos/{self.repo}{part}.json"

    def parse(self, answer: bytes) -> Prompt:
        """The prompt of a record. Raises Unavailable if it is another one, or none."""
        try:
            record = json.loads(answer)["data"]
            content, variables, parameters = map(record.get, ("content", "variables", "parameters"))
            body, version = record.get("body", content), record.get("version")
            version = version or record["latest_version"]
            sha256 = hashlib.sha256(content.encode()).hexdigest()
            if (
                f"{record['owner']}/{record['name']}" == self.repo
                and version == (self.version or version)
                and re.fullmatch(_VERSION, version)
                and record.get("label") == self.label
                and record["sha256"] == sha256 == (self.sha256 or sha256)
                and content.endswith(body)
                and _FRONT_MATTER.fullmatch(content[: len(content) - len(body)])
                and isinstance(parameters, dict)
                and isinstance(variables, list)
                and all(map(_is_variable, variables))
            ):
                return Prompt(self.repo, version, sha256, content, body, variables, parameters)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            pass
        lock = ", or is not that of the lock file" if self.sha256 else ""
        raise Unavailable(f"no record of {self.repo}, or its SHA-256 is wrong{lock}.")


def _read_lock(path: str | os.PathLike[str]) -> dict[str, dict[str, _Wanted]]:
    """What a lock file pins, by prompt and by ref. Raises LockError."""
    pins: dict[str, dict[str, _Wanted]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LOCK_CHARS_MAX + 1)
    except (OSError, ValueError) as error:
        raise LockError(f"Cannot read {path}: {error}. Create it with `hub lock`.") from error
    if len(text) > LOCK_CHARS_MAX:
        raise LockError(f"{path} is too large. It may have 1,000 prompts.")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip(" \r") and not line.lstrip(" ").startswith("#"):
            found = _LOCKED.fullmatch(line.rstrip("\r"))
            repo, ref, version, sha256 = found.groups() if found else [""] * 4
            pin = _Wanted(repo, version, None, sha256)
            is_edited = re.fullmatch(_VERSION, ref) and ref != version
            if not found or is_edited or pins.setdefault(repo, {}).setdefault(ref, pin) != pin:
                raise LockError(f"{path}, line {number} is not locked. Run `hub lock`.")
    return pins


@dataclass
class _Entry:
    """A prompt in memory, from where, and what went wrong last. Times are ``time.monotonic``'s."""

    prompt: Prompt | None = None
    source: str = "network"
    address: str = ""
    etag: str = ""
    error: HubError | None = None
    fresh_until: float = 0
    stale_until: float = 0
    usable_until: float = 0
    retry_at: float = 0

    def renew(self, is_version: object, told: str, age: float = 0) -> _Entry:
        """Count from when the hub confirmed it, with this Cache-Control, ``age`` seconds ago."""
        # Hosts of plain files may say nothing: these are the hub's own.
        fresh, stale, usable = (300, 3600, 86400) if is_version else (15, 60, 86400)
        if "no-store" in told or "no-cache" in told:
            fresh = stale = usable = 0
        found = dict(re.findall(r"([a-z-]+)=([0-9]{1,9})", told))
        self.fresh_until = time.monotonic() - age + int(found.get("max-age", fresh))
        self.stale_until = self.fresh_until + int(found.get("stale-while-revalidate", stale))
        self.usable_until = self.fresh_until + int(found.get("stale-if-error", usable))
        if is_version and "no-store" not in told:  # the same text for ever, unless it is withdrawn
            self.usable_until = math.inf
        self.error, self.retry_at = None, 0
        return self

    def fail(self, error: HubError) -> _Entry:
        self.error, self.retry_at = error, time.monotonic() + RETRY_SECONDS
        return self


class _AnyStatus(request.HTTPDefaultErrorHandler):
    def http_error_default(self, req: Any, fp: Any, code: Any, msg: Any, hdrs: Any) -> Any:
        return fp


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
        urls = given.split() if isinstance(given, str) else given
        for one in urls or [""]:
            if not re.fullmatch(r"https?://[A-Za-z0-9._~:\[\]-][A-Za-z0-9._~:\[\]/-]*", one):
                raise ValueError(f"No hub: {one!r}. Pass https://HOST[/PATH], or set HUB_URL.")
        if not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {timeout}.")
        self.addresses, self.timeout = [one.rstrip("/") for one in urls], timeout
        self._headers = {"User-Agent": f"hub-prompts/{__version__}", **(headers or {})}
        self._on_get, self._pins = on_get, _read_lock(lock) if lock is not None else {}
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        default = os.path.join(cache, "hub-prompts") if disk and os.path.isabs(cache) else ""
        self._folder = default if isinstance(disk, bool) else os.fspath(disk)
        # None that follows redirects: headers go to no other host, and nobody else is trusted.
        self._opener = request.OpenerDirector()
        web = [request.ProxyHandler(), request.HTTPHandler(), request.HTTPSHandler()]
        for handler in [*web, request.HTTPErrorProcessor(), _AnyStatus()]:
            self._opener.add_handler(handler)
        self._entries: dict[str, _Entry] = {}
        self._down: dict[str, float] = {}
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[str, Future[_Entry]] = {}
        self._pool = ThreadPoolExecutor(THREADS_MAX, "hub-prompts")
        self._process = os.getpid()

    def _wanted(self, reference: str) -> _Wanted:
        found = _REFERENCE.fullmatch(reference if isinstance(reference, str) else "")
        if not found or len(reference) > 200:
            raise InvalidName(f"{str(reference)[:200]!r} is not OWNER/NAME or OWNER/NAME@REF.")
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

    def _begin(self, reference: str, now: float) -> tuple[_Entry | None, Any]:
        """What is in memory, and the future of an entry if the call must wait for that."""
        entry = self._entries.get(reference)
        if entry and now < entry.fresh_until:
            return entry, None
        wanted = self._wanted(reference)
        if self._process != os.getpid():  # a fork takes no thread along
            self._reset()
        with self._lock:
            entry = self._entries.get(reference)
            if entry and now < max(entry.fresh_until, entry.retry_at):
                return entry, None
            flight = self._flights.get(reference)
            if flight is None:
                end = now + self.timeout
                flight = self._pool.submit(self._refresh, reference, wanted, entry, end)
                self._flights[reference] = flight
        # Where the hub is known to be down, no call waits again.
        waits = not entry or now >= (entry.usable_until if entry.error else entry.stale_until)
        return entry, flight if waits else None

    def _end(self, reference: str, entry: Any, flight: Any, started: float) -> Prompt:
        if flight and flight.done():
            entry = flight.result()
        elif flight:
            told = f"Cannot read {reference}: no answer within {self.timeout:g} seconds."
            entry = (self._entries.get(reference) or _Entry()).fail(Unavailable(told))
            self._store(reference, entry)
        if not entry.prompt or (entry.error and time.monotonic() >= entry.usable_until):
            raise type(entry.error)(str(entry.error))
        source, entry.source = entry.source, "memory"
        return self._tell(reference, entry.prompt, source, started)

    def _fall_back(self, reference: str, text: str, error: Exception, started: float) -> Prompt:
        _log.warning("Using the fallback: %s", error)
        sha256 = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        prompt = Prompt(str(reference).partition("@")[0], None, sha256, text, text, [], {})
        return self._tell(reference, prompt, "fallback", started, error)

    def _tell(
        self, reference: str, prompt: Prompt, source: str, started: float, error: Any = None
    ) -> Prompt:
        if self._on_get:
            seconds = time.monotonic() - started
            try:
                self._on_get(Got(reference, prompt.version, source, seconds, error))
            except Exception:
                _log.exception("on_get failed")
        return prompt

    def _store(self, reference: str, entry: _Entry) -> None:
        with self._lock:
            self._entries.pop(reference, None)
            self._entries[reference] = entry
            while len(self._entries) > PROMPTS_MAX:
                del self._entries[next(iter(self._entries))]

    def _refresh(self, reference: str, wanted: _Wanted, entry: _Entry | None, end: float) -> _Entry:
        """Bring an entry up to date, in a thread, for all who wait for it."""
        try:
            if not entry:
                entry = self._load(wanted)
                if entry:
                    self._store(reference, entry)
                    if time.monotonic() < entry.stale_until:
                        return entry
            try:
                entry = self._fetch(wanted, entry, end)
            except NotFound as error:
                try:
                    os.unlink(self._place(wanted))
                except FileNotFoundError:
                    pass
                except OSError as trouble:
                    _log.warning("Cannot remove the copy of %s: %s", reference, trouble)
                entry = _Entry().fail(type(error)(f"No {reference}: {error}"))
            except Unavailable as error:
                failure = Unavailable(f"Cannot read {reference}: {error}")
                entry = (entry or _Entry()).fail(failure)
                _log.warning("%s", failure)
            self._store(reference, entry)
            return entry
        finally:
            with self._lock:
                self._flights.pop(reference, None)

    def _fetch(self, wanted: _Wanted, entry: _Entry | None, end: float) -> _Entry:
        """Ask the addresses in turn, each for its share of the time."""
        failure, now = Unavailable("no time left."), time.monotonic()
        order = sorted(self.addresses, key=lambda one: self._down.get(one, 0) > now)
        for place, address in enumerate(order):
            now = time.monotonic()
            try:
                share = now + (end - now) / (len(order) - place)
                entry = self._ask(address, wanted, entry, share)
                self._down.pop(address, None)
                return entry
            except NotFound as error:
                # While one is down, the others may not have it yet.
                is_sure = not any(until > now for until in self._down.values())
                if is_sure or not entry or not entry.prompt or isinstance(error, Withdrawn):
                    raise
                failure = Unavailable(str(error))
            except Unavailable as error:
                failure, self._down[address] = error, now + DOWN_SECONDS
        raise failure

    def _ask(self, address: str, wanted: _Wanted, entry: _Entry | None, end: float) -> _Entry:
        url, answer = address + wanted.path, bytearray()
        etag = entry.etag if entry and entry.address == address else ""
        headers = {**self._headers, "If-None-Match": etag} if etag else self._headers
        try:
            left = max(0.001, end - time.monotonic())
            asked = request.Request(url, headers=headers)
            with self._opener.open(asked, timeout=left) as response:
                chunk = response.read1(65536)
                while chunk:
                    answer += chunk
                    if len(answer) > ANSWER_BYTES_MAX or time.monotonic() > end:
                        raise Unavailable(f"{url} is too large, or too slow.")
                    chunk = response.read1(65536)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(f"{url}: {error}.") from error
        status, told = response.status, response.headers.get("Cache-Control", "").lower()
        if status == 200:
            etag = response.headers.get("ETag", "")
            entry = _Entry(wanted.parse(bytes(answer)), "network", address, etag)
            self._keep(wanted, [address, etag, told], answer)
            return entry.renew(wanted.version, told)
        if status == 304 and entry and etag:
            try:
                os.utime(self._place(wanted))
            except OSError:
                entry.etag = "" if self._folder else etag  # the next answer is whole, and kept
            entry.source = "network"
            return entry.renew(wanted.version, told)
        message = f"{url}: status {status} {response.headers.get('Location', '')}".rstrip()
        with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
            message = str(json.loads(answer)["error"]["message"])
        kind = {404: NotFound, 410: Withdrawn}.get(status, Unavailable)
        raise kind("".join(filter(str.isprintable, message))[:500])

    # A copy is a line about the answer, then the answer. The file's time is when the hub last
    # confirmed it.

    def _place(self, wanted: _Wanted) -> str:
        key = hashlib.sha256(f"{self.addresses[0]} {wanted.path}".encode()).hexdigest()
        return os.path.join(self._folder, f"{key}.hub") if self._folder else ""

    def _load(self, wanted: _Wanted) -> _Entry | None:
        try:
            with open(self._place(wanted), "rb") as file:
                about, _, answer = file.read(ANSWER_BYTES_MAX + 10_000).partition(b"\n")
                # A time to come is no better than one as long ago.
                age = abs(time.time() - os.fstat(file.fileno()).st_mtime)
            address, etag, told = json.loads(about)
            entry = _Entry(wanted.parse(answer), "disk", address, etag)
            return entry.renew(wanted.version, told, age)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, Unavailable) as error:
            _log.warning("Ignored the copy of %s: %s", wanted.repo, error)
            return None

    def _keep(self, wanted: _Wanted, about: list[str], answer: bytearray) -> None:
        if not self._folder or "no-store" in about[-1]:
            return
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(".hub", dir=self._folder)
            with open(handle, "wb") as file:
                file.write(json.dumps(about).encode() + b"\n" + answer)
            os.replace(temporary, self._place(wanted))
            files = [one for one in os.scandir(self._folder) if one.name.endswith(".hub")]
            for one in sorted(files, key=lambda one: -one.stat().st_mtime)[PROMPTS_MAX:]:
                os.unlink(one)
        except OSError as error:
            _log.warning("Cannot keep a copy of %s in %s: %s", wanted.repo, self._folder, error)


class Hub(_Hub):
    """Reads prompts from a hub.

    ``url``: its address, or several, of which the next is asked when one fails; default HUB_URL.
    ``lock``: a file of ``hub lock``: a prompt in it is read at that version and hash. ``timeout``:
    seconds that a call waits at most, in all. ``disk``: the folder of the copies for outages, by
    default below XDG_CACHE_HOME; False for none. ``headers``: sent with each request; no token
    is. ``on_get``: called with a Got at each read. Raises ValueError and LockError.
    """

    def get(self, reference: str, *, fallback: str | None = None) -> Prompt:
        """The prompt OWNER/NAME or OWNER/NAME@REF. REF is a version, a label or latest.

        A copy is used as long as the hub's Cache-Control says, and checked in the background; if
        the hub is down, as long as that allows, and of a version at any age. NotFound and Withdrawn
        are answers, not outages: they end the use of a copy, because a text that was withdrawn
        must not live on in caches. ``fallback`` is the text to use instead of any error.

        Raises NotFound, Withdrawn, Unavailable, InvalidName or LockError.
        """
        started = time.monotonic()
        try:
            entry, flight = self._begin(reference, started)
            if flight:
                wait([flight], self.timeout)
            return self._end(reference, entry, flight, started)
        except Exception as error:
            if fallback is None:
                raise
            return self._fall_back(reference, fallback, error, started)


class AsyncHub(_Hub):
    """As Hub, for asyncio: ``await hub.get(...)``. Tasks share requests as threads do."""

    async def get(self, reference: str, *, fallback: str | None = None) -> Prompt:
        """As ``Hub.get``."""
        started = time.monotonic()
        try:
            entry, flight = self._begin(reference, started)
            if flight:  # which goes on if this task is cancelled
                await asyncio.wait([asyncio.wrap_future(flight)], timeout=self.timeout)
            return self._end(reference, entry, flight, started)
        except Exception as error:
            if fallback is None:
                raise
            return self._fall_back(reference, fallback, error, started)
