"""A TCP proxy in front of a database that causes faults by rules.

It is a separate process, which ``FaultProxy`` starts and controls: a busy test does not slow it
down, and it ends with the test. Rules see each connection (method ``CONNECT``) and each piece
that a client sends (method ``SEND``; the target is its bytes as Latin-1).

Faults:

- ``cut``: the connection ends before anything is forwarded.
- ``lost``: the request is carried out, and the connection ends instead of an answer.
- ``late``: the connection ends at once, and the request is carried out some seconds later.
- ``delay``: the piece is forwarded some seconds later; other rules still apply.
- ``hang``: the piece is never forwarded, and the connection stays open.
"""

import json
import subprocess
import sys
from typing import Any, Self

from tests.support.fault_proxy_server import Rule, Seen
from tests.support.servers import PROJECT, clean_environment

FAULTS = ("cut", "lost", "late", "delay", "hang")


class FaultProxy:
    """A running proxy before HOST:PORT; ``address`` is its own. Without rules it only forwards."""

    def __init__(self, upstream: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__name__}_server", upstream],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=clean_environment(PYTHONPATH=str(PROJECT)),
        )  # fmt: skip
        self.address = f"127.0.0.1:{self._read()}"

    def set_rules(self, *rules: Rule) -> None:
        """Replace all rules; the first one that applies counts."""
        for rule in rules:
            assert rule.fault in FAULTS, rule
        self._ask({"rules": rules})

    def set_upstream(self, upstream: str) -> None:
        """Let new connections go there."""
        self._ask({"upstream": upstream})

    def take_seen(self) -> list[Seen]:
        """All requests since the last call."""
        return [Seen(*one) for one in self._ask({})]

    def close(self) -> None:
        self._process.stdin.close()
        status = self._process.wait()
        self._process.stdout.close()
        assert status == 0, f"the proxy ended with {status}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: dict[str, Any]) -> Any:
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        line = self._process.stdout.readline()
        assert line, "the proxy has ended"
        return json.loads(line)
