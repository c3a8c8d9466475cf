"""``hubctl backup`` and ``hubctl restore``, as people call them."""

import subprocess
from pathlib import Path

import pytest

from builder.model.settings import Settings
from tests.cli.command import run as hubctl
from tests.support.servers import HUBCTL


@pytest.fixture(autouse=True)
def environment(small: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of the hub are in the environment."""
    monkeypatch.setenv("HUB_CONTENT", small.content)
    monkeypatch.setenv("HUB_OUT", small.out)
    monkeypatch.setenv("HUB_STATE", small.state)


def test_from_a_backup_to_a_restored_hub(small: Settings, tmp_path: Path) -> None:
    done = hubctl("backup", f"{tmp_path}/backups/")
    assert done.exit_code == 0 and "hub-20" in done.stdout and done.stdout.endswith(": 3 prompts\n")
    folders = ["--content", tmp_path / "c", "--state", tmp_path / "v"]
    done = hubctl("restore", tmp_path / "backups", *folders)
    assert done.exit_code == 0, done.output
    assert "New versions get numbers from " in done.stdout and "--above" not in done.stdout
    assert (tmp_path / "c" / "ann" / "story" / "1.0.0.md").is_file()
    refused = hubctl("restore", tmp_path / "backups", *folders)
    assert refused.exit_code == 1 and f"`mv {tmp_path}/c {tmp_path}/c.old`" in refused.stderr


def test_through_a_pipe(small: Settings, tmp_path: Path) -> None:
    command = f"{HUBCTL} backup - | {HUBCTL} restore - --content c --state v"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "-: 3 prompts" in done.stderr
    assert "To restore this hub again today, add `--above " in done.stdout
    cut = subprocess.run(
        ["bash", "-c", f"{HUBCTL} backup - | head -c 6000 | {HUBCTL} restore - --content c2"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert cut.returncode == 1 and "Standard input is damaged" in cut.stderr
    assert [*(tmp_path / "c2").iterdir()] == []


def test_the_destination_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hubctl("backup").exit_code == 2
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "hub.toml").write_text('[backup]\ndestination = "../hub.tar"\n')
    monkeypatch.chdir(hub)
    assert hubctl("backup").exit_code == 0 and (tmp_path / "hub.tar").is_file()
    monkeypatch.setenv("HUB_BACKUP", f"{tmp_path}/2.tar")
    assert hubctl("backup").exit_code == 0 and (tmp_path / "2.tar").is_file()
