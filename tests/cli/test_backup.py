"""``hubctl backup`` and ``hubctl restore``, as people call them."""

import json
from pathlib import Path

import pytest

from builder.model.settings import Settings
from tests.cli.command import run as hubctl
from tests.support.catalogues import read_tree


@pytest.fixture
def there(small: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the backups; the folders of the hub are in the environment."""
    monkeypatch.setenv("HUB_CONTENT", small.content)
    monkeypatch.setenv("HUB_OUT", small.out)
    monkeypatch.setenv("HUB_STATE", small.state)
    return tmp_path / "backup"


def test_from_a_backup_to_a_restored_hub(
    small: Settings, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB_BACKUP", str(there))
    first = hubctl("backup")
    assert first.exit_code == 0 and first.stdout.startswith("Snapshot 2")
    assert "9 files" in first.stdout and "1 snapshot kept" in first.stdout
    told = json.loads(hubctl("backup", "--json", "--keep", "1").stdout)
    assert (told["snapshots"], told["dropped"], told["files"]) == (1, 1, 9)
    assert hubctl("backup", "--list").stdout.split("\t")[::2] == [told["id"], "9"]
    (listed,) = json.loads(hubctl("backup", "--list", "--json").stdout)
    assert listed["id"] == told["id"] and listed["files"] == 9
    assert "No faults in 1 snapshot" in hubctl("backup", "--verify").stdout

    folders = ["--content", tmp_path / "c", "--state", tmp_path / "v"]
    done = hubctl("restore", *folders)
    assert done.exit_code == 0, done.output
    assert "New versions get numbers from 20,000 on" in done.stdout
    assert (tmp_path / "c" / "ann" / "story" / "1.0.0.md").is_file()
    refused = hubctl("restore", *folders)
    assert refused.exit_code == 1 and "pass --replace" in refused.stderr
    again = hubctl("restore", *folders, "--replace")
    assert f"The old files are in {tmp_path}/c/.replaced-" in again.stdout
    told = json.loads(hubctl("restore", *folders, "--replace", "--complete", "--json").stdout)
    assert (told["floor"], told["ended"]) == (0, None)


def test_what_is_wrong_is_reported(small: Settings, there: Path) -> None:
    assert hubctl("backup").exit_code == 2
    nothing = hubctl("restore", there)
    assert nothing.exit_code == 1 and "No backup in" in nothing.stderr
    inside = hubctl("backup", f"{small.content}/backup")
    assert inside.exit_code == 1 and "overlap" in inside.stderr
    assert hubctl("backup", "ftp://x/y").exit_code == 1
    assert hubctl("backup", there).exit_code == 0
    for snapshot in (there / "snapshots").iterdir():
        sha256 = next(iter(json.loads(snapshot.read_text())["lists"].values()))
        (there / "objects" / sha256[:2] / sha256[2:]).write_bytes(b"")
    broken = hubctl("backup", there, "--verify")
    assert broken.exit_code == 1
    assert "is damaged" in broken.stdout and "1 fault in 1 snapshot" in broken.stdout
    assert json.loads(hubctl("backup", there, "--verify", "--json").stdout)["faults"]
    missing = hubctl("restore", there, "--snapshot", "../x", "--replace")
    assert missing.exit_code == 1 and "has no snapshot '../x'" in missing.stderr


def test_what_is_left_out_is_reported(small: Settings, there: Path) -> None:
    for number in range(7):
        Path(small.content, f"link-{number}").symlink_to("/etc")
    told = hubctl("backup", there).stderr
    assert "'link-0', 'link-1', 'link-2', 'link-3', 'link-4' and 2 more." in told
    assert "etc" not in str(read_tree(there))
