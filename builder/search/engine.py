"""What a search engine does for the hub. Two modules of this package do it, each with a library.

An engine stores entries (``entries``) in a folder of its own and finds those that a plan
(``plan``) describes. Which engine it is makes no difference to what is found, nor to its order.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple, Protocol

from builder.search.entries import Entry
from builder.search.plan import QueryPlan, Scope, Vocabulary


class Found(NamedTuple):
    """The ids of some repos that are found, and how many are."""

    ids: list[str]
    total: int


class Reader(Vocabulary, Protocol):
    """One commit of an index, for one thread at a time. Methods raise errors of any kind where
    files are damaged.
    """

    def find(
        self, plan: QueryPlan, scope: Scope, start: int, count: int, sort: str | None = None
    ) -> Found:
        """The repos that are found, by score or in an order of lists, then by id: ``count`` of
        them from ``start``.
        """

    def total(self, plan: QueryPlan, scope: Scope) -> int:
        """How many repos are found."""

    def has(self, repo_id: str, plan: QueryPlan) -> bool:
        """Whether a repo is found."""

    def digests(self, among: list[str] | None = None) -> dict[str, str]:
        """The digest of each repo in the index, by id; of those in ``among``."""

    def follow(self) -> None:
        """Go to the newest commit."""

    def close(self) -> None: ...


class Engine(NamedTuple):
    """The functions of an engine; each takes the index's folder first, and raises errors of any
    kind where files are damaged or cannot be written.

    ``create`` makes an empty index in an empty folder. ``write`` takes in entries in place of those
    with the same ids, and drops others by their ids, in one commit. ``state`` differs after each
    commit, and is cheap. ``is_kept`` tells of a file's name whether the file never changes.
    """

    create: Callable[[str], None]
    write: Callable[[str, Iterable[Entry], Iterable[str]], None]
    open: Callable[[str], Reader]
    state: Callable[[str], object]
    is_kept: Callable[[str], bool]


def engine_named(name: str) -> Engine:
    """``tantivy`` or ``whoosh``; loads its library. Raises ImportError."""
    return import_module(f"builder.search.with_{name}").ENGINE
