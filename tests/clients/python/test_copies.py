"""Copies of prompts on disk: when they are used, whose they are, and how many."""

import os
import stat
from pathlib import Path

import hub_prompts
import pytest
from hub_prompts import Hub, Withdrawn

from tests.clients.python.fake import (
    LATEST,
    OF_A_LABEL,
    Clock,
    FakeHub,
    answer,
    refusal,
    sources,
)  # fmt: skip
from tests.support.servers import wait_until

COPIES = "cache/hub-prompts"


def test_a_copy_is_used_by_other_processes_as_long_as_it_is_fresh(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL, ETag='"1"')
    assert sources(fake.url, "ada/hello") == ["network"]
    clock.pass_by(10)
    assert sources(fake.url, "ada/hello") == ["disk"]
    assert len(fake.asked) == 1
    clock.pass_by(100)
    assert sources(fake.url, "ada/hello") == ["network"]
    assert fake.asked[-1][1]["If-None-Match"] == '"1"'
    clock.pass_by(-100)  # a 304 made it fresh from then on
    assert sources(fake.url, "ada/hello") == ["disk"]


def test_a_stale_copy_is_used_at_once_and_checked(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer("Old."), Cache_Control=OF_A_LABEL)
    Hub(fake.url).get("ada/hello")
    fake.has(LATEST, answer("New."), Cache_Control=OF_A_LABEL)
    fake.on_request = fake.stall
    clock.pass_by(20)
    hub = Hub(fake.url)
    assert hub.get("ada/hello").content == "Old."
    fake.let_go.set()
    wait_until(lambda: hub.get("ada/hello").content == "New.", "the new text")


def test_another_hub_has_copies_of_its_own(fake: FakeHub, other: FakeHub):
    fake.has(LATEST, answer("One."))
    other.has(LATEST, answer("Two."))
    assert [Hub(one.url).get("ada/hello").content for one in (fake, other)] == ["One.", "Two."]


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"[1]\n{}", b"\xff", b'["x", "", ""]\n' + answer(sha256="0" * 64)]
)
def test_a_damaged_copy_is_ignored(
    fake: FakeHub, tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
):
    fake.has(LATEST, answer())
    Hub(fake.url).get("ada/hello")
    (copy,) = (tmp_path / COPIES).iterdir()
    copy.write_bytes(damage)
    assert sources(fake.url, "ada/hello") == ["network"]
    assert "Cannot use the copy" in caplog.text
    assert sources(fake.url, "ada/hello") == ["disk"]


def test_the_folder_is_private_and_has_nothing_else(fake: FakeHub, tmp_path: Path):
    fake.has(LATEST, answer())
    Hub(fake.url).get("ada/hello")
    assert stat.S_IMODE((tmp_path / COPIES).stat().st_mode) == 0o700
    assert [one.suffix for one in (tmp_path / COPIES).iterdir()] == [".hub"]


@pytest.mark.parametrize("disk", [False, "own"])
def test_the_folder_can_be_another_one_or_none(fake: FakeHub, tmp_path: Path, disk: str | bool):
    fake.has(LATEST, answer())
    Hub(fake.url, disk=disk and tmp_path / disk).get("ada/hello")
    assert [one.name for one in tmp_path.iterdir()] == ([disk] if disk else [])


def test_a_relative_cache_home_is_ignored(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    fake.has(LATEST, answer())
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert sources(fake.url, "ada/hello") == sources(fake.url, "ada/hello") == ["network"]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert sources(fake.url, "ada/hello") == ["network"]
    assert list((tmp_path / "home/.cache/hub-prompts").iterdir())


def test_a_disk_that_takes_nothing_is_no_trouble(
    fake: FakeHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").touch()
    fake.has(LATEST, answer())
    hub = Hub(fake.url, disk=tmp_path / "file" / "folder")
    assert hub.get("ada/hello").version == "1.0.0"
    assert "Cannot use the copy of ada/hello on disk" in caplog.text


def test_copies_are_bounded_and_files_of_others_stay(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / COPIES
    folder.mkdir(parents=True)
    (folder / "notes.json").write_text("mine")
    (folder / "left.hub").write_text("of a process that ended within a write")
    os.utime(folder / "left.hub", (0, 0))
    monkeypatch.setattr(hub_prompts, "PROMPTS_MAX", 3)
    hub = Hub(fake.url)

    def fetch(number: int) -> list[str]:
        fake.has(f"/api/v1/repos/ada/p{number}.json", answer(name=f"p{number}"))
        hub.get(f"ada/p{number}")
        return [one.name for one in folder.iterdir() if one.name != "notes.json"]

    assert [len(fetch(number)) for number in range(5)] == [2, 3, 3, 3, 3]
    assert "left.hub" not in fetch(5) and (folder / "notes.json").read_text() == "mine"


def test_what_is_gone_is_gone_although_its_copy_cannot_be_removed(
    fake: FakeHub, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(_: object) -> None:
        raise PermissionError("not yours")

    fake.has(LATEST, answer())
    hub = Hub(fake.url)
    hub.get("ada/hello")
    fake.has(LATEST, refusal("withdrawn"), 410)
    clock.pass_by(100)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fail)
        with pytest.raises(Withdrawn):
            hub.get("ada/hello")
    assert "Cannot use the copy of ada/hello on disk: not yours" in caplog.text
