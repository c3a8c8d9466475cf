"""Listens on a port and serves an ASGI application, for all commands that serve."""

import contextlib
import gc
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import uvicorn

from builder.model.errors import OperatorError
from builder.pipeline.rebuild import PATIENCE_SECONDS
from server.access_log import AccessLog, Logged
from server.connections import Connections, connections_max, raise_open_files_limit

CONNECTIONS_WAITING_MAX = 2048
# Longer than a publication waits for its build, so a publication under way gets its answer.
GRACE_SECONDS = int(PATIENCE_SECONDS) + 5


_REMEDY = "Choose another port with --port or HUB_PORT, or another address with --host."


def listen(host: str, port: int) -> socket.socket:
    """Bind the port before any other work, so that a taken port is reported at once. Raises
    OperatorError.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_WAITING_MAX)
    except OSError as error:
        # Python appends the address to the system's message.
        cause = error.strerror.partition(" (while attempting")[0]
        raise OperatorError(f"Cannot listen on {host}:{port}: {cause}. {_REMEDY}") from None


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, is_over: Callable[[], bool], connections: Connections
    ) -> None:
        super().__init__(config)
        self._is_over = is_over
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        self._connections.turned_at = time.monotonic()
        return await super().on_tick(counter) or self._is_over()


def count_connections(trusted_proxies: tuple[str, ...]) -> Connections:
    """The counter and limits of connections, for as many as this process may have open."""
    return Connections(connections_max(raise_open_files_limit()), trusted_proxies)


def run(
    app: Any,
    listener: socket.socket,
    trusted_proxies: tuple[str, ...],
    access_log: str | None,
    root: str = "",
    is_over: Callable[[], bool] = lambda: False,
    connections: Connections | None = None,
) -> None:
    """Serve until a signal, or until ``is_over()``, called ten times a second. Once all is
    answered, uvicorn raises the signal again, which would end the process as if it had failed.
    ``root`` is the path of the base URL. ``connections`` counts them; see ``count_connections``.
    """
    connections = connections or count_connections(trusted_proxies)
    with contextlib.ExitStack() as stack:
        if access_log:
            app = Logged(app, stack.enter_context(AccessLog(access_log)), root)
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http=connections.protocol,
            ws="none",
            # uvicorn warns about requests that are no HTTP: strangers could fill a log with them.
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=bool(trusted_proxies),
            forwarded_allow_ips=list(trusted_proxies),
            backlog=CONNECTIONS_WAITING_MAX,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = _Server(config, is_over, connections)
        # Until uvicorn handles signals itself, an interrupt could get lost in the libraries that it
        # loads.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        # Objects that exist now stay. Freezing them spares the collector the long pass over them,
        # which would delay all answers.
        gc.collect()
        gc.freeze()
        server.run(sockets=[listener])
