"""A service continues whatever the remote does, and catches up."""

import contextlib
import json
import signal
import socket
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from builder.pipeline.build import Built, build
from builder.store.locks import last_build
from cli.hubctl import main
from operate.git import branch, follower
from operate.git.follower import GitFollower
from operate.git.options import GitOptions
from publisher.accounts.database import Database
from publisher.accounts.postgres_pool import Connections
from publisher.nodes import turn as turn_module
from publisher.nodes.turn import Turn
from publisher.write.store_protocol import Folder
from tests.operate.git.places import Place, git
from tests.support.catalogues import read_tree, write_version
from tests.support.postgres import Postgres
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    Server,
    add_publisher,
    serve_command,
    serving,
    wait_until,
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "GATHER_SECONDS", 0.01)
    monkeypatch.setattr(follower, "FETCH_SECONDS", 0.1)
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(follower, "LOOK_SECONDS_MAX", 0.1)
    monkeypatch.setattr(follower, "RETRY_SECONDS_MAX", 0.1)
    monkeypatch.setattr(follower, "STOP_SECONDS", 60.0)


def following(place: Place, remote: str = "", turn: Turn | None = None) -> GitFollower:
    options = GitOptions(remote or str(place.remote), "main", "content")
    store = Folder(place.settings.content)
    return GitFollower(place.settings, store, options, place.rebuild, turn)


def report(*changed: tuple[str, str | None], number: int = 0) -> Built:
    return Built(0, 0, 0, 0, 0, 0, 0, True, 0.0, 0.0, changed, number=number)


def hook(place: Place, script: str) -> Path:
    path = place.remote / "hooks/pre-receive"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def publish(server: Server, token: str, text: str) -> requests.Response:
    return server.request(
        "POST", "/api/v1/repos/eve/hello/versions", headers={"Authorization": f"Bearer {token}"},
        json={"content": text, "changelog": f"Says {text}"},
    )  # fmt: skip


def test_a_service_pushes_and_takes_in(place: Place) -> None:
    token = add_publisher(place.settings, "eve")
    options = ("--git", str(place.remote), "--git-branch", "main")
    with serving(place.settings, *options) as server:
        assert publish(server, token, "one").status_code == 201
        wait_until(lambda: "eve/hello/1.0.0.md" in pushed(place), "the first push")
        assert "eve eve/hello 1.0.0: Says one" in place.log("%an %s")
        write_version(place.clone(), "mia", "new", "1.0.0", "Merged.\n")
        place.merge()
        assert publish(server, token, "two").status_code == 201
        read = "/api/v1/repos/mia/new/raw"
        wait_until(lambda: server.get(read).text == "Merged.\n", "what was merged")
        assert publish(server, token, "three").status_code == 201
    assert place.files() == read_tree(place.content)


