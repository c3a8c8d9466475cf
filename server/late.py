"""An application that is created at its first request, since that takes long."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from server.app import Receive, RunningApp, Scope, Send


class Late:
    """Stands for the ASGI application that ``make`` returns. ``make`` may block: it runs in a
    thread. The first requests wait for it; if it fails, every request fails with its error.
    """

    def __init__(self, make: Callable[[], RunningApp]) -> None:
        self._make = make

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answers requests while entered. Can be entered once."""
        self._requested = asyncio.Event()
        self._ended = asyncio.Event()
        self._app: asyncio.Future[RunningApp] = asyncio.get_running_loop().create_future()
        # The same task enters and leaves the application, since task groups of the application may
        # require that.
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._ended.set()
            self._requested.set()
            await task

    async def _run(self) -> None:
        await self._requested.wait()
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
        self._requested.set()
        # Shielded: a client that disconnects must not cancel the creation for the others.
        app = await asyncio.shield(self._app)
        await app(scope, receive, send)
