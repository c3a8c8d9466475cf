"""Makes lines of access logs for tests, letter by letter, and days to count by."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

from builder.stats.ingest import Outcome, ingest
from builder.stats.pulls import PullCounts, Pulls

DAY = 86_400
# 2026-11-21, a Saturday, at noon.
TODAY = 20_778
NOW = TODAY * DAY + DAY // 2
RAW = "/api/v1/repos/ann/story/raw"

PACKERS = {"plain": bytes, "gzip": gzip.compress}


def line(
    target: str = RAW,
    *,
    client: str = "192.0.2.7",
    seconds: float = NOW,
    method: str = "GET",
    status: int = 200,
    agent: str = "curl/8.0.1",
) -> bytes:
    """A line in the combined format."""
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return (
        f'{client} - - [{moment}] "{method} {target} HTTP/1.1" {status} 512 "-" "{agent}"\n'
    ).encode()


def count(
    folder: Path, *lines: bytes, base_path: str = "", now: float = NOW, name: str = "access.log"
) -> Outcome:
    """Ingest a log of these lines into the state folder ``folder/state``."""
    log = folder / name
    log.write_bytes(b"".join(lines))
    return ingest([str(log)], str(folder / "state"), base_path, now=now)


def counts(folder: Path) -> dict[str, PullCounts]:
    """All that was counted into ``folder/state``, by repo."""
    with Pulls(str(folder / "state")) as pulls:
        return {repo: pulls.of(repo) for repo in pulls.changed_since(0)}
