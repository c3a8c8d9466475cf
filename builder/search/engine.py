"""The interface of a search engine. Two modules of this package implement it, each with a library.

An engine stores entries (``entries``) in a folder of its own and finds those that a plan
(``plan``) describes. All engines find the same repos, in the same order.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple, Protocol

from builder.model.search_records import Facet, Facets
from builder.search.entries import Entry
from builder.search.plan import QueryPlan, RepoFilter, Vocabulary

FACETS_MAX = 12
# An engine counts the repos of this many tags, owners or labels and one more. With more of them,
# those that are as frequent as the last one are left out, so that every engine leaves out the same.
COUNTED_MAX = 1_000


class Hits(NamedTuple):
    """The ids of a page of results, and the count of all results."""

    ids: list[str]
    total: int


class Reader(Vocabulary, Protocol):
    """One commit of an index, for one thread at a time. Methods raise errors of any kind if files
    are damaged.
    """

    def find(
        self, plan: QueryPlan, scope: RepoFilter, start: int, count: int, sort: str | None = None
    ) -> Hits:
        """The matching repos, by score or in an order of lists, then by id: ``count`` of them from
        ``start``.
        """

    def facets(self, plan: QueryPlan, scope: RepoFilter) -> Facets:
        """The most frequent tags, owners and labels of all matching repos."""

    def digests(self, among: list[str] | None = None) -> dict[str, str]:
        """The digest of each repo in the index, by id; only for ids in ``among`` if given."""

    def follow(self) -> None:
        """Switch to the newest commit."""

    def close(self) -> None: ...


class Engine(NamedTuple):
    """The functions of an engine. Each takes the index's folder first, and raises errors of any
    kind if files are damaged or cannot be written.

    ``create`` makes an empty index in an empty folder. ``write`` adds entries, replacing those
    with the same ids, and removes others by their ids, in one commit. ``state`` changes with each
    commit, and is cheap. ``is_kept`` returns true for the name of a file that never changes.
    """

    create: Callable[[str], None]
    write: Callable[[str, Iterable[Entry], Iterable[str]], None]
    open: Callable[[str], Reader]
    state: Callable[[str], object]
    is_kept: Callable[[str], bool]


def most_frequent(counts: Iterable[tuple[str, int]]) -> list[Facet]:
    """The first FACETS_MAX of names with their counts, most frequent first, then by name."""
    counted = sorted(counts, key=lambda pair: -pair[1])
    least = counted[COUNTED_MAX][1] if len(counted) > COUNTED_MAX else 0
    counted = sorted((-count, name) for name, count in counted if count > least)
    return [Facet(name, -count) for count, name in counted[:FACETS_MAX]]


def engine_named(name: str) -> Engine:
    """``tantivy`` or ``whoosh``; loads its library. Raises ImportError."""
    return import_module(f"builder.search.with_{name}").ENGINE
