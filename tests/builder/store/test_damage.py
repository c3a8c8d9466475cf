"""Damaged caches: the next build rebuilds them by itself, whichever page of the state or byte of
the index is wrong.
"""

import contextlib
import gc
import itertools
import logging
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from builder.model.errors import HubError, OperatorError, RequestError
from builder.model.settings import Settings
from builder.pipeline.build import build, stamp
from builder.search import index
from builder.search.queries import ListQuery, Queries
from builder.store import database
from builder.store.site import Site
from builder.store.state import State
from tests.support.catalogues import (
    freshly_built,
    read_tree,
    settings_in,
    write_small_catalogue,
    write_version,
)
from tests.support.depth import some

pytestmark = [
    # Whoosh leaves files open in which it meets damage.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
]

PLACES_PER_PAGE = 2
PLACES_PER_FILE = 6
PAGE_BYTES = 4096
HEADER_BYTES = 100

ASKED = [
    ListQuery(q="care"),
    ListQuery(q="writi"),
    ListQuery(q="a", sort="new"),
    ListQuery(tags=("code", "careful")),
    ListQuery(owner="ann"),
]


class Sample(NamedTuple):
    """A built hub with one version published since, so that the next build uses what it remembers.

    ``expected``: the site and the answers after that build.
    """

    settings: Settings
    site: dict[str, bytes]
    state: dict[str, bytes]
    expected: tuple[dict[str, bytes], list[bytes]]

    def restore(self) -> None:
        """Back to before that build; the state vouches for the site again."""
        restore_tree(self.settings.out, self.site)
        restore_tree(self.settings.state, self.state)
        with State(self.settings.state) as state:
            state.begin(forget=False)
            state.end(stamp(self.settings), Site(self.settings.out).mark())

    def outcome(self) -> tuple[dict[str, bytes], list[bytes]]:
        """The site, and what queries answer."""
        with contextlib.closing(Queries(self.settings)) as queries:
            return read_tree(self.settings.out), [queries.answer(one) for one in ASKED]

    @property
    def path(self) -> Path:
        return Path(State.path_in(self.settings.state))


