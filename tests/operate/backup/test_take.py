"""Backups: whole, private, of one moment, while others publish, and killed at any moment."""

import errno
import os
import shutil
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder.model.errors import OperatorError
from builder.store.content import list_versions
from operate.backup import archive, take
from operate.backup.take import STREAM, backups_in
from operate.content_check import check
from publisher.sizes import last_backup_time
from tests.operate.backup.conftest import FILES, Hub, killings
from tests.support.catalogues import settings_in


def verify(path: str | Path) -> tuple[archive.Summary, list[str]]:
    """The summary of a whole backup, and its other files."""
    found = []
    with open(path, "rb") as file:
        return archive.read(file, str(path), lambda name, _: found.append(name)), found


def faults(hub: Hub) -> list[str]:
    return [str(fault) for fault in check(hub.settings.content) if not fault.is_warning]


def test_it_is_a_tar_file_for_its_user_alone(hub: Hub, tar: Path, tmp_path: Path) -> None:
    os.umask(0o022)
    started = time.time()
    assert hub.back_up(tar) == str(tar)
    assert stat.S_IMODE(tar.stat().st_mode) == 0o600
    summary, found = verify(tar)
    assert summary.prompts == 3 and len(found) == len({*found}) == len(hub.shown()) + 1
    names = subprocess.run(["tar", "-tf", tar], capture_output=True, text=True, check=True).stdout
    assert {"content/ann/poem/1.0.0.md", "content/.hub-format", "state/accounts.sqlite3"} <= {
        *names.splitlines()
    }
    assert last_backup_time(hub.settings.state) >= int(started)
    # No copy of a database is left behind, and nothing beside the backup.
    assert not [path for path in Path(hub.settings.state).rglob("*") if path.is_dir()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub", "hub.tar"]


def test_what_is_no_plain_file_is_left_out(hub: Hub, tar: Path) -> None:
    root = Path(hub.settings.content)
    _, before = verify(hub.back_up(tar))
    (root / "ann" / "link").symlink_to("/etc")
    (root / "ann" / "story" / "notes.md").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.md")).write_bytes(b"")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secret")
    _, after = verify(hub.back_up(tar))
    assert after == before


def test_the_copy_of_a_node_without_databases(hub: Hub, other: Hub, tar: Path) -> None:
    """Nodes write without a prompt's lock, so its files are listed until they stay the same."""
    Path(hub.settings.content, ".hub-store").write_text("{}")
    Path(hub.settings.state, "accounts.sqlite3").unlink()
    assert take._list(hub.settings.content, "ann/nothing") == []
    hub.back_up(tar)
    assert other.restore(tar, complete=True)[0].endswith(": 3 prompts.")
    assert other.shown().keys() == hub.shown().keys() - {".hub-store"}


def test_not_into_a_bucket(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OperatorError, match=r"s3://hubs/one/\. Write it into a folder"):
        hub.back_up("s3://hubs/one/")
    assert os.listdir(tmp_path) == ["hub"]


@pytest.mark.parametrize("inside", ["content", "state", "out"])
def test_not_into_the_hub_itself(hub: Hub, inside: str) -> None:
    folders = [hub.settings.content, hub.settings.state, hub.settings.out]
    for name in ("hub.tar", "backups/"):
        with pytest.raises(OperatorError, match="which it is a backup of"):
            hub.back_up(f"{getattr(hub.settings, inside)}/{name}", apart_from=folders)


def hours_before(end: datetime, hours: int) -> list[str]:
    times = [end - timedelta(hours=hour) for hour in range(hours)]
    return [f"hub-{time:%Y%m%dT%H%M%SZ}.tar" for time in times]


