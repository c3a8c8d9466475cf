"""Answers after a rebuild, and without one."""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.pipeline.build import build
from builder.search.queries import ListQuery, Queries
from builder.store.state import State
from tests.builder.search.asking import refused

READS: list[Callable[[Queries], object]] = [
    lambda queries: queries.answer(ListQuery(q="care")),
    lambda queries: queries.answer(ListQuery(tags=("code", "careful"))),
    lambda queries: queries.find(ListQuery(owner="ann"), 0, 10),
    lambda queries: queries.find(ListQuery(), 0, 10),
    lambda queries: queries.owners_beginning("", 10),
]


def check_unavailable(queries: Queries) -> None:
    for read in READS:
        with refused("unavailable"):
            read(queries)
    assert queries.similar("ann/reviews", 3) == []


def remove_state(path: Path) -> None:
    shutil.rmtree(path.parent)


def put_no_database(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"not a database" * 1000)


def put_other_tables(path: Path) -> None:
    path.unlink()
    sqlite3.connect(path).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE other (x)")


@pytest.mark.parametrize("ruin", [remove_state, put_no_database, put_other_tables])
def test_state_that_is_gone_or_damaged(small, ruin):
    build(small)
    reader, late = Queries(small), Queries(small)
    before = [read(reader) for read in READS]
    ruin(Path(State.path_in(small.state)))
    check_unavailable(late)
    shutil.rmtree(small.state, ignore_errors=True)
    build(small)
    for queries in (reader, late):
        assert [read(queries) for read in READS] == before
        assert queries.similar("ann/reviews", 3)[0] == "ann/review"
        queries.close()


def test_no_build_yet(small, queries):
    check_unavailable(queries)
    build(small)
    assert queries.find(ListQuery(), 0, 10).total == 3
