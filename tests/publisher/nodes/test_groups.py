"""Changes that wait at one node at the same time, which it may commit as one group."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from builder.model.errors import RequestError
from builder.model.records import OwnerFile
from publisher.nodes.store import Shared
from publisher.write.profile import read_profile, write_profile
from tests.publisher.nodes.conftest import LONG, Nodes
from tests.publisher.nodes.publishing import before_next_group, key_of, put


def wait_for_one_group(store: Shared, *changes: Callable[[], object]) -> list[str]:
    """Make changes that wait for the same group, in this order; returns the codes of those that
    are refused.
    """
    commits, started = store._commits, list[Future]()

    with ThreadPoolExecutor(len(changes)) as pool:

        def start() -> None:
            for count, change in enumerate(changes, 2):  # after the one that is held
                started.append(pool.submit(change))
                with commits._changed:
                    assert commits._changed.wait_for(
                        lambda n=count: len(commits._waiting) == n, LONG
                    )

        before_next_group(store, start)
        put(store, "first\n", owner="zoe")
        errors = [one.exception() for one in started]
    assert all(error is None or isinstance(error, RequestError) for error in errors), errors
    return [error.code for error in errors if error]


def test_a_key_for_two_prompts_publishes_one(nodes: Nodes):
    one = nodes.start("one")
    put(one, "old\n")  # which brings the owner's profile
    key = key_of(nodes, "one")
    other = key._replace(fingerprint=b"g" * 32)
    refused = wait_for_one_group(
        one,
        lambda: put(one, "a\n", name="a", idempotency_key=key),
        lambda: put(one, "b\n", name="b", idempotency_key=other),
    )
    assert refused == ["idempotency_key_reused"]
    published = nodes.execute("SELECT repo FROM change WHERE repo IN ('ann/a', 'ann/b')")
    assert published == [("ann/a",)]
    assert nodes.execute("SELECT count(*) FROM answer") == [(1,)]


def test_a_first_prompt_does_not_replace_a_profile(nodes: Nodes):
    one = nodes.start("one")
    profile = OwnerFile("Ann", "2026-01-01T00:00:00Z")
    assert not wait_for_one_group(
        one, lambda: write_profile(one, "ann", profile), lambda: put(one, "first\n")
    )
    assert read_profile(one.root, "ann") == profile
