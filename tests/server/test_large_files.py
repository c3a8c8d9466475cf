"""Files of the site that are too large for the memory: over real sockets, in pieces."""

import asyncio
import gzip
import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from builder.model.settings import Settings
from builder.pipeline.build import build
from server.answers import IN_MEMORY_BYTES_MAX, OPEN_FILE_BYTES, PIECE_BYTES, FileBodies
from server.app import Receive, Scope, Send
from tests.server.running import NEVER, Running, in_a_loop, reads_of, running, until

CATALOGUE = "/api/v1/catalogue.jsonl"
LARGE_BYTES = 8_000_000
READERS = 20


class Site:
    """A served site; ``pieces`` are the sizes of all pieces of bodies that were sent."""

    def __init__(self, settings: Settings, server: Running) -> None:
        self.settings = settings
        self.server = server
        self.pieces: list[int] = []

    def write(self, file: str, data: bytes) -> None:
        """Put a file in the place of another, as a build does."""
        path = Path(self.settings.out + file)
        new = path.with_name(".new")
        new.write_bytes(data)
        os.replace(new, path)

    def descriptors(self, file: str) -> int:
        """The number of this process's open files that are, or were, at this path."""
        path = os.path.realpath(self.settings.out + file)
        found = 0
        for number in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{number}")
            except FileNotFoundError:
                continue
            found += target.removesuffix(" (deleted)") in (path, f"{os.path.dirname(path)}/.new")
        return found

    async def get(self, path: str, *headers: bytes, method: bytes = b"GET") -> "Got":
        lines = [b"%b %b HTTP/1.1" % (method, path.encode()), b"Host: x", b"Connection: close"]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(b"\r\n".join([*lines, *headers, b"", b""]))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return Got(answer)


class Got:
    def __init__(self, answer: bytes) -> None:
        head, _, self.body = answer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = dict(line.lower().split(": ", 1) for line in lines)


def on_site(settings: Settings, test: Callable[[Site], Awaitable[None]]) -> None:
    """Run a test on the small site, served."""
    build(settings)
    reads = reads_of(settings)

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        async def note(message: dict) -> None:
            await send(message)
            if message["type"] == "http.response.body":
                site.pieces.append(len(message.get("body", b"")))

        await reads(scope, receive, note)

    async def serve() -> None:
        nonlocal site
        async with running(noting, NEVER) as server:
            site = Site(settings, server)
            await test(site)

    site: Site = None
    uvloop.run(serve())


def bytes_of(size: int, seed: bytes = b"") -> bytes:
    """``size`` bytes, the same each time, without two equal parts."""
    return hashlib.shake_128(seed).digest(size)


@pytest.mark.parametrize("size", [IN_MEMORY_BYTES_MAX, IN_MEMORY_BYTES_MAX + 1, LARGE_BYTES])
def test_whole_file(small: Settings, size: int) -> None:
    data = bytes_of(size // 2).hex().encode().ljust(size, b"x")
    is_large = size > IN_MEMORY_BYTES_MAX

    async def test(site: Site) -> None:
        site.write(CATALOGUE, data)
        for _ in range(2):
            whole = await site.get(CATALOGUE, b"Accept-Encoding: gzip")
            assert whole.status == 200
            assert int(whole.headers["content-length"]) == len(whole.body)
            assert ("content-encoding" in whole.headers) == (not is_large)
            assert ("vary" in whole.headers) == (not is_large)
            assert (whole.body if is_large else gzip.decompress(whole.body)) == data
        # As a small file's tag, so a file that grows keeps no tag of its old bytes.
        plain = await site.get(CATALOGUE)
        assert plain.body == data
        assert plain.headers["etag"] == f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
        assert max(site.pieces) == (PIECE_BYTES if is_large else size)

        site.pieces.clear()
        known = await site.get(CATALOGUE, b"If-None-Match: " + plain.headers["etag"].encode())
        assert (known.status, known.body) == (304, b"")
        head = await site.get(CATALOGUE, method=b"HEAD")
        assert (head.status, head.body) == (200, b"")
        assert int(head.headers["content-length"]) == size
        assert site.pieces == [0, 0]

    on_site(small, test)


def test_readers_that_take_nothing(small: Settings) -> None:
    async def test(site: Site) -> None:
        site.write(CATALOGUE, bytes_of(LARGE_BYTES))
        before = site.descriptors(CATALOGUE)
        for _ in range(READERS):
            client = await site.server.connect()
            await client.send(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % CATALOGUE.encode())
        waiting = site.server.server.server_state.connections
        await until(lambda: sum(one.flow.write_paused for one in waiting) == READERS)
        # A waiting piece, and one under way.
        assert max(site.server.unsent_bytes()) < 3 * PIECE_BYTES
        assert max(site.pieces) == PIECE_BYTES
        assert site.descriptors(CATALOGUE) == before + 1
        # Others are answered beside them.
        assert len((await site.get(CATALOGUE)).body) == LARGE_BYTES

        for client in site.server.clients:
            client.close()
        site.pieces.clear()
        await until(lambda: not site.server.server.server_state.tasks)
        # The server reads no more for a client that disconnected.
        assert sum(site.pieces) < 5 * READERS * PIECE_BYTES

    on_site(small, test)


def test_file_that_is_replaced_while_it_is_read(small: Settings) -> None:
    old, new, last = (bytes_of(LARGE_BYTES, seed) for seed in (b"old", b"new", b"last"))

    async def test(site: Site) -> None:
        before = site.descriptors(CATALOGUE)
        site.write(CATALOGUE, old)
        reader, writer = await asyncio.open_connection("127.0.0.1", site.server.port)
        writer.write(b"GET %b HTTP/1.1\r\nConnection: close\r\n\r\n" % CATALOGUE.encode())
        begun = await reader.readexactly(1000)
        site.write(CATALOGUE, new)
        replaced = await site.get(CATALOGUE)
        assert replaced.body == new
        first = Got(begun + await reader.read())
        writer.close()
        await writer.wait_closed()
        assert first.body == old
        assert first.headers["etag"] != replaced.headers["etag"]
        assert site.descriptors(CATALOGUE) == before + 1
        # A file that is small again is no longer open.
        site.write(CATALOGUE, last[:1000])
        assert (await site.get(CATALOGUE)).body == last[:1000]
        await until(lambda: site.descriptors(CATALOGUE) == before)

    on_site(small, test)


@in_a_loop
async def test_open_files_are_few(tmp_path: Path) -> None:
    files = FileBodies(str(tmp_path), bytes_max=4 * OPEN_FILE_BYTES)

    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        path = tmp_path / f"{number}.json"
        with path.open("wb") as file:
            file.truncate(IN_MEMORY_BYTES_MAX + 1)
        body = await files.get(path.name, "application/json", "list")
        assert len(body.plain.body) == IN_MEMORY_BYTES_MAX + 1
    assert len(os.listdir("/proc/self/fd")) <= before + 4
