"""The process of ``fault_proxy``: ``python -m tests.support.fault_proxy_server HOST:PORT``.

It reads commands from its standard input, a line of JSON each, and answers each with a line; the
first line says its port. It ends when its input does.
"""

import asyncio
import contextlib
import json
import random
import re
import sys
from collections.abc import Awaitable
from typing import NamedTuple

_BYTES_MAX = 64 << 20


class Rule(NamedTuple):
    """A fault for requests of a method and target, both regular expressions.

    ``method`` matches the whole, ``target`` a part. The rule lets the first ``skip`` matches pass.
    After these, it applies to the first of each ``every`` matches, with probability ``chance`` from
    dice seeded with ``seed``, at most ``times`` times (0: no limit).
    """

    fault: str
    method: str = ".*"
    target: str = ""
    skip: int = 0
    every: int = 1
    chance: float = 1.0
    seed: int = 0
    times: int = 0
    seconds: float = 0.0


class Seen(NamedTuple):
    """A request, and the fault that it met; empty for none."""

    method: str
    target: str
    fault: str


class _Dice:
    """A rule, and what it has done so far."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._matches = self._done = 0
        self._random = random.Random(rule.seed)

    def falls(self, method: str, target: str) -> bool:
        rule = self.rule
        if not (re.fullmatch(rule.method, method) and re.search(rule.target, target, re.DOTALL)):
            return False
        number = self._matches - rule.skip
        self._matches += 1
        if number < 0 or number % rule.every or (rule.times and self._done == rule.times):
            return False
        falls = self._random.random() < rule.chance
        self._done += falls
        return falls


class _Server:
    """Accepts connections, and knows the rules."""

    def __init__(self, upstream: str) -> None:
        self.set_upstream(upstream)
        self.dice: list[_Dice] = []
        self.seen: list[Seen] = []

    def set_upstream(self, upstream: str) -> None:
        """Set the address to which new connections go."""
        host, _, port = upstream.rpartition(":")
        self._upstream = (host, int(port))

    def connect(self) -> Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        return asyncio.open_connection(*self._upstream, limit=_BYTES_MAX)

    async def fault(self, method: str, target: str) -> tuple[str, float]:
        """The fault for a request and its seconds, after the delays that rules want."""
        met, fault, seconds = "", "", 0.0
        for dice in self.dice:
            if not dice.falls(method, target):
                continue
            met = dice.rule.fault
            if met != "delay":
                fault, seconds = met, dice.rule.seconds
                break
            await asyncio.sleep(dice.rule.seconds)
        self.seen.append(Seen(method, target, met))
        return fault, seconds

    async def tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            fault, _ = await self.fault("CONNECT", "")
            if fault == "hang":
                await reader.read()
            elif not fault:
                await self._pump_both(reader, writer)
        writer.transport.abort()

    async def _pump_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await self.connect()
        back = asyncio.create_task(self._pump_back(from_server, writer))
        try:
            while piece := await reader.read(_BYTES_MAX):
                fault, seconds = await self.fault("SEND", piece.decode("latin-1"))
                if fault in ("cut", "late"):
                    writer.transport.abort()
                    if fault == "late":
                        await asyncio.sleep(seconds)
                        to_server.write(piece)
                        await to_server.drain()
                    return
                if fault == "hang":
                    back.cancel()
                    await reader.read()
                    return
                if fault == "lost":
                    back.cancel()
                    await asyncio.wait([back])
                to_server.write(piece)
                await to_server.drain()
                if fault == "lost":
                    await from_server.read(1)
                    return
        finally:
            back.cancel()
            to_server.close()

    async def _pump_back(
        self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := await from_server.read(_BYTES_MAX):
                writer.write(piece)
                await writer.drain()
        writer.close()


async def _serve(upstream: str) -> None:
    server = _Server(upstream)
    listening = await asyncio.start_server(server.tcp, "127.0.0.1", 0, limit=_BYTES_MAX)
    commands = asyncio.StreamReader(limit=_BYTES_MAX)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    print(json.dumps(listening.sockets[0].getsockname()[1]), flush=True)
    while line := await commands.readline():
        command = json.loads(line)
        if "rules" in command:
            server.dice = [_Dice(Rule(*rule)) for rule in command["rules"]]
            print("true", flush=True)
        elif "upstream" in command:
            server.set_upstream(command["upstream"])
            print("true", flush=True)
        else:
            print(json.dumps(server.seen), flush=True)
            server.seen = []


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
