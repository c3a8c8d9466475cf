"""The rules for counting, each by a case computed by hand; lines count as a set."""

import contextlib
import os
import random
import sqlite3
import struct
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import OperatorError
from builder.stats.counter import KEPT_DAYS
from builder.stats.ingest import Outcome, client_of, ingest
from builder.stats.log_files import LINE_BYTES_MAX, lines_of
from builder.stats.pulls import PULLS_FILE, PullCounts, Pulls
from tests.stats.logs import DAY, NOW, PACKERS, RAW, TODAY, count, counts, line
from tests.support.depth import searching
from tests.support.servers import wait_until

OTHER_RAW = "/api/v1/repos/bob/poem/raw"


def only(**fields: int) -> Outcome:
    return Outcome(lines=sum(fields.values()), **fields)


def test_one_pull_a_client_repo_and_day(tmp_path):
    outcome = count(
        tmp_path,
        line(),
        line(),
        line("/api/v1/repos/ann/story"),
        line("/api/v1/repos/ann/story/versions/1.0.0"),
        line(client="192.0.2.8"),
        line(OTHER_RAW),
        line(seconds=NOW - DAY),
    )
    assert outcome == only(counted=4, repeated=3)
    assert counts(tmp_path) == {
        "ann/story": PullCounts(3, ((TODAY - 1, 1), (TODAY, 2))),
        "bob/poem": PullCounts(1, ((TODAY, 1),)),
    }


def test_days_are_those_of_utc(tmp_path):
    midnight = TODAY * DAY
    zoned = line().replace(b"21/Nov/2026:12:00:00 +0000", b"21/Nov/2026:00:30:00 +0100")
    count(tmp_path, line(seconds=midnight - 1), line(seconds=midnight), zoned)
    assert counts(tmp_path)["ann/story"].by_day == ((TODAY - 1, 1), (TODAY, 1))


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        *[([line(status=status)], {"counted": 1}) for status in (200, 206, 304)],
        *[
            ([line(status=status)], {"other": 1})
            for status in (201, 204, 301, 400, 404, 416, 429, 499, 500, 503)
        ],
        *[([line(method=method)], {"other": 1}) for method in ("HEAD", "POST", "OPTIONS", "PURGE")],
        (
            [line(agent="Googlebot/2.1"), line(agent="bingbot/2.0"), line()],
            {"counted": 1, "bots": 2},
        ),
        ([line(seconds=NOW + DAY), line(seconds=NOW + DAY + 1)], {"counted": 1, "future": 1}),
        ([line(), line(OTHER_RAW), line()], {"counted": 2, "repeated": 1}),
        ([], {}),
    ],
)
def test_what_counts(tmp_path, lines, wanted):
    assert count(tmp_path, *lines) == only(**wanted)


def test_malformed_lines_are_reported_with_their_place(tmp_path):
    outcome = count(
        tmp_path,
        line(),
        b"what is this\n",
        line(client="client.example"),
        line().replace(b"21/Nov", b"31/Feb"),
        line(seconds=0).replace(b"01/Jan/1970", b"01/Jan/1969"),
        line()[:-8],
    )
    assert (outcome.lines, outcome.counted, outcome.malformed) == (6, 1, 5)
    assert outcome.first_malformed == f"{tmp_path}/access.log, line 2"


@pytest.mark.parametrize(
    "same",
    [
        ("192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207"),
        ("2001:db8::1", "2001:0DB8:0:0::0001", "2001:db8:0:0:ffff::", "[2001:db8::1]"),
        ("fe80::1%eth0", "fe80::2"),
    ],
)
def test_one_client_by_several_addresses(tmp_path, same):
    outcome = count(tmp_path, *(line(client=client) for client in same))
    assert (outcome.counted, outcome.repeated) == (1, len(same) - 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [("192.0.2.7", "192.0.2.8"), ("2001:db8::1", "2001:db8:0:1::1"), ("0.0.0.0", "::")],
)
def test_different_clients(one, other):
    assert client_of(one) != client_of(other)
    assert None not in (client_of(one), client_of(other))


@pytest.mark.parametrize("text", ["", "-", "unix:", "localhost", "1.2.3", "1.2.3.4.5", "::1::"])
def test_no_client(text):
    assert client_of(text) is None


# Days that are closed ---------------------------------------------------------------------------


def test_a_year_of_old_logs_at_once(tmp_path):
    year = [line(seconds=NOW - days * DAY) for days in range(365)]
    random.Random(1).shuffle(year)
    assert count(tmp_path, *year, *year) == only(counted=365, repeated=365)
    assert counts(tmp_path)["ann/story"] == PullCounts(
        365, tuple((TODAY - days, 1) for days in reversed(range(365)))
    )


