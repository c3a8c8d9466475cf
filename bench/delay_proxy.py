"""A TCP proxy that delays everything, half of the time each way, and counts round trips.

In a round trip the client waits: data from the client is followed by data from the server. Data is
not slowed down otherwise: consecutive pieces leave consecutively.
"""

import asyncio
import contextlib
import multiprocessing
import multiprocessing.sharedctypes
from collections.abc import Iterator
from typing import NamedTuple

_PIECE_BYTES = 1 << 20
_Count = multiprocessing.sharedctypes.Synchronized


class Delayed(NamedTuple):
    """A proxy at ``port`` of this machine. ``trips``: the round trips on all of its connections."""

    port: int
    trips: _Count


@contextlib.contextmanager
def delay_proxy(port: int, milliseconds: float) -> Iterator[Delayed]:
    """A proxy before a port of this machine, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ports, trips = context.SimpleQueue(), context.Value("q", 0)
    process = context.Process(
        target=_run, args=(port, milliseconds / 2000, ports, trips), daemon=True
    )
    process.start()
    try:
        yield Delayed(ports.get(), trips)
    finally:
        process.terminate()
        process.join()


def _run(port: int, seconds: float, ports: object, trips: _Count) -> None:
    async def serve() -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection("127.0.0.1", port)
            last = [False]  # True if the last piece came from the client

            def note(is_client: bool) -> None:
                trips.value += is_client and not last[0]
                last[0] = is_client

            await asyncio.gather(
                _pump(reader, back, seconds, lambda: note(True)),
                _pump(there, writer, seconds, lambda: note(False)),
            )

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float, note
) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            note()
            if seconds:
                loop.call_later(seconds, writer.write, piece)
            else:
                writer.write(piece)
    if seconds:
        await asyncio.sleep(seconds)
    writer.close()
