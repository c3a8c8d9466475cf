"""Completion of the shell client knows its commands and options, and no others."""

import re
import subprocess

import pytest

from builder.render.clients import SHELL_CLIENT
from tests.support.servers import PROJECT

COMMANDS = (
    "pull", "cat", "search", "versions", "labels", "lock", "sync", "update", "push", "check",
    "label",
)  # fmt: skip
BASH = PROJECT / "cli" / "hub.bash"
ZSH = PROJECT / "cli" / "_hub"


def long_options(command: str) -> set[str]:
    """The options that the help of a command names."""
    told = subprocess.run(["sh", SHELL_CLIENT, "help", command], capture_output=True, text=True)
    assert told.returncode == 0
    return set(re.findall(r"--[a-z][a-z-]*", told.stdout))


def completed(*words: str) -> set[str]:
    """Bash's completions of the last of these words."""
    script = (
        f'source "{BASH}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hub; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-euc", script, "bash", SHELL_CLIENT, *words[1:]],
        capture_output=True,
        text=True,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_commands() -> None:
    assert completed("hub", "") >= set(COMMANDS)
    assert completed("hub", "p") == {"pull", "push"}
    assert completed("hub", "help", "v") == {"versions"}
    assert completed("hub", "help", "la") == {"labels", "label"}


@pytest.mark.parametrize("command", COMMANDS)
def test_options_in_bash(command: str) -> None:
    assert completed("hub", command, "--") == long_options(command) | {"--help"}


def test_values() -> None:
    assert completed("hub", "cat", "x", "--as", "s") == {"skill"}
    assert completed("hub", "push", "a/b", "f", "c", "m") == {"major", "minor"}
    assert completed("hub", "push", "--trusted", "a/b", "f", "c", "m") == {"major", "minor"}
    assert "pyproject.toml" in completed("hub", "push", "a/b", "pypro")
    assert "pyproject.toml" in completed("hub", "push", "--trusted", "a/b", "pypro")
    assert "pyproject.toml" in completed("hub", "pull", "a/b", "-o", "pypro")
    assert "pyproject.toml" in completed("hub", "sync", "--file", "pypro")


def test_zsh_reads_it() -> None:
    assert subprocess.run(["zsh", "-n", ZSH], capture_output=True).returncode == 0