def test_a_closed_day_is_refused_and_told(tmp_path):
    last_open, closed = NOW - KEPT_DAYS * DAY, NOW - (KEPT_DAYS + 1) * DAY
    count(tmp_path, line(seconds=closed), line(seconds=last_open))
    again = count(
        tmp_path,
        line(seconds=closed),
        line(seconds=closed, client="192.0.2.99"),
        line(seconds=last_open),
        line(seconds=last_open, client="192.0.2.99"),
        line(seconds=closed - DAY),  # nothing of that day was counted yet
    )
    assert (again.closed, again.repeated, again.counted) == (2, 1, 2)
    assert counts(tmp_path)["ann/story"].total == 4


def test_days_are_closed_as_time_goes_by(tmp_path):
    count(tmp_path, line())
    assert count(tmp_path, line(), now=NOW + KEPT_DAYS * DAY).repeated == 1
    assert count(tmp_path, now=NOW + (KEPT_DAYS + 1) * DAY).lines == 0
    assert count(tmp_path, line(), now=NOW + (KEPT_DAYS + 1) * DAY).closed == 1
    assert counts(tmp_path)["ann/story"].total == 1


def test_a_clock_that_goes_back_opens_nothing(tmp_path):
    count(tmp_path, line(seconds=NOW - 36 * DAY))
    assert count(tmp_path, line(seconds=NOW - 36 * DAY), now=NOW - 10 * DAY).closed == 1


def test_what_is_dropped_is_gone_from_the_file(tmp_path):
    count(tmp_path, *(line(client=f"192.0.2.{n}", seconds=NOW - n * DAY) for n in range(60)))
    state = tmp_path / "state"
    secrets = secrets_of(state / PULLS_FILE)
    # A key and a mark for each day.
    assert len(secrets) == 2 * (KEPT_DAYS + 1)
    assert left_in(state, secrets) == secrets
    assert count(tmp_path, now=NOW + 100 * DAY).wiped
    assert not left_in(state, secrets)
    assert counts(tmp_path)["ann/story"].total == 60


