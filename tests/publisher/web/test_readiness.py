"""/readyz: the reasons why a hub is not ready, and the cost of a request."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from builder.store.shortage import disk_remedy, remedy_for
from publisher.web import readiness
from publisher.web.readiness import ROOM_BYTES, UNREADY_REASONS, Readiness
from tests.support.clock import StopClock
from tests.support.hubs import Hub, MakeHub


@pytest.fixture
def hub(make_hub: MakeHub) -> Hub:
    """The service with a site that is built."""
    made = make_hub()
    site = Path(made.settings.out, "api", "v1")
    site.mkdir(parents=True)
    (site / "hub.json").write_text("{}")
    return made


def codes(hub: Hub) -> list[str]:
    """The reasons of a fresh answer; checks that its status fits them."""
    hub.restart()  # forgets what was looked at
    answer = hub.app.test_client().get("/readyz")
    found = [reason["code"] for reason in answer.json["reasons"]]
    assert (answer.status_code, answer.json["status"]) == (
        (503, "unready") if found else (200, "ready")
    )
    assert ("Retry-After" in answer.headers) == bool(found)
    assert set(found) <= set(UNREADY_REASONS)
    assert str(Path(hub.settings.content).parent) not in answer.text  # it is public
    return found


def test_ready(hub: Hub) -> None:
    assert codes(hub) == []


def test_before_the_first_site(hub: Hub) -> None:
    shutil.rmtree(hub.settings.out)
    assert codes(hub) == ["no_site"]


def test_builds_that_fail_publications(hub: Hub) -> None:
    hub.rebuilder.is_failing = True
    assert codes(hub) == ["builds_failing"]


def test_folders_that_are_gone_or_cannot_be_written(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path(hub.settings.content)
    content.rename(content.with_name("moved"))
    assert codes(hub) == ["content_not_writable"]
    content.with_name("moved").rename(content)
    assert codes(hub) == []
    # Simulates a disk mounted read-only. Permissions do not stop root, which may run the tests.
    monkeypatch.setattr(readiness.os, "access", lambda path, mode: not mode & os.W_OK)
    assert codes(hub) == ["content_not_writable", "state_not_writable", "site_not_writable"]


def disk(monkeypatch: pytest.MonkeyPatch, **fields: int) -> None:
    """Replaces the disk of all folders."""
    usual = {"f_bavail": ROOM_BYTES, "f_frsize": 1, "f_files": 999, "f_favail": 999, "f_flag": 0}
    found = SimpleNamespace(**usual | fields)
    monkeypatch.setattr(os, "statvfs", lambda path: found)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"f_bavail": ROOM_BYTES - 1}, ["disk_full: Disk full."]),
        ({"f_favail": 2}, ["disk_full: No inodes"]),
        ({"f_files": 0, "f_favail": 0}, []),  # btrfs counts none
        (
            {"f_flag": os.ST_RDONLY},
            [
                f"{name}_not_writable: The disk of the {name} folder is read-only."
                for name in ("content", "state", "site")
            ],
        ),
    ],
)
def test_a_disk_without_room(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, fields: dict[str, int], expected: list[str]
) -> None:
    assert ROOM_BYTES > 64 * CONTENT_BYTES_MAX
    disk(monkeypatch, **fields)
    codes(hub)
    reasons = hub.app.test_client().get("/readyz").json["reasons"]
    found = [f"{one['code']}: {one['message']}" for one in reasons]
    assert len(found) == len(expected)
    assert all(one.startswith(begin) for one, begin in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [
        ({"f_bavail": 0}, "Free disk space"), ({"f_favail": 0}, "Free inodes"),
        ({"f_flag": os.ST_RDONLY}, "Make its disk writable"), ({}, ""),
    ],
)  # fmt: skip
def test_what_a_disk_lacks(monkeypatch: pytest.MonkeyPatch, fields: dict, remedy: str) -> None:
    disk(monkeypatch, **fields)
    assert disk_remedy("/srv").partition(":")[0] == remedy
    no_space = OSError(errno.ENOSPC, "", "/srv/file")
    is_of_inodes = remedy == "Free inodes"
    # What failed has left an inode, and removed its folder.
    disk(monkeypatch, **fields | ({"f_favail": 1} if is_of_inodes else {}))
    no_space.filename = "/srv/no/such/file"
    assert remedy_for(no_space).startswith(remedy if is_of_inodes else "Free disk space")
    assert remedy_for(OSError(errno.EMFILE, "")) == "Raise the limit of open files (ulimit -n)"
    assert remedy_for(OSError(errno.EIO, "")) == "Check the disk"


def test_an_accounts_database_that_was_replaced(hub: Hub) -> None:
    os.unlink(hub.database.engine.path)
    answer = hub.app.test_client().get("/readyz")
    assert answer.status_code == 503
    assert [reason["code"] for reason in answer.json["reasons"]] == ["accounts_unusable"]


def test_parts_are_shown_and_do_not_make_it_unready(hub: Hub) -> None:
    parts = {"git": lambda: {"failures": 3}}
    answer = Readiness(hub.settings, hub.rebuilder, hub.database, parts).answer()
    assert answer == {"status": "ready", "reasons": [], "parts": {"git": {"failures": 3}}}


def test_it_looks_once_a_second_however_often_it_is_asked(hub: Hub, stop_clock: StopClock) -> None:
    clock = stop_clock(readiness)
    checks = Readiness(hub.settings, hub.rebuilder, hub.database, {})
    for _ in range(1000):
        checks.answer()
    assert hub.rebuilder.looked == 1
    clock.now += 1
    checks.answer()
    assert hub.rebuilder.looked == 2
