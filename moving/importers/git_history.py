"""Reads the history of files in a git repository from its commits. Writes nothing to it.

The repository may be a stranger's, whose configuration can name programs to run: hooks, signature
checks, helpers that fetch missing objects. So git only reads HEAD there, which runs nothing.
Everything else is read through an empty repository of our own that borrows its objects.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from publisher.outside.git_program import Git, GitError

# The newest commits that touch the files, and the changes of files in them. Older ones are not
# read.
COMMITS_MAX = 20_000
CHANGES_MAX = 200_000
# Bytes that are read of all states of all files. Further states are left out.
TOTAL_BYTES_MAX = 256 * 1024 * 1024
# git looks for renames among at most this many files that one commit removes and adds.
RENAMES_MAX = 200
TOKEN_BYTES_MAX = 1 << 20

_PART_BYTES = 1 << 16
_FILE_MODES = ("100644", "100755")

# A change of a file by a commit: the status, the new mode, git's name for the new bytes, and the
# path. After a rename, the old path comes before the path.
_Change = tuple[str, str, str, list[str]]


class State(NamedTuple):
    """A file as a commit left it. ``at``: the time, in seconds since 1970. ``blob``: git's name for
    its bytes.
    """

    commit: str
    at: int
    subject: str
    blob: str


class Past(NamedTuple):
    """The states of each file, oldest first, and the reason why older ones are missing (empty if
    none).
    """

    files: dict[str, list[State]]
    missing: str


def find_repository(path: str) -> tuple[Path, Path] | None:
    """The work tree around ``path``, and its git directory; None if there is none. Raises
    OSError.
    """
    resolved = Path(path).resolve()
    for folder in (resolved, *resolved.parents):
        found = folder / ".git"
        if found.is_dir():
            return folder, found
        if found.is_file():  # a linked work tree or a submodule
            with open(found, encoding="utf-8", errors="surrogateescape") as file:
                kind, _, target = file.read(_PART_BYTES).rstrip("\n").partition(": ")
            return (folder, folder / target) if kind == "gitdir" else None
    return None


class Repository:
    """A repository to read, by its git directory; a context manager. Every method may raise
    GitError and OSError.
    """

    def __init__(self, git_folder: Path) -> None:
        said = Git(str(git_folder), "").run(
            "rev-parse",
            "--path-format=absolute",
            "--show-object-format",
            "--git-path",
            "objects",
            "--git-path",
            "shallow",
            "HEAD",
        )
        lines = said.decode(errors="surrogateescape").removesuffix("\n").split("\n")
        if len(lines) != 4:
            raise GitError("git rev-parse does not say where HEAD is")
        kind, objects, shallow, self._head = lines
        self._folder = tempfile.mkdtemp(prefix="hub-import-")
        try:
            self._git = Git(self._folder, "")
            self._git.run("init", "--quiet", "--bare", "--template=", f"--object-format={kind}")
            self._borrow(objects)
            self._is_shallow = os.path.isfile(shallow)
            if self._is_shallow:
                shutil.copyfile(shallow, f"{self._folder}/shallow")
        except BaseException:
            self.close()
            raise

    def _borrow(self, objects: str) -> None:
        quoted = objects.replace("\\", "\\\\").replace('"', '\\"')
        place = f"{self._folder}/objects/info"
        os.makedirs(place, exist_ok=True)
        with open(f"{place}/alternates", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f'"{quoted}"\n')

    def __enter__(self) -> "Repository":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary repository."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def read_past(self, suffixes: tuple[str, ...]) -> Past:
        """The history of the files at HEAD whose names end in one of ``suffixes`` (in lower case),
        by their paths in the repository. Follows renames within a commit.
        """
        there = self._list_files(suffixes)
        pasts: dict[str, list[State]] = {}
        commits = changes = 0
        for state, changed in self._read_log(suffixes):
            commits += 1
            changes += len(changed)
            if changes > CHANGES_MAX:
                raise GitError(f"the commits change more than {CHANGES_MAX:,} files")
            for status, mode, blob, paths in changed:
                past = pasts.setdefault(paths[-1], [])
                if status.startswith("R"):
                    # A merge repeats a rename of its branch; by then, no states are left under the
                    # old path.
                    past += pasts.pop(paths[0], [])
                    past.sort(key=lambda one: one.at)
                if mode in _FILE_MODES and (not past or past[-1].blob != blob):
                    past.append(state._replace(blob=blob))
        for path, blob in there.items():
            past = pasts.setdefault(path, [])
            # After a merge, the last commit in this order may belong to the other branch.
            if past and past[-1].blob != blob:
                past.append(past[-1]._replace(commit=self._head, subject="", blob=blob))
        missing = "the clone is shallow. Run `git fetch --unshallow` in it first"
        if not self._is_shallow:
            too_many = f"more than {COMMITS_MAX:,} commits change such files"
            missing = too_many if commits == COMMITS_MAX else ""
        return Past({path: pasts[path] for path in sorted(there)}, missing)

    def _list_files(self, suffixes: tuple[str, ...]) -> dict[str, str]:
        """git's names for the bytes of the files at HEAD."""
        found = {}
        for line in self._tokens("ls-tree", "-r", "-z", "--full-tree", self._head):
            about, _, path = line.partition("\t")
            if path.lower().endswith(suffixes):
                mode, _, blob = about.split()
                if mode in _FILE_MODES:
                    found[path] = blob
        return found

    def _read_log(self, suffixes: tuple[str, ...]) -> Iterator[tuple[State, list[_Change]]]:
        """The commits that touch such files, oldest first, and what they change."""
        tokens = self._tokens(
            "log",
            "--no-show-signature",
            "--no-follow",
            "--reverse",
            "--topo-order",
            f"--max-count={COMMITS_MAX}",
            "-z",
            "--no-color",
            "--encoding=UTF-8",
            "--format=%x00%x00%H%x00%ct%x00%s",
            "--raw",
            "--root",
            "--no-abbrev",
            "--diff-merges=first-parent",
            "-M",
            f"-l{RENAMES_MAX}",
            "--no-ext-diff",
            "--no-textconv",
            self._head,
            "--",
            *(f":(glob,icase)**/*{suffix}" for suffix in suffixes),
        )
        token = next(tokens, None)
        while token is not None:
            if not token:
                token = next(tokens, None)
                continue
            commit, at, subject = token, next(tokens, ""), next(tokens, "")
            changed = []
            while (token := next(tokens, None)) and token.lstrip("\n").startswith(":"):
                _, mode, _, blob, status = token.split()
                count = 2 if status[0] in "RC" else 1
                changed.append((status, mode, blob, [next(tokens, "") for _ in range(count)]))
            yield State(commit, int(at or 0), subject, ""), changed

    def _tokens(self, *arguments: str) -> Iterator[str]:
        """Yields the tokens that git prints, split at NUL."""
        with self._git.started(*arguments) as process:
            rest = b""
            while part := process.stdout.read(_PART_BYTES):
                *tokens, rest = (rest + part).split(b"\0")
                if len(rest) > TOKEN_BYTES_MAX:
                    raise GitError(f"a path or a subject has more than {TOKEN_BYTES_MAX:,} bytes")
                for token in tokens:
                    yield token.decode(errors="surrogateescape")

    def read_blobs(self, blobs: Iterable[str], bytes_max: int) -> dict[str, bytes]:
        """The bytes of files, by git's names for them. Leaves out those that are missing or have
        more than ``bytes_max``.
        """
        sizes = {blob: size for blob, size, _ in self._ask("--batch-check", blobs)}
        wanted = [blob for blob, size in sizes.items() if size <= bytes_max]
        if sum(sizes[blob] for blob in wanted) > TOTAL_BYTES_MAX:
            raise GitError(f"the files' past has more than {TOTAL_BYTES_MAX:,} bytes")
        return {blob: file.read(size + 1)[:-1] for blob, size, file in self._ask("--batch", wanted)}

    def _ask(self, what: str, blobs: Iterable[str]) -> Iterator[tuple[str, int, IO[bytes]]]:
        """The files that exist, their sizes, and the stream with their bytes and a line feed."""
        with self._git.started("cat-file", what, is_fed=True) as process:
            for blob in blobs:
                process.stdin.write(f"{blob}\n".encode())
                process.stdin.flush()
                header = process.stdout.readline().split()
                if len(header) == 3 and header[1] == b"blob":
                    yield blob, int(header[2]), process.stdout
