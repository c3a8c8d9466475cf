"""The checker finds an order where there is one, and only there."""

import itertools
import random
from collections.abc import Callable

import pytest

from tests.support.linearizability import (
    UNKNOWN,
    Operation,
    Prompt,
    Undecided,
    complaints,
    step_prompt,
)


def done(kind: str, *arguments: object, gives: object, at: tuple[float, float]) -> Operation:
    return Operation("ann/story", kind, arguments, gives, *at)


def lost(kind: str, *arguments: object, at: float) -> Operation:
    return Operation("ann/story", kind, arguments, UNKNOWN, at)


def is_linearizable(*history: Operation) -> bool:
    return not complaints(history, step_prompt, Prompt())


PUBLISHED = done("publish", "a", None, gives=1, at=(0, 1))


@pytest.mark.parametrize("history", [
    [],
    [lost("publish", "a", None, at=0)],
    [PUBLISHED, done("latest", gives=1, at=(2, 3))],
    # At once, in either order.
    [PUBLISHED, done("publish", "b", None, gives=2, at=(0, 1))],
    [PUBLISHED._replace(result=2), done("publish", "b", None, gives=1, at=(0, 1))],
    [PUBLISHED, done("latest", gives=0, at=(0.5, 2))],
    [PUBLISHED, done("latest", gives=1, at=(0.5, 2))],
    # Three that overlap in a row, the other way round.
    [
        done("publish", "a", None, gives=3, at=(0, 10)),
        done("publish", "b", None, gives=2, at=(1, 9)),
        done("publish", "c", None, gives=1, at=(2, 8)),
    ],
    # One without an answer took effect: at once, late, or never.
    [lost("publish", "a", None, at=0), done("latest", gives=1, at=(1, 2))],
    [
        lost("publish", "a", None, at=0), done("latest", gives=0, at=(1, 2)),
        done("latest", gives=1, at=(3, 4)),
    ],
    [lost("publish", "a", None, at=0), done("publish", "b", None, gives=1, at=(1, 2))],
    [lost("publish", "a", None, at=0), done("publish", "b", 1, gives=2, at=(1, 2))],
    # A conflict tells that it was too late, and a success that it was not.
    [PUBLISHED, done("publish", "b", 0, gives="conflict", at=(2, 3))],
    [
        done("publish", "b", 0, gives=1, at=(0, 3)),
        done("publish", "c", 0, gives="conflict", at=(0, 3)),
    ],
    [
        PUBLISHED, done("publish", "b", None, gives=2, at=(2, 3)),
        done("move", "prod", 1, 0, gives="moved", at=(4, 9)),
        done("move", "prod", 2, 1, gives="moved", at=(4, 9)),
        done("move", "prod", 2, 0, gives="conflict", at=(4, 9)),
        done("label", "prod", gives=2, at=(10, 11)), done("label", "test", gives=0, at=(10, 11)),
    ],
    [PUBLISHED, lost("move", "prod", 1, None, at=2), done("label", "prod", gives=1, at=(3, 4))],
    # A withdrawn version takes its labels with it, and its number is not given again.
    [
        done("publish", "a", None, ("prod", "test"), gives=1, at=(0, 1)),
        done("publish", "b", None, ("prod",), gives=2, at=(2, 3)),
        done("withdraw", 2, gives="withdrawn", at=(4, 5)),
        done("withdraw", 2, gives="unchanged", at=(6, 7)), done("latest", gives=1, at=(6, 7)),
        done("label", "prod", gives=0, at=(6, 7)), done("label", "test", gives=1, at=(6, 7)),
        done("move", "prod", 2, gives="withdrawn", at=(6, 7)),
        done("publish", "c", 1, gives=3, at=(8, 9)),
        done("withdraw", 4, gives="missing", at=(8, 9)),
    ],
])  # fmt: skip
def test_linearizable(history: list[Operation]) -> None:
    assert is_linearizable(*history)


