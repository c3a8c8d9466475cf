"""Answers that are kept: how many bytes, which go first, and until when."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.store.site import Mark, mark_of
from mcp_app.answer_cache import ENTRY_BYTES, KeptAnswers

BYTES_MAX = 64 * ENTRY_BYTES
LARGEST = BYTES_MAX // 16 - ENTRY_BYTES
FRESH: dict[str, Mark] = {}


def kept_of(kept: KeptAnswers, keys: Any) -> dict[Any, bytes]:
    """Those of the keys that are kept, without using them."""
    return {key: kept._entries[key][0] for key in keys if key in kept._entries}


_steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "get"]), st.integers(0, 40),
        st.integers(0, LARGEST) | st.integers(LARGEST - 1, 2 * LARGEST), st.integers(0, LARGEST),
    ),
    max_size=120,
)  # fmt: skip


@given(_steps)
def test_against_a_model(steps: list[tuple[str, int, int, int]]):
    """The model is a list of what is kept, the one that was used longest ago first."""
    kept = KeptAnswers(BYTES_MAX)
    model: list[tuple[int, bytes, int]] = []
    for number, (step, key, size, key_bytes) in enumerate(steps):
        if step == "get":
            found = [entry for entry in model if entry[0] == key]
            assert kept.get(key) == (found[0][1] if found else None)
            model = [entry for entry in model if entry[0] != key] + found
        else:
            answer = b"%03d" % number + b"x" * size
            kept.put(key, key_bytes, answer, FRESH)
            model = [entry for entry in model if entry[0] != key]
            whole = len(answer) + key_bytes + ENTRY_BYTES
            if whole <= BYTES_MAX // 16:
                model.append((key, answer, whole))
            while sum(entry[2] for entry in model) > BYTES_MAX:
                model.pop(0)
        assert list(kept._entries) == [entry[0] for entry in model]
        assert kept.size == sum(entry[2] for entry in model) <= BYTES_MAX
    assert kept_of(kept, range(41)) == {entry[0]: entry[1] for entry in model}


def test_the_one_not_asked_for_longest_goes_first():
    kept = KeptAnswers(16 * 2 * ENTRY_BYTES)
    for key in range(16):
        kept.put(key, 0, b"x" * ENTRY_BYTES, FRESH)
    assert kept.get(0) and kept.get(2)
    for key in range(16, 18):
        kept.put(key, 0, b"x" * ENTRY_BYTES, FRESH)
    assert sorted(kept_of(kept, range(20))) == [0, 2, *range(4, 18)]


def test_a_long_key_counts():
    kept = KeptAnswers(BYTES_MAX)
    for number in range(1000):
        kept.put(f"{number}" + "k" * LARGEST, LARGEST, b"", FRESH)
    assert kept.size <= BYTES_MAX
    assert len(kept._entries) == 16
    kept.put("k", LARGEST + 1, b"", FRESH)
    assert kept.get("k") is None


@pytest.mark.parametrize(("size", "is_kept"), [(LARGEST, True), (LARGEST + 1, False)])
def test_a_huge_answer_is_not_kept_and_drives_nothing_out(size: int, is_kept: bool):
    kept = KeptAnswers(BYTES_MAX)
    for key in range(10):
        kept.put(key, 0, b"small", FRESH)
    kept.put("huge", 0, b"x" * size, FRESH)
    assert (kept.get("huge") is not None) is is_kept
    assert len(kept_of(kept, range(10))) == 10


def test_what_is_too_large_now_is_not_answered_from_before():
    kept = KeptAnswers(BYTES_MAX)
    kept.put("key", 0, b"old", FRESH)
    kept.put("key", 0, b"x" * BYTES_MAX, FRESH)
    assert kept.get("key") is None
    assert kept.size == 0


def test_answers_that_are_given_up_are_no_longer_counted(tmp_path: Path):
    kept = KeptAnswers(BYTES_MAX)
    paths = [tmp_path / str(number) for number in range(3)]
    for path in paths:
        path.write_text("a")
    marks = {str(path): mark_of(path.stat()) for path in paths}
    for turn, path in itertools.product(range(3), paths):
        kept.put("key", 0, b"answer", marks)
        assert kept.get("key") == b"answer"
        path.write_text("a" * (turn + 2))
        assert kept.get("key") is None
        assert kept.size == 0
        marks[str(path)] = mark_of(path.stat())
    paths[0].unlink()
    kept.put("key", 0, b"answer", marks)
    assert kept.get("key") is None
    assert kept.get("key") is None


def test_no_bytes_no_answers():
    kept = KeptAnswers(0)
    kept.put("key", 0, b"", FRESH)
    assert kept.get("key") is None
