"""The search engine on Tantivy, a library in Rust.

All fields hold words that are split already, and none counts how often: a score is a sum of
constants. Score and weight of a hit are packed into one number, a float that is exact up to 2²⁴.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter

from tantivy import DocAddress, Document, Index, Occur, Order, Query, Schema, SchemaBuilder

from builder.search.engine import Engine, Found
from builder.search.entries import (
    ADDED_VALUES,
    BEGINNING_CHARS_MAX,
    LONG_TEXT_VALUE,
    TEXT_VALUE,
    Entry,
)
from builder.search.plan import (
    BEGINNING_ELSEWHERE_VALUE,
    BEGINNING_VALUE,
    WHOLE_SCORE,
    Plan,
    Scope,
    Target,
)

HEAP_BYTES = 50_000_000
# Bits of a packed score that hold the weight.
WEIGHT_BITS = 7
# Hits beyond a page among which ties are looked for, and how many times more are tried next.
TIES = 200
SORTED_HERE_MAX = 500
GROWTH = 8
# The first letter and the first two of each word have a field: so many words begin with them.
START_CHARS_MAX = 2
# A word that every repo has.
EVERY = "_"

_MUST, _SHOULD, _NOT = Occur.Must, Occur.Should, Occur.MustNot


def _schema() -> Schema:
    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("digest", stored=True, tokenizer_name="raw", index_option="basic")
    for name in (
        "owner", "tag", *ADDED_VALUES, "text", "long_text", "word", "start", "beginning", "whole",
    ):  # fmt: skip
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    return builder.build()


SCHEMA = _schema()


def create(folder: str) -> None:
    Index(SCHEMA, folder, reuse=False)


def write(folder: str, entries: Iterable[Entry], gone: Iterable[str]) -> None:
    writer = Index.open(folder).writer(HEAP_BYTES, num_threads=1)
    try:
        for repo_id in gone:
            writer.delete_documents_by_term("id", repo_id)
        for entry in entries:
            writer.delete_documents_by_term("id", entry.id)
            writer.add_document(Document.from_dict(_fields(entry), SCHEMA))
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    finally:
        # Ends its threads, and gives the lock back.
        writer.wait_merging_threads()


def _fields(entry: Entry) -> dict[str, str]:
    starts = {word[:START_CHARS_MAX] for word in entry.words}
    return {
        "id": entry.id,
        "digest": entry.digest,
        "owner": entry.owner,
        "tag": " ".join(entry.tags),
        **{place: " ".join(stems) for place, stems in entry.added.items()},
        "long_text" if entry.is_long else "text": " ".join(entry.stems),
        "word": " ".join(entry.words),
        "start": " ".join(starts.union(start[0] for start in starts)),
        "beginning": " ".join(entry.beginnings),
        "whole": " ".join([EVERY, *entry.whole]),
    }


def state(folder: str) -> object:
    status = os.stat(f"{folder}/meta.json")
    return status.st_ino, status.st_mtime_ns, status.st_size


def is_kept(name: str) -> bool:
    return not name.startswith(".") and name != "meta.json"


class TantivyReader:
    """Answers from one commit."""

    def __init__(self, folder: str) -> None:
        self._index = Index.open(folder)
        # Else a thread of its own would look for commits.
        self._index.config_reader("manual")
        self.follow()

    def follow(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()
        # A term's own count has deleted repos in it.
        self._has_deleted = self._searcher.doc_freq("whole", EVERY) != self._searcher.num_docs

    def close(self) -> None:
        del self._searcher, self._index

    def size(self) -> int:
        return self._searcher.num_docs

    def holders(self, target: Target) -> int:
        if len(target.stems) > 1 or target.prefix or self._has_deleted:
            return self._count(_any([_holding(target)]))
        (stem,) = target.stems
        return sum(self._searcher.doc_freq(name, stem) for name in ("text", "long_text"))

    def words_beginning(self, prefix: str, limit: int) -> list[str]:
        return [word for word, _ in self._searcher.terms_with_prefix("word", prefix, limit=limit)]

    def find(self, plan: Plan, scope: Scope, start: int, count: int) -> Found:
        if not plan.targets:
            return Found([], 0)
        scored = [_any([*chain.from_iterable(map(_scored, plan.targets)), _whole(plan)])]
        # Whoever has any of the words is found, or only who has enough of them.
        is_any = plan.needed <= min(target.weight for target in plan.targets)
        total = None if is_any else self.total(plan, scope)
        limit, end = start + count + TIES, start + count
        while True:
            result = self._searcher.search(_within(scope, scored), limit, count=is_any)
            hits = result.hits
            found = []
            for packed, address in hits:
                score, weight = divmod(int(packed), 1 << WEIGHT_BITS)
                if weight >= plan.needed:
                    found.append((-score, address))
            if total is None:
                total = result.count
            # Behind the last hit may be others of the same score.
            if len(hits) < limit or (len(found) >= end and found[-1][0] > found[end - 1][0]):
                return Found(self._page(found, start, end), total)
            if len(plan.targets) == 1:
                return Found(self._page_of_ties(found, plan, scope, start, end), total)
            limit *= GROWTH
            # Hits that have too little of the query are in the way: find only what fits.
            if not is_any and len(scored) == 1:
                scored.append(Query.const_score_query(_found(plan), 0.0))

    def _page(self, found: list[tuple[int, DocAddress]], start: int, end: int) -> list[str]:
        """The ids from ``start`` to ``end``, by score and id; ``found`` is by score."""
        wanted = found[start:end]
        if not wanted:
            return []
        first, last = wanted[0][0], wanted[-1][0]
        before = bisect_left(found, first, key=itemgetter(0))
        after = bisect_right(found, last, key=itemgetter(0))
        named = sorted((score, self._id(address)) for score, address in found[before:after])
        return [repo_id for _, repo_id in named[start - before : end - before]]

    def _page_of_ties(
        self, found: list[tuple[int, DocAddress]], plan: Plan, scope: Scope, start: int, end: int
    ) -> list[str]:
        """As ``_page``, where more than was looked at has the last score; for one target, with
        which it is known what gives it.
        """
        last = found[-1][0]
        before = bisect_left(found, last, key=itemgetter(0))
        ids = self._page(found[:before], start, end)
        query = _within(scope, [_with_score(plan, -last)])
        ties = self._ids(query, SORTED_HERE_MAX)
        if len(ties) < SORTED_HERE_MAX:
            return ids + sorted(ties)[max(0, start - before) : end - before]
        # Slow for each of its answers, so for few of many alone.
        result = self._searcher.search(
            query, end - max(start, before), count=False, offset=max(0, start - before),
            order_by_field="id", order=Order.Asc,
        )  # fmt: skip
        return ids + [repo_id for repo_id, _ in result.hits]

    def total(self, plan: Plan, scope: Scope) -> int:
        return self._count(_within(scope, [_found(plan)])) if plan.targets else 0

    def has(self, repo_id: str, plan: Plan) -> bool:
        return bool(plan.targets) and self._count(_all([_term("id", repo_id), _found(plan)])) == 1

    def all_found(self, plan: Plan, scope: Scope, among: list[str] | None = None) -> list[str]:
        if not plan.targets:
            return []
        queries = [_found(plan)]
        if among is not None:
            queries.append(Query.term_set_query(SCHEMA, "id", among))
        return self._ids(_within(scope, queries), self.size() if among is None else len(among))

    def digests(self, among: list[str] | None = None) -> dict[str, str]:
        query = Query.all_query() if among is None else Query.term_set_query(SCHEMA, "id", among)
        hits = self._searcher.search(query, max(1, self.size()), count=False).hits
        documents = (self._searcher.doc(address) for _, address in hits)
        return {one["id"][0]: one["digest"][0] for one in documents}

    def _ids(self, query: Query, limit: int) -> list[str]:
        hits = self._searcher.search(query, max(1, limit), count=False).hits
        return [self._id(address) for _, address in hits]

    def _id(self, address: object) -> str:
        return self._searcher.doc(address)["id"][0]

    def _count(self, query: Query) -> int:
        return self._searcher.search(query, 1).count


def _term(name: str, word: str) -> Query:
    return Query.term_query(SCHEMA, name, word, index_option="basic")


def _any(queries: list[Query], needed: int = 1) -> Query:
    return Query.boolean_query([(_SHOULD, query) for query in queries], needed)


def _all(queries: list[Query]) -> Query:
    return Query.boolean_query([(_MUST, query) for query in queries])


def _within(scope: Scope, queries: list[Query]) -> Query:
    """All of the queries, and of the scope, which adds nothing to the score."""
    limits = [_term("tag", tag) for tag in scope.tags]
    if scope.owner is not None:
        limits.append(_term("owner", scope.owner))
    queries = queries + [Query.const_score_query(limit, 0.0) for limit in limits]
    return queries[0] if len(queries) == 1 else _all(queries)


def _packed(query: Query, score: float, weight: int = 0) -> Query:
    return Query.const_score_query(query, float((int(score) << WEIGHT_BITS) + weight))


def _anywhere(stem: str) -> list[Query]:
    return [_term("text", stem), _term("long_text", stem)]


def _with_prefix(prefix: str) -> Query:
    if len(prefix) <= START_CHARS_MAX:
        return _term("start", prefix)
    return Query.fuzzy_term_query(SCHEMA, "word", prefix, distance=0, prefix=True)


def _holding(target: Target) -> Query:
    """The repos with a target."""
    queries = [query for stem in target.stems for query in _anywhere(stem)]
    if target.prefix:
        queries.append(_with_prefix(target.prefix))
    return _any(queries)


def _found(plan: Plan) -> Query:
    """The repos that are found: a word counts as often as it weighs."""
    weighty = [target for target in plan.targets if target.weight]
    if plan.needed <= min(target.weight for target in weighty):
        return _any([_holding(target) for target in weighty])
    return _any([query for one in weighty for query in [_holding(one)] * one.weight], plan.needed)


def _whole(plan: Plan) -> Query:
    return _packed(_term("whole", plan.whole), WHOLE_SCORE)


def _scored(target: Target) -> list[Query]:
    """The repos with a target, with the packed score of the best way in which they have it: the
    sum of what these queries give.
    """
    ways = [
        [
            *(_packed(_term(name, stem), share * value * target.rarity, target.weight)
              for name, value in (("text", TEXT_VALUE), ("long_text", LONG_TEXT_VALUE))),
            *(_packed(_term(place, stem), share * value * target.rarity)
              for place, value in ADDED_VALUES.items()),
        ]
        for stem, share in target.shares()
    ]  # fmt: skip
    ways += [
        [_packed(query, value * target.rarity, target.weight)]
        for value, query in _beginnings(target)
    ]
    if len(ways) == 1:
        return ways[0]
    return [Query.disjunction_max_query([_any(way) for way in ways])]


def _with_score(plan: Plan, score: int) -> Query:
    """The repos with just this score, of the only target of a plan."""
    (target,) = plan.targets
    is_whole = score >= WHOLE_SCORE
    value = (score - WHOLE_SCORE * is_whole) / target.rarity
    ways = _ways(target)
    return Query.boolean_query([
        (_MUST, _any([query for one, query in ways if one == value])),
        (_MUST if is_whole else _NOT, _term("whole", plan.whole)),
        *((_NOT, query) for one, query in ways if one > value),
    ])  # fmt: skip


def _ways(target: Target) -> list[tuple[float, Query]]:
    """Each way to have a target, with its value; a repo's is the greatest."""
    ways = _beginnings(target)
    for stem, share in target.shares():
        for name, value in (("text", TEXT_VALUE), ("long_text", LONG_TEXT_VALUE)):
            text = _term(name, stem)
            ways.append((share * value, text))
            ways += [
                (share * (value + added), _all([_term(place, stem), text]))
                for place, added in ADDED_VALUES.items()
            ]
    return ways


def _beginnings(target: Target) -> list[tuple[float, Query]]:
    if not target.prefix:
        return []
    ways = [(float(BEGINNING_ELSEWHERE_VALUE), _with_prefix(target.prefix))]
    if len(target.prefix) <= BEGINNING_CHARS_MAX:
        ways.append((float(BEGINNING_VALUE), _term("beginning", target.prefix)))
    return ways


ENGINE = Engine(create, write, TantivyReader, state, is_kept)
