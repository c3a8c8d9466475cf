"""The folder of the search index: updated by builds, opened by readers.

The index itself stores the digests of its repos. A stamp beside it identifies the code and
the engine that made it. Checksums show if its files have changed.
"""

import contextlib
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version

import msgspec

from builder.model.answers import CatalogueLine
from builder.model.errors import HubError, OperatorError, explained
from builder.model.names import Version
from builder.model.progress import Progress
from builder.model.settings import Settings
from builder.search.engine import Engine, Reader, engine_named
from builder.search.entries import Entry, entry_of
from builder.store import content
from builder.store.state import State
from builder.store.state.repos import order_values
from builder.text import words
from builder.text.messages import without_markers

SPREAD = 64
_AGAIN = "Fix that and build again."

_decode_checksums = msgspec.json.Decoder(dict[str, int]).decode
_decode_line = msgspec.json.Decoder(CatalogueLine).decode


def index_folder(settings: Settings) -> str:
    return f"{settings.state}/search"


def update(
    settings: Settings, state: State, progress: Progress, repos: Iterable[str] | None = None
) -> int:
    """Update the index to match the state; returns the number of repos added, replaced or removed.

    ``repos``: ids of the only ones that can differ from it. Raises OperatorError.
    """
    folder = index_folder(settings)
    engine = _engine(settings)
    with _damage_as_error():
        held = _held(settings, engine, None if repos is None else [*repos])
        is_new = held is None
        if is_new:
            _create(folder, engine)
            held, repos = {}, None
        wanted = state.repos.search_digests(None if repos is None else [*repos])
        changed = _spread([one for one, digest in wanted.items() if held.get(one) != digest])
        gone = [one for one in held if one not in wanted]
        if changed or gone:
            entries = _read_entries(settings, state, changed, wanted, progress)
            engine.write(folder, entries, gone)
        if changed or gone or is_new:
            _put_checksums(folder, engine)
        if is_new:
            # The stamp comes last. An index whose creation was interrupted has none, and is
            # rebuilt.
            _put(f"{folder}/stamp", _stamp(settings.search))
    return len(changed) + len(gone)


def _spread(ids: list[str]) -> list[str]:
    """``ids`` reordered so that neighbours are far apart. The segments of an index then have ids
    from everywhere, so one segment is enough to find the first of many equal scores.
    """
    return [one for start in range(SPREAD) for one in ids[start::SPREAD]]


def _held(settings: Settings, engine: Engine, among: list[str] | None) -> dict[str, str] | None:
    """The digests in the index; None if no usable index exists."""
    if not _is_ours(settings):
        return None
    try:
        with _damage_as_error(), contextlib.closing(engine.open(index_folder(settings))) as reader:
            return reader.digests(among)
    except Exception:
        # The libraries trust their files, so damage can raise an error of any kind.
        return None


def _read_entries(
    settings: Settings, state: State, ids: list[str], digests: dict[str, str], progress: Progress
) -> Iterator[Entry]:
    for done, repo_id in enumerate(ids):
        progress("Indexing", done, len(ids))
        row = state.repos.get(repo_id)
        line = _decode_line(row.line)
        version = Version.parse(line.latest_version)
        text = content.read_text(settings.content, line.owner, line.name, version, line.sha256)
        # Otherwise a search for "system" would find every chat prompt.
        yield entry_of(line, without_markers(text), digests[repo_id], order_values(row))


def _engine(settings: Settings) -> Engine:
    try:
        return engine_named(settings.search)
    except ImportError as error:
        raise OperatorError(
            f"The search engine {settings.search!r} is not installed ({error}). Install it, or "
            "choose another with --search or HUB_SEARCH."
        ) from None


