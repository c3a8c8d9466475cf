"""The search engine on Whoosh, in pure Python: for small hubs, and for systems without Tantivy."""

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from whoosh import fields, index, writing

from builder.model.search_records import Facets
from builder.search.engine import Engine, Hits, most_frequent
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

SCHEMA = fields.Schema(
    id=fields.ID(unique=True, stored=True),
    digest=fields.STORED,
    order=fields.STORED,
    tag=fields.KEYWORD(stored=True),
    owner=fields.ID,
    label=fields.KEYWORD(stored=True),
    **dict.fromkeys(WORD_FIELDS, fields.KEYWORD),
)


# Whoosh itself retries this often, with this pause, to read a commit that another one is replacing.
TRIES, PAUSE_SECONDS = 10, 0.05


def create(folder: str) -> None:
    index.create_in(folder, SCHEMA).close()


def write(folder: str, entries: Iterable[Entry], gone: Iterable[str]) -> None:
    found = _open_dir(folder)
    writer = found.writer(limitmb=64)
    try:
        for repo_id in gone:
            writer.delete_by_term("id", repo_id)
        for entry in entries:
            writer.update_document(
                id=entry.id,
                digest=entry.digest,
                order=entry.order,
                owner=entry.owner,
                tag=" ".join(entry.tags),
                label=" ".join(entry.labels),
                **entry.word_fields(),
            )
        writer.commit(mergetype=writing.MERGE_SMALL)
    except BaseException:
        writer.cancel()
        raise
    finally:
        found.close()


def state(folder: str) -> object:
    return _open_dir(folder).latest_generation()


def _open_dir(folder: str) -> index.Index:
    """Opens the index as Whoosh does, with the retries that it makes for reading."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(FileNotFoundError):
            return index.open_dir(folder)
        time.sleep(PAUSE_SECONDS)
    return index.open_dir(folder)


def is_kept(name: str) -> bool:
    return name.endswith((".seg", ".toc"))


class WhooshReader:
    """Adds up scores from postings. Repos are numbers in here."""

    def __init__(self, folder: str) -> None:
        self._index = _open_dir(folder)
        self._reader = self._index.reader()

    def follow(self) -> None:
        self._reader = self._index.reader(reuse=self._reader)

    def close(self) -> None:
        self._reader.close()
        self._index.close()

    def size(self) -> int:
        return self._reader.doc_count()

    def holders(self, target: Target) -> int:
        return len(self._values(target))

    def words_beginning(self, prefix: str, limit: int) -> list[str]:
        found = self._reader.expand_prefix("word", prefix)
        return [word.decode() for word, _ in zip(found, range(limit), strict=False)]

    def find(
        self, plan: QueryPlan, scope: RepoFilter, start: int, count: int, sort: str | None = None
    ) -> Hits:
        found = []
        for number, score in self._scores(plan, scope).items():
            stored = self._reader.stored_fields(number)
            found.append((-(stored["order"][sort] if sort else score), stored["id"]))
        found.sort()
        return Hits([repo_id for _, repo_id in found[start : start + count]], len(found))

    def facets(self, plan: QueryPlan, scope: RepoFilter) -> Facets:
        tags, owners, labels = Counter(), Counter(), Counter()
        for number in self._scores(plan, scope):
            stored = self._reader.stored_fields(number)
            tags.update(stored["tag"].split())
            owners[stored["id"].partition("/")[0]] += 1
            labels.update(stored["label"].split())
        return Facets(*(most_frequent(counts.items()) for counts in (tags, owners, labels)))

    def having(self, targets: list[Target], among: list[str]) -> list[set[str]]:
        numbers = {number: one for one in among for number in self._holding("id", one)}
        found = [numbers.keys() & self._values(target).keys() for target in targets]
        return [{numbers[number] for number in some} for some in found]

    def digests(self, among: list[str] | None = None) -> dict[str, str]:
        if among is None:
            stored = self._reader.all_stored_fields()
        else:
            numbers = [number for one in among for number in self._holding("id", one)]
            stored = map(self._reader.stored_fields, numbers)
        return {one["id"]: one["digest"] for one in stored}

    def _scores(self, plan: QueryPlan, scope: RepoFilter) -> dict[int, float]:
        weights: dict[int, int] = defaultdict(int)
        scores: dict[int, float] = defaultdict(float)
        for target in plan.targets:
            for number, value in self._values(target).items():
                weights[number] += target.weight
                scores[number] += int(value * target.rarity)
        every = weights if plan.needed else self._reader.all_doc_ids()
        found = {number for number in every if weights[number] >= plan.needed}
        for term in scope.terms():
            found.intersection_update(self._holding(*term))
        for number in found.intersection(self._holding("whole", plan.whole)):
            scores[number] += WHOLE_SCORE
        return {number: scores[number] for number in found}

    def _values(self, target: Target) -> dict[int, float]:
        """The value of the best match of a target in each repo."""
        values: dict[int, float] = {}
        if target.prefix:
            for word in self._reader.expand_prefix("word", target.prefix):
                for number in self._holding("word", word):
                    values[number] = BEGINNING_ELSEWHERE_VALUE
            if len(target.prefix) <= BEGINNING_CHARS_MAX:
                for number in self._holding("beginning", target.prefix):
                    values[number] = BEGINNING_VALUE
        for stem, share in target.shares():
            own = dict.fromkeys(self._holding("text", stem), TEXT_VALUE)
            own.update(dict.fromkeys(self._holding("long_text", stem), LONG_TEXT_VALUE))
            for place, added in ADDED_VALUES.items():
                for number in self._holding(place, stem):
                    own[number] += added
            if target.surface and stem == target.stems[0]:
                in_title = self._holding("beginning", target.surface + TITLE_END)
                for holding in (self._holding("word", target.surface), in_title):
                    for number in own.keys() & {*holding}:
                        own[number] += EXACT_VALUE
            for number, value in own.items():
                values[number] = max(values.get(number, 0), share * value)
        return values

    def _holding(self, name: str, word: str | bytes) -> Iterator[int]:
        if (name, word) in self._reader:
            yield from self._reader.postings(name, word).all_ids()


ENGINE = Engine(create, write, WhooshReader, state, is_kept)
