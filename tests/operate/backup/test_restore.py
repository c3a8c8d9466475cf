"""Restoring: what comes back, what is refused, and kills at any moment."""

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from builder.model.errors import OperatorError, RequestError
from builder.stats.database import open_for_writing, pulls_file
from builder.store.content import check_folder, check_format
from operate.backup import databases, snapshots
from operate.backup.objects import Objects
from operate.backup.places import FolderPlace
from operate.parallel import Work
from publisher.accounts.events import Events
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from tests.operate.backup.conftest import SECRET, Hub, killings
from tests.support.catalogues import read_tree


def restored(hub: Hub) -> dict[str, bytes]:
    """The content, without what a restore adds to it."""
    return {
        file: data for file, data in read_tree(hub.settings.content).items()
        if file != "restored.json"
    }  # fmt: skip


def test_all_comes_back(hub: Hub, other: Hub, place: FolderPlace) -> None:
    database = pulls_file(hub.settings.state)
    open_for_writing(database).close()
    hub.back_up(place)
    report = other.restore(place, complete=True)
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)
    assert (report.floor, report.ended, report.aside) == (0, None, [])
    modes = {
        name: stat.S_IMODE(Path(other.settings.state, name).stat().st_mode)
        for name in databases.FILES
    }
    assert modes == {"accounts.sqlite3": 0o600, "pulls.sqlite3": 0o600}
    with hub.database() as old, other.database() as new:
        for table in ("owner", "token", "session"):
            select = f"SELECT * FROM {table} ORDER BY 1"
            assert new.execute(select) == old.execute(select) != []
    # Nothing is left of the restore, and a backup of the copy has nothing new.
    left = [path.name for path in Path(other.settings.state).iterdir() if path.is_dir()]
    hidden = [name for name in os.listdir(other.settings.content) if name[0] == "."]
    assert (left, hidden) == ([], [".hub-format"])
    assert other.publish("story", "Tell another.").version == "1.0.3"


def test_the_format_of_the_content_comes_back(hub: Hub, other: Hub, place: FolderPlace) -> None:
    """Only a content whose versions have files is one that older releases must not read."""
    plain = hub.back_up(place).id
    assert check_format(other.settings.content) == 1
    hub.withdraw("lint", None)
    bare = hub.back_up(place).id
    other.restore(place, snapshot_id=bare)
    assert check_format(other.settings.content) == 1
    other.restore(place, snapshot_id=plain, replace=True)
    assert check_format(other.settings.content) == 2


def test_an_older_snapshot(hub: Hub, other: Hub, place: FolderPlace) -> None:
    before = restored(hub)
    first = hub.back_up(place)
    hub.publish("poem", "Write an ode.")
    hub.back_up(place)
    assert other.restore(place, snapshot_id=first.id).id == first.id
    assert restored(other) == before
    with pytest.raises(OperatorError, match=r"has no snapshot '../x'"):
        other.restore(place, snapshot_id="../x", replace=True)


def test_nobody_gets_in_who_may_not_any_more(hub: Hub, other: Hub, place: FolderPlace) -> None:
    with hub.database() as database:
        accounts = Accounts(database)
        text, _ = accounts.create_token("ann", "leaked")
        invitation = Invitations(database).invite("ann")
    hub.back_up(place)
    with hub.database() as database:
        Accounts(database).revoke("ann", "leaked")
    report = other.restore(place)
    assert report.ended == (1, 2)
    with other.database() as database:
        assert Sessions(database).find(SECRET) is None
        with pytest.raises(RequestError, match="does not know the token"):
            Accounts(database).authenticate(text)
        with pytest.raises(RequestError):
            Invitations(database).look(invitation)
        kinds = [(row.kind, row.note) for row in Events(database).latest("ann", 3)]
        assert ("restored", snapshots.load(place, report.id).at) in kinds
    kept = other.restore(place, revoke_tokens=False, replace=True)
    assert kept.ended == (1, 0)
    with other.database() as database:
        assert Accounts(database).authenticate(text).name == "leaked"
        assert Sessions(database).find(SECRET) is None


def test_it_meets_nothing_else(hub: Hub, other: Hub, place: FolderPlace) -> None:
    hub.back_up(place)
    other.publish("mine", "Mine.")
    other.database().close()
    before = restored(other)
    with pytest.raises(OperatorError, match=r"ann exists\. Nothing was changed"):
        other.restore(place)
    assert read_tree(other.settings.content) == before
    report = other.restore(place, replace=True)
    assert {*shown(other)} == {*shown(hub)}
    content, state = report.aside
    assert read_tree(content) == before
    assert os.listdir(state) == ["accounts.sqlite3"]
    assert stat.S_IMODE(Path(state).stat().st_mode) == 0o700


