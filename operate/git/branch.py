"""A branch of the remote, through a repository of the hub: what is on it, and how to add to it.

The repository lies in the state folder. It can be removed at any time while the hub is stopped.
"""

import contextlib
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.text.one_line import one_line
from operate.git.files import Place, blob_id, place_of
from publisher.outside.git_program import REMOTE, Git, GitError, LocalGitError

PLAIN = "100644"
# Of a file that two have changed and of which nobody knows the common past, so many states are
# looked through.
PAST_MAX = 500
# How long the remote may take to say what it has, and to give or to take it.
ASK_SECONDS, TRANSFER_SECONDS = 30.0, 600.0
# Of what the remote says about a push that it refuses.
REASON_CHARS_MAX = 200

_HEAD = "refs/hub/head"
_BASE = "refs/hub/base"
NEXT = "refs/hub/next"
_PART_BYTES = 1 << 20


class Moved(Exception):
    """Somebody else has pushed meanwhile."""


class Entry(NamedTuple):
    """A file on the branch: its mode and git's name for its bytes, both as git writes them, and its
    size in bytes, 0 of what is no file.
    """

    mode: str
    id: str
    size: int


Entries = dict[str, Entry]


class Branch:
    """``name``: of the branch. ``prefix``: of the paths of the content there, empty or with a slash
    at its end.
    """

    def __init__(self, git: Git, name: str, prefix: str) -> None:
        self._git = git
        self.name = name
        self.prefix = prefix

    def open(self) -> None:
        """Make the repository if there is none, and remove what a killed git has left, such as
        locks; nobody else may use it. Raises GitError.
        """
        try:
            os.makedirs(self._git.folder, mode=0o700, exist_ok=True)
            for folder, _, files in os.walk(self._git.folder):
                for file in files:
                    if file.endswith(".lock") or file.startswith(("tmp_", "fast_import_crash_")):
                        os.unlink(f"{folder}/{file}")
        except OSError as error:
            raise OperatorError(
                f"Cannot use {self._git.folder}: {error.strerror}. Let the user who runs hubctl "
                "write it, or choose another state folder with --state."
            ) from error
        self._git.run("init", "--quiet", "--bare", "--template=")

    def repair(self) -> bool:
        """Make the repository anew if commits or files are missing in it, which is True then. Reads
        all of it. Raises GitError.
        """
        try:
            self._git.run("fsck", "--connectivity-only", "--no-dangling", "--no-progress")
        except LocalGitError:
            shutil.rmtree(self._git.folder, ignore_errors=True)
            self.open()
            return True
        return False

    # What is there

    def fetch(self) -> str | None:
        """The commit that the remote has now; None: it has no such branch. Raises GitError."""
        ref = f"refs/heads/{self.name}"
        answer = self._git.run("ls-remote", REMOTE, ref, seconds=ASK_SECONDS).decode()
        lines = [line.split("\t") for line in answer.splitlines()]
        head = next((line[0] for line in lines if line[1:] == [ref]), None)
        if head and head != self._commit(_HEAD):
            self._git.run(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
                "--recurse-submodules=no", REMOTE, f"+{ref}:{_HEAD}",
                seconds=TRANSFER_SECONDS,
            )  # fmt: skip
            head = self._commit(_HEAD)
        return head

    def base(self) -> str | None:
        """The last commit whose content was the same as here; None: that is not known."""
        return self._commit(_BASE)

    def note_base(self, commit: str) -> None:
        self._git.run("update-ref", _BASE, commit)

    def next(self) -> str | None:
        """The commit that was made last."""
        return self._commit(NEXT)

    def _commit(self, ref: str) -> str | None:
        # Not rev-parse, which fails both where there is none and where the repository is damaged.
        told = self._git.run("for-each-ref", "--format=%(objectname)", ref).decode().strip()
        return told or None

    def entries(self, commit: str | None, places: Iterable[Place]) -> dict[Place, Entries]:
        """The files of each of these places."""
        found: dict[Place, Entries] = defaultdict(dict)
        paths = [self.prefix + place.path for place in places]
        if not commit or not paths:
            return found
        for line in self._lines("ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *paths):
            about, _, name = line.partition("\t")
            path = name.removeprefix(self.prefix)
            if place := place_of(path):
                mode, _, blob, size = about.split()
                found[place][path] = Entry(mode, blob, int(size) if size != "-" else 0)
        return found

    def paths(self, commit: str) -> Iterator[str]:
        """All files below the content's folder there, relative to it."""
        return self._names("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit)

    def changed_paths(self, old: str, new: str) -> Iterator[str]:
        """As ``paths``, those that are not the same in two commits."""
        return self._names("diff-tree", "-r", "-z", "--no-renames", "--name-only", old, new)

    def _names(self, *arguments: str) -> Iterator[str]:
        asked = [self.prefix] if self.prefix else []
        for name in self._lines(*arguments, "--", *asked):
            yield name.removeprefix(self.prefix)

    def was_once(self, commit: str, path: str, blob: str) -> bool:
        """Whether a file had these bytes in the past of a commit."""
        told = self._git.run(
            "log", "--format=", "--raw", "--no-abbrev", "--no-renames", f"--max-count={PAST_MAX}",
            commit, "--", self.prefix + path,
        )  # fmt: skip
        return blob in told.decode(errors="replace").split()

    def _lines(self, *arguments: str) -> Iterator[str]:
        """What git prints with a NUL after each line."""
        with self._git.started(*arguments) as process:
            rest = b""
            while part := process.stdout.read(_PART_BYTES):
                *lines, rest = (rest + part).split(b"\0")
                for line in lines:
                    yield line.decode(errors="surrogateescape")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Callable[[str], bytes]]:
        """Gives the bytes of files, by git's name for them. Raises LocalGitError."""
        with self._git.started("cat-file", "--batch", is_fed=True) as process:

            def read(blob: str) -> bytes:
                process.stdin.write(f"{blob}\n".encode())
                process.stdin.flush()
                header = process.stdout.readline().split()
                data = process.stdout.read(int(header[2]) + 1)[:-1] if len(header) == 3 else b""
                if blob_id(data) != blob:
                    raise LocalGitError(f"git cat-file does not give the object {blob}")
                return data

            yield read

    # What is added to it

    @contextlib.contextmanager
    def importing(self) -> Iterator["Importing"]:
        """Takes commits, of which NEXT is the last at the end of the block."""
        with self._git.started(
            "fast-import", "--quiet", "--done", "--force", "--date-format=raw", is_fed=True
        ) as process:
            yield Importing(process.stdin.write)
            process.stdin.write(b"done\n")

    def push(self, commit: str) -> None:
        """Make this the branch's last commit. Raises Moved, GitError."""
        self._push(commit, self.name)

    def keep(self, commit: str) -> str:
        """Give a commit a branch of its own on the remote; returns the branch's name. Raises
        Moved, GitError.
        """
        name = f"hub-conflict/{commit[:12]}"
        self._push(commit, name)
        return name

    def _push(self, commit: str, name: str) -> None:
        answer = b""
        try:
            with self._git.started(
                "push", "--porcelain", "--no-verify", "--no-follow-tags",
                "--recurse-submodules=no", REMOTE, f"{commit}:refs/heads/{name}",
                seconds=TRANSFER_SECONDS,
            ) as process:  # fmt: skip
                answer = process.stdout.read()
        except GitError as error:
            # For each ref a line: a flag, the ref and what became of it, with tabs between.
            lines = answer.decode(errors="replace").splitlines()
            refused = next((line for line in lines if line.startswith("!")), None)
            if not refused:
                raise
            reason = one_line(refused.split("\t")[-1], REASON_CHARS_MAX)
            if "[rejected]" in reason:
                raise Moved(f"{name} has other commits") from None
            raise GitError(f"The remote refused the push: {reason}", error.why) from None

    def tidy(self) -> None:
        """Let git pack what has come together, if that is much. Raises GitError."""
        self._git.run("-c", "gc.auto=2000", "gc", "--auto", "--quiet")


class Importing:
    """What ``git fast-import`` is told, with ``write``."""

    def __init__(self, write) -> None:
        self._write = write

    def begin(self, parent: str | None) -> None:
        """Begin with what a commit has; None: with nothing."""
        told = f"reset {NEXT}\n" + (f"from {parent}\n" if parent else "")
        self._write(f"{told}\n".encode())

    def commit(self, author: str, committer: str, message: str) -> None:
        """Begin a commit. A person is ``name <address> seconds +0000``."""
        data = message.encode(errors="replace")
        told = f"commit {NEXT}\nauthor {author}\ncommitter {committer}\ndata {len(data)}\n"
        self._write(told.encode() + data + b"\n")

    def write(self, path: str, data: bytes) -> None:
        """Put a file into the commit."""
        self._write(f"M {PLAIN} inline {path}\ndata {len(data)}\n".encode() + data + b"\n")

    def delete(self, path: str) -> None:
        """Take a file out of the commit."""
        self._write(f"D {path}\n".encode())
