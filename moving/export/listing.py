"""The list of files that exports have written to a folder.

It tells these files from all others there. An export replaces and removes only files of the list;
an import recognizes the files whose bytes are an export's.
"""

import hashlib
import re

import msgspec

from builder.model import names
from builder.model.errors import OperatorError
from builder.model.records import Sha256
from builder.model.version_files import PATH_PATTERN
from builder.store.plain_files import read_file

FORMATS = ("markdown", "skill")
LIST_FILE = ".hub-export.json"
LIST_BYTES_MAX = 256 * 1024 * 1024

_path = re.compile(
    f"{names.NAME_PATTERN}/{names.NAME_PATTERN}"
    rf"(?:\.(?:md|prompt|prompty)|/SKILL\.md|/PROMPT\.md|/{PATH_PATTERN})"  # also of former formats
)


class Exported(msgspec.Struct, forbid_unknown_fields=True):
    """``files``: the SHA-256 of each, by its path in the folder."""

    files: dict[str, Sha256]

    def __post_init__(self) -> None:
        # An export removes these paths, so none may lead out of the folder.
        if not all(map(_path.fullmatch, self.files)):
            raise ValueError("has a path that no export writes")

    def is_whole(self, path: str, raw: bytes) -> bool:
        """True if the bytes of a file are those that were written."""
        return self.files.get(path) == hashlib.sha256(raw).hexdigest()


_decode = msgspec.json.Decoder(Exported).decode


def read_list(folder: str) -> Exported | None:
    """The list of a folder; None if no export has written there. Raises OperatorError if it is
    damaged.
    """
    path = f"{folder}/{LIST_FILE}"
    try:
        return _decode(read_file(path, LIST_BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = error.strerror or "unreadable"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    raise OperatorError(
        f"{path} is no list of exported files: {reason}. Restore it, or empty the folder."
    )
