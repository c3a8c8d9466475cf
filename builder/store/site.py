"""Writes the site's files atomically: a reader sees the old bytes or the new ones, never a part.

Every file is written to a temporary name in its own folder and renamed. A file whose bytes are the
same is left alone, with its time. A site can be rebuilt from the content, so no write waits for the
disk.
"""

import contextlib
import gzip
import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from builder.model.answers import Hub
from builder.model.errors import OperatorError
from builder.model.objects import SITE, Names, id_of, named
from builder.model.routes import BY_NAME, BYTES, MARKDOWN, ROUTES, TEXT, WELL_KNOWN, ZIP, Route
from builder.store.shortage import remedy_for

Mark = tuple[int, int, int]

_TEMPORARY = ".tmp"
# Never an existing file, which may be another name of one that readers have.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
ONE_SECOND_NS = 1_000_000_000
GZIP_LEVEL = 6
# Larger files (the catalogue of some thousand repos) are compressed at level 1, which takes a fifth
# of the time and gives a third more bytes.
GZIP_CAREFUL_BYTES_MAX = 1024 * 1024
# Only these may be equal to another file of their repo: pages and records name their address.
_MAY_EQUAL = {
    route.name
    for route in ROUTES
    if route.media in (TEXT, MARKDOWN, BYTES, ZIP) or route.scope == "langfuse"
}
# The most files of one build that are listed. Beyond it, programs that follow builds check the
# whole site.
TOUCHED_MAX = 2_000

_decode_hub = msgspec.json.Decoder(dict[str, Hub]).decode