def pushed(place: Place) -> dict[str, bytes]:
    if git(place.remote, "for-each-ref", "refs/heads/main"):
        return place.files()
    return {}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_remote_that_hangs_stops_nobody(place: Place, end: signal.Signals) -> None:
    token = add_publisher(place.settings, "eve")
    go = place.remote / "go"
    begun = place.remote / "begun"
    hook(place, f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done")
    options = ("--git", str(place.remote))
    server = Server(Process(*serve_command(place.settings, *options)), place.settings)
    wait_until(begun.exists, "the push")
    assert publish(server, token, "one").status_code == 201
    server.session.close()
    assert server.process.stop(end) == (0 if end == signal.SIGTERM else -end)
    go.touch()
    with serving(place.settings, *options):
        wait_until(lambda: pushed(place) == read_tree(place.content), "the push")
    subjects = place.log("%s")
    assert len(subjects) == len({*subjects}) == 7


def test_a_remote_that_declines(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    declining = hook(place, "echo 'Not on Sundays.'; exit 1")
    with following(place) as one:
        wait_until(lambda: one.status()["failures"] > 2, "refusals")
        status = one.status()
        assert status["status"] == "failing" and status["failing_since"]
        assert str(place.remote) not in json.dumps(status)
        logged = str(caplog.records[0].exc_info)
        assert "git push failed: remote: Not on Sundays." in logged
        assert "[remote rejected]" in logged and "(pre-receive hook declined)" in logged
        declining.unlink()
        wait_until(lambda: one.status()["status"] == "ok", "a push")
        assert (one.status()["failures"], one.status()["failing_since"]) == (0, None)
    assert place.files() == read_tree(place.content)


def test_a_silent_remote_delays_neither_a_build_nor_the_end(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(follower, "STOP_SECONDS", 0.1)
    monkeypatch.setattr(branch, "ASK_SECONDS", DEADLINE_SECONDS * 9)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        remote = f"git://127.0.0.1:{listener.getsockname()[1]}/x"
        with following(place, remote) as one:
            connection, _ = listener.accept()
            one.tell(report(("ann", "story")))
            assert one.status()["waiting"] == 1
            assert one.status()["status"] == "starting"
        connection.close()
        monkeypatch.setattr(branch, "ASK_SECONDS", 0.1)
        with following(place, remote) as one:
            wait_until(lambda: one.status()["failures"] > 1, "two limits")
        assert "git ls-remote took longer than 0.1 seconds" in str(caplog.records[0].exc_info)


def test_each_build_is_followed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "LOOK_SECONDS", 1e9)
    many = report(*[("ann", f"n{number}") for number in range(follower.PLACES_MAX + 1)])
    outcomes = [report(("ann", "story")), OSError(), many]
    with following(place) as one:
        wait_until(lambda: one.status()["status"] == "ok", "the first push")
        for number, outcome in enumerate(outcomes, 1):
            path = write_version(place.content, "ann", "story", f"1.{number}.0", "More.\n")
            one.tell(report())
            assert one.status()["waiting_seconds"] == 0
            one.tell(outcome)
            wait_until(lambda path=path: f"ann/story/{path.name}" in place.files(), "a push")


def test_two_on_one_state_folder(place: Place) -> None:
    with following(place) as one:
        wait_until(lambda: one.status()["status"] == "ok", "the first")
        with following(place) as two:
            wait_until(lambda: two.status()["failures"], "the second")
        assert one.status()["status"] == "ok"


def test_a_damaged_repository_is_replaced(place: Place) -> None:
    place.run()
    for path in Path(place.settings.state, "git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    write_version(place.content, "ann", "story", "1.1.0", "More.\n")
    with following(place) as one:
        wait_until(lambda: one.status()["last_push"], "a push")
    assert place.files() == read_tree(place.content)


WITHDRAW = ("withdraw", "ann/story@1.1.0", "--reason", "secret", "--yes")
LABEL = ("label", "set", "ann/story", "live", "1.0.0")


@pytest.mark.parametrize(("command", "file"), [(WITHDRAW, "withdrawn/1.1.0"), (LABEL, "labels/1")])
def test_a_change_by_another_process_is_pushed(
    place: Place, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], file: str
) -> None:
    monkeypatch.setattr(follower, "FETCH_SECONDS", 1e9)
    settings = place.settings
    write_version(place.content, "ann", "story", "1.1.0", "More.\n")
    build(settings, index=False)
    with following(place) as one:
        wait_until(lambda: "ann/story/1.1.0.md" in pushed(place), "the first push")
        places = ("--content", settings.content, "--out", settings.out, "--state", settings.state)
        done = CliRunner().invoke(main, [*command, *places])
        assert done.exit_code == 0, done.output
        wait_until(lambda: f"ann/story/{file}.json" in place.files(), "the second push")
        assert one.status()["failures"] == 0
    assert place.files() == read_tree(place.content)


def test_a_gap_in_the_numbers_of_builds_is_of_another_process(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "LOOK_SECONDS", 1e9)
    monkeypatch.setattr(follower, "FETCH_SECONDS", 1e9)
    with following(place) as one:
        wait_until(lambda: one.status()["last_push"], "the first push")
        write_version(place.content, "ann", "story", "1.1.0", "More.\n")
        last = last_build(place.settings.state)
        one.tell(report(number=last + 1))  # the service's next build, which changed nothing
        assert one.status()["waiting_seconds"] == 0
        one.tell(report(number=last + 3))
        wait_until(lambda: "ann/story/1.1.0.md" in place.files(), "the second push")


def test_of_several_nodes_one_pushes(
    place: Place, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "TURN_SECONDS", 0.05)
    monkeypatch.setattr(turn_module, "KEPT_SECONDS", 0.0)
    url = postgres.new_database()
    Database(url).close()
    with contextlib.closing(Connections(url)) as connections:
        other, turn = Turn(connections, "push"), Turn(connections, "push")
        other.take()
        asked = []
        take = turn.take
        turn.take = lambda: asked.append(take()) or asked[-1]
        with following(place, turn=turn) as one:
            wait_until(lambda: len(asked) > 5, "several looks")
            assert one.status()["last_check"] is None and not pushed(place)
            other.release()
            wait_until(lambda: pushed(place), "the push")
        assert other.take()
