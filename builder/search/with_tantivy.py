"""The search engine on Tantivy, a library in Rust.

All fields hold words that are already split, without counts. So a score is a sum of
constants, a float that is exact up to 2²⁴.
"""

import os
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter

from tantivy import DocAddress, Document, FieldType, Index, Occur, Query, Schema, SchemaBuilder

from builder.model.routes import SORTS
from builder.model.search_records import Facets
from builder.search.engine import COUNTED_MAX, Engine, Hits, most_frequent
from builder.search.entries import (
    ADDED_VALUES,
    BEGINNING_CHARS_MAX,
    LONG_TEXT_VALUE,
    TEXT_VALUE,
    TITLE_END,
    WORD_FIELDS,
    Entry,
)
from builder.search.plan import (
    BEGINNING_ELSEWHERE_VALUE,
    BEGINNING_VALUE,
    EXACT_VALUE,
    WHOLE_SCORE,
    QueryPlan,
    RepoFilter,
    Target,
)

HEAP_BYTES = 50_000_000
# Hits beyond a page that are searched for ties.
TIES = 1_000
# The first characters of an id that fit one number.
HEAD_CHARS = 8
# The first letter and the first two letters of each word have a field of their own, because so many
# words begin with them.
START_CHARS_MAX = 2
FACETS = ("tag", "owner", "label")
# More than the tags, owners or labels of a segment, because counts would not be exact otherwise.
SEGMENT_NAMES_MAX = 1_000_000

_MUST, _SHOULD = Occur.Must, Occur.Should

EVERYWHERE = RepoFilter()

# A hit's score, or its position in an order: greater ones come first.
Hit = tuple[float, DocAddress]


