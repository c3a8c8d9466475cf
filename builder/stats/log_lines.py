"""Lines of access logs as entries: the combined format, and Caddy's JSON.

nginx and the embedded server write the combined format:

    ADDRESS - USER [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT" …

Caddy cannot write it without a plugin, so its own format is the one exception. The format is
detected line by line. Times stay as in the line; ``parse_time`` is called only for entries that
count.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

_TIME = r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:[0-6]\d [+-]\d{4}"
# A quoted field ends at the first quote that no backslash escapes.
_QUOTED = r'[^"\\]*(?:\\.[^"\\]*)*'
_TARGET = r'[^\s"\\]+(?:\\x[0-9A-Fa-f]{2}[^\s"\\]*)*'
# The client chooses the user, which may contain spaces and brackets, but never quotes.
_combined = re.compile(
    rf'(\S+) \S+ [^"]*?\[({_TIME})\] "(?:([A-Z]+) ({_TARGET})(?: HTTP/[0-9.]+)?|{_QUOTED})" '
    rf'(\d{{3}}) (?:\d+|-) "{_QUOTED}" "({_QUOTED})"'
)
_escaped_byte = re.compile(r"\\x([0-9A-Fa-f]{2})")


class LogLine(NamedTuple):
    """The data of one request in a line. ``target`` is as the client sent it, one character for
    each byte. ``method`` and ``target`` are empty if the request was not HTTP.
    """

    client: str
    time: str | float
    method: str
    target: str
    status: int
    agent: str


class _CaddyRequest(msgspec.Struct):
    method: str
    uri: str
    remote_ip: str
    # The reader's address, behind a proxy that Caddy trusts; since Caddy 2.7.
    client_ip: str = ""
    headers: dict[str, list[str]] = {}


class _CaddyLine(msgspec.Struct):
    ts: float
    status: int | None = None
    request: _CaddyRequest | None = None


_decode_caddy = msgspec.json.Decoder(_CaddyLine).decode
# Stands for a line that is no access log entry, such as Caddy's start.
OTHER = LogLine("", 0.0, "", "", 0, "")


def parse_line(line: bytes) -> LogLine | None:
    """The entry in a line; None if it has no known format. Never raises."""
    if line.startswith(b"{"):
        return _parse_caddy(line)
    found = _combined.match(line.decode("latin-1"))
    if found is None:
        return None
    client, time, method, target, status, agent = found.groups()
    if method is None:
        return LogLine(client, time, "", "", int(status), agent)
    if "\\" in target:
        target = _escaped_byte.sub(lambda byte: chr(int(byte[1], 16)), target)
    return LogLine(client, time, method, target, int(status), agent)


def parse_time(time: str | float) -> int | None:
    """Epoch seconds of an entry's time, which Caddy writes as a number; None if it is invalid."""
    try:
        if isinstance(time, str):
            return _parse_minute(time[:17] + time[20:]) + int(time[18:20])
        return int(time)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=8192)
def _parse_minute(text: str) -> int:
    """Epoch seconds of ``21/Nov/2026:10:30 +0100``."""
    return int(datetime.strptime(text, "%d/%b/%Y:%H:%M %z").timestamp())


def _parse_caddy(line: bytes) -> LogLine | None:
    try:
        found = _decode_caddy(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    request = found.request
    if request is None or found.status is None:
        return OTHER
    agents = request.headers.get("User-Agent")
    return LogLine(
        request.client_ip or request.remote_ip,
        found.ts,
        request.method,
        request.uri,
        found.status,
        agents[0] if agents else "",
    )