def test_not_beside_a_service(hub: Hub, place: FolderPlace) -> None:
    hub.back_up(place)
    before = read_tree(hub.settings.content)
    with hub.database() as service:
        service.execute("SELECT 1 FROM owner")
        with pytest.raises(OperatorError, match=r"Another process uses .*Stop `hubctl serve`"):
            hub.restore(place, replace=True)
        assert service.execute("SELECT handle FROM owner") == [("ann",)]
    assert read_tree(hub.settings.content) == before


def shown(hub: Hub) -> dict[str, bytes]:
    """The content as readers of the folder see it, without what a restore adds to it."""
    return {file: data for file, data in restored(hub).items() if file[0] != "."}


@pytest.mark.parametrize("complete", [True, False])
def test_killed_at_any_change(hub: Hub, place: FolderPlace, tmp_path: Path, complete: bool) -> None:
    """No command works on a half restored hub; the same restore continues, and loses nothing."""
    hub.back_up(place)
    after = shown(hub)
    here = Hub(hub.settings._replace(content=f"{tmp_path}/c", state=f"{tmp_path}/v"))
    Path(here.settings.content).mkdir()
    here.publish("mine", "Mine.")
    before = shown(here)
    count = 0
    folders = [here.settings.content, here.settings.state]
    shutil.copytree(folders[0], f"{tmp_path}/saved")
    for count in killings(lambda: here.restore(place, complete=complete, replace=True)):
        # Otherwise each kill would leave one more floor for the next restore to read.
        shutil.rmtree(f"{place.root}/restores", ignore_errors=True)
        there = shown(here)
        if there not in (before, after):
            for act in (lambda: check_folder(folders[0]), lambda: here.publish("mine", "More.")):
                with pytest.raises(OperatorError, match="has not ended"):
                    act()
        if count % 4 == 0:
            here.restore(place, complete=complete, replace=True)
            assert shown(here) == after
            with here.database() as database:
                assert (Sessions(database).find(SECRET) is not None) == complete
            # The old content is aside, whole.
            asides = [read_tree(path) for path in Path(folders[0]).glob(".replaced-*")]
            assert before in asides
            assert not Path(folders[0], ".restoring").exists()
            assert Path(folders[0], "restored.json").exists() != complete
        if count % 4 == 0 or there == after:
            for folder in folders:
                shutil.rmtree(folder)
            shutil.copytree(f"{tmp_path}/saved", folders[0])
    assert count > 40


def test_a_killed_restore_continues(hub: Hub, other: Hub, place: FolderPlace) -> None:
    hub.back_up(place)
    lists = {*snapshots.choose(place).lists.values()}
    reads = []

    class Counted(FolderPlace):
        def get(self, key: str, bytes_max: int) -> bytes | None:
            reads.append(key)
            return super().get(key, bytes_max)

    class Cut(Counted):
        def get(self, key: str, bytes_max: int) -> bytes | None:
            if len(reads) == len(lists) + 3:
                raise OperatorError("The line is cut.")
            return super().get(key, bytes_max)

    with pytest.raises(OperatorError, match="cut"):
        other.restore(Cut(place.root), complete=True, jobs=1)
    with pytest.raises(OperatorError, match="has not ended"):
        check_folder(other.settings.content)
    reads.clear()
    other.restore(Counted(place.root), complete=True)
    assert len(lists) + 2 < len(reads) < len(lists) + 2 + len(read_tree(hub.settings.content))
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)


def test_a_restore_that_continues_as_complete_keeps_the_numbers(
    hub: Hub, other: Hub, place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.back_up(place)

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "sync", fail)
        with pytest.raises(OperatorError, match="Input/output error"):
            other.restore(place)
    assert other.restore(place, complete=True).floor == 0
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)


def test_a_full_disk(
    hub: Hub, other: Hub, place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.back_up(place)
    real, calls = os.makedirs, []

    def full(path: str, *args: object, **options: object) -> None:
        calls.append(path)
        if "poem" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "makedirs", full)
        with pytest.raises(OperatorError, match=r"No space left on device.*it continues"):
            other.restore(place, complete=True)
    other.restore(place, complete=True)
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)


