"""Logs in, counts out: the rule of what counts as a pull, and the result of an ingestion."""

import ipaddress
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from builder.model.records import DAY_SECONDS
from builder.stats.agents import is_bot
from builder.stats.counter import Counter
from builder.stats.log_files import lines_of
from builder.stats.log_lines import parse_line, parse_time
from builder.stats.targets import repo_of

# Clocks of the machines that write and read logs differ. Entries further ahead than this are not
# counted.
FUTURE_SECONDS_MAX = DAY_SECONDS
# Whole, in part, or unchanged: in each case the reader has the text afterwards.
STATUSES = frozenset((200, 206, 304))
# An IPv6 client changes its address by itself within a network of this many bits.
IPV6_CLIENT_BITS = 64

_REMEMBERED = 65_536
# Enough for an address with a zone; a longer text is no address, even when cut.
_ADDRESS_CHARS_MAX = 100


@dataclass
class Outcome:
    """The result of one ingestion; each line is in exactly one of the counts."""

    lines: int = 0
    counted: int = 0
    #: Pulls that were counted before, in this ingestion or an earlier one.
    repeated: int = 0
    bots: int = 0
    #: Not pulls: pages, lists, other methods and statuses, other sites.
    other: int = 0
    malformed: int = 0
    #: Pulls of closed days.
    closed: int = 0
    #: Pulls from more than a day ahead.
    future: int = 0
    #: The place of the first malformed line.
    first_malformed: str | None = None
    #: True if no data deleted for privacy is on disk any more. A running reader can keep it there.
    wiped: bool = True


def ingest(
    paths: Sequence[str], state: str, base_path: str, *, now: float | None = None
) -> Outcome:
    """Count the pulls in logs into the database of a state folder: all of them or none.

    ``base_path`` is that of the site's URL, as in Settings. ``now`` is epoch seconds, by default
    the present. Raises OperatorError.
    """
    now = time.time() if now is None else now
    outcome = Outcome()
    with Counter(state, int(now // DAY_SECONDS)) as counter:
        for path in paths:
            for number, line in enumerate(lines_of(path), 1):
                kind = _take(line, counter, base_path, now + FUTURE_SECONDS_MAX)
                outcome.lines += 1
                if kind:
                    setattr(outcome, kind, getattr(outcome, kind) + 1)
                if kind == "malformed" and not outcome.first_malformed:
                    outcome.first_malformed = f"{path}, line {number:,}"
    outcome.counted, outcome.repeated = counter.counted, counter.repeated
    outcome.wiped = counter.is_wiped
    return outcome


def _take(line: bytes, counter: Counter, base_path: str, latest: float) -> str:
    """Pass the pull in a line to the counter, or return why it is none, as a field of Outcome."""
    entry = parse_line(line)
    if entry is None:
        return "malformed"
    is_read = entry.method == "GET" and entry.status in STATUSES
    repo_id = repo_of(entry.target, base_path) if is_read else None
    if repo_id is None:
        return "other"
    seconds = parse_time(entry.time)
    client = client_of(entry.client[:_ADDRESS_CHARS_MAX])
    if client is None or seconds is None or seconds < 0:
        return "malformed"
    if seconds > latest:
        return "future"
    if is_bot(entry.agent):
        return "bots"
    return "" if counter.add(seconds // DAY_SECONDS, client, repo_id) else "closed"


@lru_cache(maxsize=_REMEMBERED)
def client_of(text: str) -> bytes | None:
    """The bytes that identify a client: an IPv4 address, or the network of an IPv6 one, in any
    spelling. None for a text that is no address.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).packed[: IPV6_CLIENT_BITS // 8]
