"""An application that is made when it is first asked, because that takes long."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from server.app import Receive, RunningApp, Scope, Send


class Late:
    """Stands for the ASGI application that ``make`` gives, which may take its time: it runs in a
    thread. The first requests wait for it; if it fails, all of them fail with its error.
    """

    def __init__(self, make: Callable[[], RunningApp]) -> None:
        self._make = make

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is entered, requests can be answered. Once only."""
        self._asked = asyncio.Event()
        self._ended = asyncio.Event()
        self._app: asyncio.Future[RunningApp] = asyncio.get_running_loop().create_future()
        # One task enters the application and leaves it, as its own tasks may demand.
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._ended.set()
            self._asked.set()
            await task

    async def _run(self) -> None:
        await self._asked.wait()
        if self._ended.is_set():
            return
        try:
            app = await asyncio.to_thread(self._make)
        except Exception as error:
            self._app.set_exception(error)
            return
        async with app.running():
            self._app.set_result(app)
            await self._ended.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asked.set()
        # Shielded: a client that goes away must not cancel what the others wait for.
        app = await asyncio.shield(self._app)
        await app(scope, receive, send)
