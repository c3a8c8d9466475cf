"""Backups: whole, incremental, private, while others publish, and killed at any moment."""

import contextlib
import errno
import os
import shutil
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder.model.errors import OperatorError
from builder.store.check import check
from operate.backup import snapshots
from operate.backup.places import FolderPlace
from operate.folders import lock
from operate.parallel import Work
from publisher.accounts.tokens import Accounts
from tests.operate.backup.conftest import FILES, Hub, killings, settle
from tests.support.catalogues import read_tree


def faults(content: str) -> list[str]:
    return [str(fault) for fault in check(content) if not fault.is_warning]


def test_only_what_changed_is_stored(hub: Hub, place: FolderPlace) -> None:
    settle()
    first = hub.back_up(place)
    assert (first.snapshots, first.dropped, first.skipped) == (1, 0, [])
    # Without the file of the format, and with the database.
    assert first.files == len(read_tree(hub.settings.content)) - 1 + 1
    again = hub.back_up(place)
    assert (again.stored, again.files) == (0, first.files)
    hub.publish("poem", "Write an ode.")
    settle()
    # Text and record, and the list of the shard.
    assert hub.back_up(place).stored == 3
    # One file of a version, its text, its record, the list.
    hub.publish("lint", "Lint {{code}} well.", files=[*FILES[1:], {**FILES[0], "content": "#"}])
    settle()
    assert hub.back_up(place).stored == 4
    # At most a megabyte of a database.
    with hub.database() as database:
        Accounts(database).add_owner("bob")
    assert hub.back_up(place).stored == 1


def test_backups_and_restores_take_turns(hub: Hub, other: Hub, place: FolderPlace) -> None:
    """``on_wait`` ends the work that holds the lock."""
    for act, folder in ((hub.back_up, hub.settings.state), (other.restore, other.settings.state)):
        with contextlib.ExitStack() as before:
            before.enter_context(lock(f"{folder}/backup", lambda: None))
            on_wait = Mock(side_effect=before.close)
            act(place, on_wait=on_wait)
        assert on_wait.call_count == 1


def test_it_is_for_its_user_alone(hub: Hub, place: FolderPlace) -> None:
    os.umask(0o022)
    hub.back_up(place)
    modes = {
        stat.S_IMODE(path.stat().st_mode) for path in Path(place.root).rglob("*") if path.is_file()
    }
    assert modes == {0o600}
    assert stat.S_IMODE(Path(place.root).stat().st_mode) == 0o700
    # No copy of a database is left behind.
    assert not [path for path in Path(hub.settings.state).rglob("*") if path.is_dir()]


def test_what_is_kept_and_what_goes(hub: Hub, place: FolderPlace) -> None:
    first = hub.back_up(place)
    text = Path(hub.settings.content, "ann", "poem", "1.0.0.md").read_bytes()
    hub.withdraw("poem", "1.0.0")
    second = hub.back_up(place)
    assert second.dropped == 0 and first.id < second.id
    assert text in read_tree(place.root).values()
    report = hub.back_up(place, keep=1)
    assert (report.snapshots, report.dropped) == (1, 2)
    # A withdrawn text is removed with the last snapshot that had it.
    assert text not in read_tree(place.root).values()
    checked = snapshots.verify(place, Work(2))
    assert (checked.faults, checked.snapshots) == ([], [report.id])
    assert len(read_tree(place.root)) == checked.objects + 2


def test_what_is_no_plain_file_is_reported(hub: Hub, place: FolderPlace) -> None:
    root = Path(hub.settings.content)
    (root / "ann" / "link").symlink_to("/etc")
    (root / "ann" / "story" / "notes.md").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.md")).write_bytes(b"")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secret")
    report = hub.back_up(place)
    assert [os.fsencode(path) for path in report.skipped] == [
        b"ann/link", b"ann/story/notes.md", b"pipe", b"\xff.md",
    ]  # fmt: skip
    # The tree has the target of the link, git's files, the odd name, and the file of the format.
    assert report.files == len(read_tree(root)) - 4 + 1


