"""The content's files as of one moment, while others publish.

A prompt's folder is listed under the lock that publications take, so its texts, records, labels
and withdrawals belong together. What began after the moment is left out. Files of content are never
written in place, so they can be read after that. A withdrawal may remove some meanwhile; its own
file is read last, and then readers of the backup ignore the texts that it withdraws.
"""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator

from builder.model import content_tree as table
from builder.model.errors import explained
from operate.backup.archive import Writer

# Files of the content whose names start with a dot, and which belong to a backup.
MARKS = (table.FORMAT_FILE, table.PRIVATE_FILE)
_GONE = (FileNotFoundError, NotADirectoryError)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def add_content(root: str, writer: Writer, moment_ns: int) -> tuple[int, list[str]]:
    """Add the content as of a moment (epoch nanoseconds) to a backup. Returns the number of
    prompts, and the paths that are left out: of what is no plain file or folder, or has a name that
    is not UTF-8. Raises OperatorError.
    """
    prompts, skipped = 0, []
    with explained("back up", root, "Run this as the hub's user.", is_inside=True):
        for name in MARKS:
            _add(root, name, writer)
        for owner, is_owner in sorted(_scan(root, "", skipped)):
            inside = sorted(_scan(root, owner, skipped)) if is_owner else [(owner, False)]
            for path, is_prompt in inside:
                prompts += is_prompt
                if is_prompt:
                    _add_prompt(root, path, writer, skipped, moment_ns)
                else:
                    _add(root, path, writer)
    return prompts, sorted(skipped)


def _add_prompt(root: str, folder: str, writer: Writer, skipped: list[str], moment_ns: int) -> None:
    withdrawals = f"{folder}/{table.WITHDRAWN}"
    files = _without_later(root, folder, _list(root, folder, skipped), moment_ns)
    for path in files:
        if not path.startswith(f"{withdrawals}/"):
            _add(root, path, writer)
    for path, _ in sorted(_scan(root, withdrawals, [])):
        _add(root, path, writer)


def _list(root: str, folder: str, skipped: list[str]) -> list[str]:
    """The files of a prompt, in order; none if it no longer exists. Raises OSError."""
    try:
        descriptor = os.open(f"{root}/{folder}", _READ)
    except _GONE:
        return []
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        found = sorted(_walk(root, folder, skipped))
        # A node applies changes without this lock, but in order. If a second look finds the same
        # files, none is missing to which another one refers.
        while os.path.lexists(f"{root}/{table.STORE_FILE}"):
            if (again := sorted(_walk(root, folder, []))) == found:
                break
            found = again
        return found
    finally:
        os.close(descriptor)


def _without_later(root: str, folder: str, files: list[str], moment_ns: int) -> list[str]:
    """The files without versions and moves of labels that began after the moment."""
    now_ns, later = time.time_ns(), set()
    found = {path: table.in_repo(path[len(folder) + 1 :]) or (None, None) for path in files}
    for path, (kind, value) in found.items():
        with contextlib.suppress(*_GONE):
            # A time that is still to come says nothing: some clock was wrong.
            is_record = kind in (table.RECORD, table.LABEL)
            if is_record and moment_ns < os.stat(f"{root}/{path}").st_mtime_ns <= now_ns:
                later.add(value)
    return [
        path
        for path, (kind, value) in found.items()
        if kind is table.WITHDRAWAL or value not in later
    ]


def _walk(root: str, folder: str, skipped: list[str]) -> Iterator[str]:
    for path, is_folder in _scan(root, folder, skipped):
        if is_folder:
            yield from _walk(root, path, skipped)
        else:
            yield path


def _scan(root: str, folder: str, skipped: list[str]) -> Iterator[tuple[str, bool]]:
    """The path of each file and folder in a folder, and True for a folder, in no order."""
    with contextlib.suppress(*_GONE), os.scandir(f"{root}/{folder}") as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = f"{folder}/{entry.name}".lstrip("/")
            is_folder = entry.is_dir(follow_symlinks=False)
            is_utf8 = entry.name.encode(errors="replace").decode() == entry.name
            if is_utf8 and (is_folder or entry.is_file(follow_symlinks=False)):
                yield path, is_folder
            else:
                skipped.append(path)


def _add(root: str, path: str, writer: Writer) -> None:
    """Add a plain file, unless a withdrawal has removed it."""
    with contextlib.suppress(*_GONE), open(os.open(f"{root}/{path}", _READ), "rb", 0) as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            writer.add(f"content/{path}", file, status.st_size, int(status.st_mtime))
