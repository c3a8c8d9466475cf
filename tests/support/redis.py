"""A real Redis, on a port of its own, with a password."""

import shutil
import signal
from pathlib import Path

from tests.support.servers import Process, free_port

PASSWORD = "s3cret/of Redis"


class Redis:
    """A Redis that can be killed, paused and started again. ``url`` has its password."""

    def __init__(self, folder: Path) -> None:
        assert shutil.which("redis-server"), "Install redis-server with: sh tests/install-tools"
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://:s3cret%2Fof%20Redis@127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        self._process = Process(
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
            "--dir", str(self._folder), "--requirepass", PASSWORD,
        )  # fmt: skip
        self._process.wait_for_line("Ready to accept connections")

    def pause(self) -> None:
        self._process.send(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send(signal.SIGCONT)

    def kill(self) -> None:
        self._process.stop(signal.SIGKILL)