def mark_of(status: os.stat_result) -> Mark:
    """The values that show a reader if a file has changed."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def is_hidden(path: str) -> bool:
    """True for a folder (`./ada/.git`) or file that is not the site's own: its name starts with a
    dot. The exceptions are `.well-known` below an owner or a prompt, and `.nojekyll`.
    """
    folder, _, name = path.removeprefix("./").rpartition("/")
    is_own = f"/{name}/" == WELL_KNOWN if folder else name == BY_NAME["no_jekyll"].file
    return name.startswith(".") and not is_own


def is_built(root: str) -> bool:
    """True if the folder contains a site."""
    return os.path.exists(_hub_path(root))


def read_hub(root: str) -> Hub | None:
    """The hub.json of a site; None if it is missing or incomplete."""
    try:
        with open(_hub_path(root), "rb") as file:
            return _decode_hub(file.read())["data"]
    except (OSError, ValueError, KeyError):
        return None


def read_serial(root: str) -> int | None:
    """The serial in the hub.json of a site; None if there is no hub.json."""
    hub = read_hub(root)
    return hub.serial if hub else None


def _hub_path(root: str) -> str:
    return f"{root}/{BY_NAME['hub'].file}"


@dataclass
class Tally:
    """The result of writing; only a dry site fills the lists.

    ``touched``: every file that was written or removed; None if they are more than ``TOUCHED_MAX``.
    """

    written: int = 0
    unchanged: int = 0
    missing: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    touched: set[str] | None = field(default_factory=set, compare=False)

    def add(self, other: "Tally") -> None:
        self.written += other.written
        self.unchanged += other.unchanged
        self.missing += other.missing
        self.differing += other.differing
        self.touch(other.touched)

    def touch(self, files: Collection[str] | None) -> None:
        if self.touched is None or files is None:
            self.touched = None
        else:
            self.touched.update(files)
            if len(self.touched) > TOUCHED_MAX:
                self.touched = None


class Site:
    """The folder of generated files. ``dry``: write and remove nothing, only record differences.
    ``noted``: the files of each object that was written.
    """

    def __init__(self, root: str, *, dry: bool = False) -> None:
        self.root = root.rstrip("/") or "/"
        self.dry = dry
        self.tally = Tally()
        # On an empty site there is nothing to compare with.
        self.is_new = _is_empty(root)
        self.noted: dict[str, Names] = {}
        # The first file of a repo with some bytes, by their SHA-256, and that repo.
        self._first: dict[str, str] = {}
        self._first_of: tuple[object, object] | None = None

    def put(
        self,
        at: Mapping[str, object],
        files: Iterable[tuple[str, bytes]],
        *,
        not_before: str = "",
        known: Mapping[str, str] | None = None,
    ) -> None:
        """Write the files of an object, in their order, and note them. Each has the name of its
        route, or a path. Equal files of a repo are links to one, also to one of the files
        ``known``, by SHA-256. Raises OperatorError.
        """
        repo = at.get("owner"), at.get("name")
        if repo != self._first_of:
            self._first, self._first_of = {}, repo
        names: Names = []
        for name, data in files:
            key, file = named(name, at)
            names.append(key)
            same = earlier = ""
            if key is file or name in _MAY_EQUAL:
                digest = hashlib.sha256(data).hexdigest()
                same = self._first.setdefault(digest, file)
                earlier = (known or {}).get(digest, "")
            self.write(file, data, not_before=not_before, same=same, earlier=earlier)
        self.noted[id_of(at)] = names

    def write(
        self, file: str, data: bytes, *, not_before: str = "", same: str = "", earlier: str = ""
    ) -> None:
        """Make ``file`` (relative to the site) have these bytes. Raises OperatorError.

        A new file gets a time no earlier than that of the file ``not_before``. ``same``: a file
        with these bytes; it gets another name if that fits. ``earlier``: the same, of an earlier
        build, whose bytes are compared first.
        """
        path = f"{self.root}/{file}"
        old_ns = None
        try:
            if not self.is_new:
                old, old_ns = _read(path)
                if old == data:
                    self.tally.unchanged += 1
                    return
            if self.dry:
                (self.tally.missing if old_ns is None else self.tally.differing).append(file)
                return
            if old_ns is None and not_before not in ("", file) and not self.is_new:
                old_ns = os.stat(f"{self.root}/{not_before}").st_mtime_ns - ONE_SECOND_NS
            linked = same not in ("", file) and _link(f"{self.root}/{same}", path, old_ns)
            if not linked and earlier not in ("", file) and _has(f"{self.root}/{earlier}", data):
                linked = _link(f"{self.root}/{earlier}", path, old_ns)
            if not linked:
                _replace(path, data, old_ns)
        except OSError as error:
            raise OperatorError(
                f"Cannot write {path}: {error.strerror}. The old file is still there. "
                f"{remedy_for(error)}, and build again."
            ) from error
        self.tally.written += 1
        self.tally.touch((file,))

    def write_fixed(self, route: str, data: bytes) -> None:
        """Write the file of a route without parameters, and its compressed form if the table has
        one. Raises OperatorError.
        """
        row = BY_NAME[route]
        self._write_noted(row, data)
        if row.compressed:
            level = GZIP_LEVEL if len(data) <= GZIP_CAREFUL_BYTES_MAX else 1
            # The time in gzip's header would make every copy different.
            self._write_noted(row.compressed, gzip.compress(data, level, mtime=0))

    def _write_noted(self, route: Route, data: bytes) -> None:
        self.write(route.file, data)
        key, _ = named(route.name, {})
        self.noted.setdefault(SITE, []).append(key)

    def read(self, file: str, most: int = -1) -> bytes | None:
        """The bytes of a file of the site, or the first ``most``; None if it does not exist."""
        return _read(f"{self.root}/{file}", most)[0]

    def mark(self) -> str:
        """Changes when the site is replaced, restored or emptied."""
        status = self._hub_status()
        return f"{status.st_ino:x}.{status.st_ctime_ns:x}" if status else "none"

    def changed_ns(self) -> int:
        """The time of the last build's end, by the clock of the site's disk; 0 if there is none."""
        status = self._hub_status()
        return status.st_ctime_ns if status else 0

    def _hub_status(self) -> os.stat_result | None:
        with contextlib.suppress(OSError):
            return os.stat(_hub_path(self.root))
        return None

    def remove(self, *files: str) -> int:
        """Delete files, and folders that become empty. Returns the number of deleted files. A dry
        site keeps them.
        """
        return 0 if self.dry else sum(map(self._remove, files))

    def _remove(self, file: str) -> bool:
        path = f"{self.root}/{file}"
        self.tally.touch((file,))
        try:
            os.unlink(path)
        except OSError:
            return False
        try:
            while (path := os.path.dirname(path)) != self.root:
                os.rmdir(path)
        except OSError:
            # The folder is still in use, as it should be.
            pass
        return True

    def files(self, folder: str = "") -> Iterator[str]:
        """Every file below a folder of the site, relative to the site, without hidden ones. Raises
        OSError for a folder that cannot be read.
        """
        for path, name in self._walk(folder):
            file = os.path.relpath(os.path.join(path, name), self.root)
            if not is_hidden(file):
                yield file

    def files_named(self, folder: str, name: str) -> Iterator[str]:
        """The files of a folder whose names are ``name``, an ending or a ref; and those below the
        folder ``name``.
        """
        path = os.path.join(self.root, folder)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for one in sorted(os.listdir(path)):
                if one.startswith((f"{name}.", f"{name}@")) or one == name:
                    below = f"{folder}{one}"
                    yield from self.files(below) if os.path.isdir(path + one) else (below,)

    def remove_temporary_files(self) -> None:
        """Remove the temporary files of a killed build."""
        for path, name in list(self._walk()):
            if name.startswith(".") and name.endswith(_TEMPORARY):
                os.unlink(os.path.join(path, name))

    def _walk(self, folder: str = "") -> Iterator[tuple[str, str]]:
        for path, folders, files in os.walk(os.path.join(self.root, folder), onerror=_refuse):
            below = os.path.relpath(path, self.root)
            folders[:] = sorted(one for one in folders if not is_hidden(f"{below}/{one}"))
            for name in sorted(files):
                yield path, name


def _refuse(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _is_empty(root: str) -> bool:
    if not os.path.isdir(root):
        return True
    with os.scandir(root) as entries:
        return all(entry.name.startswith(".") for entry in entries)


def _read(path: str, most: int = -1) -> tuple[bytes | None, int | None]:
    """A file's bytes, or the first ``most``, and modification time; None for both if it does not
    exist.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None, None
    try:
        status = os.fstat(descriptor)
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.read(most), status.st_mtime_ns
    finally:
        os.close(descriptor)


