"""Start and stop of `hubctl serve`."""

import json
import select
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    Server,
    clean_environment,
    read_answer,
    serve_command,
    serving,
    wait_until,
)


def run_serve(settings: Settings, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*serve_command(settings), *options],
        capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=clean_environment(),
    )  # fmt: skip


def test_unknown_host(small: Settings) -> None:
    done = run_serve(small, "--host", "no-such-host.invalid")
    assert done.returncode == 1
    assert "--host" in done.stderr
    assert "Traceback" not in done.stderr


def break_content(settings: Settings) -> None:
    Path(settings.content, "bob/sql/1.0.0.md").write_text("Changed after it was published.\n")


def test_faults_with_a_site(small: Settings) -> None:
    build(small)
    break_content(small)
    with serving(small) as server:
        assert "bob/sql/1.0.0.md" in server.process.text
        assert "Serving the previous site" in server.process.text
        assert server.get("/api/v1/repos/bob/sql/raw").text == "Write SQL for {{question}}.\n"
        assert server.get("/api/v1/repos?q=sql").json()["meta"]["total"] == 1


def test_faults_without_a_site(small: Settings) -> None:
    break_content(small)
    done = run_serve(small)
    assert done.returncode == 1
    assert "bob/sql/1.0.0.md" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_finishes_what_is_under_way(small: Settings, number: int) -> None:
    process = Process(*serve_command(small))
    server = Server(process, small)
    # While another process has the state for itself, a search has to wait.
    state = sqlite3.connect(f"{small.state}/build.sqlite3", isolation_level=None)
    state.execute("PRAGMA locking_mode = EXCLUSIVE")
    state.execute("BEGIN EXCLUSIVE")
    asking, other = server.connect(), server.connect()
    try:
        asking.sendall(b"GET /api/v1/repos?q=care HTTP/1.1\r\nHost: x\r\n\r\n")
        # Answered after the search request was sent, so that is under way now.
        other.sendall(b"GET /api/v1/tags HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(other).status == 200
        server.process.send(number)
        wait_until(lambda: is_refused(server), "the end of listening")
        assert not select.select([asking], [], [], 0)[0]
    finally:
        state.execute("ROLLBACK")
        state.close()
    answer = read_answer(asking)
    assert answer.status == 200
    assert json.loads(answer.body)["meta"]["total"] == 1
    for connection in (asking, other):
        connection.close()
    server.session.close()
    assert process.wait() == 0, process.text
    assert "Traceback" not in process.text
    assert "Aborted" not in process.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_at_the_start_is_not_lost(small: Settings, number: int) -> None:
    process = Process(sys.executable, *serve_command(small))
    process.wait_for_line("(stop with Ctrl-C)")
    assert process.stop(number) == 0, process.text
    assert "Traceback" not in process.text


def is_refused(server: Server) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    return False