def restore_tree(root: str, files: dict[str, bytes]) -> None:
    """Restore exactly these files. Unchanged ones stay, as writing takes longest.

    Changed ones become new files. Otherwise SQLite would share its state of the old file with a
    connection that is still open.
    """
    there = read_tree(root)
    for file in there.keys() - files.keys():
        Path(root, file).unlink()
    for file, data in files.items():
        if there.get(file) != data:
            path = Path(root, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(data)


@pytest.fixture(scope="module")
def every_file_has_settled() -> Iterator[None]:
    """Lets marks of young files count. Otherwise, a build soon after another one would not rely on
    them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0)
        yield


@pytest.fixture(scope="module")
def sample(every_file_has_settled: None) -> Iterator[Sample]:
    with tempfile.TemporaryDirectory(prefix="hub-") as folder:
        yield make_sample(settings_in(folder))


def make_sample(settings: Settings) -> Sample:
    write_small_catalogue(settings.content)
    for number in range(12):
        write_version(
            settings.content, f"eve-{number % 3}", f"repo-{number}", "1.0.0", f"Writing {number}.",
            tags=["code", f"tag-{number}"], description="Careful words. " * 20,
        )  # fmt: skip
    build(settings)
    site, state = read_tree(settings.out), read_tree(settings.state)
    write_version(settings.content, "ann", "story", "1.1.0", "Tell a longer story.\n")
    made = Sample(settings, site, state, ({}, []))
    made.restore()
    assert build(settings).rendered == 1  # an incremental build
    assert read_tree(settings.out) == freshly_built(settings)
    return made._replace(expected=made.outcome())


def places(size: int) -> Iterator[int]:
    """Bytes of a database to damage: some of each page, and much of the header."""
    yield from (18, 19, *range(20, HEADER_BYTES, 8))
    for start in range(0, size, PAGE_BYTES):
        chance = random.Random(start)
        for _ in range(PLACES_PER_PAGE):
            yield chance.randrange(start, min(start + PAGE_BYTES, size))


def damaged_pages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each place, and the data with one byte of the header changed or a page of random bytes."""
    for place in (18, 19, *range(20, HEADER_BYTES, 8)):
        yield place, flipped(data, place)
    for start in range(0, len(data), PAGE_BYTES):
        page = random.Random(start).randbytes(PAGE_BYTES)
        yield start, data[:start] + page + data[start + PAGE_BYTES :]


def flipped(data: bytes, place: int) -> bytes:
    """The data with one byte changed, which is often no UTF-8."""
    return data[:place] + bytes([data[place] ^ 0xA1]) + data[place + 1 :]


def overwritten(data: bytes, place: int) -> bytes:
    """The data with some bytes overwritten by letters."""
    return data[:place] + b"aaaaaaaaaaaaaaaa"[: len(data) - place] + data[place + 16 :]


def damaged(data: bytes, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Each place, and the data with either kind of damage there."""
    for place, damage in zip(places, itertools.cycle((flipped, overwritten))):
        yield place, damage(data, place)


def check_made_good(sample: Sample, what: object) -> None:
    build(sample.settings)
    # The second build removes what the first one, without a state, could not know of.
    assert build(sample.settings).rendered == 0, what
    assert sample.outcome() == sample.expected, what


def test_any_page_of_the_state(sample):
    sample.restore()
    for place, other in some(damaged_pages(sample.path.read_bytes())):
        sample.restore()
        sample.path.write_bytes(other)
        check_made_good(sample, place)


def test_any_page_of_the_state_in_a_build_for_publishers(sample):
    """Such a build reads what it needs; the next full look finds the rest."""
    sample.restore()
    for place, other in some([*damaged_pages(sample.path.read_bytes())][::2]):
        sample.restore()
        sample.path.write_bytes(other)
        with contextlib.suppress(HubError):  # the service would look at everything then
            build(sample.settings, changed=[("ann", "story")])
        check_made_good(sample, place)


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 4097, 20_000, -1])
def test_a_state_that_is_cut_off(sample, size):
    sample.restore()
    sample.path.write_bytes(sample.path.read_bytes()[:size])
    check_made_good(sample, size)


def test_a_state_that_is_no_database(sample):
    sample.restore()
    sample.path.write_bytes(random.Random(1).randbytes(50_000))
    check_made_good(sample, "random bytes")


def test_a_state_that_is_another_database(sample):
    sample.restore()
    sample.path.unlink()
    with contextlib.closing(sqlite3.connect(sample.path)) as db:
        db.execute("CREATE TABLE other (x)")
    check_made_good(sample, "another database")


def test_any_byte_of_what_is_not_yet_in_the_state(sample):
    """The log that SQLite writes ahead; it has checksums of its own."""
    wal = Path(f"{sample.path}-wal")
    sample.restore()
    with contextlib.closing(sqlite3.connect(sample.path)) as other:
        other.execute("SELECT * FROM meta").fetchall()  # as long as it is open, the log stays
        with State(sample.settings.state) as state:
            state.begin(forget=False)
            state.lists.put_page("code", "top", 1, b"")
            state.end(stamp(sample.settings), Site(sample.settings.out).mark())
        data = wal.read_bytes()
    assert data
    for place, other in damaged(data, some(places(len(data)))):
        sample.restore()
        wal.write_bytes(other)
        check_made_good(sample, place)


def test_any_byte_of_the_search_index(sample):
    for file, data in sample.state.items():
        if not file.startswith("search/") or not data:
            continue
        chosen = random.Random(file).sample(range(len(data)), min(len(data), PLACES_PER_FILE))
        for place, other in damaged(data, some(chosen)):
            sample.restore()
            Path(sample.settings.state, file).write_bytes(other)
            check_made_good(sample, (file, place))
    gc.collect()


STATEMENTS = {
    "summary": "UPDATE repo SET summary = replace(summary, 'The', 'Teh')",
    "type": "UPDATE repo SET summary = CAST(summary AS TEXT)",
    "versions": "UPDATE repo SET versions = x'93c1'",
    "list": "INSERT INTO todo VALUES ('pass_list', 'no name')",
    "todo": "INSERT INTO todo VALUES ('repo', 'no name')",
    "text": "UPDATE repo SET tags = CAST(x'ff' AS TEXT)",
}


@pytest.mark.parametrize(
    ("changed", "statement"),
    [*some(itertools.product([None, [("ann", "story")]], STATEMENTS))],
    ids=lambda value: value if isinstance(value, str) else "changed" if value else "all",
)
def test_values_that_make_no_sense(sample, statement, changed, caplog):
    sample.restore()
    ruin(sample, STATEMENTS[statement])
    with contextlib.suppress(HubError):
        build(sample.settings, changed=changed)
    check_made_good(sample, statement)
    assert [one.message for one in caplog.records if "is damaged" in one.message]


def ruin(sample: Sample, statement: str) -> None:
    """Change rows behind the back of the state."""
    with contextlib.closing(sqlite3.connect(sample.path, isolation_level=None)) as db:
        db.execute(statement)


def test_a_sound_state_is_not_taken_for_a_damaged_one(sample, caplog):
    caplog.set_level(logging.WARNING)
    sample.restore()
    for changed in (None, [("ann", "story")], None):
        build(sample.settings, changed=changed)
    assert not caplog.records
    assert State.find_damage(sample.settings.state) is None
    assert index.find_damage(sample.settings) is None


@pytest.mark.parametrize("changed", [None, [("ann", "story")]])
def test_trouble_is_no_damage(sample, changed, monkeypatch):
    """Another program holds the state: it stays as it is, and the error says what is wrong."""
    sample.restore()
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.0)
    inode = sample.path.stat().st_ino
    with contextlib.closing(sqlite3.connect(sample.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OperatorError, match="locked"):
            build(sample.settings, changed=changed)
    assert sample.path.stat().st_ino == inode
    build(sample.settings)
    assert sample.outcome() == sample.expected


def test_a_disk_that_is_full(sample, monkeypatch):
    sample.restore()
    inode = sample.path.stat().st_ino
    connect = sqlite3.connect

    def connect_to_a_full_disk(*args: object, **options: object) -> sqlite3.Connection:
        db = connect(*args, **options)
        db.execute("PRAGMA max_page_count = 1")
        return db

    with monkeypatch.context() as full:
        full.setattr(sqlite3, "connect", connect_to_a_full_disk)
        for number in range(40):
            write_version(sample.settings.content, "zed", f"repo-{number}", "1.0.0", "New.")
        with pytest.raises(OperatorError, match="full"):
            build(sample.settings)
    shutil.rmtree(f"{sample.settings.content}/zed")
    assert sample.path.stat().st_ino == inode
    build(sample.settings)
    build(sample.settings)
    assert sample.outcome() == sample.expected


# Readers


def test_readers_of_a_damaged_state_get_an_error_to_retry(sample):
    sample.restore()
    data = sample.path.read_bytes()
    for place, other in damaged(data, some(places(len(data)))):
        sample.restore()
        sample.path.write_bytes(other)
        with contextlib.closing(Queries(sample.settings)) as queries:
            for query in ASKED:
                try:
                    queries.answer(query)
                except RequestError as error:
                    assert error.code in ("unavailable", "tag_not_found"), (place, error)


def test_a_summary_that_is_damaged_is_not_shown(sample):
    sample.restore()
    ruin(sample, STATEMENTS["summary"])
    with contextlib.closing(Queries(sample.settings)) as queries:
        with pytest.raises(RequestError) as caught:
            queries.answer(ListQuery(q="care"))
        assert caught.value.code == "unavailable"