def _has(path: str, data: bytes) -> bool:
    with contextlib.suppress(OSError):
        return os.path.getsize(path) == len(data) and _read(path)[0] == data
    return False


def _link(same: str, path: str, old_ns: int | None) -> bool:
    """Make ``path`` another name of the file ``same``, if that is new enough to replace a file of
    this time; false if not, or if the file system cannot.
    """
    folder, _, name = path.rpartition("/")
    new = path if old_ns is None else f"{folder}/.{name}{_TEMPORARY}"
    try:
        if old_ns is not None and os.stat(same).st_mtime_ns < old_ns + ONE_SECOND_NS:
            return False
        os.link(same, new)
    except FileNotFoundError:
        _make_folder(folder)
        return os.path.exists(same) and _link(same, path, old_ns)
    except OSError:
        return False
    try:
        if new != path:
            os.rename(new, path)
    except BaseException:
        os.unlink(new)
        raise
    return True


def _replace(path: str, data: bytes, old_ns: int | None) -> None:
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}{_TEMPORARY}"
    try:
        descriptor = os.open(temporary, _FLAGS, 0o644)
    except FileNotFoundError:
        _make_folder(folder)
        descriptor = os.open(temporary, _FLAGS, 0o644)
    except FileExistsError:
        os.unlink(temporary)
        descriptor = os.open(temporary, _FLAGS, 0o644)
    try:
        try:
            written = os.write(descriptor, data)
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if old_ns is not None:
                # nginx and Caddy make the ETag from whole seconds and the size. A new version often
                # has the old one's size, and must not get the same ETag within one second.
                now_ns = max(time.time_ns(), old_ns + ONE_SECOND_NS)
                os.utime(descriptor, ns=(now_ns, now_ns))
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _make_folder(path: str) -> None:
    """Make a folder that does not exist. `os.makedirs` looks first if its parent does."""
    try:
        os.mkdir(path)
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        _make_folder(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
