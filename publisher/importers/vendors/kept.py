"""A folder that keeps an API's answers, so that a download that was cut short can go on.

Each answer is a JSON file, whole or not there. A journal beside them says in its first line where
they come from, then names each file of this download, and ends with a line when it is finished.
Nothing is synced: a file that a power cut took is asked for again.
"""

import fcntl
import hashlib
import json
import os
from typing import Any, Self, TextIO
from urllib.parse import quote

from builder.model.errors import OperatorError

JOURNAL = ".hub-download"

_PART_CHARS_MAX = 100
_FINISHED = {"finished": True}


def file_part(text: str) -> str:
    """``text`` as one part of a file's path: the same for the same text, and another for another,
    also where names of files differ in no capitals.
    """
    part = quote(text, safe=" ", errors="surrogatepass")
    if part.startswith((".", " ")) or not part:
        part = f"%{part}"
    if part == part.lower() and len(part) <= _PART_CHARS_MAX and "~" not in part:
        return part
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{part[:_PART_CHARS_MAX]}~{digest}"


class Kept:
    """The answers in ``folder`` of the API of ``vendor`` at ``url``; a context manager.

    Makes the folder, for its owner alone. Goes on with a download that is not finished. Raises
    OperatorError if the folder is something else's, or another process keeps answers in it.
    """

    def __init__(self, folder: str, vendor: str, url: str) -> None:
        self.folder = folder
        self._source = {"vendor": vendor, "url": url}
        self._temporary = f"{folder}/{JOURNAL}.new"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._check_ours(os.listdir(folder))
            self._journal = _open_journal(folder)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            self._files = self._read_journal()
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    def read(self, file: str) -> Any:
        """What this download has kept as ``file``; KeyError if that is nothing."""
        if file not in self._files:
            raise KeyError(file)
        try:
            with open(f"{self.folder}/{file}", encoding="utf-8") as kept:
                return json.load(kept)
        except (OSError, ValueError, RecursionError):
            raise KeyError(file) from None

    def write(self, file: str, value: Any) -> int:
        """Keep JSON as ``file``, whole or not at all; returns its bytes. Parts of ``file`` between
        slashes come from ``file_part``. Raises OperatorError.
        """
        if any(part.startswith(".") or not part for part in file.split("/")):
            raise ValueError(f"not the path of a file in a folder: {file!r}")
        text = json.dumps(value, indent=1) + "\n"
        try:
            os.makedirs(os.path.dirname(f"{self.folder}/{file}"), exist_ok=True)
            with open(self._temporary, "w", encoding="ascii") as new:
                new.write(text)
            os.replace(self._temporary, f"{self.folder}/{file}")
        except OSError as error:
            raise self._unusable(error) from None
        self._note(file)
        self._files.add(file)
        return len(text)

    def finish(self) -> None:
        """Nothing is missing; the next download asks for everything again."""
        self._note(_FINISHED)

    def _check_ours(self, found: list[str]) -> None:
        if found and JOURNAL not in found:
            raise OperatorError(
                f"The folder {self.folder} has other files. Pass a new folder with --save DIR."
            )

    def _read_journal(self) -> set[str]:
        """The files of a download that is to go on; none where a new one begins."""
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(
                f"Another download to {self.folder} is under way. Wait for it, or pass another "
                "folder with --save DIR."
            ) from None
        self._journal.seek(0)
        text = self._journal.read()
        notes = [_parse(line) for line in text.splitlines()]
        is_same = notes[:1] == [self._source]
        if len(notes) > 1 and not is_same:
            raise OperatorError(
                f"The folder {self.folder} has a download from elsewhere. Pass another folder "
                "with --save DIR."
            )
        if not is_same or _FINISHED in notes:
            self._journal.truncate(0)
            self._note(self._source)
            return set()
        if not text.endswith("\n"):
            self._journal.write("\n")
        return {note for note in notes if isinstance(note, str)}

    def _note(self, value: Any) -> None:
        try:
            self._journal.write(json.dumps(value) + "\n")
            self._journal.flush()
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> OperatorError:
        return OperatorError(
            f"Cannot keep answers in {self.folder}: {error.strerror}. Fix that and run the command "
            "again, or pass another folder with --save DIR."
        )


def _open_journal(folder: str) -> TextIO:
    return open(f"{folder}/{JOURNAL}", "a+", encoding="utf-8", errors="replace")


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
