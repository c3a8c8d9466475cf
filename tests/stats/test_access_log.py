"""The embedded server's access log: what a line says, and what cannot stop it."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import OperatorError
from builder.stats.log_lines import parse_line, parse_time
from server.access_log import WAITING_BYTES_MAX, AccessLog, Logged
from tests.support.depth import searching
from tests.support.servers import (
    Process,
    Server,
    sample_settings,
    serve_command,
    serving,
    wait_until,
)

REPO = b"/api/v1/repos/mara-okafor/sql-review"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "access.log"


@pytest.fixture(scope="module")
def server(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = sample_settings(tmp_path_factory.mktemp("logged"))
    with serving(
        settings, "--access-log", str(log), "--trusted-proxy", "127.0.0.1", rate_limit=3
    ) as server:
        yield server


def new_lines(log: Path, count: int, part: bytes = b"") -> list[bytes]:
    """The last ``count`` lines that contain ``part``; waits until there are that many."""

    def find() -> list[bytes]:
        lines = [each for each in log.read_bytes().splitlines(keepends=True) if part in each]
        return lines[-count:] if len(lines) >= count else []

    return wait_until(find, f"{count} lines with {part!r}")


def test_a_line_says_what_was_asked_and_answered(server, log):
    answer = server.raw(
        REPO + b"/raw?version=1.0.0&x=%22", b"X-Forwarded-For: 203.0.113.9", b"User-Agent: t/1 (x)",
        b"Referer: https://example.org/",
    )  # fmt: skip
    (line,) = new_lines(log, 1, b"t/1")
    moment = line[line.index(b"[") + 1 : line.index(b"]")]
    assert line == (
        b'203.0.113.9 - - [%b] "GET %b/raw?version=1.0.0&x=%%22 HTTP/1.1" 200 %d '
        b'"https://example.org/" "t/1 (x)"\n' % (moment, REPO, len(answer.body))
    )
    assert parse_time(moment.decode()) is not None
    assert os.stat(log).st_mode & 0o007 == 0


@pytest.mark.parametrize(
    ("root", "path", "is_kept"),
    [
        ("", "/account/openid/callback", False), ("", "/account", False), ("", "/accounts", True),
        ("", "/hub/account/login", True), ("/hub", "/hub/account/openid/callback", False),
        ("/hub", "/hub/ann/account", True),
    ],
)  # fmt: skip
def test_queries_of_the_account_settings_are_left_out(root, path, is_kept):
    lines = Lines()
    scope = {
        "type": "http", "method": "GET", "http_version": "1.1", "client": ("::1", 1),
        "path": path, "raw_path": path.replace("c", "%63").encode(), "query_string": b"code=mellon",
        "headers": [],
    }  # fmt: skip
    call = Logged(lambda scope, receive, send: _nothing(), lines, root)(scope, None, None)
    with pytest.raises(StopIteration):
        call.send(None)
    (line,) = lines
    target = scope["raw_path"] + (b"?code=mellon" if is_kept else b"")
    assert b'"GET %b HTTP/1.1"' % target in line


def test_the_address_is_the_one_that_is_limited(server, log):
    for _ in range(4):
        server.raw(REPO, b"X-Forwarded-For: 203.0.113.10")
    server.raw(REPO, b"X-Forwarded-For: 203.0.113.11")
    entries = [parse_line(each) for each in new_lines(log, 5, b"203.0.113.1")]
    assert [(each.client, each.status) for each in entries] == [
        *[("203.0.113.10", 200)] * 3, ("203.0.113.10", 429), ("203.0.113.11", 200),
    ]  # fmt: skip


def test_every_kind_of_answer(server, log):
    etag = server.raw(REPO, b"X-Forwarded-For: 203.0.113.20").headers["etag"].encode()
    by = [b"User-Agent: kinds", b"X-Forwarded-For: 203.0.113.21"]
    server.raw(REPO, *by, b"If-None-Match: " + etag)
    server.raw(REPO, *by, method=b"HEAD")
    server.raw(b"/nothing/here/at/all", *by)
    server.raw(b"/healthz", *by)
    server.raw(REPO + b"/versions", *by, b"Content-Length: 0", method=b"POST")
    entries = [parse_line(each) for each in new_lines(log, 5, b'"kinds"')]
    assert sorted((each.method, each.target, each.status) for each in entries) == [
        ("GET", REPO.decode(), 304),
        ("GET", "/healthz", 200),
        ("GET", "/nothing/here/at/all", 404),
        ("HEAD", REPO.decode(), 200),
        ("POST", f"{REPO.decode()}/versions", 401),
    ]


def test_a_moved_file_is_created_again(server, log):
    log.rename(log.with_suffix(".1"))
    before = log.with_suffix(".1").stat().st_ino
    wait_until(log.exists, "a new log")
    server.raw(b"/after-the-move", b"X-Forwarded-For: 203.0.113.30")
    assert len(new_lines(log, 1, b"/after-the-move")) == 1
    assert log.stat().st_ino != before


def test_all_is_written_at_the_end(tmp_path):
    settings = sample_settings(tmp_path)
    log = tmp_path / "access.log"
    process = Process(*serve_command(settings, "--access-log", str(log)))
    server = Server(process, settings)
    for count in range(50):
        server.get(f"/last?n={count}")
    server.session.close()
    assert process.stop(signal.SIGINT) == 0
    targets = [parse_line(each).target for each in log.read_bytes().splitlines()]
    assert targets == [f"/last?n={count}" for count in range(50)]


def test_a_file_that_cannot_be_written_is_reported_at_once(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "log"):
        with (
            pytest.raises(OperatorError, match=r"Cannot write .*--access-log"),
            AccessLog(str(path)),
        ):
            raise AssertionError(path)


def test_a_full_disk_stops_no_reads(tmp_path):
    settings = sample_settings(tmp_path)
    with serving(settings, "--access-log", "/dev/full") as server:
        assert server.get("/").status_code == 200
        server.process.wait_for_line("Access log /dev/full: cannot write: No space left on device")
        for _ in range(3):
            assert server.get("/").status_code == 200
    assert server.process.text.count("No space left") == 1


def test_what_a_disk_did_not_take_is_written_later(tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "log"
    line = b"x" * 99 + b"\n"
    with AccessLog(str(path)) as log:
        # Gone with its folder, at once, or the log could make the file again in between. Nothing
        # can be written until the folder is back.
        folder.rename(tmp_path / "moved")
        log.add(line)
        wait_until(lambda: "No such file" in capsys.readouterr().err, "the complaint")
        for _ in range(WAITING_BYTES_MAX // len(line) + 10):
            log.add(line)
        folder.mkdir()
        wait_until(lambda: path.exists() and path.stat().st_size > WAITING_BYTES_MAX, "the rest")
        log.add(b"the last\n")
    written = path.read_bytes().splitlines(keepends=True)
    kept = WAITING_BYTES_MAX // len(line) + 1
    assert written == [line] * kept + [b"the last\n"]
    assert "writing works again." in capsys.readouterr().err


def test_each_trouble_is_reported_and_its_end(tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    with AccessLog(str(folder / "log")) as log:
        for number in range(2):
            folder.rename(tmp_path / f"moved-{number}")
            log.add(b"a line\n")
            wait_until(lambda: "No such file" in capsys.readouterr().err, "the complaint")
            folder.mkdir()
            wait_until(lambda: "writing works again." in capsys.readouterr().err, "its end")
    # A line that was on its way when the folder was moved is in there.
    assert b"".join(path.read_bytes() for path in tmp_path.glob("*/log")) == 2 * b"a line\n"


def test_no_line_is_lost_between_two_threads(tmp_path):
    path = tmp_path / "log"
    lines = [b"%d\n" % number for number in range(200_000)]
    with AccessLog(str(path)) as log:
        server = threading.Thread(target=lambda: [log.add(each) for each in lines])
        server.start()
        server.join()
    assert path.read_bytes() == b"".join(lines)


class Lines(list):
    """Stands in for the file."""

    add = list.append


@searching(30)
@given(target=st.binary(max_size=40), agent=st.binary(max_size=40), referer=st.binary(max_size=40))
def test_any_bytes_are_one_line_that_reads_back(target, agent, referer):
    lines = Lines()
    scope = {
        "type": "http", "method": "GET", "http_version": "1.1", "client": ("::1", 1),
        "raw_path": b"/" + target.replace(b" ", b""), "query_string": b"",
        "headers": [(b"user-agent", agent), (b"referer", referer)],
    }  # fmt: skip
    call = Logged(lambda scope, receive, send: _nothing(), lines)(scope, None, None)
    with pytest.raises(StopIteration):
        call.send(None)
    (line,) = lines
    assert line.count(b"\n") == 1 and line.isascii()
    entry = parse_line(line)
    assert entry.target.encode("latin-1") == b"/" + target.replace(b" ", b"")
    assert (entry.client, entry.status) == ("::1", 500)


async def _nothing() -> None:
    """An application that answers nothing."""
