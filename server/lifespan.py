"""The start and the end of an ASGI application."""

import traceback
from contextlib import AbstractAsyncContextManager
from typing import Any

from builder.model.errors import OperatorError
from server.app import Receive, Send


async def run_lifespan(
    receive: Receive, send: Send, running: AbstractAsyncContextManager[Any]
) -> None:
    """Speak ASGI's lifespan protocol for an application that starts by entering ``running`` and
    ends by leaving it. An error in either stops the server with a message, and is raised, too.
    """
    await receive()
    phase = "startup"
    try:
        async with running:
            await send({"type": "lifespan.startup.complete"})
            phase = "shutdown"
            await receive()
    except Exception as error:
        # Servers show only this message. An OperatorError's text is complete; a defect needs its
        # traceback.
        reason = str(error) if isinstance(error, OperatorError) else traceback.format_exc()
        await send({"type": f"lifespan.{phase}.failed", "message": reason})
        raise
    await send({"type": "lifespan.shutdown.complete"})
