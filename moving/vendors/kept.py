"""A folder that keeps an API's answers, so that an interrupted download can continue.

Each answer is a JSON file, whole or missing. A journal beside them has in its first line where they
come from. Then it names each file of a download, and has a line when that has finished; the files
of the next one follow. Files that a finished download no longer has are removed, since the API no
longer has them. Nothing is synced: a file lost in a power cut is requested again.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
from functools import partial
from typing import Any, Self
from urllib.parse import quote

from builder.model.errors import OperatorError, explained
from builder.store.locks import try_lock

JOURNAL = ".hub-download"

_PART_CHARS_MAX = 100
_THEN = "Fix that and run the command again, or pass another folder with --save DIR."
_FINISHED = {"finished": True}


def file_part(text: str) -> str:
    """``text`` as one part of a file's path. Different texts give different names, even on file
    systems that ignore case.
    """
    part = quote(text, safe=" ", errors="surrogatepass")
    if part.startswith((".", " ")) or not part:
        part = f"%{part}"
    if part == part.lower() and len(part) <= _PART_CHARS_MAX and "~" not in part:
        return part
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{part[:_PART_CHARS_MAX]}~{digest}"


class Kept:
    """The answers of the API of ``vendor`` at ``url``, in ``folder``; a context manager.

    Creates the folder, for its owner alone. Continues an unfinished download. Raises
    OperatorError if the folder is something else's, or another process keeps answers in it.
    """

    def __init__(self, folder: str, vendor: str, url: str) -> None:
        self.folder = folder
        self._source = {"vendor": vendor, "url": url}
        self._temporary = f"{folder}/{JOURNAL}.new"
        self._using = partial(explained, "keep answers in", folder, _THEN)
        with self._using():
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._check_ours(os.listdir(folder))
            self._journal = _open_journal(folder)
        try:
            self._earlier, self._files = self._read_journal()
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    def read(self, file: str) -> Any:
        """The JSON that this download has kept as ``file``. Raises KeyError if it has not."""
        if file not in self._files:
            raise KeyError(file)
        try:
            with open(f"{self.folder}/{file}", encoding="utf-8") as kept:
                return json.load(kept)
        except (OSError, ValueError, RecursionError):
            raise KeyError(file) from None

    def write(self, file: str, value: Any) -> int:
        """Keep JSON as ``file``, whole or not at all; returns its size in bytes. Make the parts of
        ``file`` with ``file_part``. Raises OperatorError.
        """
        if not _is_ours(file):
            raise ValueError(f"not the path of a file in a folder: {file!r}")
        text = json.dumps(value, indent=1) + "\n"
        with self._using():
            os.makedirs(os.path.dirname(f"{self.folder}/{file}"), exist_ok=True)
            with open(self._temporary, "w", encoding="ascii") as new:
                new.write(text)
            os.replace(self._temporary, f"{self.folder}/{file}")
        self._note(file)
        self._files.add(file)
        return len(text)

    def finish(self) -> None:
        """The download is complete: remove files of earlier downloads that this one does not have.
        The next download requests everything again. Raises OperatorError.
        """
        with self._using():
            for file in filter(_is_ours, self._earlier - self._files):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(f"{self.folder}/{file}")
            self._journal.truncate(0)
        self._note(self._source, *sorted(self._files), _FINISHED)

    def _check_ours(self, found: list[str]) -> None:
        if found and JOURNAL not in found:
            raise OperatorError(
                f"The folder {self.folder} has other files. Pass a new folder with --save DIR."
            )

    def _read_journal(self) -> tuple[set[str], set[str]]:
        """The files of finished downloads, and those of an unfinished one."""
        if not try_lock(self._journal):
            raise OperatorError(
                f"Another download to {self.folder} is under way. Wait for it, or pass another "
                "folder with --save DIR."
            )
        self._journal.seek(0)
        text = self._journal.read().decode(errors="replace")
        notes = [_parse(line) for line in text.splitlines()]
        is_same = notes[:1] == [self._source]
        if len(notes) > 1 and not is_same:
            raise OperatorError(
                f"The folder {self.folder} has a download from elsewhere. Pass another folder "
                "with --save DIR."
            )
        if not is_same:
            self._journal.truncate(0)
            self._note(self._source)
            return set(), set()
        if not text.endswith("\n"):
            self._journal.write(b"\n")
        finished = len(notes) - notes[::-1].index(_FINISHED) if _FINISHED in notes else 0
        return _files_in(notes[:finished]), _files_in(notes[finished:])

    def _note(self, *values: Any) -> None:
        lines = "".join(f"{json.dumps(value)}\n" for value in values).encode()
        with self._using():
            if self._journal.write(lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _open_journal(folder: str) -> io.FileIO:
    return open(f"{folder}/{JOURNAL}", "a+b", buffering=0)


def _is_ours(file: str) -> bool:
    """True if a path stays in the folder and is not the journal."""
    return not any(part.startswith(".") or not part for part in file.split("/"))


def _files_in(notes: list[Any]) -> set[str]:
    return {note for note in notes if isinstance(note, str)}


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