@pytest.mark.parametrize("history", [
    # A number twice, and one that nobody published.
    [PUBLISHED, done("publish", "b", None, gives=1, at=(0, 1))],
    [PUBLISHED, done("publish", "b", None, gives=3, at=(0, 1))],
    [PUBLISHED, done("latest", gives=2, at=(2, 3))],
    # Lost after it was acknowledged, seen before it was asked for, seen and then not.
    [PUBLISHED, done("latest", gives=0, at=(2, 3))],
    [done("publish", "a", None, gives=1, at=(3, 4)), done("latest", gives=1, at=(0, 1))],
    [
        done("publish", "a", None, gives=1, at=(0, 9)), done("latest", gives=1, at=(1, 2)),
        done("latest", gives=0, at=(3, 4)),
    ],
    # Two readers who see two orders.
    [
        PUBLISHED, done("publish", "b", None, gives=2, at=(2, 3)),
        done("move", "prod", 1, None, gives="moved", at=(4, 20)),
        done("move", "prod", 2, None, gives="moved", at=(4, 20)),
        done("label", "prod", gives=1, at=(5, 6)), done("label", "prod", gives=2, at=(7, 8)),
        done("label", "prod", gives=1, at=(9, 10)),
    ],
    # One without an answer that came into effect twice, or before it was asked for.
    [lost("publish", "a", None, at=0), done("latest", gives=2, at=(1, 2))],
    [done("latest", gives=1, at=(1, 2)), lost("publish", "a", None, at=3)],
    [
        lost("publish", "a", None, at=0), done("latest", gives=1, at=(1, 2)),
        done("latest", gives=0, at=(3, 4)),
    ],
    # Two whose conditions exclude each other.
    [
        done("publish", "a", 0, gives=1, at=(0, 1)), done("publish", "b", 0, gives=2, at=(0, 1)),
    ],
    [PUBLISHED, *[done("move", "prod", 1, 0, gives="moved", at=(2, 3))] * 2],
    [PUBLISHED, done("publish", "b", 1, gives="conflict", at=(2, 3))],
    [
        PUBLISHED, done("withdraw", 1, gives="withdrawn", at=(2, 3)),
        done("publish", "b", None, gives=1, at=(4, 5)),
    ],
    [
        PUBLISHED, done("withdraw", 1, gives="withdrawn", at=(2, 3)),
        done("latest", gives=1, at=(4, 5)),
    ],
    [PUBLISHED, *[done("withdraw", 1, gives="withdrawn", at=(2, 3))] * 2],
])  # fmt: skip
def test_not_linearizable(history: list[Operation]) -> None:
    assert not is_linearizable(*history)


def test_keys_are_apart() -> None:
    """Each has an order of its own, and a complaint names the one that has none."""
    other = PUBLISHED._replace(key="ann/other")
    assert is_linearizable(PUBLISHED, other)
    (complaint,) = complaints([PUBLISHED, other, other], step_prompt, Prompt())
    assert complaint.startswith("ann/other: ") and "ann/story" not in complaint


def simulate(seed: int, count: int) -> list[Operation]:
    """What several clients see of a prompt that does all in one order; some lose the answer."""
    chance = random.Random(seed)
    prompt, history, free = Prompt(), [], [0.0] * 6
    for number, moment in enumerate(itertools.accumulate(chance.random() for _ in range(count))):
        client = chance.randrange(len(free))
        called = max(free[client], moment - chance.random() * 3)
        if called > moment:
            continue
        returned = free[client] = moment + chance.random() * 3
        kind, arguments = chance.choice([
            ("publish", (f"text {number}", chance.choice([None, len(prompt.texts)]))),
            ("publish", (f"text {number}", None, ("prod",))),
            ("move", ("prod", 1, None)), ("move", ("prod", 2, chance.randrange(3))),
            ("withdraw", (chance.randrange(1, 40),)),
            ("latest", ()), ("label", ("prod",)),
        ])  # fmt: skip
        asked = Operation("ann/story", kind, arguments, UNKNOWN, called, returned)
        if chance.random() < 0.1:
            prompt = chance.choice([prompt, step_prompt(prompt, asked)])
            history.append(asked)
            continue
        results = ["moved", "unchanged", "conflict", "withdrawn", "missing", *range(count)]
        (answered,) = (
            one for one in (asked._replace(result=result) for result in results)
            if step_prompt(prompt, one) is not None
        )  # fmt: skip
        prompt = step_prompt(prompt, answered)
        history.append(answered)
    return history


def test_simulated_histories() -> None:
    for seed in range(30):
        assert is_linearizable(*simulate(seed, 200)), seed


def _forget(history: list[Operation], chance: random.Random) -> list[Operation]:
    """An acknowledged publication is lost: all later ones have the numbers before."""
    published = [one for one in history if one.kind == "publish" and isinstance(one.result, int)]
    lost = chance.choice(published[: len(published) // 2])
    return [
        one._replace(result=one.result - 1)
        if one in published and one.result > lost.result and one.called > lost.returned
        else one
        for one in history
    ]  # fmt: skip


def _repeat(history: list[Operation], chance: random.Random) -> list[Operation]:
    """A number is given twice."""
    published = [one for one in history if one.kind == "publish" and isinstance(one.result, int)]
    again = chance.choice(published)
    return [*history, again._replace(arguments=("again", None))]


@pytest.mark.parametrize("spoil", [_forget, _repeat])
def test_spoilt_histories(
    spoil: Callable[[list[Operation], random.Random], list[Operation]],
) -> None:
    for seed in range(10):
        history = spoil(simulate(seed, 60), random.Random(seed))
        assert not is_linearizable(*history), seed


def test_too_many_orders() -> None:
    """Then it says so."""
    history = [done("publish", f"{at}", None, gives=at, at=(0, 1)) for at in range(2, 40)]
    unknown = [lost("publish", f"lost {at}", None, at=0) for at in range(20)]
    with pytest.raises(Undecided):
        complaints([*history, *unknown, done("latest", gives=99, at=(2, 3))], step_prompt,
                   Prompt(), most=10_000)  # fmt: skip
