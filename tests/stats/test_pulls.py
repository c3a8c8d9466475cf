"""The database of pulls: as the build reads it, damaged, killed, and used by two at once."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.stats import counter
from builder.stats.counter import BATCH_PULLS, Counter
from builder.stats.pulls import PULLS_FILE, PullCounts, Pulls
from tests.stats.logs import NOW, RAW, TODAY, count, counts, line
from tests.support.servers import DEADLINE_SECONDS, PROJECT, clean_environment

OTHER_RAW = "/api/v1/repos/bob/poem/raw"


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """A database of pulls in a state folder."""
    for number in range(3):
        count(tmp_path, *(line(f"/api/v1/repos/o/n{n}/raw") for n in range(100 * (number + 1))))
    return tmp_path / "state" / PULLS_FILE


def test_never_measured(tmp_path):
    with Pulls(str(tmp_path / "nowhere")) as pulls:
        assert pulls.serial() == 0
        assert pulls.of("ann/story") is None
        assert pulls.changed_since(0) == []
        assert pulls.nonce(0) is None
    assert not (tmp_path / "nowhere").exists()


def test_serials_grow_with_what_changes(tmp_path):
    seen = []
    for lines in ([line("/")], [line()], [line()], [line("/")], [line(), line(OTHER_RAW)]):
        count(tmp_path, *lines)
        with Pulls(str(tmp_path / "state")) as pulls:
            since = [pulls.changed_since(serial) for serial in (1, 2)]
            seen.append((pulls.serial(), *since, pulls.of("bob/poem").total))
            nonces = [pulls.nonce(serial) for serial in range(5)]
    assert seen == [
        (1, [], [], 0),
        *[(2, ["ann/story"], [], 0)] * 3,
        (3, ["ann/story", "bob/poem"], ["bob/poem"], 1),
    ]
    assert nonces[0] is nonces[4] is None
    assert len({*nonces[1:4]}) == 3


def test_a_copy_that_went_another_way_is_known_by_its_nonces(tmp_path):
    count(tmp_path, line("/"))
    path = tmp_path / "state" / PULLS_FILE
    backup = path.read_bytes()
    nonces = []
    for target in (RAW, OTHER_RAW):
        path.write_bytes(backup)
        count(tmp_path, line(target))
        with Pulls(str(tmp_path / "state")) as pulls:
            nonces.append((pulls.nonce(1), pulls.nonce(2)))
    assert nonces[0][0] == nonces[1][0]
    assert nonces[0][1] != nonces[1][1]


def test_a_reader_sees_one_moment(tmp_path, monkeypatch):
    monkeypatch.setattr(counter, "WIPE_MILLISECONDS", 0)
    count(tmp_path, line())
    with Pulls(str(tmp_path / "state")) as pulls:
        count(tmp_path, line(client="192.0.2.8"), line(OTHER_RAW))
        assert pulls.serial() == 1
        assert pulls.of("ann/story").total == 1
        assert pulls.changed_since(0) == ["ann/story"]
    assert counts(tmp_path)["ann/story"].total == 2


def test_more_than_a_batch(tmp_path):
    clients = [b"%d" % number for number in range(BATCH_PULLS + 10)]
    for is_again in (False, True):
        with Counter(str(tmp_path), TODAY) as one:
            for client in clients:
                one.add(TODAY, client, "ann/story")
        found = (one.counted, one.repeated)
        assert found == ((0, len(clients)) if is_again else (len(clients), 0))
    with Pulls(str(tmp_path)) as pulls:
        assert pulls.of("ann/story") == PullCounts(len(clients), ((TODAY, len(clients)),))


def test_an_error_counts_nothing(tmp_path):
    def fail() -> None:
        with Counter(str(tmp_path), TODAY) as one:
            one.add(TODAY, b"x", "ann/story")
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    with Pulls(str(tmp_path)) as pulls:
        assert (pulls.serial(), pulls.changed_since(0)) == (0, [])


def test_what_root_makes_belongs_to_the_owner_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(counter, "WIPE_MILLISECONDS", 0)
    state = tmp_path / "state"
    state.mkdir()
    if os.geteuid() == 0:
        shutil.chown(state, "nobody", "nogroup")
    owner = (state.stat().st_uid, state.stat().st_gid)
    count(tmp_path, line())
    with Pulls(str(state)):
        count(tmp_path, line(OTHER_RAW))
        files = sorted(state.iterdir())
        assert [each.name.removeprefix(PULLS_FILE) for each in files] == ["", "-shm", "-wal"]
        assert {(each.stat().st_uid, each.stat().st_gid) for each in files} == {owner}
    assert (state / PULLS_FILE).stat().st_mode & 0o777 == 0o600


# Damaged or missing data -------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"no database at all" * 100])
def test_something_else_in_its_place(counted, data):
    counted.write_bytes(data)
    for use in (Pulls, lambda state: count(counted.parent.parent, line())):
        with pytest.raises(OperatorError, match=r"is damaged.*backup"):
            use(str(counted.parent))
    assert counted.read_bytes() == data


def test_broken_pages(counted):
    data = bytearray(counted.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    counted.write_bytes(data)
    with pytest.raises(OperatorError, match="is damaged"), Pulls(str(counted.parent)) as pulls:
        pulls.of("o/n1")
    with pytest.raises(OperatorError, match="is damaged"):
        count(counted.parent.parent, line())


def test_another_program_s_database(counted):
    counted.unlink()
    with sqlite3.connect(counted) as db:
        db.execute("CREATE TABLE precious (x)")
    db.close()
    for use in (Pulls, lambda state: count(counted.parent.parent, line())):
        with pytest.raises(OperatorError, match="not hub's database of pulls"):
            use(str(counted.parent))


def test_a_newer_release_s_database(counted):
    with sqlite3.connect(counted) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(OperatorError, match="newer release"):
        Pulls(str(counted.parent))


def test_a_place_that_cannot_be_used(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(OperatorError, match="Cannot use"):
        count(tmp_path, line())
    (tmp_path / "other" / PULLS_FILE).mkdir(parents=True)
    with pytest.raises(OperatorError, match="Cannot use"):
        Pulls(str(tmp_path / "other"))


# Several processes, and killed ones -------------------------------------------------------------

INGEST = f"""
import sys
from builder.stats.ingest import ingest
sys.exit(0 if ingest(["-"], sys.argv[1], "", now={NOW}) else 1)
"""


def start_ingestion(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", INGEST, str(folder / "state")],
        stdin=subprocess.PIPE, cwd=PROJECT, env=clean_environment(),
    )  # fmt: skip


def test_killed_it_counts_nothing_and_can_be_repeated(tmp_path):
    count(tmp_path, line())
    # More than a batch, so that something is in the database, though not for good.
    lines = [
        line(client=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}") for n in range(BATCH_PULLS + 5000)
    ]
    process = start_ingestion(tmp_path)
    try:
        # Returns when it has read all but what fits into the pipe and its buffer.
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
    assert counts(tmp_path)["ann/story"].total == 1
    assert count(tmp_path, *lines).counted == len(lines)


def test_killed_when_it_makes_the_database(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / f"{PULLS_FILE}.new").write_bytes(b"half of a database")
    with Pulls(str(state)) as pulls:
        assert pulls.serial() == 0
    assert count(tmp_path, line()).counted == 1
    assert [each.name for each in state.iterdir()] == [PULLS_FILE]


def test_many_make_the_database_at_once(tmp_path):
    processes = [start_ingestion(tmp_path) for _ in range(4)]
    # The first process waits for its lines, and the others wait for that process.
    for number, process in enumerate(processes):
        process.stdin.write(line(client=f"192.0.2.{number}"))
        process.stdin.close()
    assert [process.wait(DEADLINE_SECONDS) for process in processes] == [0] * 4
    assert counts(tmp_path)["ann/story"].total == 4
    assert not (tmp_path / "state" / f"{PULLS_FILE}.new").exists()
