"""Restoring: what comes back, what is refused, and kills at any moment."""

import errno
import io
import os
import shutil
import stat
import tarfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.stats.database import open_for_writing, pulls_file
from builder.store.content import check_folder
from builder.store.privacy import MARK
from operate.backup import archive
from operate.backup.take import DATABASES, STREAM
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from tests.operate.backup.conftest import SECRET, Hub, killings
from tests.support.catalogues import read_tree
from tests.support.events import latest


def all_of(hub: Hub) -> dict[str, bytes]:
    return read_tree(Path(hub.settings.content).parent)


@pytest.mark.parametrize("source", ["file", "folder", "stream"])
def test_all_comes_back(
    hub: Hub, other: Hub, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_for_writing(pulls_file(hub.settings.state)).close()
    Path(hub.settings.content, ".hub-private").write_bytes(MARK)
    before = read_tree(hub.settings.content)
    if source == "folder":
        Path(tmp_path, "backups").mkdir()
        Path(tmp_path, "backups", "hub-20250101T000000Z.tar").touch()  # not the newest
    place = {"file": f"{tmp_path}/hub.tar", "folder": f"{tmp_path}/backups"}.get(source, STREAM)
    stream = io.BytesIO()
    monkeypatch.setattr("sys.stdout", Mock(buffer=stream))
    hub.back_up(place)
    monkeypatch.setattr("sys.stdin", Mock(buffer=io.BytesIO(stream.getvalue())))
    (line,) = other.restore(place, complete=True)
    assert line.endswith(": 3 prompts.")
    assert read_tree(other.settings.content) == before
    assert stat.S_IMODE(os.stat(other.settings.content).st_mode) == 0o700
    for name in DATABASES:
        assert stat.S_IMODE(Path(other.settings.state, name).stat().st_mode) == 0o600
    with hub.database() as old, other.database() as new:
        for table in ("owner", "token", "session"):
            select = f"SELECT * FROM {table} ORDER BY 1"
            assert new.execute(select) == old.execute(select) != []
    # Nothing is left of the restore.
    left = [path.name for path in Path(other.settings.state).iterdir() if path.is_dir()]
    hidden = sorted(name for name in os.listdir(other.settings.content) if name[0] == ".")
    assert (left, hidden) == ([], [".hub-format", ".hub-private"])
    assert other.publish("story", "Tell another.").version == "1.0.3"


def test_nobody_gets_in_who_may_not_any_more(hub: Hub, other: Hub, tar: Path) -> None:
    with hub.database() as database:
        accounts = Accounts(database)
        text, _ = accounts.create_token("ann", "leaked")
        invitation = Invitations(database).invite("ann")
    hub.back_up(tar)
    with hub.database() as database:
        Accounts(database).revoke("ann", "leaked")
    assert "Ended 1 session, revoked 2 tokens." in other.restore(tar)
    with other.database() as database:
        assert Sessions(database).find(SECRET) is None
        with pytest.raises(RequestError, match="does not know the token"):
            Accounts(database).authenticate(text)
        with pytest.raises(RequestError):
            Invitations(database).look(invitation)
        kinds = [(row.kind, row.note[:2]) for row in latest(database, "ann", 3)]
        assert ("restored", "20") in kinds


@pytest.mark.parametrize("what", ["prompt", "accounts", "pulls"])
def test_it_meets_nothing_else(hub: Hub, other: Hub, tar: Path, what: str) -> None:
    hub.back_up(tar)
    if what == "prompt":
        other.publish("mine", "Mine.")
    elif what == "accounts":
        other.database().close()
    else:
        open_for_writing(pulls_file(other.settings.state)).close()
    before = all_of(other)
    with pytest.raises(OperatorError, match=r"exists\. Nothing was changed\..*`mv "):
        other.restore(tar)
    assert all_of(other) == before | {
        name: b"" for name in all_of(other) if name.startswith("state/build.")
    }


@pytest.mark.parametrize("complete", [True, False])
def test_killed_at_any_change(hub: Hub, other: Hub, tar: Path, complete: bool) -> None:
    """No command works on a half restored hub, and the same restore begins again, into folders
    where the killed one has put nothing in place.
    """
    hub.back_up(tar)
    after, root = hub.shown(), other.settings.content
    kills = halves = 0
    for _ in killings(lambda: other.restore(tar, complete=complete)):
        kills += 1
        names = os.listdir(root) if os.path.exists(root) else []
        is_over = ".restoring" not in names and "ann" in names
        is_placed = any(Path(other.settings.state, name).exists() for name in DATABASES)
        if not is_over and (is_placed or [name for name in names if name[0] != "."]):
            halves += 1
            for act in (lambda: check_folder(root), lambda: other.publish("mine", "More.")):
                with pytest.raises(OperatorError, match=r"has not ended\..* move .* aside"):
                    act()
            with pytest.raises(OperatorError, match=r"exists\. Nothing was changed"):
                other.restore(tar, complete=complete)
            for folder in (root, other.settings.state):
                shutil.rmtree(folder)
        if not is_over:
            other.restore(tar, complete=complete)
        assert other.shown() == after
        with other.database() as database:
            assert (Sessions(database).find(SECRET) is not None) == complete
        assert not Path(root, ".restoring").exists()
        assert Path(root, "restored.json").exists() != complete
        for folder in (root, other.settings.state):
            shutil.rmtree(folder)
        Path(tar.parent, "restored.json").unlink(missing_ok=True)
    assert kills > 40 and halves > 3


def test_a_full_disk(hub: Hub, other: Hub, tar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.back_up(tar)
    real = os.open

    def full(path: str, flags: int, *args: int, **options: int) -> int:
        if "poem" in str(path) and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, flags, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        with pytest.raises(OperatorError, match=r"poem.*: No space left on device.*again"):
            other.restore(tar, complete=True)
    assert os.listdir(other.settings.content) == []
    other.restore(tar, complete=True)
    assert other.shown() == hub.shown()


def test_a_newer_database_is_refused(hub: Hub, other: Hub, tar: Path) -> None:
    with hub.database() as database:
        database.execute("PRAGMA user_version = 1000")
    hub.back_up(tar)
    with pytest.raises(OperatorError, match="newer release"):
        other.restore(tar)
    assert other.shown() == {}


def member(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = 4
    for field, value in fields.items():
        setattr(info, field, value)
    return info


SPARSE = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "content/x",
          "GNU.sparse.size": str(2**50), "GNU.sparse.map": "0,4"}  # fmt: skip
HOSTILE = [
    *map(member, [
        "content/../evil.md", "content//etc/evil", "/etc/evil", "content/a/../../evil", "../evil",
        "content/ann/./x", "content/ann//x", "content/.git/hooks/x", "content/", "content", "evil",
        "content/.restoring/report", "state/../evil", "state/evil.sqlite3",
        "state/a/accounts.sqlite3", "state/", f"content/{'x' * 300}",
    ]),
    member("content/evil", type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0),
    member("content/evil", type=tarfile.LNKTYPE, linkname="/etc/passwd", size=0),
    member("content/evil", type=tarfile.DIRTYPE, size=0),
    member("content/evil", type=tarfile.FIFOTYPE, size=0),
    member("content/evil", type=tarfile.CHRTYPE, size=0),
    member("content/evil", type=tarfile.GNUTYPE_SPARSE),
    member("content/evil", pax_headers=SPARSE),
    member("x", pax_headers={"path": "content/a\0/evil"}),
    member("content/evil", size=2**60),
    member("content/ann", pax_headers={"size": "-5"}),
]  # fmt: skip


@pytest.mark.parametrize("info", HOSTILE, ids=lambda info: f"{info.name[:30]!r} {info.type!r}")
def test_hostile_members(other: Hub, tmp_path: Path, info: tarfile.TarInfo) -> None:
    """A backup with a right SHA-256: whoever forges a member can forge it, too."""
    with open(tmp_path / "hub.tar", "wb") as file:
        writer = archive.Writer(file, "hub.tar")
        # A link in the place of a folder through which the next member goes.
        writer.add("content/ann/x/1.0.0.md", io.BytesIO(b"text"), 4)
        writer.write(info.tobuf(tarfile.PAX_FORMAT))
        if info.size:
            writer.write(b"evil".ljust(512))
        writer.end(archive.Summary("2026-01-01T00:00:00Z", "1", 1))
    before = Path("/etc/passwd").read_bytes()
    with pytest.raises(OperatorError):
        other.restore(tmp_path / "hub.tar", complete=True)
    assert not [name for name in read_tree(tmp_path) if "evil" in name]
    assert Path("/etc/passwd").read_bytes() == before and not Path("/etc/evil").exists()
    assert os.listdir(other.settings.content) == []


def test_a_file_twice(other: Hub, tmp_path: Path) -> None:
    with open(tmp_path / "hub.tar", "wb") as file:
        writer = archive.Writer(file, "hub.tar")
        for name in ("content/a/b", "content/a/b/c"):
            writer.add(name, io.BytesIO(b"text"), 4)
        writer.end(archive.Summary("2026-01-01T00:00:00Z", "1", 1))
    with pytest.raises(OperatorError, match="Cannot restore"):
        other.restore(tmp_path / "hub.tar", complete=True)
    assert os.listdir(other.settings.content) == []


def test_damage_anywhere(hub: Hub, other: Hub, tar: Path) -> None:
    """Each cut and each changed byte is noticed before anything is touched."""
    hub.back_up(tar)
    whole = tar.read_bytes()
    damaged = [b"", b"{}", b"x" * 5000, bytes(10_000), whole[:-1], whole + b"\0", whole[1:]]
    damaged += [whole[: len(whole) * part // 16] for part in range(1, 16)]
    # The last blocks are empty, and the summary ends with spaces.
    end = whole.rindex(b"}") + 1
    for place in [*range(0, end - 600, len(whole) // 40), *range(end - 330, end, 3)]:
        damaged.append(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for data in damaged:
        tar.write_bytes(data)
        try:
            other.restore(tar, complete=True)
        except archive.DamagedBackup as error:
            assert "Use another backup." in str(error)
            assert os.listdir(other.settings.content) == []
            continue
        # Only what the summary tells people is not in its own SHA-256.
        assert data[: end - 600] == whole[: end - 600]
        assert other.shown() == hub.shown()
        for folder in (other.settings.content, other.settings.state):
            shutil.rmtree(folder)


def test_no_backup_at_all(other: Hub, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    for name in ("backups", "nothing.tar"):
        with pytest.raises(OperatorError, match=r"Cannot restore .*choose another backup"):
            other.restore(tmp_path / name)
