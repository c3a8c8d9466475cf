"""Answers that are kept, and what ends that."""

import contextlib
import os

import pytest

from builder.model.settings import SEARCH_ENGINES
from builder.pipeline.build import build
from builder.search.kept import ENTRY_BYTES, KeptAnswers, Watch
from builder.store.state import State
from tests.support.catalogues import write_version


def test_kept_answers_are_bounded_in_bytes():
    kept = KeptAnswers(bytes_max=3 * (ENTRY_BYTES + 1_000))
    for number in range(10):
        assert kept.get("now", (len, (number,))) is None
        kept.put("now", (len, (number,)), b"x" * 900)
        kept.get("now", (len, (0,)))
    assert kept.size <= 3 * (ENTRY_BYTES + 1_000)
    answers = [kept.get("now", (len, (number,))) for number in range(10)]
    # Entry 0 was used in between, so it was kept.
    assert [number for number, one in enumerate(answers) if one] == [0, 8, 9]


def test_too_large_an_answer_is_not_kept():
    kept = KeptAnswers(bytes_max=10_000)
    kept.get("now", (len, ("small",)))
    kept.put("now", (len, ("q" * 20_000,)), b"small")
    assert kept.get("now", (len, ("q" * 20_000,))) is None
    assert kept.size == 0


def test_answers_of_an_older_version_are_not_kept():
    kept = KeptAnswers()
    kept.get("old", (len, ()))
    kept.put("old", (len, ()), b"answer")
    assert kept.get("old", (len, ())) == b"answer"
    assert kept.get("new", (len, ())) is None
    kept.put("old", (len, ()), b"answer")
    assert kept.get("new", (len, ())) is None


@pytest.mark.parametrize("engine", SEARCH_ENGINES)
def test_version_differs_after_each_build(small, engine):
    small = small._replace(search=engine)
    with contextlib.closing(Watch(small)) as watch:
        assert watch.version() is None
        build(small)
        seen = [watch.version()]
        assert None not in seen
        assert watch.version() == seen[0]
        write_version(small.content, "ada", "new", "1.0.0", "A text about walruses.\n")
        build(small)
        seen.append(watch.version())
        os.unlink(State.path_in(small.state))
        assert watch.version() is None
        build(small)
        seen.append(watch.version())
    assert len(set(seen)) == 3
