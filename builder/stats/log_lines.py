"""Lines of access logs as entries, in the combined format:

    ADDRESS - USER [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT" …

Times stay as in the line; ``parse_time`` is called only for entries that count.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

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
    time: str
    method: str
    target: str
    status: int
    agent: str


def parse_line(line: bytes) -> LogLine | None:
    """The entry in a line; None if it has another format. Never raises."""
    found = _combined.match(line.decode("latin-1"))
    if found is None:
        return None
    client, time, method, target, status, agent = found.groups(default="")
    if "\\" in target:
        target = _escaped_byte.sub(lambda byte: chr(int(byte[1], 16)), target)
    return LogLine(client, time, method, target, int(status), agent)


def parse_time(time: str) -> int | None:
    """Epoch seconds of an entry's time; None if it is invalid."""
    try:
        return _parse_minute(time[:17] + time[20:]) + int(time[18:20])
    except ValueError:
        return None


@lru_cache(maxsize=8192)
def _parse_minute(text: str) -> int:
    """Epoch seconds of ``21/Nov/2026:10:30 +0100``."""
    return int(datetime.strptime(text, "%d/%b/%Y:%H:%M %z").timestamp())