def _schema() -> Schema:
    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("digest", stored=True, tokenizer_name="raw", index_option="basic")
    for name in FACETS:
        builder.add_text_field(name, fast=True, tokenizer_name="raw", index_option="basic")
    for name in (*WORD_FIELDS, "start"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("head", fast=True)
    for name in SORTS:
        builder.add_integer_field(name, fast=True)
    return builder.build()


SCHEMA = _schema()


def create(folder: str) -> None:
    Index(SCHEMA, folder, reuse=False, sort_by_field="id")


def write(folder: str, entries: Iterable[Entry], gone: Iterable[str]) -> None:
    writer = Index.open(folder).writer(HEAP_BYTES, num_threads=1)
    try:
        # An interrupted commit may have left a file with a name that this commit would use.
        writer.garbage_collect_files()
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
        # Ends the writer's threads and releases the lock.
        writer.wait_merging_threads()


def _fields(entry: Entry) -> dict[str, str | int | list[str]]:
    starts = {word[:START_CHARS_MAX] for word in entry.words}
    return {
        "id": entry.id,
        "head": _head(entry.id),
        **entry.order,
        "digest": entry.digest,
        "owner": entry.owner,
        "tag": entry.tags,
        "label": entry.labels,
        **entry.word_fields(),
        "start": " ".join(starts.union(map(itemgetter(0), starts))),
    }


def _head(repo_id: str) -> int:
    """The beginning of an id, as a number in the order of ids."""
    return int.from_bytes(repo_id[:HEAD_CHARS].ljust(HEAD_CHARS, "\0").encode())


def state(folder: str) -> object:
    status = os.stat(f"{folder}/meta.json")
    return status.st_ino, status.st_mtime_ns, status.st_size


def is_kept(name: str) -> bool:
    return not name.startswith(".") and name != "meta.json"


class TantivyReader:
    """Answers from one commit."""

    def __init__(self, folder: str) -> None:
        self._index = Index.open(folder)
        # Otherwise a separate thread would watch for commits.
        self._index.config_reader("manual")
        self.follow()

    def follow(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()

    def close(self) -> None:
        del self._searcher, self._index

    def size(self) -> int:
        return self._searcher.num_docs

    def holders(self, target: Target) -> int:
        # The count that a term has in the index includes deleted repos.
        return self._searcher.search(_holding(target), 1).count

    def words_beginning(self, prefix: str, limit: int) -> list[str]:
        return [word for word, _ in self._searcher.terms_with_prefix("word", prefix, limit=limit)]

    def find(
        self, plan: QueryPlan, scope: RepoFilter, start: int, count: int, sort: str | None = None
    ) -> Hits:
        end = start + count
        query = _within([_found(plan)], scope) if sort else _scored(plan, scope)
        result = self._searcher.search(query, end + TIES, order_by_field=sort)
        hits = result.hits
        # Further hits may have the same score and lower ids.
        if len(hits) == end + TIES and hits[-1][0] == hits[end - 1][0]:
            hits = self._with_all_ties(hits, query, end, sort)
        ids = chain.from_iterable(self._by_id(ties) for _, ties in groupby(hits, itemgetter(0)))
        return Hits([*islice(ids, start, end)], result.count)

    def _with_all_ties(
        self, hits: list[Hit], query: Query, end: int, sort: str | None
    ) -> list[Hit]:
        """``hits``, which is cut off among hits with equal scores, with all hits of that score that
        may come before ``end``: those whose heads are among the lowest.
        """
        score = hits[-1][0]
        better = [hit for hit in hits if hit[0] > score]
        addresses = [address for _, address in hits[len(better) :]]
        highest = sorted(self._searcher.fast_field_values("head", addresses))[end - len(better) - 1]
        low = Query.range_query(SCHEMA, "head", FieldType.Unsigned, upper_bound=highest)
        found = self._searcher.search(
            _within([query, low]), self.size(), count=False, order_by_field=sort
        )
        return better + [hit for hit in found.hits if hit[0] == score]

    def _by_id(self, ties: Iterable[Hit]) -> Iterator[str]:
        """The ids of hits with equal scores, in order. Those of each segment are in order already,
        so few ids are read before the first.
        """
        segments = groupby(ties, key=lambda hit: hit[1].segment_ord)
        return merge(*(map(self._id, [address for _, address in run]) for _, run in segments))

    def facets(self, plan: QueryPlan, scope: RepoFilter) -> Facets:
        wanted = {"size": COUNTED_MAX + 1, "segment_size": SEGMENT_NAMES_MAX}
        counts = {name: {"terms": {"field": name, **wanted}} for name in FACETS}
        found = self._searcher.aggregate(_within([_found(plan)], scope), counts)
        buckets = [found[name]["buckets"] for name in FACETS]
        return Facets(
            *(most_frequent((x["key"], x["doc_count"]) for x in some) for some in buckets)
        )

    def having(self, targets: list[Target], among: list[str]) -> list[set[str]]:
        # Faster than a query for a set of terms, as long as they are few.
        any_of_them = _any([_term("id", one) for one in among])
        queries = [_all([any_of_them, _holding(target)]) for target in targets]
        found = [self._searcher.search(one, len(among) or 1, count=False).hits for one in queries]
        return [{self._id(address) for _, address in hits} for hits in found]

    def digests(self, among: list[str] | None = None) -> dict[str, str]:
        query = Query.all_query() if among is None else Query.term_set_query(SCHEMA, "id", among)
        hits = self._searcher.search(query, max(1, self.size()), count=False).hits
        documents = (self._searcher.doc(address) for _, address in hits)
        return {one["id"][0]: one["digest"][0] for one in documents}

    def _id(self, address: object) -> str:
        return self._searcher.doc(address)["id"][0]


def _term(name: str, word: str) -> Query:
    return Query.term_query(SCHEMA, name, word, index_option="basic")


def _any(queries: list[Query], needed: int = 1) -> Query:
    return Query.boolean_query([(_SHOULD, query) for query in queries], needed)


def _all(queries: list[Query]) -> Query:
    return Query.boolean_query([(_MUST, query) for query in queries])


def _within(queries: list[Query], scope: RepoFilter = EVERYWHERE) -> Query:
    """The intersection of the queries and the scope, with the score of the first query."""
    scored, *others = queries
    others += [_term(*term) for term in scope.terms()]
    return _all([scored, *(_worth(other, 0) for other in others)]) if others else scored


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


def _found(plan: QueryPlan) -> Query:
    """The matching repos; a target is repeated according to its weight."""
    if not plan.targets:
        return Query.empty_query() if plan.needed else Query.all_query()
    weighty = [target for target in plan.targets if target.weight]
    weights, needed = _lightest([target.weight for target in weighty], plan.needed)
    pairs = zip(weighty, weights, strict=True)
    return _any([query for one, weight in pairs for query in [_holding(one)] * weight], needed)


def _lightest(weights: list[int], needed: int) -> tuple[list[int], int]:
    """Smaller weights with which the same sets of targets reach the needed weight. A sentence takes
    half the time with them.
    """
    for most in range(1, max(weights)):
        lighter = [round(weight * most / max(weights)) for weight in weights]
        sums = [(0, 0)]
        for pair in zip(weights, lighter, strict=True):
            sums += [(one + pair[0], other + pair[1]) for one, other in sums]
        enough = min(other for one, other in sums if one >= needed)
        if all(other < enough for one, other in sums if one < needed):
            return lighter, enough
    return weights, needed


def _scored(plan: QueryPlan, scope: RepoFilter) -> Query:
    """The matching repos, with their scores."""
    if not plan.targets:
        return _within([_found(plan)], scope)
    ways = [*chain.from_iterable(map(_ways, plan.targets))]
    whole = _worth(_term("whole", plan.whole), WHOLE_SCORE)
    # If any single target is enough, the second query is not needed.
    is_any = plan.needed <= min(target.weight for target in plan.targets)
    return _within([_any([*ways, whole]), *([] if is_any else [_found(plan)])], scope)


def _ways(target: Target) -> list[Query]:
    """The repos with a target, with the score of their best match: the sum of these queries'
    scores.
    """
    values = {"text": TEXT_VALUE, "long_text": LONG_TEXT_VALUE, **ADDED_VALUES}
    ways = [
        [
            _worth(_term(place, stem), share * value * target.rarity)
            for place, value in values.items()
        ]
        for stem, share in target.shares()
    ]
    if target.surface:
        own = _any(_anywhere(target.stems[0]))
        once, twice = (int(times * EXACT_VALUE * target.rarity) for times in (1, 2))
        in_title = _term("beginning", target.surface + TITLE_END)
        for exact, score in ((_term("word", target.surface), once), (in_title, twice - once)):
            if score:
                ways[0].append(_worth(_all([own, exact]), score))
    if target.prefix:
        elsewhere = _with_prefix(target.prefix)
        ways.append([_worth(elsewhere, BEGINNING_ELSEWHERE_VALUE * target.rarity)])
        if len(target.prefix) <= BEGINNING_CHARS_MAX:
            beginning = _term("beginning", target.prefix)
            ways.append([_worth(beginning, BEGINNING_VALUE * target.rarity)])
    if len(ways) == 1:
        return ways[0]
    return [Query.disjunction_max_query([_any(way) for way in ways])]


def _worth(query: Query, score: float) -> Query:
    return Query.const_score_query(query, float(int(score)))


ENGINE = Engine(create, write, TantivyReader, state, is_kept)
