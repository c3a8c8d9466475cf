"""A hub, a bare repository and another person's clone of it, for tests."""

import contextlib
import io
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.model.settings import Settings
from builder.pipeline.context import Named
from operate.git.branch import Branch
from operate.git.sync import Done, Sync
from publisher.outside.git_program import Git
from publisher.write.store_protocol import Folder
from tests.support.catalogues import read_tree

PERSON = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")


def git(folder: str | Path, *arguments: str, **options: Any) -> str:
    """The output of git in a folder, with only the folder's own settings."""
    environment = {
        "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, check=False,
        **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@contextlib.contextmanager
def watched_git(before: Callable[[list[str]], None]) -> Iterator[None]:
    """Call ``before(arguments)`` ahead of each git that starts."""

    class Watched(subprocess.Popen):
        def __init__(self, arguments: list[str], **options: Any) -> None:
            before(arguments)
            super().__init__(arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Watched)
        yield


@contextlib.contextmanager
def before_git(command: str, act: Callable[[], object]) -> Iterator[None]:
    """Do ``act`` ahead of the first git that starts with this command."""
    acts = [act]

    def before(arguments: list[str]) -> None:
        if acts and command in arguments:
            acts.pop()()

    with watched_git(before):
        yield


class Place:
    """``content`` of a hub, and the ``remote``. ``builds``: what was asked to be built."""

    def __init__(self, settings: Settings, folder: Path, prefix: str = "content/") -> None:
        self.settings = settings
        self.content = Path(settings.content)
        self.remote = folder / "remote.git"
        self.prefix = prefix
        self.builds: list[list[Named] | None] = []
        self._clone = folder / "clone"
        if not self.remote.exists():
            git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.remote))
        os.makedirs(settings.state, exist_ok=True)

    def sync(self) -> Sync:
        program = Git(f"{self.settings.state}/git", str(self.remote))
        branch = Branch(program, "main", self.prefix)
        branch.open()
        store = Folder(self.settings.content)
        return Sync(self.settings, store, branch, self.rebuild)

    def rebuild(self, changed: Iterable[Named] | None) -> None:
        self.builds.append(changed if changed is None else [*changed])

    def run(self) -> Done:
        """Compare everything, once."""
        return self.sync().run(None)

    def files(self, ref: str = "main") -> dict[str, bytes]:
        """The content on the branch, byte for byte, by path."""
        commit = git(self.remote, "rev-parse", ref).strip()  # a push may move the branch meanwhile
        listed = git(self.remote, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1]
        hidden = (".gitattributes", ".hub-format")
        paths = [path for path in listed if not path.endswith(hidden)]
        shown = io.BytesIO(subprocess.run(
            ["git", "-C", str(self.remote), "cat-file", "--batch"], capture_output=True, check=True,
            input="".join(f"{commit}:{path}\n" for path in paths).encode(),
        ).stdout)  # fmt: skip
        files = {}
        for path in paths:
            size = int(shown.readline().split()[2])
            files[path.removeprefix(self.prefix)] = shown.read(size)
            shown.readline()
        return files

    def is_same(self) -> bool:
        return self.files() == read_tree(self.content)

    def log(self, shown: str) -> list[str]:
        """The commits of the branch, oldest first, in a format of `git log`."""
        text = git(self.remote, "log", "--reverse", f"--format={shown}%x00", "main")
        return [entry.removeprefix("\n") for entry in text.split("\0")[:-1]]

    def clone(self) -> Path:
        """The content in another person's clone, with all that is on the branch."""
        if not self._clone.exists():
            git(self.remote, "clone", "--quiet", str(self.remote), str(self._clone))
        git(self._clone, "fetch", "--quiet")
        git(self._clone, "reset", "--quiet", "--hard", "origin/main")
        return self._clone / self.prefix

    def merge(self) -> None:
        """Push what has changed in the clone."""
        git(self._clone, "add", "--all")
        git(self._clone, *PERSON, "commit", "--quiet", "--message", "A pull request")
        git(self._clone, "push", "--quiet")
