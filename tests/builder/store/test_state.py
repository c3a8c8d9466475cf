"""Rows of the build's state."""

import itertools

from builder.store.state import State
from builder.store.state.repos import _PIECE_BYTES, RepoRow

LENGTHS = (0, 1, _PIECE_BYTES, _PIECE_BYTES + 1, 3 * _PIECE_BYTES + 7, 2 * _PIECE_BYTES)


def row(length: int, byte: int) -> RepoRow:
    """The row of a repo whose fields that grow have so many bytes."""
    empty = dict.fromkeys(RepoRow._fields, 0)
    texts = dict.fromkeys(("mark", "names", "withdrawn", "tags", "kind"), "")
    others = ("gone", "digest", "search_digest", "summary", "card", "line", "langfuse", "skill")
    grown = {"versions": bytes([byte]) * length, "labels": bytes([byte + 1]) * (length // 2)}
    return RepoRow(
        **empty | texts | dict.fromkeys(others, b"") | grown | {"id": "ann/x", "owner": "ann"}
    )


def test_a_row_of_any_length_replaces_one_of_any_other() -> None:
    with State(None) as state:
        state.begin(forget=True)
        old = None
        for byte, length in enumerate(
            itertools.chain.from_iterable(itertools.permutations(LENGTHS, 2))
        ):
            new = row(length, byte)
            state.repos.put(new, old)
            assert state.repos.get("ann/x") == new
            old = new
        state.repos.remove(old)
        assert state.repos.get("ann/x") is None
        state.repos.put(new := row(1, 0), None)
        assert state.repos.get("ann/x") == new


def test_a_longer_row_stores_only_the_pieces_that_changed() -> None:
    with State(None) as state:
        state.begin(forget=True)
        old, said = row(5 * _PIECE_BYTES, 1), []
        state.repos.put(old, None)
        state._db.set_trace_callback(said.append)
        state.repos.put(old._replace(versions=old.versions + b"more"), old)
        assert sum(one.startswith("INSERT OR REPLACE INTO piece") for one in said) == 1