def rewrite(place: FolderPlace, snapshot_id: str, change: Callable[[dict], None]) -> None:
    """Change a snapshot by hand."""
    path = Path(place.root, "snapshots", f"{snapshot_id}.json")
    snapshot = json.loads(path.read_bytes())
    change(snapshot)
    path.write_text(json.dumps(snapshot))


def test_a_newer_format_is_refused(hub: Hub, other: Hub, place: FolderPlace) -> None:
    hub.back_up(place)
    Path(place.root, snapshots.MARKER).write_text('{"format": 2}')
    before = read_tree(place.root)
    for act in (other.restore, hub.back_up):
        with pytest.raises(OperatorError, match=r"A newer release of hub .*Nothing was changed"):
            act(place)
    assert read_tree(place.root) == before
    assert not os.path.exists(other.settings.state) and not os.listdir(other.settings.content)


def test_a_newer_database_is_refused(hub: Hub, other: Hub, place: FolderPlace) -> None:
    with hub.database() as database:
        database.execute("PRAGMA user_version = 1000")
    hub.back_up(place)
    with pytest.raises(OperatorError, match="newer release"):
        other.restore(place)
    assert other.shown() == []


@pytest.mark.parametrize(
    "path",
    ["../evil.md", "/etc/evil", "a/../../evil", "ann/./x", "ann//x", ".git/hooks/x", "", "a/\0"],
)  # fmt: skip
def test_hostile_paths(hub: Hub, other: Hub, place: FolderPlace, path: str, tmp_path: Path) -> None:
    report = hub.back_up(place)
    objects = Objects(place)
    data = b"evil"
    listed = [{"path": path, "size": len(data), "sha256": objects.put(data)}]
    sha256 = objects.put(msgspec.json.encode(listed))
    rewrite(place, report.id, lambda snapshot: snapshot["lists"].update(ff=sha256))
    with pytest.raises(OperatorError, match="which no content has"):
        other.restore(place, complete=True)
    assert not [file for file in read_tree(tmp_path) if "evil" in file]
    assert other.shown() == []


def test_hostile_databases_and_links(hub: Hub, other: Hub, place: FolderPlace) -> None:
    report = hub.back_up(place)
    rewrite(place, report.id, lambda snapshot: snapshot["databases"][0].update(path="../x.sqlite3"))
    with pytest.raises(OperatorError, match="which no hub has"):
        other.restore(place)
    Path(place.root, "snapshots", f"{report.id}.json").unlink()
    last = hub.back_up(place)
    # A link in the place of an object is no object.
    text = b"Tell a story."
    digest = hashlib.sha256(text).hexdigest()
    path = Path(place.root, "objects", digest[:2], digest[2:])
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(OperatorError, match="Too many levels of symbolic links"):
        other.restore(place, snapshot_id=last.id, complete=True)


@pytest.mark.parametrize("stored", [b"Tell a story.", b"#!/bin/sh\nexec true\n"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_damaged_objects(
    hub: Hub, other: Hub, place: FolderPlace, damage: str, stored: bytes
) -> None:
    hub.back_up(place)
    digest = hashlib.sha256(stored).hexdigest()
    path = Path(place.root, "objects", digest[:2], digest[2:])
    if damage == "cut":
        path.write_bytes(stored[:4])
    elif damage == "changed":
        path.write_bytes(stored.replace(b"e", b"o"))
    else:
        path.unlink()
    with pytest.raises(OperatorError, match="lost" if damage == "gone" else "is damaged"):
        other.restore(place, complete=True)
    assert other.shown() == []
    (fault,) = snapshots.verify(place, Work(2)).faults
    assert digest in fault
    # The hub still has it.
    path.unlink(missing_ok=True)
    hub.back_up(place)
    other.restore(place, complete=True)
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)


def test_a_snapshot_that_lists_too_little(hub: Hub, other: Hub, place: FolderPlace) -> None:
    report = hub.back_up(place)
    rewrite(place, report.id, lambda snapshot: snapshot["lists"].popitem())
    with pytest.raises(OperatorError, match=r"has \d+ files, and lists \d+"):
        other.restore(place, complete=True)


def test_no_backup_at_all(other: Hub, place: FolderPlace, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    with pytest.raises(OperatorError, match=r"No backup in .*it has no hub-backup\.json"):
        other.restore(place)
    snapshots.prepare(place)
    with pytest.raises(OperatorError, match="has no finished snapshot"):
        other.restore(place)
