"""git is limited in time and output, prompts no user, and reveals no password."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.outside.git_program import Git, GitError, GitStopped
from tests.support.servers import DEADLINE_SECONDS


@pytest.fixture
def silent_port() -> Iterator[int]:
    """The port of a server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def program_for(folder: Path, remote: str) -> Git:
    made = Git(f"{folder}/git", remote)
    os.makedirs(made.folder)
    made.run("init", "--quiet", "--bare")
    return made


def test_a_remote_that_never_answers(tmp_path: Path, silent_port: int) -> None:
    made = program_for(tmp_path, f"http://127.0.0.1:{silent_port}/x.git")
    with pytest.raises(GitError, match=r"git ls-remote took longer than 0\.2 seconds"):
        made.run("ls-remote", "hub", seconds=0.2)


def test_the_end_of_the_service_ends_git(tmp_path: Path, silent_port: int) -> None:
    made = program_for(tmp_path, f"http://127.0.0.1:{silent_port}/x.git")
    threading.Timer(0.2, made.stop).start()
    with pytest.raises(GitStopped):  # not GitError, which reports the limit
        made.run("ls-remote", "hub", seconds=DEADLINE_SECONDS)
    with pytest.raises(GitStopped):
        made.run("version")


def environment_of(made: Git) -> dict[str, str]:
    """The environment of git and of the programs that it starts."""
    lines = made.run("-c", "alias.told=!env", "told").decode().splitlines()
    return dict(line.partition("=")[::2] for line in lines)


def test_git_asks_for_no_password_and_shows_none(tmp_path: Path) -> None:
    made = program_for(tmp_path, "ssh://ada:hunter2@127.0.0.1:1/x.git")
    given = environment_of(made)
    assert given["GIT_TERMINAL_PROMPT"] == "0"
    assert "BatchMode=yes" in given["GIT_SSH_COMMAND"]
    assert "hunter2" not in Path(made.folder, "config").read_text()
    with pytest.raises(GitError) as raised:
        made.run("fetch", "https://bob:hunter2@127.0.0.1:1/ada:hunter2/x", seconds=30.0)
    assert "hunter2" not in str(raised.value) and "bob" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)
    assert str(raised.value).startswith("git fetch failed: ")


def test_variables_that_name_another_repository_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "Ada")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i key")
    made = program_for(tmp_path, "/nowhere")
    assert made.run("config", "user.name") == b"Ada\n"
    assert made.run("config", "remote.hub.url") == b"/nowhere\n"
    assert environment_of(made)["GIT_SSH_COMMAND"].startswith("ssh -i key -o BatchMode")
