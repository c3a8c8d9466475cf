"""Searches for one order of a history of operations that explains all its answers.

Each operation must take effect at one moment between its call and its return. One without an answer
takes effect at some moment after its call, or never. The search is Wing and Gong's, with Lowe's
memory of configurations that it has tried. For each key it remembers the operations that have taken
effect and the state that they have led to.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

UNKNOWN = object()
CONFIGURATIONS_MAX = 500_000


class Operation(NamedTuple):
    """An operation that a client requested for a key, from ``called`` until ``returned``, in
    seconds of one clock. Without an answer, ``result`` is UNKNOWN, and ``returned`` does not count.
    ``note`` is for the test that keeps the history.
    """

    key: str
    kind: str
    arguments: tuple[Any, ...]
    result: Any
    called: float
    returned: float = math.inf
    note: str = ""


class Undecided(Exception):
    """Raised if a key has too many possible orders to try them all."""


# The state after an operation; None where it cannot have had this result then. It takes UNKNOWN.
Step = Callable[[Any, Operation], Hashable | None]


def complaints(
    history: Iterable[Operation], step: Step, start: Hashable, most: int = CONFIGURATIONS_MAX
) -> list[str]:
    """A text for each key whose operations have no order.

    Raises Undecided if a key has more than ``most`` configurations.
    """
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_key[operation.key].append(operation)
    found = []
    for key, operations in sorted(by_key.items()):
        stuck = _Search(operations, step, most).run(start)
        if stuck:
            found.append(f"{key}: nothing explains any of these:\n" + "\n".join(map(str, stuck)))
    return found


class _Tried(NamedTuple):
    """A configuration: which operations have taken effect. All answered operations before ``first``
    have, and those after it whose bits are in ``others``; of the unknown ones, those in
    ``unknown``.
    """

    first: int
    others: int
    unknown: int
    state: Hashable


class _Search:
    """The orders of one key's operations."""

    def __init__(self, operations: Sequence[Operation], step: Step, most: int) -> None:
        ordered = sorted(operations, key=lambda operation: operation.called)
        self._known = [one for one in ordered if one.result is not UNKNOWN]
        self._unknown = [one for one in ordered if one.result is UNKNOWN]
        self._step = step
        self._most = most

    def run(self, start: Hashable) -> list[Operation]:
        """Operations that come next where the longest order ends; empty if all have an order."""
        waiting = [_Tried(0, 0, 0, start)]
        tried = {*waiting}
        farthest = waiting[0]
        while waiting:
            here = waiting.pop()
            if here.first == len(self._known):
                return []
            farthest = max(farthest, here, key=lambda one: one.first + one.others.bit_count())
            # The last of these is tried next: answered ones before unknown ones.
            for after in reversed([*self._next(here)]):
                if after not in tried:
                    tried.add(after)
                    waiting.append(after)
            if len(tried) > self._most:
                raise Undecided(f"{self._known[0].key}: {len(tried):,} configurations")
        return [self._known[at] for at in self._open(farthest)]

    def _open(self, here: _Tried) -> list[int]:
        """The answered operations that may be next: all that were called before any of them had
        returned.
        """
        found, returned = [], math.inf
        for at in range(here.first, len(self._known)):
            operation = self._known[at]
            if operation.called > returned:
                break
            if not here.others >> at & 1:
                found.append(at)
                returned = min(returned, operation.returned)
        return found

    def _next(self, here: _Tried) -> Iterator[_Tried]:
        opened = self._open(here)
        returned = min(self._known[at].returned for at in opened)
        for at in opened:
            state = self._step(here.state, self._known[at])
            if state is not None:
                first, others = here.first, here.others | 1 << at
                while others >> first & 1:
                    others ^= 1 << first
                    first += 1
                yield _Tried(first, others, here.unknown, state)
        for at, operation in enumerate(self._unknown):
            if operation.called <= returned and not here.unknown >> at & 1:
                state = self._step(here.state, operation)
                # An operation without an effect may as well never take place.
                if state is not None and state != here.state:
                    yield here._replace(unknown=here.unknown | 1 << at, state=state)


class Prompt(NamedTuple):
    """The state of a prompt: its versions' texts in order, where the first is number 1; the numbers
    that its labels name, by label; and the numbers that are withdrawn.
    """

    texts: tuple[str, ...] = ()
    labels: tuple[tuple[str, int], ...] = ()
    withdrawn: frozenset[int] = frozenset()

    @property
    def latest(self) -> int:
        """Its number; 0 for none."""
        numbers = range(len(self.texts), 0, -1)
        return next((one for one in numbers if one not in self.withdrawn), 0)


def step_prompt(prompt: Prompt, operation: Operation) -> Prompt | None:
    """A prompt after one of these, whose results are:

    - ``publish`` (text, the number that it is based on, or None, labels that move with it): its
      number, or ``conflict``;
    - ``move`` (label, number, the number that it was, 0 for none, or None for any): ``moved``,
      ``unchanged``, ``conflict``, ``withdrawn``, or ``missing``;
    - ``withdraw`` (number): ``withdrawn``, ``unchanged``, or ``missing``;
    - ``latest`` (): a number, 0 for none;
    - ``label`` (label): a number, 0 for none.
    """
    result, after = _EFFECTS[operation.kind](prompt, *operation.arguments)
    return after if operation.result is UNKNOWN or operation.result == result else None


def _publish(
    prompt: Prompt, text: str, base: int | None = None, labels: tuple[str, ...] = ()
) -> tuple[object, Prompt]:
    if base is not None and base != prompt.latest:
        return "conflict", prompt
    number = len(prompt.texts) + 1
    moved = dict(prompt.labels) | dict.fromkeys(labels, number)
    return number, prompt._replace(texts=(*prompt.texts, text), labels=tuple(sorted(moved.items())))


def _move(
    prompt: Prompt, label: str, number: int, expected: int | None = None
) -> tuple[object, Prompt]:
    named = dict(prompt.labels)
    if number in prompt.withdrawn:
        return "withdrawn", prompt
    if number > len(prompt.texts):
        return "missing", prompt
    if expected not in (None, named.get(label, 0)):
        return "conflict", prompt
    if named.get(label) == number:
        return "unchanged", prompt
    return "moved", prompt._replace(labels=tuple(sorted((named | {label: number}).items())))


def _withdraw(prompt: Prompt, number: int) -> tuple[object, Prompt]:
    if number > len(prompt.texts):
        return "missing", prompt
    if number in prompt.withdrawn:
        return "unchanged", prompt
    left = tuple(one for one in prompt.labels if one[1] != number)
    return "withdrawn", prompt._replace(labels=left, withdrawn=prompt.withdrawn | {number})


_EFFECTS: dict[str, Callable[..., tuple[object, Prompt]]] = {
    "publish": _publish,
    "move": _move,
    "withdraw": _withdraw,
    "latest": lambda prompt: (prompt.latest, prompt),
    "label": lambda prompt, label: (dict(prompt.labels).get(label, 0), prompt),
}
