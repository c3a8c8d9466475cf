"""A service goes on whatever the remote does, and catches up."""

import json
import signal
import socket
from pathlib import Path

import pytest
import requests

from builder.pipeline.build import Report, build
from publisher.git import follower
from publisher.git.files import Place as FilesPlace
from publisher.git.follower import GitFollower, Pace
from publisher.git.options import GitOptions
from publisher.git.program import Limits
from tests.publisher.git.places import Place, git
from tests.support.catalogues import read_tree, write_version
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    Server,
    add_publisher,
    serve_command,
    serving,
    wait_until,
)

QUICK = Pace(gather=0.01, fetch=0.1, look=0.0, retry_min=0.01, retry_max=0.1, stop=60.0)


def following(place: Place, remote: str = "", pace: Pace = QUICK, **limits: float) -> GitFollower:
    options = GitOptions(remote or str(place.remote), "main", "content")
    return GitFollower(place.settings, options, place._note, Limits(**limits), pace)


def report(*changed: tuple[str, str | None]) -> Report:
    return Report(0, 0, 0, 0, 0, 0, 0, True, 0.0, 0.0, changed)


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


def test_a_remote_that_declines(place: Place) -> None:
    declining = hook(place, "echo 'Not on Sundays.'; exit 1")
    with following(place) as one:
        wait_until(lambda: one.status()["failures"] > 2, "refusals")
        status = one.status()
        assert status["status"] == "failing"
        assert status["last_error"] == (
            "The remote refused the push: [remote rejected] (pre-receive hook declined). "
            "The log has the cause."
        )
        assert str(place.remote) not in json.dumps(status)
        declining.unlink()
        wait_until(lambda: one.status()["status"] == "ok", "a push")
        status = one.status()
        assert (status["failures"], status["failing_since"], status["last_error"]) == (
            0,
            None,
            None,
        )
    assert place.files() == read_tree(place.content)


def test_what_the_log_says(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    hook(place, "echo 'Not on Sundays.'; exit 1")
    with following(place) as one:
        wait_until(lambda: one.status()["failures"], "a refusal")
    assert "Not on Sundays." in str(caplog.records[0].exc_info)


def test_a_silent_remote_delays_neither_a_build_nor_the_end(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        remote = f"git://127.0.0.1:{listener.getsockname()[1]}/x"
        with following(place, remote, QUICK._replace(stop=0.1), ask=DEADLINE_SECONDS * 9) as one:
            connection, _ = listener.accept()
            one.tell(report(("ann", "story")))
            assert one.status()["waiting"] == 1
            assert one.status()["status"] == "starting"
        connection.close()
        assert not one._thread.is_alive()
        with following(place, remote, ask=0.1) as one:
            wait_until(lambda: one.status()["failures"] > 1, "two limits")
            assert "git ls-remote took longer than 0.1 seconds" in one.status()["last_error"]


def test_failures_are_tried_again_later_and_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower.random, "uniform", lambda low, high: high)
    one = following(place, pace=Pace(retry_min=5, retry_max=60))
    monkeypatch.setattr(follower.time, "monotonic", lambda: 1000.0)
    waits = []
    for _ in range(6):
        one._note_failure(OSError())
        waits.append(one._fetch_at - 1000)
    assert waits == [5, 10, 20, 40, 60, 60]
    assert one.status()["last_error"] == "It failed. The log has the cause."


def test_builds_are_followed_by_name(place: Place) -> None:
    one = following(place)
    one._is_all = False
    one.tell(report())
    assert one._since is None
    one.tell(report(("ann", "story"), ("bob", None)))
    assert one._places == {FilesPlace("ann", "story"), FilesPlace("bob")}
    assert not one._is_all
    one.tell(report(*[("ann", f"n{number}") for number in range(follower.PLACES_MAX + 1)]))
    assert (one._is_all, len(one._places)) == (True, 2)
    one._is_all = False
    one.tell(OSError())
    assert one._is_all


def test_what_the_status_shows_is_bounded(place: Place) -> None:
    one = following(place)
    one._problems = {FilesPlace("ann", f"n{number}"): "a" * 10_000 for number in range(1000)}
    status = one.status()
    assert status["problems_count"] == 1000
    assert len(status["problems"]) == follower.PROBLEMS_SHOWN_MAX
    assert {len(told) for told in status["problems"]} == {follower.PROBLEM_CHARS_MAX}


def test_two_on_one_state_folder(place: Place) -> None:
    with following(place) as one:
        wait_until(lambda: one.status()["status"] == "ok", "the first")
        with following(place) as two:
            wait_until(lambda: two.status()["failures"], "the second")
        assert one.status()["status"] == "ok"


def test_a_damaged_repository_is_made_anew(place: Place) -> None:
    place.run()
    for path in Path(place.settings.state, "git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    write_version(place.content, "ann", "story", "1.1.0", "More.\n")
    with following(place) as one:
        wait_until(lambda: one.status()["last_push"], "a push")
    assert place.files() == read_tree(place.content)


def test_what_another_process_publishes_is_found(place: Place) -> None:
    with following(place) as one:
        wait_until(lambda: one.status()["status"] == "ok", "the first push")
        write_version(place.content, "ann", "story", "1.1.0", "More.\n")
        build(place.settings._replace(state=f"{place.settings.state}-2"), index=False)
        wait_until(lambda: "ann/story/1.1.0.md" in place.files(), "the second push")
