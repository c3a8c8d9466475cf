"""A branch of the remote, through a repository of the hub: read its files, and add to it.

The repository lies in the state folder. It can be removed at any time while the hub is stopped.
"""

import contextlib
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from builder.model.errors import explained
from operate.git.files import PLAIN, Blob, Place, blob_id, place_of
from publisher.outside.git_program import REMOTE, Git, GitError, LocalGitError

# Time limits: for the remote to list its branches, and to send or receive commits. Then the
# exchange fails, and is tried again.
ASK_SECONDS, TRANSFER_SECONDS = 30.0, 600.0

_HEAD = "refs/hub/head"
_BASE = "refs/hub/base"
NEXT = "refs/hub/next"
_PART_BYTES = 1 << 20


class Moved(Exception):
    """Another program has pushed to the branch meanwhile."""


class Entry(NamedTuple):
    """A file on the branch, and its size in bytes (0 if it is not a file)."""

    blob: Blob
    size: int


Entries = dict[str, Entry]


class Branch:
    """A branch of the remote. ``prefix``: the start of the content's paths on it, empty or with a
    slash at the end.
    """

    def __init__(self, git: Git, name: str, prefix: str) -> None:
        self._git = git
        self._ref = f"refs/heads/{name}"
        self.prefix = prefix

    def open(self) -> None:
        """Create the repository if it is missing, and remove files of a killed git, such as locks.
        Only one process may use it. Raises GitError, OperatorError.
        """
        then = "Let the user who runs hubctl write it, or choose another state folder with --state."
        with explained("use", self._git.folder, then):
            os.makedirs(self._git.folder, mode=0o700, exist_ok=True)
            for folder, _, files in os.walk(self._git.folder):
                for file in files:
                    if file.endswith(".lock") or file.startswith(("tmp_", "fast_import_crash_")):
                        os.unlink(f"{folder}/{file}")
        self._git.run("init", "--quiet", "--bare", "--template=")

    def remove_damaged(self) -> None:
        """Remove the repository if commits or files are missing in it. Reads all of it."""
        try:
            self._git.run("fsck", "--connectivity-only", "--no-dangling", "--no-progress")
        except LocalGitError:
            shutil.rmtree(self._git.folder, ignore_errors=True)

    def fetch(self) -> str | None:
        """The remote's last commit now; None if it has no such branch. Raises GitError."""
        answer = self._git.run("ls-remote", REMOTE, self._ref, seconds=ASK_SECONDS).decode()
        lines = [line.split("\t") for line in answer.splitlines()]
        head = next((line[0] for line in lines if line[1:] == [self._ref]), None)
        if head and head != self._commit(_HEAD):
            options = "--quiet --no-tags --no-write-fetch-head --recurse-submodules=no".split()
            refs = f"+{self._ref}:{_HEAD}"
            self._git.run("fetch", *options, REMOTE, refs, seconds=TRANSFER_SECONDS)
            head = self._commit(_HEAD)
        return head

    def base(self) -> str | None:
        """The last commit whose content was the same as here; None if unknown."""
        return self._commit(_BASE)

    def note_base(self, commit: str) -> None:
        self._git.run("update-ref", _BASE, commit)

    def _commit(self, ref: str) -> str | None:
        # for-each-ref, since rev-parse fails both for a missing ref and in a damaged repository.
        found = self._git.run("for-each-ref", "--format=%(objectname)", ref).decode().strip()
        return found or None

    def entries(self, commit: str | None, places: Iterable[Place]) -> dict[Place, Entries]:
        """The files of each of these places on the branch."""
        found: dict[Place, Entries] = defaultdict(dict)
        paths = [self.prefix + place.path for place in places]
        if not commit or not paths:
            return found
        for line in self._lines("ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *paths):
            about, _, name = line.partition("\t")
            path = name.removeprefix(self.prefix)
            if place := place_of(path):
                mode, _, blob, size = about.split()
                found[place][path] = Entry(Blob(mode, blob), int(size) if size != "-" else 0)
        return found

    def paths(self, commit: str) -> Iterator[str]:
        """The paths of all files below the content's folder on the branch, relative to it."""
        return self._names("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit)

    def changed_paths(self, old: str, new: str) -> Iterator[str]:
        """As ``paths``, but only files that differ between two commits."""
        return self._names("diff-tree", "-r", "-z", "--no-renames", "--name-only", old, new)

    def _names(self, *arguments: str) -> Iterator[str]:
        below = [self.prefix] if self.prefix else []
        for name in self._lines(*arguments, "--", *below):
            yield name.removeprefix(self.prefix)

    def _lines(self, *arguments: str) -> Iterator[str]:
        """The output of git commands that print a NUL after each line."""
        with self._git.started(*arguments) as process:
            rest = b""
            while part := process.stdout.read(_PART_BYTES):
                *lines, rest = (rest + part).split(b"\0")
                for line in lines:
                    yield line.decode(errors="surrogateescape")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Callable[[str], bytes]]:
        """Yields a function that returns the bytes of a blob, by its name. Raises LocalGitError."""
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

    def commit(self, write: Callable[["Importing"], None]) -> str:
        """Create the commits that ``write`` gives; returns the last one."""
        options = "--quiet --done --force --date-format=raw".split()
        with self._git.started("fast-import", *options, is_fed=True) as process:
            write(Importing(process.stdin.write))
            process.stdin.write(b"done\n")
        return self._commit(NEXT) or ""

    def push(self, commit: str, parent: str | None) -> None:
        """Make ``commit`` the last one of the branch, after ``parent``. Raises Moved, GitError."""
        options = "--quiet --no-verify --no-follow-tags --recurse-submodules=no".split()
        refs = f"{commit}:{self._ref}"
        try:
            self._git.run("push", *options, REMOTE, refs, seconds=TRANSFER_SECONDS)
        except GitError as error:
            if self.fetch() not in (None, parent):
                raise Moved from error
            raise

    def tidy(self) -> None:
        """Let git pack its objects if there are many. Raises GitError."""
        self._git.run("-c", "gc.auto=2000", "gc", "--auto", "--quiet")


class Importing:
    """The input of ``git fast-import``."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def begin(self, parent: str | None) -> None:
        """Begin with the files of a commit; None: without files."""
        start = f"reset {NEXT}\n" + (f"from {parent}\n" if parent else "")
        self._write(f"{start}\n".encode())

    def commit(self, author: str, committer: str, message: str) -> None:
        """Begin a commit. A person is ``name <address> seconds +0000``."""
        data = message.encode(errors="replace")
        head = f"commit {NEXT}\nauthor {author}\ncommitter {committer}\ndata {len(data)}\n"
        self._write(head.encode() + data + b"\n")

    def write(self, path: str, data: bytes, mode: str = PLAIN) -> None:
        """Put a file into the commit."""
        self._write(f"M {mode} inline {path}\ndata {len(data)}\n".encode() + data + b"\n")

    def delete(self, path: str) -> None:
        """Take a file out of the commit."""
        self._write(f"D {path}\n".encode())
