"""A model of an engine's results, as simple as possible: it looks at every entry."""

from collections import Counter
from collections.abc import Iterable

from builder.model.search_records import Facet, Facets
from builder.search.entries import ADDED_VALUES, LONG_TEXT_VALUE, TEXT_VALUE, TITLE_END, Entry
from builder.search.plan import (
    BEGINNING_ELSEWHERE_VALUE,
    BEGINNING_VALUE,
    EXACT_VALUE,
    WHOLE_SCORE,
    QueryPlan,
    RepoFilter,
    Target,
)


class Model:
    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self.words = sorted(set().union(*(entry.words for entry in self.entries.values())))

    def size(self) -> int:
        return len(self.entries)

    def holders(self, target: Target) -> int:
        return sum(value_of(entry, target) > 0 for entry in self.entries.values())

    def having(self, targets: list[Target], among: list[str]) -> list[set[str]]:
        return [{one for one in among if value_of(self.entries[one], some)} for some in targets]

    def words_beginning(self, prefix: str, limit: int) -> list[str]:
        return [word for word in self.words if word.startswith(prefix)][:limit]

    def best(
        self, plan: QueryPlan, scope: RepoFilter, start: int, count: int, sort: str | None = None
    ) -> list[str]:
        scores = self.scores(plan, scope)
        if sort:
            scores = {one: self.entries[one].order[sort] for one in scores}
        return sorted(scores, key=lambda one: (-scores[one], one))[start : start + count]

    def facets(self, plan: QueryPlan, scope: RepoFilter) -> Facets:
        found = [self.entries[one] for one in self.scores(plan, scope)]
        tags = Counter(tag for entry in found for tag in entry.tags)
        owners = Counter(entry.owner for entry in found)
        labels = Counter(label for entry in found for label in entry.labels)
        return Facets(
            *(
                [
                    Facet(name, count)
                    for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
                ]
                for counts in (tags, owners, labels)
            )
        )

    def scores(self, plan: QueryPlan, scope: RepoFilter) -> dict[str, float]:
        found = {}
        for entry in self.entries.values():
            values = [value_of(entry, target) for target in plan.targets]
            weights = [one.weight for one, value in zip(plan.targets, values, strict=True) if value]
            is_in_scope = set(scope.tags) <= set(entry.tags) and scope.owner in (None, entry.owner)
            is_in_scope &= set(scope.labels) <= set(entry.labels)
            if sum(weights) >= plan.needed and is_in_scope:
                parts = zip(plan.targets, values, strict=True)
                found[entry.id] = sum(int(target.rarity * value) for target, value in parts)
                found[entry.id] += WHOLE_SCORE * (plan.whole in entry.whole - {""})
        return found


def value_of(entry: Entry, target: Target) -> float:
    """The value of the best way in which a repo has a target; 0 where it has it in none."""
    values = [0.0]
    for at, stem in enumerate(target.stems):
        if stem in entry.stems:
            value = LONG_TEXT_VALUE if entry.is_long else TEXT_VALUE
            value += sum(added for place, added in ADDED_VALUES.items()
                         if stem in entry.added.get(place, ()))  # fmt: skip
            forms = target.surface in entry.words, target.surface + TITLE_END in entry.beginnings
            exact = EXACT_VALUE * sum(forms)
            values.append(value / 2 if at else value + exact)
    if target.prefix:
        if target.prefix in entry.beginnings:
            values.append(BEGINNING_VALUE)
        if any(word.startswith(target.prefix) for word in entry.words):
            values.append(BEGINNING_ELSEWHERE_VALUE)
    return max(values)
