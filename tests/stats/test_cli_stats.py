"""``hubctl stats``: what it prints where, and what it exits with."""

import time
from pathlib import Path

import pytest

from builder.stats import counter
from builder.stats.pulls import Pulls
from tests.cli.test_hubctl import hubctl
from tests.stats.logs import DAY, RAW, line
from tests.support.servers import HUBCTL, Process

OTHER_RAW = "/api/v1/repos/bob/poem/raw"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log of today, yesterday and a day long ago."""
    now = int(time.time()) // DAY * DAY
    lines = [
        line(seconds=now), line(seconds=now, client="192.0.2.8"), line(OTHER_RAW, seconds=now),
        line(seconds=now - DAY), line(seconds=now - 400 * DAY), line("/", seconds=now),
        line(seconds=now, agent="Googlebot/2.1"), line(seconds=now), b"rubbish\n",
        line(seconds=now + 3 * DAY),
    ]  # fmt: skip
    (tmp_path / "access.log").write_bytes(b"".join(lines))
    return tmp_path


def ingest(folder: Path, *options: str, base_url: str = "https://hub.example"):
    return hubctl(
        "stats", "ingest", "--state", f"{folder}/state", "--base-url", base_url,
        *options, f"{folder}/access.log",
    )  # fmt: skip


def test_the_sum_for_people(folder):
    done = ingest(folder)
    assert done.exit_code == 0
    assert done.stdout == (
        "10 lines: 5 pulls counted, 1 repeated, 1 by bots, 1 other request, "
        "1 malformed, 0 of closed days, 1 from the future\n"
        "`hubctl serve` shows the counts within seconds. Without it, run `hubctl build`.\n"
    )
    assert f"The first one is {folder}/access.log, line 9." in done.stderr
    assert "From the future" in done.stderr
    again = ingest(folder)
    assert "0 pulls counted, 5 repeated, 1 by bots" in again.stdout
    assert "1 of closed days" in again.stdout
    assert "Closed: the hashes of" in again.stderr and "all old logs in one run" in again.stderr
    assert "The next build" not in again.stdout


def test_a_reader_that_stays_is_reported(folder, monkeypatch):
    monkeypatch.setattr(counter, "WIPE_MILLISECONDS", 0)
    ingest(folder)
    with Pulls(f"{folder}/state"):
        # A new line gives the command something to store.
        (folder / "access.log").write_bytes(line(seconds=int(time.time()), client="192.0.2.9"))
        done = ingest(folder)
    assert done.exit_code == 0
    assert "another program has pulls.sqlite3 open" in done.stderr
    assert "another program" not in ingest(folder).stderr


def test_the_path_of_the_base_url_is_the_site_s(folder, small):
    assert "0 pulls" in ingest(folder, base_url="https://hub.example/prompts").stdout
    from_site = ["stats", "ingest", "--state", small.state, "--out", small.out]
    missing = hubctl(*from_site, f"{folder}/access.log")
    assert missing.exit_code == 1
    assert "--base-url" in missing.stderr
    built = hubctl(
        "build", "--content", small.content, "--out", small.out, "--state", small.state,
        "--base-url", "https://hub.example/prompts",
    )  # fmt: skip
    assert built.exit_code == 0, built.stderr
    below = folder / "below.log"
    below.write_bytes(line("/prompts" + RAW) + line(RAW))
    assert "1 pull counted" in hubctl(*from_site, str(below)).stdout


def test_standard_input(folder):
    command = [HUBCTL, "stats", "ingest", "--state", f"{folder}/state", "--base-url", "http://x"]
    process = Process("sh", "-c", 'gzip -c "$0" | "$@" -', f"{folder}/access.log", *command)
    assert process.wait() == 0
    assert "5 pulls counted" in process.text
    assert "The first one is -, line 9" in process.text


def test_no_log_is_wrong_use():
    assert hubctl("stats", "ingest").exit_code == 2
    assert "`hubctl serve` shows the counts" in hubctl("stats", "ingest", "--help").stdout