def test_a_folder_keeps_hours_days_and_months(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    first = Path(hub.back_up(f"{folder}/"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert first.parent == folder
    first.unlink()
    end = datetime(2026, 5, 31, 12, 30, tzinfo=UTC)
    for name in hours_before(end, 2 * 365 * 24):
        (folder / name).touch()
    (folder / "hub-20260101T000000Z.tar.part").touch()  # of a killed backup
    (folder / "notes.txt").touch()
    newest = hub.back_up(folder)
    kept = [Path(path).name for path in backups_in(str(folder))]
    assert kept[-1] == Path(newest).name
    assert kept[-24:-1] == sorted(hours_before(end, 23))
    days = sorted({name[:12] for name in kept})
    assert days[-30:-1] == sorted({name[:12] for name in hours_before(end, 29 * 24 - 12)})
    months = sorted({name[:10] for name in kept})
    assert len(months) == 12 and months[0] == "hub-202507"
    # Of a month its last day, of a day its last hour.
    assert kept[0] == "hub-20250731T233000Z.tar"
    assert {path.name for path in folder.iterdir()} == {*kept, "notes.txt"}
    # A clock that is wrong does not remove the new one.
    (folder / "hub-29990101T000000Z.tar").touch()
    assert Path(hub.back_up(folder)).exists()


@pytest.mark.parametrize("lost", ["prompts", "accounts.sqlite3"])
@pytest.mark.parametrize("into", ["backups/", "1.tar"])
def test_what_is_lost_does_not_push_out_what_there_was(
    hub: Hub, tmp_path: Path, lost: str, into: str
) -> None:
    first = hub.back_up(f"{tmp_path}/{into}")
    before = Path(first).read_bytes()
    if lost == "prompts":
        shutil.rmtree(hub.settings.content)
        os.mkdir(hub.settings.content)
    else:
        Path(hub.settings.state, lost).unlink()
    with pytest.raises(OperatorError, match=f"has {lost}, and this hub has none. Nothing was back"):
        hub.back_up(f"{tmp_path}/{into}")
    assert Path(first).read_bytes() == before
    assert [path for path in tmp_path.rglob("*.tar*") if path.is_file()] == [Path(first)]
    hub.back_up(f"{tmp_path}/elsewhere.tar")


def test_one_moment_while_others_publish(hub: Hub, tmp_path: Path) -> None:
    """Each backup is a content without faults, has all that was acknowledged before it began, and
    nothing that began after it: two prompts that are published in turns differ by one version.
    """
    is_done = False

    def publish(names: tuple[str, ...]) -> None:
        number = 0
        while not is_done:
            number += 1
            for name in names:
                fields = {"labels": ["production"], "files": FILES[: number % 5]}
                done = hub.publish(name, f"Text {number} of {name}.", **fields)
            if number % 3 == 0 and len(names) == 1:
                hub.withdraw(names[0], done.version)

    with ThreadPoolExecutor() as pool:
        publishing = [pool.submit(publish, names) for names in (("a", "z"), ("busy",))]
        try:
            for number in range(4):
                before = hub.publish("mine", f"Mine {number}.")
                time.sleep(0.2)
                hub.back_up(tmp_path / f"{number}.tar")
                here = Hub(settings_in(tmp_path / f"{number}"))
                shutil.rmtree(here.settings.content, ignore_errors=True)
                here.restore(tmp_path / f"{number}.tar", complete=True)
                assert faults(here) == []
                root = here.settings.content
                assert Path(root, "ann", "mine", f"{before.version}.json").exists()
                a, z = (len(list_versions(root, "ann", name).versions) for name in ("a", "z"))
                assert a - z in (0, 1) and z
        finally:
            is_done = True
        for one in publishing:
            one.result()


def test_what_is_published_and_withdrawn_while_it_is_read(
    hub: Hub, other: Hub, tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, before = archive.Writer.add, hub.shown()

    def add(writer: archive.Writer, name: str, *rest: object) -> None:
        if name == "content/ann/story/1.0.0.json":
            hub.publish("story", "Tell what comes after the moment.", labels=["canary"])
            hub.withdraw("story", "1.0.1")
        real(writer, name, *rest)

    monkeypatch.setattr(archive.Writer, "add", add)
    # The next prompt is listed after this one.
    hub.publish("verse", "Before.")
    hub.back_up(tar)
    other.restore(tar, complete=True)
    assert faults(other) == []
    there = other.shown()
    assert there.keys() - before.keys() == {
        "ann/verse/1.0.0.json", "ann/verse/1.0.0.md", "ann/story/withdrawn/1.0.1.json",
    }  # fmt: skip
    assert hub.publish("story", "Again.").version == "1.0.4"


def test_killed_at_any_change(hub: Hub, tmp_path: Path) -> None:
    """The backups from before are whole, and the next one leaves nothing of the killed one."""
    folder = tmp_path / "backups"
    first = hub.back_up(f"{folder}/")
    data = Path(first).read_bytes()
    kills = 0
    for kills in killings(lambda: hub.back_up(folder)):
        assert kills and [verify(path) for path in backups_in(str(folder))]
        Path(first).write_bytes(data)
    assert kills > 10
    for _ in range(2):  # also within the same second
        hub.back_up(folder)
    assert not [*folder.glob("*.part")]
    assert not [path for path in Path(hub.settings.state).rglob("*") if path.is_dir()]


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_full_disk(hub: Hub, tar: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    hub.back_up(tar)
    before = tar.read_bytes()
    hub.publish("poem", "Write an ode.")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(OperatorError, match=r"hub\.tar: No space left on device.*are whole"):
            hub.back_up(tar)
    assert tar.read_bytes() == before and not Path(f"{tar}.part").exists()
    with open("/dev/full", "wb", buffering=0) as stream:
        monkeypatch.setattr("sys.stdout", Mock(buffer=stream))
        with pytest.raises(OperatorError, match="Cannot write -: No space left on device"):
            hub.back_up(STREAM)


def test_it_is_on_the_disk_before_it_has_its_name(
    hub: Hub, tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    real = os.rename

    def rename(source: str, target: str) -> None:
        real(source, target)
        done.append(("renamed", target))

    def fsync(descriptor: int) -> None:
        done.append(("synced", os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "fsync", fsync)
    hub.back_up(tar)
    assert done[:3] == [
        ("synced", f"{tar}.part"), ("renamed", str(tar)), ("synced", str(tar.parent)),
    ]  # fmt: skip


def test_a_damaged_database_stops_it(hub: Hub, tar: Path) -> None:
    path = Path(hub.settings.state, "accounts.sqlite3")
    data = bytearray(path.read_bytes())
    data[4096:12288] = os.urandom(8192)
    path.write_bytes(data)
    with pytest.raises(OperatorError, match="is damaged"):
        hub.back_up(tar)
    assert not tar.exists()
    assert take.backups_in(str(tar.parent)) == []
