"""A node's content folder: a copy of the history. The node reads, decides and builds from it.

One thread applies rows in their order. Applying a row twice changes nothing. ``.hub-store`` in the
folder says up to which row the folder is surely on the disk, and which row is the last that may be
in it. After a crash, the node applies all rows in between again. So nothing in this module waits
for the disk.
"""

import contextlib
import fcntl
import os
import time
import uuid
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from builder.model.content_tree import FILE, HUB_FILES, STORE, STORE_FILE, TEXT
from builder.model.errors import OperatorError, RequestError
from builder.pipeline.context import Named
from builder.store import content
from builder.store.plain_files import read_file
from publisher.nodes.rows import EVENT, PROFILE, VERSION, WITHDRAWAL, Mark, Row, path_of, split
from publisher.write import synced_files
from publisher.write.durable import FolderStore

# The copy syncs applied rows to the disk this often. A crash costs at most the rows since then,
# which are applied again.
SAVE_SECONDS = 30.0
# A fixed size of the buffer: otherwise Python asks each file for one.
_BUFFER_BYTES = 8192
_THEN = "the node tries again by itself"


class Saved(Struct, forbid_unknown_fields=True):
    """The content of ``.hub-store``. ``applied``: all rows up to this one are on the disk.
    ``serial`` and ``request`` name the last row that may be in the folder.
    """

    applied: int
    serial: int
    request: uuid.UUID | None


class Copy:
    """Applies rows to a folder. ``mark`` is the last row that the folder has.

    Calls ``on_applied`` with the changed prompts and owners before ``mark`` moves, and
    ``on_serial`` afterwards. Holds the folder until ``close``. Raises OperatorError where another
    process holds it, or where it is not a copy.
    """

    def __init__(
        self,
        root: str,
        on_applied: Callable[[Iterable[Named]], None],
        on_serial: Callable[[], None],
    ) -> None:
        self._root = root
        self._on_applied = on_applied
        self._on_serial = on_serial
        with contextlib.ExitStack() as failing:
            self._lock = lock_folder(root)
            failing.callback(os.close, self._lock)
            saved = _read_saved(root)
            failing.pop_all()
        # The last row that may be in the folder.
        self.highest = Mark(saved.serial, saved.request)
        is_whole = saved.applied == saved.serial
        self.mark = self.highest if is_whole else Mark(saved.applied, None)
        self._on_disk = saved.applied
        self._save_at = time.monotonic() + SAVE_SECONDS

    def close(self) -> None:
        with contextlib.suppress(RequestError):  # the next start applies it again
            self._sync()
        os.close(self._lock)

    def apply(self, rows: Sequence[Row]) -> None:
        """Applies the rows after ``mark``. Raises RequestError ``storage_unavailable``,
        OperatorError; the caller then applies them again.
        """
        if rows:
            # Saved before the folder has any of these rows. After a crash, the folder must not
            # follow a history that lacks them.
            self._save(
                self._on_disk, max(self.highest, rows[-1].mark, key=lambda mark: mark.serial)
            )
            with synced_files.telling(_THEN):
                for row in rows:
                    apply_row(self._root, row)
            # The hub's own files are not reported: a build looks at them each time.
            self._on_applied({_named(row) for row in rows if row.owner})
            self.mark = rows[-1].mark
            self._on_serial()
        if self._save_at <= time.monotonic():
            self._save_at = time.monotonic() + SAVE_SECONDS
            self._sync()

    def _sync(self) -> None:
        if self.mark.serial != self._on_disk:
            with synced_files.telling(_THEN):
                os.sync()
            self._save(self.mark.serial, self.highest)

    def _save(self, on_disk: int, highest: Mark) -> None:
        self._on_disk, self.highest = on_disk, highest
        with synced_files.telling(_THEN):
            saved = Saved(on_disk, *highest)
            _put(f"{self._root}/{STORE_FILE}", msgspec.json.encode(saved))


def apply_row(root: str, row: Row) -> None:
    """Writes the files of a row as the folder of a single machine has them. Raises OSError,
    RequestError ``storage_unavailable``, OperatorError.
    """
    if row.kind not in (VERSION, EVENT, PROFILE, WITHDRAWAL, *HUB_FILES):
        raise OperatorError(
            f"The change {row.serial} is of a kind that this release does not know, {row.kind!r}. "
            "Upgrade this node."
        )
    if row.kind not in HUB_FILES and not all(
        part.strip(".") for part in f"{row.repo}/{row.name}".split("/")
    ):
        raise OperatorError(f"The change {row.serial} names {row.repo!r} and {row.name!r}.")
    folder = f"{root}/{row.repo}"
    if row.kind == VERSION and row.text is None:
        return  # it was withdrawn later
    if row.kind == VERSION:
        text, files = split(row.record, row.text)
        for path, data in files.items():
            _put(f"{folder}/{FILE.file(row.name, path)}", data)
        _put(f"{folder}/{TEXT.file(row.name)}", text)
    # The record last: it makes a version exist.
    _put(f"{root}/{path_of(row.repo, row.kind, row.name)}", row.record)
    if row.kind == WITHDRAWAL:
        FolderStore(root).write_withdrawal(*row.repo.split("/"), [], sync=False)


def _named(row: Row) -> Named:
    owner, _, name = row.repo.partition("/")
    return owner, name or None


def _put(target: str, data: bytes) -> None:
    """Writes a file, which appears whole. Uses few system calls, as each lets another thread run
    first.
    """
    folder = os.path.dirname(target)
    temporary = f"{folder}/.store.tmp"
    while True:
        try:
            with open(temporary, "wb", _BUFFER_BYTES) as file:
                file.write(data)
            return os.replace(temporary, target)
        except FileNotFoundError:
            # The folder is new, or a publication that failed has just removed it.
            os.makedirs(folder, exist_ok=True)


def _read_saved(root: str) -> Saved:
    """Returns what a folder has. Makes an empty folder a copy. Raises OperatorError."""
    content.check_format(root)
    path = f"{root}/{STORE_FILE}"
    try:
        return msgspec.json.decode(read_file(path, STORE.bytes_max), type=Saved)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(
            f"{path} cannot be read ({error}). This folder is a copy of a database: move it away, "
            "and the node makes it again."
        ) from error
    if content.list_owners(root):
        raise OperatorError(
            f"{root} has prompts, and is no copy of the database. Pass another folder with "
            "--content. To copy these prompts into a database that has none, run `hubctl store "
            "copy --to database`."
        )
    # Marked before it has any file that could be taken for a hub's own content folder.
    return mark_as_copy(root, Mark(0, None))


def mark_as_copy(root: str, mark: Mark) -> Saved:
    """Marks a folder as a copy up to a row. Raises RequestError ``storage_unavailable``."""
    saved = Saved(mark.serial, *mark)
    with synced_files.telling(_THEN):
        _put(f"{root}/{STORE_FILE}", msgspec.json.encode(saved))
    return saved


def lock_folder(root: str) -> int:
    """Holds a folder for this process until the returned descriptor is closed. Raises OperatorError
    where another process holds it.
    """
    os.makedirs(root, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise OperatorError(
            f"Another process has {root}, and follows the database into it. Stop that, or pass "
            "another folder with --content."
        ) from None
    return descriptor
