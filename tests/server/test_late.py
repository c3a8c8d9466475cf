"""An application that is created at its first request is created once, and lasts as long as its
server.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest

from server.app import Receive, Scope, Send
from server.late import Late


class App:
    def __init__(self) -> None:
        self.events: list[str] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.events.append("begin")
        yield
        self.events.append("end")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.events.append(scope["path"])


async def ask(late: Late, path: str) -> None:
    await late({"path": path}, None, None)


def test_it_is_made_once_for_all_who_ask():
    apps = []

    def make() -> App:
        apps.append(App())
        return apps[-1]

    async def run() -> None:
        late = Late(make)
        async with late.running():
            assert apps == []
            await asyncio.gather(*(ask(late, "first") for _ in range(3)))
            await ask(late, "later")
            assert apps[0].events == ["begin", "first", "first", "first", "later"]

    asyncio.run(run())
    assert [app.events[-1] for app in apps] == ["end"]


def test_what_nobody_asks_is_not_made():
    async def run() -> None:
        async with Late(lambda: pytest.fail("made")).running():
            pass

    asyncio.run(run())


def test_a_client_that_goes_away_leaves_the_others_their_answer():
    app, may_be_made = App(), threading.Event()

    def make() -> App:
        may_be_made.wait()
        return app

    async def run() -> None:
        late = Late(make)
        async with late.running():
            gone, waiting = (
                asyncio.create_task(ask(late, "gone")),
                asyncio.create_task(ask(late, "waiting")),
            )
            await asyncio.sleep(0)
            gone.cancel()
            may_be_made.set()
            await waiting

    asyncio.run(run())
    assert app.events == ["begin", "waiting", "end"]


def test_what_cannot_be_made_is_reported_to_each():
    def make() -> App:
        raise ImportError("no such library")

    async def run() -> None:
        late = Late(make)
        async with late.running():
            for _ in range(2):
                with pytest.raises(ImportError):
                    await ask(late, "x")

    asyncio.run(run())
