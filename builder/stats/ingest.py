"""Logs in, counts out: the rule of what counts as a pull, and the result of an ingestion."""

import ipaddress
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from builder.model.records import DAY_SECONDS
from builder.stats.agents import is_bot
from builder.stats.counter import Counter
from builder.stats.log_files import LogFile
from builder.stats.log_lines import parse_line, parse_time
from builder.stats.targets import Targets

# Clocks of the machines that write and read logs differ. Entries further ahead than this are not
# counted.
FUTURE_SECONDS_MAX = DAY_SECONDS
# Whole, in part, or unchanged: in each case the reader has the text afterwards.
STATUSES = frozenset((200, 206, 304))
# An IPv6 client changes its address by itself within a network of this many bits.
IPV6_CLIENT_BITS = 64

_PROGRESS_EVERY_LINES = 8192
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
    #: Repos with new pulls.
    repos: int = 0
    #: True if no data deleted for privacy is on disk any more. A running reader can keep it there.
    wiped: bool = True
    #: The place of the first malformed line.
    first_malformed: str | None = None
    #: The closed days that had pulls, since 1970-01-01.
    closed_days: set[int] = field(default_factory=set)


def ingest(
    paths: Sequence[str],
    state: str,
    base_path: str,
    *,
    now: float | None = None,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    on_wait: Callable[[], None] = lambda: None,
) -> Outcome:
    """Count the pulls in logs into the database of a state folder: all of them or none.

    ``base_path`` is that of the site's URL, as in Settings. ``now`` is epoch seconds, by default
    the present. ``progress(what, done, total)`` is called often; ``on_wait``: once, if another
    ingestion has to end first. Raises OperatorError.
    """
    now = time.time() if now is None else now
    outcome = Outcome()
    with Counter(state, int(now // DAY_SECONDS), on_wait) as counter:
        sieve = _Sieve(counter, Targets(base_path), now, outcome)
        for path in paths:
            with LogFile(path) as log:
                _ingest_log(log, sieve, progress)
    outcome.counted = counter.counted
    outcome.repeated = counter.repeated
    outcome.repos = counter.repos
    outcome.wiped = counter.is_wiped
    return outcome


def _ingest_log(log: LogFile, sieve: "_Sieve", progress: Callable[[str, int, int], None]) -> None:
    count = 0
    for count, line in enumerate(log.lines(), 1):
        if not sieve.take(line):
            sieve.note_malformed(log.name, count)
        if count % _PROGRESS_EVERY_LINES == 0:
            if log.size is None:
                progress(f"{log.name}, lines", count, count)
            else:
                progress(f"{log.name}, bytes", log.position(), log.size)
    sieve.outcome.lines += count


class _Sieve:
    """Passes the pulls among the lines to the counter."""

    def __init__(self, counter: Counter, targets: Targets, now: float, outcome: Outcome) -> None:
        self.outcome = outcome
        self._counter = counter
        self._repo_of = targets.repo_of
        self._latest = now + FUTURE_SECONDS_MAX

    def take(self, line: bytes) -> bool:
        """Count a line; False for one that is malformed."""
        entry = parse_line(line)
        if entry is None:
            return False
        is_read = entry.method == "GET" and entry.status in STATUSES
        repo_id = self._repo_of(entry.target) if is_read else None
        if repo_id is None:
            self.outcome.other += 1
            return True
        seconds = parse_time(entry.time)
        client = client_of(entry.client[:_ADDRESS_CHARS_MAX])
        if client is None or seconds is None or seconds < 0:
            return False
        day = seconds // DAY_SECONDS
        if seconds > self._latest:
            self.outcome.future += 1
        elif is_bot(entry.agent):
            self.outcome.bots += 1
        elif self._counter.is_closed(day):
            self.outcome.closed += 1
            self.outcome.closed_days.add(day)
        else:
            self._counter.add(day, client, repo_id)
        return True

    def note_malformed(self, name: str, number: int) -> None:
        self.outcome.malformed += 1
        if self.outcome.first_malformed is None:
            self.outcome.first_malformed = f"{name}, line {number:,}"


@lru_cache(maxsize=_REMEMBERED)
def client_of(text: str) -> bytes | None:
    """The bytes that identify a client: an IPv4 address, or the network of an IPv6 one, in any
    spelling. None for a text that is no address.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    if address.version == 6:
        if address.ipv4_mapped is None:
            return address.packed[: IPV6_CLIENT_BITS // 8]
        address = address.ipv4_mapped
    return address.packed
