"""The endpoint as an application of its own, for a process that serves nothing else."""

from builder.model.errors import RequestError
from builder.model.service_urls import MCP_URLS
from builder.model.settings import Settings
from server.answers import error_answer, send_answer
from server.app import Receive, RunningApp, Scope, Send
from server.lifespan import run_lifespan


class Alone:
    """The endpoint at its path, and nothing beside it."""

    def __init__(self, endpoint: RunningApp, settings: Settings) -> None:
        self._endpoint = endpoint
        self._paths = {settings.base_path + url for url in MCP_URLS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await run_lifespan(receive, send, self._endpoint.running())
        elif scope["type"] == "http" and scope["path"] in self._paths:
            await self._endpoint(scope, receive, send)
        elif scope["type"] == "http":
            answer = error_answer(
                RequestError("not_found", f"Nothing at this address. MCP is at {min(self._paths)}.")
            )
            await send_answer(answer, scope, send)
