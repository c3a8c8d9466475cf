"""The thread of queries: who runs where, how many may wait, and callers that go away."""

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from typing import Any

import pytest

from builder.model.errors import RequestError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search.queries import ListQuery, Queries
from builder.search.query_thread import QueryThread
from builder.store.state import State
from server.app import ReadApp
from tests.support.servers import DEADLINE_SECONDS

PLACES = 3


@pytest.fixture
def thread(small: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[QueryThread]:
    monkeypatch.setattr("builder.search.query_thread.QUERIES_WAITING_MAX", PLACES)
    build(small)
    with contextlib.closing(QueryThread(small)) as made:
        yield made


class Jobs:
    """Jobs that note their name when they run; the first waits until it is let go."""

    def __init__(self, thread: QueryThread) -> None:
        self.thread = thread
        self.done: list[str] = []
        self.is_let_go = threading.Event()

    async def start(self, name: str, *, waits: bool = False) -> asyncio.Task[str]:
        """Start a caller; its job is in the queue on return."""
        # Each job is a function of its own, as equal ones would run once.
        task = asyncio.create_task(self.thread.run(partial(self._run), name, waits))
        await asyncio.sleep(0)
        return task

    def _run(self, _: Queries, name: str, waits: bool) -> str:
        if waits:
            assert self.is_let_go.wait(DEADLINE_SECONDS)
        self.done.append(name)
        return name

    async def check_full(self) -> None:
        with pytest.raises(RequestError, match="Too many searches") as caught:
            await self.thread.run(self._run, "too many", False)
        assert caught.value.code == "unavailable"


@contextlib.asynccontextmanager
async def jobs_of(thread: QueryThread) -> AsyncIterator[Jobs]:
    """Jobs for the thread; none keeps waiting when a test fails."""
    jobs = Jobs(thread)
    try:
        yield jobs
    finally:
        jobs.is_let_go.set()


def in_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run a test in an event loop."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), DEADLINE_SECONDS))

    return run


@in_a_loop
async def test_all_in_one_other_thread_with_one_queries(thread):
    def where(queries: Queries) -> tuple[int, int]:
        return threading.get_ident(), id(queries)

    found = {await thread.run(where) for _ in range(PLACES)}
    found |= set(await asyncio.gather(*(thread.run(where) for _ in range(PLACES))))
    assert len(found) == 1
    assert threading.get_ident() not in found.pop()


@in_a_loop
async def test_errors_reach_the_caller_and_free_the_place(thread):
    for _ in range(2 * PLACES):
        with pytest.raises(RequestError) as caught:
            await thread.run(Queries.find, ListQuery(tags=("nope",)), 0, 10)
        assert caught.value.code == "tag_not_found"


@in_a_loop
async def test_a_query_that_fails_is_tried_again(thread):
    for failure in (OSError("the file is gone"), RequestError("unavailable", "x")):
        failures = [failure]

        def fail_once(queries: Queries, failures: list[Exception] = failures) -> int:
            if failures:
                raise failures.pop()
            return queries.find(ListQuery(q="care"), 0, 1).total

        assert await thread.run(fail_once) == 1


@in_a_loop
async def test_a_query_that_goes_on_failing_is_unavailable(thread):
    for _ in range(2 * PLACES):
        with pytest.raises(RequestError) as caught:
            await thread.run(lambda _: 1 // 0)
        assert caught.value.code == "unavailable"
    assert (await thread.run(Queries.find, ListQuery(), 0, 1)).total == 3


@in_a_loop
async def test_only_what_stays_unavailable_is_doubted(small):
    build(small)
    doubts = []
    with contextlib.closing(QueryThread(small, lambda: doubts.append(1))) as doubting:
        for query in (ListQuery(), ListQuery(tags=("nope",))):
            with contextlib.suppress(RequestError):
                await doubting.run(Queries.find, query, 0, 1)
        assert not doubts
        os.unlink(f"{small.state}/search/stamp")
        assert await doubting.run(Queries.owners_beginning, "a", 5) == ["ann"]
        assert not doubts
        with pytest.raises(RequestError):
            await doubting.run(Queries.find, ListQuery(q="care"), 0, 1)
        assert doubts == [1]


@in_a_loop
async def test_too_many_at_once(thread):
    async with jobs_of(thread) as jobs:
        for _ in range(2):
            jobs.is_let_go.clear()
            callers = [await jobs.start("first", waits=True)]
            callers += [await jobs.start(f"{number}") for number in range(1, PLACES)]
            await jobs.check_full()
            jobs.is_let_go.set()
            assert await asyncio.gather(*callers) == ["first", "1", "2"]
    assert jobs.done == ["first", "1", "2"] * 2


@in_a_loop
async def test_who_goes_away_keeps_the_place_until_the_queue_is_past_it(thread):
    """Otherwise clients that disconnect could make the queue as long as they like."""
    async with jobs_of(thread) as jobs:
        under_way = await jobs.start("under way", waits=True)
        gone = [await jobs.start(f"gone {number}") for number in range(PLACES - 2)]
        last = await jobs.start("last")
        for caller in (under_way, *gone):
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
        await jobs.check_full()
        jobs.is_let_go.set()
        assert await last == "last"
        # Begun already, so done; what had not begun was left out.
        assert jobs.done == ["under way", "last"]
        jobs.is_let_go.clear()
        callers = [await jobs.start("again", waits=True)]
        callers += [await jobs.start("again") for _ in range(1, PLACES)]
        await jobs.check_full()
        jobs.is_let_go.set()
        assert await asyncio.gather(*callers) == ["again"] * PLACES


@in_a_loop
async def test_error_of_a_job_that_nobody_waits_for(thread):
    errors = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    is_let_go = threading.Event()

    def fail(_: Queries) -> None:
        assert is_let_go.wait(DEADLINE_SECONDS)
        raise RequestError("unavailable", "x")

    caller = asyncio.create_task(thread.run(fail))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    is_let_go.set()
    assert (await thread.run(Queries.find, ListQuery(), 0, 1)).total == 3
    assert not errors


def is_open(path: str) -> bool:
    """True if this process has the file open."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return path in {os.readlink(link) for link in links if os.path.lexists(link)}


def test_close_ends_what_waits_and_closes_the_state(small):
    build(small)
    thread = QueryThread(small)
    state = State.path_in(small.state)

    async def ask_and_close() -> list[Any]:
        await thread.run(Queries.find, ListQuery(), 0, 1)
        assert is_open(state)
        callers = [
            asyncio.create_task(thread.run(Queries.find, ListQuery(q="care"), 0, 1))
            for _ in range(9)
        ]
        await asyncio.sleep(0)  # after that they are in the queue
        thread.close()
        return await asyncio.gather(*callers)

    assert [found.total for found in asyncio.run(ask_and_close())] == [1] * 9
    assert not is_open(state)
    with pytest.raises(RuntimeError, match="shutdown"):
        asyncio.run(thread.run(Queries.find, ListQuery(), 0, 1))


# Shared with the reads


async def read(app: ReadApp, query: bytes) -> tuple[int, Any]:
    """Status and JSON of a list."""
    sent = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/repos", "query_string": query,
        "headers": [], "client": None,
    }  # fmt: skip
    await app(scope, None, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


@in_a_loop
async def test_reads_share_it(small, thread):
    app = ReadApp(small, thread)
    assert (await read(app, b"q=care"))[1]["meta"]["total"] == 1
    async with jobs_of(thread) as jobs:
        callers = [await jobs.start("first", waits=True)]
        callers += [await jobs.start("more") for _ in range(1, PLACES)]
        status, answer = await read(app, b"q=review")
        assert (status, answer["error"]["code"]) == (503, "unavailable")
        # Results found earlier are given again, and files are served as always.
        assert (await read(app, b"q=care"))[0] == 200
        assert (await read(app, b"sort=new"))[0] == 200
        jobs.is_let_go.set()
        await asyncio.gather(*callers)
