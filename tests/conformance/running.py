"""Our hosts while they run: each starts for its first test, and may stay for other files."""

from collections.abc import Callable
from contextlib import ExitStack

from tests.conformance.client import Client, asking
from tests.conformance.hosts import Host, Workshop


class RunningHosts:
    """Those of this process, each with a client, which keeps what it has read.

    ``changed``: the names of those that are no longer what they were when they started.
    """

    def __init__(self, workshop: Workshop, say: Callable[[str], None]) -> None:
        self.changed: set[str] = set()
        self._workshop = workshop
        self._say = say
        self._running: dict[str, tuple[Client, ExitStack]] = {}

    def client(self, name: str, host: Host) -> Client:
        """The client of a host, which is started if it does not run."""
        if name not in self._running:
            with ExitStack() as stack:
                deployment = stack.enter_context(host.start(self._workshop))
                deployment = deployment._replace(level=host.level)
                client = stack.enter_context(asking(deployment, self._say))
                self._running[name] = client, stack.pop_all()
        return self._running[name][0]

    def stop(self, name: str) -> None:
        """Stop a host, if it has been started."""
        self.changed.discard(name)
        if name in self._running:
            _, stack = self._running.pop(name)
            stack.close()

    def close(self) -> None:
        """Stop all of them."""
        with ExitStack() as stack:
            for name in self._running:
                stack.callback(self.stop, name)
