"""Runs the client under every shell and awk, with tools and an environment of the test's own."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from builder.render.clients import SHELL_CLIENT
from publisher.accounts.token import make_token
from tests.support.servers import DEADLINE_SECONDS

T = TypeVar("T")

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash"],
    "bash-posix": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
    "mksh": ["mksh"],
    "zsh": ["zsh", "--emulate", "sh"],
}
AWKS = ("mawk", "gawk", "busybox", "original-awk")

# A text with the form of a token, which belongs to no one.
TOKEN = make_token()

# Waits of no length; notes how long they were meant to be.
FAKE_SLEEP = '#!/bin/sh\necho "$1" >>"$SLEEPS"\n'


class Done(NamedTuple):
    """The result of a run. ``err``: without the program's name before each line."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@dataclass(frozen=True)
class Client:
    """The client as a user has it: under a shell, with a home, a working folder, and tools.
    ``tools``: folders of programs, searched in this order. ``env``: the whole environment except
    PATH, HOME and TMPDIR.

    ``tools`` are folders of programs, found in this order; ``env`` is all of the environment but
    for PATH, HOME and TMPDIR.
    """

    folder: Path
    shell: str = "dash"
    tools: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    script: str = SHELL_CLIENT

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def cache(self) -> Path:
        return self.folder / "home" / ".cache" / "hub"

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    @property
    def sleeps(self) -> list[str]:
        """The seconds of each wait."""
        path = self.folder / "sleeps"
        return path.read_text().split() if path.exists() else []

    def make_folders(self) -> Self:
        for made in (self.work, self.folder / "home", self.tmp):
            made.mkdir(parents=True, exist_ok=True)
        return self

    def under(self, shell: str) -> Self:
        return replace(self, shell=shell)

    def having(self, *tools: str | Path) -> Self:
        """The same with these folders of tools before the others."""
        return replace(self, tools=(*map(str, tools), *self.tools))

    def having_only(self, *tools: str | Path) -> Self:
        return replace(self, tools=tuple(map(str, tools)))

    def to(self, url: str, **env: str) -> Self:
        """The same for this hub, with more in the environment."""
        return replace(self, env=self.env | {"HUB_URL": url} | env)

    def without(self, *variables: str) -> Self:
        kept = self.environment()
        for variable in variables:
            del kept[variable]
        return replace(self, env=kept | {"": ""})

    def environment(self) -> dict[str, str]:
        if "" in self.env:
            return {key: value for key, value in self.env.items() if key}
        return {
            "PATH": ":".join(self.tools),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.tmp),
            "SLEEPS": str(self.folder / "sleeps"),
        } | self.env

    def command(self, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        program, *rest = SHELLS[self.shell]
        return [shutil.which(program), *rest, *options, self.script, *arguments]

    def run(self, *arguments: str, stdin: bytes = b"", options: tuple[str, ...] = ()) -> Done:
        """``options`` are the shell's. Checks that no temporary file is left."""
        with self.start(*arguments, options=options) as process:
            try:
                out, err = process.communicate(stdin, timeout=DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert not list(self.tmp.iterdir()), "temporary files are left"
        return Done(process.returncode, out, err.decode(errors="replace").replace("hub: ", ""))

    def start(
        self, *arguments: str, options: tuple[str, ...] = (), **popen: Any
    ) -> subprocess.Popen:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            self.command(*arguments, options=options), cwd=self.work, env=self.environment(),
            **(streams | popen),
        )  # fmt: skip


def share(shell: str, cases: Sequence[T]) -> Sequence[T]:
    """The cases to try under a shell: all under the two that differ most, and of the others each
    a third, which are all together.
    """
    others = [one for one in SHELLS if one not in ("dash", "zsh", "bash-posix")]
    return cases[others.index(shell) :: len(others)] if shell in others else cases


def need(*programs: str) -> None:
    missing = [program for program in programs if not shutil.which(program)]
    assert not missing, f"not on this machine: {', '.join(missing)}; run tests/install-tools"


def link_tools(folder: Path, *programs: str, **others: str) -> Path:
    """A folder with links to these programs; ``others`` have the names that they are to have."""
    need(*programs, *others.values())
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in [*((program, program) for program in programs), *others.items()]:
        (folder / name).symlink_to(os.path.realpath(shutil.which(program)))
    return folder


def run_traced(client: Client, trace: Path, *words: str) -> tuple[Any, list[str]]:
    """The result of a `hub` that reads "Hi.", traced by its shell too, and its system calls, a line
    each, that start programs or write.
    """
    need("strace")
    done = subprocess.run(
        [
            shutil.which("strace"), "-f", "-qq", "-v", "-y", "-s", "100000", "-o", trace,
            "-e", "trace=execve,write,writev,sendto,sendmsg",
            *client.command(*words, options=("-x", "-a")),
        ],
        input=b"Hi.", capture_output=True, cwd=client.work,
        env=client.environment(), timeout=2 * DEADLINE_SECONDS,
    )  # fmt: skip
    return done, trace.read_text().splitlines()