def test_another_place_is_left_alone(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("Dear")
    with pytest.raises(OperatorError, match="holds other files"):
        hub.back_up(FolderPlace(str(tmp_path / "home")))
    assert read_tree(tmp_path / "home") == {"letter": b"Dear"}


def test_while_others_publish(hub: Hub, other: Hub, place: FolderPlace, tmp_path: Path) -> None:
    """Each snapshot is a content without faults: no record without its text, no label without its
    version, and all that was acknowledged before it began.
    """

    def publish(name: str) -> None:
        for number in range(30):
            fields = {"labels": ["production"], "files": FILES[: number % 5]}
            done = hub.publish(name, f"Text {number} of {name}.", **fields)
            if number % 3 == 0:
                hub.withdraw(name, done.version)
            time.sleep(0.01)  # or it would be over before the second backup

    with ThreadPoolExecutor() as pool:
        publishing = [pool.submit(publish, name) for name in ("busy", "busier")]
        number = 0
        while number < 2 or not all(one.done() for one in publishing):
            number += 1
            before = hub.publish("mine", f"Mine {number}.")
            report = hub.back_up(place)
            here = Hub(other.settings._replace(
                content=f"{tmp_path}/{number}/content", state=f"{tmp_path}/{number}/state"
            ))  # fmt: skip
            here.restore(place, complete=True, snapshot_id=report.id)
            assert faults(here.settings.content) == []
            assert Path(here.settings.content, "ann", "mine", f"{before.version}.json").exists()
        for one in publishing:
            one.result()


def test_killed_at_any_change(hub: Hub, other: Hub, place: FolderPlace) -> None:
    """The snapshot from before is whole, and the next backup leaves nothing of the killed one."""
    first = hub.back_up(place)
    kept = read_tree(place.root)
    hub.publish("poem", "Write an ode.")
    hub.withdraw("story", "1.0.0")
    count = 0
    for number in killings(lambda: hub.back_up(place, keep=1)):
        count = number
        there = read_tree(place.root)
        finished = snapshots.ids(place)
        if finished == [first.id]:
            assert kept.items() <= there.items()
        assert finished
        assert snapshots.verify(place, Work(2)).faults == []
        for path in Path(place.root, "snapshots").iterdir():
            if path.stem != first.id:
                path.unlink()
        if not snapshots.ids(place):
            break  # it had come to removing the old one
    assert count > 15
    last = hub.back_up(place, keep=1)
    checked = snapshots.verify(place, Work(2))
    assert (checked.faults, checked.snapshots) == ([], [last.id])
    assert len(read_tree(place.root)) == checked.objects + 2
    other.restore(place, complete=True)
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)


def test_a_full_disk(hub: Hub, place: FolderPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hub.back_up(place)
    hub.publish("poem", "Write an ode.")
    real, calls = os.rename, []

    def full(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with pytest.raises(OperatorError, match=r"No space left on device.*snapshots are whole"):
            hub.back_up(place)
    assert snapshots.ids(place) == [first.id]
    assert snapshots.verify(place, Work(2)).faults == []
    assert hub.back_up(place, keep=1).snapshots == 1


def test_what_a_snapshot_needs_is_on_the_disk_before_it(
    hub: Hub, place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    unsynced: set[str] = set()
    real = os.rename

    def rename(source: str, target: str) -> None:
        assert source in synced
        assert "/snapshots/" not in target or unsynced == set()
        real(source, target)
        unsynced.add(os.path.dirname(target))

    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.add(path)
        unsynced.discard(path)

    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "fsync", fsync)
    hub.back_up(place)
    assert {place.root, os.path.dirname(place.root), f"{place.root}/objects"} <= synced
    hub.publish("poem", "Write an ode.")
    hub.back_up(place, keep=1)
    assert unsynced == set()


def test_a_damaged_database_does_not_push_out_sound_ones(hub: Hub, place: FolderPlace) -> None:
    first = hub.back_up(place)
    path = Path(hub.settings.state, "accounts.sqlite3")
    data = bytearray(path.read_bytes())
    data[4096:12288] = os.urandom(8192)
    path.write_bytes(data)
    with pytest.raises(OperatorError, match="is damaged"):
        hub.back_up(place, keep=1)
    assert snapshots.ids(place) == [first.id]


@pytest.mark.parametrize("lost", ["content", "accounts"])
def test_what_is_lost_does_not_push_out_what_there_was(
    hub: Hub, place: FolderPlace, lost: str
) -> None:
    first = hub.back_up(place)
    if lost == "content":
        shutil.rmtree(hub.settings.content)
        Path(hub.settings.content).mkdir()  # where a disk is not mounted
    else:
        Path(hub.settings.state, "accounts.sqlite3").unlink()
    with pytest.raises(OperatorError, match=rf"since the snapshot {first.id}: .*{lost}"):
        hub.back_up(place, keep=1)
    assert snapshots.ids(place) == [first.id]


def test_a_damaged_snapshot_lasts_until_it_is_old(hub: Hub, other: Hub, place: FolderPlace) -> None:
    hub.back_up(place)
    shutil.rmtree(Path(place.root, "objects"))
    hub.publish("story", "Tell a story of a loss.")
    settle()
    expected = r"The new snapshot \w+ is whole, but no objects were removed.*has lost the object"
    with pytest.raises(OperatorError, match=expected):
        hub.back_up(place, keep=2)
    other.restore(place, complete=True)
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)
    assert hub.back_up(place, keep=2).dropped == 1
    assert snapshots.verify(place, Work(2)).faults == []
