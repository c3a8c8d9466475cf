"""The search engine on Tantivy, a library in Rust.

All fields hold words that are split already, and none counts how often: a score is a sum of
constants. Score and weight of a hit are packed into one number, a float that is exact up to 2²⁴.
"""

import os
from collections.abc import Iterable

from tantivy import Document, Index, Occur, Order, Query, Schema, SchemaBuilder

from builder.search.engine import Engine
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
TIES = 64
GROWTH = 8
# A word that every repo has.
EVERY = "_"

_MUST, _SHOULD, _NOT = Occur.Must, Occur.Should, Occur.MustNot


def _schema() -> Schema:
    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("digest", stored=True, tokenizer_name="raw", index_option="basic")
    for name in (
        "owner", "tag", *ADDED_VALUES, "text", "long_text", "word", "beginning", "whole",
    ):  # fmt: skip
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    return builder.build()


SCHEMA = _schema()


def create(folder: str) -> None:
    Index(SCHEMA, folder, reuse=False)


def write(folder: str, entries: Iterable[Entry], gone: Iterable[str], is_hurried: bool) -> None:
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
    return {
        "id": entry.id,
        "digest": entry.digest,
        "owner": entry.owner,
        "tag": " ".join(entry.tags),
        **{place: " ".join(stems) for place, stems in entry.added.items()},
        "long_text" if entry.is_long else "text": " ".join(entry.stems),
        "word": " ".join(entry.words),
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

    def total(self, plan: Plan, scope: Scope) -> int:
        return self._count(_within(scope, [_found(plan)])) if plan.targets else 0

    def best(self, plan: Plan, scope: Scope, start: int, count: int) -> list[str]:
        if not plan.targets:
            return []
        if len(plan.targets) == 1:
            return self._tier_by_tier(plan, scope, start, count)
        scored = _any([_scored(target) for target in plan.targets] + [_whole(plan)])
        limit, end = start + count + TIES, start + count
        queries = [scored]
        while True:
            hits = self._searcher.search(_within(scope, queries), limit, count=False).hits
            found = []
            for packed, address in hits:
                score, weight = divmod(int(packed), 1 << WEIGHT_BITS)
                if weight >= plan.needed:
                    found.append((-score, address))
            # Behind the last hit may be others of the same score.
            if len(hits) < limit or (len(found) >= end and found[-1][0] > found[end - 1][0]):
                break
            limit *= GROWTH
            # Hits that have too little of the query are in the way: find only what fits.
            queries = [scored, Query.const_score_query(_found(plan), 0.0)]
        return self._page(found, start, end)

    def _page(self, found: list, start: int, end: int) -> list[str]:
        """The ids from ``start`` to ``end``, ordered by score and id."""
        wanted = found[start:end]
        if not wanted:
            return []
        first, last = wanted[0][0], wanted[-1][0]
        named, before = [], 0
        for score, address in found:
            if score < first:
                before += 1
            elif score <= last:
                named.append((score, self._id(address)))
        return [repo_id for _, repo_id in sorted(named)[start - before : end - before]]

    def _tier_by_tier(self, plan: Plan, scope: Scope, start: int, count: int) -> list[str]:
        """With one target there are few different scores, and many repos with each."""
        (target,) = plan.targets
        tiers = [(WHOLE_SCORE, _whole(plan, is_plain=True)), *_ways(target)]
        tiers.sort(key=lambda tier: -tier[0])
        found: list[str] = []
        above: list[Query] = []
        tiers_by_value: dict[float, list[Query]] = {}
        for value, query in tiers:
            tiers_by_value.setdefault(value, []).append(query)
        for queries in tiers_by_value.values():
            tier = Query.boolean_query([
                (_MUST, _within(scope, [_any(queries)])), *((_NOT, query) for query in above),
            ])  # fmt: skip
            result = self._searcher.search(
                tier, max(1, count - len(found)), offset=start, order_by_field="id",
                order=Order.Asc,
            )  # fmt: skip
            found += [repo_id for repo_id, _ in result.hits]
            if len(found) >= count:
                break
            start = max(0, start - result.count)
            above += queries
        return found

    def all_found(self, plan: Plan, scope: Scope, among: list[str] | None = None) -> list[str]:
        if not plan.targets:
            return []
        queries = [_found(plan)]
        if among is not None:
            queries.append(Query.term_set_query(SCHEMA, "id", among))
        return self._ids(_within(scope, queries), len(among) if among is not None else self.size())

    def digests(self, among: list[str] | None = None) -> dict[str, str]:
        query = Query.all_query() if among is None else Query.term_set_query(SCHEMA, "id", among)
        hits = self._searcher.search(query, max(1, self.size()), count=False).hits
        documents = (self._searcher.doc(address) for _, address in hits)
        return {one["id"][0]: one["digest"][0] for one in documents}

    def _ids(self, query: Query, limit: int) -> list[str]:
        found = self._searcher.search(
            query, max(1, limit), count=False, order_by_field="id", order=Order.Asc
        )
        return [repo_id for repo_id, _ in found.hits]

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
    return Query.regex_query(SCHEMA, "word", f"{prefix}.*")


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


def _whole(plan: Plan, is_plain: bool = False) -> Query:
    query = _term("whole", plan.whole)
    return query if is_plain else _packed(query, WHOLE_SCORE)


def _scored(target: Target) -> Query:
    """The repos with a target, with the packed score of the best way in which they have it."""
    ways = [
        _any([
            _packed(_term("text", stem), share * TEXT_VALUE * target.rarity, target.weight),
            _packed(_term("long_text", stem), share * LONG_TEXT_VALUE * target.rarity,
                    target.weight),
            *(
                _packed(_term(place, stem), share * value * target.rarity)
                for place, value in ADDED_VALUES.items()
            ),
        ])
        for stem, share in _shares(target)
    ]  # fmt: skip
    ways += [
        _packed(query, value * target.rarity, target.weight) for value, query in _beginnings(target)
    ]
    return Query.disjunction_max_query(ways) if len(ways) > 1 else ways[0]


def _ways(target: Target) -> list[tuple[float, Query]]:
    """Each way to have a target, with its value; a repo's is the greatest."""
    ways = _beginnings(target)
    for stem, share in _shares(target):
        for name, value in (("text", TEXT_VALUE), ("long_text", LONG_TEXT_VALUE)):
            text = _term(name, stem)
            ways.append((share * value, text))
            ways += [
                (share * (value + added), _all([_term(place, stem), text]))
                for place, added in ADDED_VALUES.items()
            ]
    return ways


def _shares(target: Target) -> list[tuple[str, float]]:
    first, *others = target.stems
    return [(first, 1.0), *((stem, 0.5) for stem in others)]


def _beginnings(target: Target) -> list[tuple[float, Query]]:
    if not target.prefix:
        return []
    ways = [(float(BEGINNING_ELSEWHERE_VALUE), _with_prefix(target.prefix))]
    if len(target.prefix) <= BEGINNING_CHARS_MAX:
        ways.append((float(BEGINNING_VALUE), _term("beginning", target.prefix)))
    return ways


ENGINE = Engine(create, write, TantivyReader, state, is_kept)