def secrets_of(path: Path) -> list[bytes]:
    """The keys and marks of a database as they are in its files."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        salts = [salt for (salt,) in db.execute("SELECT salt FROM day WHERE salt IS NOT NULL")]
        marks = [struct.pack(">q", mark) for (mark,) in db.execute("SELECT mark FROM seen")]
    assert salts and marks
    return salts + marks


def left_in(folder: Path, secrets: list[bytes]) -> list[bytes]:
    left = b"".join(each.read_bytes() for each in folder.iterdir())
    return [secret for secret in secrets if secret in left]


def test_a_reader_is_waited_for_before_what_is_dropped_is_overwritten(tmp_path):
    count(tmp_path, line())
    state = tmp_path / "state"
    secrets = secrets_of(state / PULLS_FILE)
    reader = Pulls(str(state))
    seen = []

    def close_when_all_is_counted() -> None:
        wait_until(lambda: "bob/poem" in counts(tmp_path), "the end of the ingestion")
        seen.extend(left_in(state, secrets))
        reader.close()

    late = NOW + 100 * DAY
    closing = threading.Thread(target=close_when_all_is_counted)
    closing.start()
    outcome = count(tmp_path, line(OTHER_RAW, seconds=late), now=late)
    closing.join()
    assert seen
    assert outcome.wiped
    assert not left_in(state, secrets)


def test_no_address_is_in_the_files(tmp_path):
    clients = ["198.51.100.23", "203.0.113.77", "2001:db8:1234:5678:9abc:def0:1357:2468"]
    count(tmp_path, *(line(client=client) for client in clients))
    stored = b"".join(each.read_bytes() for each in (tmp_path / "state").iterdir())
    assert b"ann/story" in stored
    for client in clients:
        packed = client_of(client)
        for secret in (client.encode(), packed, packed[::-1], packed.hex().encode()):
            assert secret not in stored
    assert os.stat(tmp_path / "state" / PULLS_FILE).st_mode & 0o077 == 0


def test_readers_cannot_be_followed_from_repo_to_repo_or_day_to_day(tmp_path):
    count(tmp_path, line(), line(OTHER_RAW), line(seconds=NOW - DAY))
    with sqlite3.connect(tmp_path / "state" / PULLS_FILE) as db:
        marks = [mark for (mark,) in db.execute("SELECT mark FROM seen")]
    db.close()
    assert len(set(marks)) == 3


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", PACKERS)
def test_packed_whatever_the_name(tmp_path, form):
    log = tmp_path / "access.log.txt"
    log.write_bytes(PACKERS[form](line() + line(OTHER_RAW)[:-1]))
    assert ingest([str(log)], str(tmp_path / "state"), "", now=NOW) == only(counted=2)


def test_several_streams_in_a_file(tmp_path):
    # The output of `cat a.gz b.gz`.
    log = tmp_path / "log"
    log.write_bytes(PACKERS["gzip"](line()) + PACKERS["gzip"](line(OTHER_RAW)))
    assert ingest([str(log)], str(tmp_path / "state"), "", now=NOW).counted == 2


def test_a_file_that_breaks_off(tmp_path):
    good, broken = tmp_path / "good", tmp_path / "broken"
    good.write_bytes(line())
    lines = b"".join(line(client=f"192.0.{n % 250}.{n % 199}") for n in range(5000))
    broken.write_bytes(PACKERS["gzip"](lines)[:-20])
    with pytest.raises(OperatorError, match=r"broken.*Nothing was counted"):
        ingest([str(good), str(broken)], str(tmp_path / "state"), "", now=NOW)
    with Pulls(str(tmp_path / "state")) as pulls:
        assert (pulls.serial(), pulls.changed_since(0)) == (0, [])


@pytest.mark.parametrize("kind", ["missing", "folder", "rubbish behind gzip"])
def test_a_file_that_cannot_be_read(tmp_path, kind):
    log = tmp_path / "log"
    if kind == "folder":
        log.mkdir()
    elif kind != "missing":
        log.write_bytes(PACKERS["gzip"](line()) + b"rubbish")
    with pytest.raises(OperatorError, match=f"Cannot read {log}: .* Nothing was counted"):
        ingest([str(log)], str(tmp_path / "state"), "", now=NOW)
    assert counts(tmp_path) == {}


def test_a_line_without_end_is_one_malformed_line(tmp_path):
    # The rest after the limit looks like a line.
    endless = b"x" * LINE_BYTES_MAX + line()
    again = b"x" * (2 * LINE_BYTES_MAX) + line()
    outcome = count(tmp_path, endless, again, line(OTHER_RAW), b"y" * (3 * LINE_BYTES_MAX))
    assert (outcome.lines, outcome.malformed, outcome.counted) == (4, 3, 1)


def test_lines_up_to_the_limit_are_whole(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"x" * (LINE_BYTES_MAX - 1) + b"\n" + b"y\n")
    assert [len(each) for each in lines_of(str(log))] == [LINE_BYTES_MAX, 2]


# Counting is a set ------------------------------------------------------------------------------


def line_of(client: str, days: int, target: str, agent: str, status: int) -> bytes:
    return line(target, client=client, seconds=NOW - days * DAY, agent=agent, status=status)


some_lines = st.lists(
    st.builds(
        line_of,
        st.sampled_from(["192.0.2.7", "::ffff:192.0.2.7", "192.0.2.8", "2001:db8::1", "bad"]),
        st.integers(-2, KEPT_DAYS),
        st.sampled_from([RAW, OTHER_RAW, "/api/v1/repos/ann/story.json", "/top"]),
        st.sampled_from(["curl/8", "curl/8", "Googlebot/2.1"]),
        st.sampled_from([200, 304, 404]),
    ),
    max_size=25,
)


@searching(25)
@given(some_lines, st.data())
def test_any_partition_repetition_order_and_packing(lines, data):
    with tempfile.TemporaryDirectory() as made:
        once, folder = Path(made, "once"), Path(made, "often")
        once.mkdir()
        folder.mkdir()
        whole = count(once, *lines)
        all_lines = lines + data.draw(st.lists(st.sampled_from(lines))) if lines else []
        all_lines = data.draw(st.permutations(all_lines))
        new = 0
        for run in range(data.draw(st.integers(1, 3))):
            last = run == 2
            logs = []
            for number in range(data.draw(st.integers(1, 2))):
                part = (
                    data.draw(st.lists(st.sampled_from(all_lines)))
                    if all_lines and not last
                    else all_lines
                )
                logs.append(folder / f"{run}.{number}")
                packed = data.draw(st.sampled_from([*PACKERS.values()]))
                logs[-1].write_bytes(packed(b"".join(part)))
            new += ingest([*map(str, logs)], str(folder / "state"), "", now=NOW).counted
        new += count(folder, *all_lines).counted
        assert counts(folder) == counts(once)
        assert new == whole.counted
