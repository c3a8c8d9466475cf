"""Answers and their headers: bodies from files or from memory.

Owns the headers of every answer. Knows HTTP's conditions and encodings, not the catalogue.
"""

import asyncio
import gzip
import hashlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from cachetools import FIFOCache

from builder.model import envelopes
from builder.model.answers import ErrorBody, ErrorDetail
from builder.model.caching import CACHE_CONTROL
from builder.model.errors import RequestError
from builder.model.routes import BYTES, JSON
from builder.model.version_files import DATA_SUFFIX
from builder.store.site import GZIP_LEVEL, Mark, mark_of
from server import conditions
from server.answer_headers import (
    CORS,
    GZIP_BYTES_MIN,
    READ_METHODS,
    RETRY_SECONDS,
    SAFETY,
    SAFETY_BY_MEDIA,
    Headers,
)

CACHE_BYTES_MAX = 128 * 1024 * 1024
# Reading and compressing a file up to this size takes no noticeable time. Larger ones are read in a
# thread.
QUICK_BYTES_MAX = 256 * 1024
# A larger file is sent from the disk in pieces, uncompressed, and not kept in memory.
IN_MEMORY_BYTES_MAX = 1024 * 1024
PIECE_BYTES = 64 * 1024
# The size that an open file counts in the cache, so the cache holds at most 64 of them.
OPEN_FILE_BYTES = CACHE_BYTES_MAX // 64


class _OpenFile:
    """A file descriptor, closed when nothing refers to this object any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


class FileBytes:
    """The bytes of an open file.

    They stay the same when another file replaces it at its path. All answers from it share one file
    descriptor.
    """

    __slots__ = ("_file", "_size")

    def __init__(self, file: _OpenFile, size: int) -> None:
        self._file = file
        self._size = size

    def __len__(self) -> int:
        return self._size

    def pieces(self) -> Iterator[bytes]:
        """The bytes in order, at most PIECE_BYTES at a time."""
        at = 0
        while at < self._size:
            piece = os.pread(self._file.descriptor, min(PIECE_BYTES, self._size - at), at)
            if not piece:
                return  # the file was truncated in place
            at += len(piece)
            yield piece


class Answer(NamedTuple):
    """A whole answer. The answer to a HEAD request is sent without its body."""

    status: int
    headers: Headers
    body: bytes | FileBytes


class Body:
    """A representation with its headers: plain and, if it is in memory, compressed."""

    __slots__ = (
        "_not_modified",
        "etag",
        "gzip_etag",
        "gzipped",
        "headers",
        "mark",
        "plain",
        "size",
    )

    def __init__(self, data: bytes | FileBytes, media: str, cache: str, file: str = "") -> None:
        is_in_memory = isinstance(data, bytes)
        # The ETag depends only on the bytes, so no clock can make a stale answer look fresh.
        digest = _digest([data] if is_in_memory else data.pieces())
        self.etag = f'"{digest}"'
        self.gzip_etag = f'"{digest}-gzip"'
        self.headers = [(b"cache-control", CACHE_CONTROL[cache].encode()), *SAFETY, *CORS]
        is_compressible = is_in_memory and len(data) >= GZIP_BYTES_MIN
        if is_compressible:
            self.headers.append((b"vary", b"Accept-Encoding"))
        content_type = (b"content-type", media.encode())
        fixed = [content_type, *self.headers]
        fixed += SAFETY_BY_MEDIA.get(media, [])
        if media == BYTES:
            saved = file.rpartition("/")[2].removesuffix(DATA_SUFFIX)
            fixed.append((b"content-disposition", f'attachment; filename="{saved}"'.encode()))
        self.plain = _full_answer(fixed, data, self.etag)
        self.gzipped = None
        if is_compressible:
            # A time in gzip's header would make each copy different.
            packed = gzip.compress(data, GZIP_LEVEL, mtime=0)
            if len(packed) < len(data):
                fixed.append((b"content-encoding", b"gzip"))
                self.gzipped = _full_answer(fixed, packed, self.gzip_etag)
        # 304 answers, by the ETag that the client sends.
        self._not_modified = {
            etag: Answer(304, [*self.headers, (b"etag", etag)], b"")
            for etag in (self.etag.encode(), self.gzip_etag.encode())
        }
        # The bytes that it counts in the cache.
        self.size = len(data) if is_in_memory else OPEN_FILE_BYTES
        if self.gzipped:
            self.size += len(self.gzipped.body)
        self.mark: Mark | tuple[()] = ()

    def answer(self, request: dict[bytes, bytes]) -> Answer:
        """The answer to a GET with these headers. ``Range`` is ignored (RFC 9110 §14.2)."""
        if_none_match = request.get(b"if-none-match")
        if if_none_match is not None:
            not_modified = self._not_modified.get(if_none_match) or self._match(if_none_match)
            if not_modified:
                return not_modified
        if self.gzipped:
            accepted = request.get(b"accept-encoding")
            if accepted is not None and conditions.accepts_gzip(accepted.decode("latin-1")):
                return self.gzipped
        return self.plain

    def _match(self, if_none_match: bytes) -> Answer | None:
        etags = (self.etag, self.gzip_etag)
        etag = conditions.matches_none(if_none_match.decode("latin-1"), etags)
        return self._not_modified[etag.encode()] if etag else None


def _digest(pieces: Iterable[bytes]) -> str:
    hashed = hashlib.blake2b(digest_size=12)
    for piece in pieces:
        hashed.update(piece)
    return hashed.hexdigest()


def _full_answer(headers: Headers, body: bytes | FileBytes, etag: str) -> Answer:
    length = (b"content-length", b"%d" % len(body))
    return Answer(200, [*headers, (b"etag", etag.encode()), length], body)


def error_answer(
    error: RequestError, retry_after_seconds: int | None = None, allow: str = READ_METHODS
) -> Answer:
    """The envelope of an error, with its status and headers. ``allow`` belongs to a 405; the
    seconds after which to try again belong to a 503.
    """
    details = [ErrorDetail(*detail) for detail in error.details] or None
    body = envelopes.error_envelope(ErrorBody(error.code, str(error), details))
    cache = "not_found" if error.status == 404 else "none"
    headers = [
        (b"content-type", JSON.encode()),
        (b"cache-control", CACHE_CONTROL[cache].encode()),
        (b"content-length", b"%d" % len(body)),
        *SAFETY,
        *CORS,
    ]
    if error.status == 405:
        headers.append((b"allow", allow.encode()))
    if retry_after_seconds is None and error.status == 503:
        retry_after_seconds = RETRY_SECONDS
    if retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % retry_after_seconds))
    return Answer(error.status, headers, body)


async def send_answer(
    answer: Answer, scope: dict[str, Any], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Answer an ASGI request at once; a HEAD without the body."""
    start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
    await send(start)
    body = b"" if scope["method"] == "HEAD" else answer.body
    await send({"type": "http.response.body", "body": body})


