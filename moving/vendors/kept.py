"""A folder that keeps an API's answers: all of a download, or none.

Answers are JSON files in a new folder beside it, which takes its place when the download is
complete. A file in the folder says where the answers come from, so that a download replaces only
an earlier one of the same source.
"""

import hashlib
import json
import os
import shutil
from functools import partial
from typing import Any, Self
from urllib.parse import quote

from builder.model.errors import OperatorError, explained

MARK = ".hub-download"
_THEN = "Fix that and run the command again, or pass another folder with --save DIR."
_PART_CHARS_MAX = 100


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

    Creates the folder, for its owner alone. Raises OperatorError if the folder is something else's,
    or another process keeps answers in it.
    """

    def __init__(self, folder: str, vendor: str, url: str) -> None:
        self.folder = folder.rstrip("/")
        self._source = {"vendor": vendor, "url": url}
        self._new = f"{self.folder}.download"
        self._using = partial(explained, "keep answers in", self.folder, _THEN)

    def __enter__(self) -> Self:
        with self._using():
            if os.path.lexists(self.folder) and os.listdir(self.folder):
                self._check_same()
            os.makedirs(os.path.dirname(os.path.abspath(self.folder)), exist_ok=True)
            try:
                os.mkdir(self._new, mode=0o700)
            except FileExistsError:
                raise OperatorError(
                    f"A download to {self.folder} is running, or was killed. Wait for it, or "
                    f"remove {self._new} and run the command again."
                ) from None
            with open(f"{self._new}/{MARK}", "w", encoding="ascii") as mark:
                mark.write(f"{json.dumps(self._source)}\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind:
            shutil.rmtree(self._new, ignore_errors=True)
            return
        with self._using():
            if os.path.lexists(self.folder):
                shutil.rmtree(self.folder)
            os.rename(self._new, self.folder)

    def write(self, file: str, value: Any) -> int:
        """Keep JSON as ``file``; returns its size in bytes. Make the parts of ``file`` with
        ``file_part``. Raises OperatorError.
        """
        if any(part.startswith(".") or not part for part in file.split("/")):
            raise ValueError(f"not the path of a file in a folder: {file!r}")
        path = f"{self._new}/{file}"
        with self._using():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as new:
                return new.write(json.dumps(value, indent=1) + "\n")

    def _check_same(self) -> None:
        try:
            with open(f"{self.folder}/{MARK}", encoding="utf-8") as file:
                source = json.loads(file.readline())
        except FileNotFoundError:
            raise OperatorError(
                f"The folder {self.folder} has other files. Pass a new folder with --save DIR."
            ) from None
        except ValueError:
            source = None
        if source != self._source:
            raise OperatorError(
                f"The folder {self.folder} has a download from elsewhere. Pass another folder "
                "with --save DIR."
            )
