"""The folder of the index: it follows the content, and is rebuilt after damage."""

import contextlib
import gc
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.settings import SEARCH_ENGINES, Settings
from builder.pipeline.build import build
from builder.search import index
from builder.search.index import OpenIndex
from builder.search.queries import Queries
from tests.builder.search.test_finding import find
from tests.support.catalogues import write_label, write_version

# Whoosh leaves files open in which it meets damage.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(params=SEARCH_ENGINES)
def small(request: pytest.FixtureRequest, small: Settings) -> Settings:
    return small._replace(search=request.param)


def test_words_of_texts_that_are_gone(small):
    write_version(small.content, "eve", "one", "1.0.0", "Writing is hard.")
    write_version(small.content, "eve", "two", "1.0.0", "Writes slowly.")
    build(small)
    queries = Queries(small)
    assert find(queries, "writi") == ["eve/one"]
    shutil.rmtree(f"{small.content}/eve/one")
    build(small)
    fresh = small._replace(out=f"{small.out}2", state=f"{small.state}2")
    build(fresh)
    anew = Queries(fresh)
    for q in ("writi", "write", "writing"):
        assert find(queries, q) == find(anew, q)
    for one in (queries, anew):
        one.close()


def test_labels_come_and_go(small):
    def put(number: int, label: str, version: str | None) -> None:
        write_label(small.content, "ann/review", number, label, version)
        build(small)

    build(small)
    with contextlib.closing(Queries(small)) as queries:
        for q in ("label:production", "production"):
            assert find(queries, q) == []
        put(1, "production", "1.0.0")
        put(2, "eu-west", "1.0.0")
        for q in ("production", "west", "label:production", "LABEL:production label:eu-west care"):
            assert find(queries, q) == ["ann/review"]
        assert find(queries, "label:production story") == []
        lines = Path(small.out, "api/v1/catalogue.jsonl").read_text().splitlines()
        first, *others = [json.loads(line).get("labels") for line in lines]
        assert first == ["eu-west", "production"] and not any(others)
        put(3, "production", None)
        for q in ("production", "label:production"):
            assert find(queries, q) == []
        assert find(queries, "label:eu-west") == ["ann/review"]


def ruin_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def ruin_stamp(folder: Path) -> None:
    (folder / "stamp").unlink()


def put_file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not an index")


def ruin_files(patterns: list[str], data: bytes | None, kept_bytes: int) -> Callable[[Path], None]:
    def ruin(folder: Path) -> None:
        for path in {path for pattern in patterns for path in folder.glob(pattern)}:
            start = path.read_bytes()[:kept_bytes]
            # Never in place: what the old file's readers have mapped must stay.
            path.unlink()
            if data is not None:
                path.write_bytes(start + data)

    return ruin


CONTENTS = ["meta.json", "*.toc"]
SEGMENTS = ["*.seg", "*.term", "*.idx", "*.fast", "*.store", "*.fieldnorm", "*.pos"]
RUINS = [
    ruin_folder, ruin_stamp, put_file_in_its_place, ruin_files(["*"], None, 0),
    *(
        ruin_files(patterns, data, kept)
        for patterns in (CONTENTS, SEGMENTS)
        for data, kept in ((None, 0), (b"", 0), (b"", 20), (bytes(range(256)) * 8, 0))
    ),
    *(ruin_files([one], bytes(range(256)) * 8, 100) for one in SEGMENTS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ruin", "is_changed"), [(ruin, bool(number % 2)) for number, ruin in enumerate(RUINS)]
)
def test_a_damaged_index_is_rebuilt(small, ruin, is_changed):
    """The next build does it, whether the content has changed or not."""
    build(small)
    reader = Queries(small)
    assert find(reader, "care") == ["ann/review"]
    ruin(Path(index.index_folder(small)))
    late = Queries(small)
    for queries in (reader, late):
        # Until then a search may fail, but only in the way that readers know.
        try:
            found = find(queries, "care")
        except RequestError as error:
            assert error.code == "unavailable"
        else:
            assert found in ([], ["ann/review"])
    expected = {"ann/review"}
    if is_changed:
        write_version(small.content, "bob", "nurse", "1.0.0", "Take care.\n")
        expected.add("bob/nurse")
    build(small)
    for queries in (reader, late, Queries(small)):
        assert set(find(queries, "care")) == expected
        queries.close()


def test_a_byte_that_no_search_reads_is_found_and_made_good(small):
    """Both engines open an index with such a byte, and most searches answer as before."""
    build(small)
    folder = Path(index.index_folder(small))
    files = [folder / name for name in json.loads((folder / "checksums").read_bytes())]
    assert index.find_damage(small) is None and files
    for path in files:
        data = path.read_bytes()
        middle = len(data) // 2
        path.unlink()  # a reader may have the old one mapped
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        assert str(path) in (index.find_damage(small) or "")
        path.write_bytes(data)
    path.write_bytes(data[:-1])
    build(small)
    assert index.find_damage(small) is None


def test_an_index_whose_build_did_not_end_is_rebuilt(small):
    build(small)
    reader = Queries(small)
    assert find(reader, "care") == ["ann/review"]
    ruin_stamp(Path(index.index_folder(small)))

    def die(what: str, done: int, total: int) -> None:
        # During the rebuild, the reader keeps its old index.
        assert find(reader, "care") == ["ann/review"]
        if what == "Indexing" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(small, progress=die)
    assert find(reader, "care") == ["ann/review"]
    build(small)
    for queries in (reader, Queries(small)):
        assert find(queries, "care") == ["ann/review"]
        assert find(queries, "story") == ["ann/story"]
        queries.close()


def check_unavailable_until_built(settings: Settings) -> None:
    queries = Queries(settings)
    with pytest.raises(RequestError) as caught:
        find(queries, "care")
    assert caught.value.code == "unavailable"
    build(settings)
    assert find(queries, "care") == ["ann/review"]
    queries.close()


def test_without_an_index(small):
    with pytest.raises(OperatorError, match="hubctl build"):
        OpenIndex(small)
    build(small, index=False)
    check_unavailable_until_built(small)


def test_the_index_of_another_engine_is_rebuilt(small):
    build(small)
    (other,) = {*SEARCH_ENGINES} - {small.search}
    build(small._replace(search=other))
    check_unavailable_until_built(small)


def test_engine_that_is_not_installed(small):
    with pytest.raises(OperatorError, match="HUB_SEARCH"):
        build(small._replace(search="elsewhere"))