class FileBodies:
    """The bodies of the site's files, kept in memory while a file is unchanged."""

    def __init__(self, root: str, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._root = root
        self._bodies: FIFOCache[str, Body] = FIFOCache(bytes_max, getsizeof=attrgetter("size"))
        self._reading: dict[tuple[str, Mark], asyncio.Future[Body | None]] = {}
        self._lock = threading.Lock()

    async def get(self, file: str, media: str, cache: str) -> Body | None:
        """The body of a file, by its path relative to the site; None if the file does not exist."""
        try:
            status = os.stat(f"{self._root}/{file}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        mark = mark_of(status)
        with self._lock:
            body = self._bodies.get(file)
        if body is not None and body.mark == mark:
            return body
        if status.st_size <= QUICK_BYTES_MAX:
            return self._read(file, media, cache)
        # Concurrent requests share one read of a file.
        reading = self._reading.get((file, mark))
        if reading is None:
            reading = asyncio.ensure_future(asyncio.to_thread(self._read, file, media, cache))
            self._reading[file, mark] = reading
            reading.add_done_callback(lambda _: self._reading.pop((file, mark)))
        return await asyncio.shield(reading)

    def _read(self, file: str, media: str, cache: str) -> Body | None:
        try:
            opened = _OpenFile(os.open(f"{self._root}/{file}", os.O_RDONLY | os.O_CLOEXEC))
        except FileNotFoundError:
            return None
        # The mark is that of the opened file: the path may have a new file by now.
        status = os.fstat(opened.descriptor)
        data = FileBytes(opened, status.st_size)
        in_memory = b"".join(data.pieces()) if len(data) <= IN_MEMORY_BYTES_MAX else None
        body = Body(data if in_memory is None else in_memory, media, cache, file)
        body.mark = mark_of(status)
        self._keep(file, body)
        return body

    def exists(self, file: str) -> bool:
        return os.path.exists(f"{self._root}/{file}")

    def _keep(self, file: str, body: Body) -> None:
        with self._lock:
            self._bodies.pop(file, None)
            if body.size <= self._bodies.maxsize // 4:
                self._bodies[file] = body