@contextlib.contextmanager
def _damage_as_error() -> Iterator[None]:
    """Raises RuntimeError for a panic of Tantivy on damaged files, which in Python is no
    Exception.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise RuntimeError(f"The search engine failed: {error}") from error


@cache
def _stamp(engine: str) -> bytes:
    """A hash that changes if the same content would give another index."""
    hasher = hashlib.sha256(f"{engine} {version(engine)}".encode())
    folder = os.path.dirname(__file__)
    for path in [words.__file__, *sorted(os.path.join(folder, one) for one in os.listdir(folder))]:
        if path.endswith(".py"):
            with open(path, "rb") as file:
                hasher.update(file.read())
    return hasher.hexdigest().encode()


def _is_ours(settings: Settings) -> bool:
    """True if a complete index of this code exists."""
    try:
        with open(f"{index_folder(settings)}/stamp", "rb") as file:
            return file.read() == _stamp(settings.search)
    except OSError:
        return False


def _create(folder: str, engine: Engine) -> None:
    with explained("write the search index", folder, _AGAIN):
        if os.path.lexists(folder) and not os.path.isdir(folder):
            os.unlink(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    engine.create(folder)


def _put_checksums(folder: str, engine: Engine) -> None:
    """Store the checksum of each file of the index that never changes."""
    known = _read_checksums(folder) or {}
    kept = {
        name: known.get(name) or _file_checksum(f"{folder}/{name}")
        for name in sorted(os.listdir(folder))
        if name not in ("stamp", "checksums", "new") and engine.is_kept(name)
    }
    _put(f"{folder}/checksums", msgspec.json.encode(kept))


def _put(path: str, data: bytes) -> None:
    new = f"{os.path.dirname(path)}/new"
    with explained("write the search index", path, _AGAIN):
        with open(new, "wb") as file:
            file.write(data)
        os.replace(new, path)


def _read_checksums(folder: str) -> dict[str, int] | None:
    """The checksums by file name; None if they cannot be read."""
    try:
        with open(f"{folder}/checksums", "rb") as file:
            return _decode_checksums(file.read())
    except (OSError, ValueError):
        return None


def _file_checksum(path: str) -> int:
    value = 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value


def find_damage(settings: Settings) -> str | None:
    """The evidence that the index is damaged; None if it is sound or missing.

    Reads all of it. Files without a checksum, which a killed build left, count as sound, and so do
    missing ones: `update` rebuilds an index that cannot be opened. Raises OperatorError.
    """
    folder = index_folder(settings)
    if not _is_ours(settings):
        return None
    known = _read_checksums(folder)
    if known is None:
        return f"cannot read {folder}/checksums"
    with explained("read the search index", folder, _AGAIN):
        for name in sorted(known.keys() & os.listdir(folder)):
            if _file_checksum(f"{folder}/{name}") != known[name]:
                return f"{folder}/{name} has a wrong checksum"
    return None


def forget(settings: Settings) -> None:
    """Have the next build rebuild the index. Readers that have it open keep using it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{index_folder(settings)}/stamp")


def commit_mark(settings: Settings) -> object:
    """Changes after each commit, and when the index is rebuilt; cheap. Raises errors of any kind if
    there is no index.
    """
    folder = index_folder(settings)
    return _stamp_mark(folder), _engine(settings).state(folder)


def _stamp_mark(folder: str) -> tuple[int, int] | None:
    """Changes when the index is rebuilt; None if no complete index exists."""
    try:
        status = os.stat(f"{folder}/stamp")
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


class OpenIndex:
    """Follows the newest commit of the index. Not thread-safe."""

    def __init__(self, settings: Settings) -> None:
        """Raises OperatorError if there is no index."""
        self._settings = settings
        self._folder = index_folder(settings)
        self._engine = _engine(settings)
        self._open()

    def _open(self) -> None:
        self._mark = _stamp_mark(self._folder)
        if not _is_ours(self._settings):
            raise OperatorError("No search index yet. Create it with `hubctl build`.")
        self._state = self._engine.state(self._folder)
        self._reader = self._engine.open(self._folder)

    def close(self) -> None:
        self._reader.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reader]:
        """The newest commit. While an index is rebuilt, the old one stays in use.

        Raises OperatorError if it is damaged; after that, use a new OpenIndex.
        """
        try:
            with _damage_as_error():
                self._follow()
                yield self._reader
        except (HubError, GeneratorExit):
            raise
        except Exception as error:
            raise OperatorError(
                f"The search index is damaged ({error!r}). The next full build replaces it."
            ) from error

    def _follow(self) -> None:
        mark = _stamp_mark(self._folder)
        if mark is None:
            return
        if mark != self._mark:
            old = self._reader
            self._open()  # This may fail, and a reader must be closed only once.
            old.close()
            return
        state = self._engine.state(self._folder)
        if state != self._state:
            self._reader.follow()
            self._state = state
