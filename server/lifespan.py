"""How an ASGI application starts and ends."""

import traceback
from contextlib import AbstractAsyncContextManager
from typing import Any

from builder.model.errors import OperatorError
from server.app import Receive, Send


async def run_lifespan(
    receive: Receive, send: Send, running: AbstractAsyncContextManager[Any]
) -> None:
    """Speak ASGI's lifespan protocol for an application that starts by entering ``running`` and
    ends by leaving it. What either raises stops the server, with a message; it is raised, too.
    """
    await receive()
    phase = "startup"
    try:
        async with running:
            await send({"type": "lifespan.startup.complete"})
            phase = "shutdown"
            await receive()
    except Exception as error:
        # Servers show the message only: an operator's tells all, a defect's has to.
        told = str(error) if isinstance(error, OperatorError) else traceback.format_exc()
        await send({"type": f"lifespan.{phase}.failed", "message": told})
        raise
    await send({"type": "lifespan.shutdown.complete"})
