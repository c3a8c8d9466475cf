"""A server that answers as a test says, byte by byte, and notes what it was asked."""

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

TEXT = b"Say hello to {{name}}.\nTwice.\n"


class Request(NamedTuple):
    """Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reset(NamedTuple):
    """Bytes to send before the connection is reset."""

    sent: bytes = b""


class Stream(NamedTuple):
    """Parts to send one after the other, for as long as the client reads."""

    parts: Iterable[bytes]


Answer = bytes | Reset | Stream
Answers = Callable[[Request], Answer]


class Fake:
    """A listening server; ``answers`` may be replaced while it runs."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.requests: list[Request] = []
        self.sent_bytes = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            try:
                first = incoming.readline()
            except ConnectionError:
                first = b""
            if not first:
                return  # of several connections, the client has used others
            method, path, _ = first.decode().split()
            headers = {}
            while line := incoming.readline().strip().decode():
                key, _, value = line.partition(":")
                headers[key.lower()] = value.strip()
            body = incoming.read(int(headers.get("content-length", 0)))
            request = Request(method, path, headers, body)
            self.requests.append(request)
            answer = self.answers(request)
            parts = answer.parts if isinstance(answer, Stream) else [answer]
            try:
                for part in parts:
                    sent = part.sent if isinstance(part, Reset) else part
                    connection.sendall(sent)
                    self.sent_bytes += len(sent)
            except ConnectionError:
                return  # the client has gone, as some tests want
            if isinstance(answer, Reset):
                now = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer(
    body: bytes | str = b"", status: int = 200, length: bool = True, **headers: str
) -> bytes:
    """An answer on the wire. Underscores in names of headers stand for hyphens; ``length`` has it
    say how long it is.
    """
    body = body.encode() if isinstance(body, str) else body
    if length:
        headers = {"Content-Length": str(len(body))} | headers
    lines = [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Whatever", *lines, "\r\n"]).encode() + body


def error(status: int, message: str = "The service says this.", **headers: str) -> bytes:
    body = json.dumps({"error": {"code": "some_code", "message": message}}, separators=(",", ":"))
    return answer(body, status, Content_Type="application/json", **headers)


def record(text: bytes = TEXT, version: str = "1.0.0", sha256: str = "") -> str:
    """A hub's record of ann/story, limited to the fields that a client may read."""
    sha256 = sha256 or hashlib.sha256(text).hexdigest()
    data = {
        "owner": "ann", "name": "story", "latest_version": version,
        "content": text.decode(errors="replace"), "parameters": {"sha256": "x", "size": 1},
        "license": None, "sha256": sha256, "size": len(text), "changelog": "",
    }  # fmt: skip
    return json.dumps({"data": data}, separators=(",", ":")) + "\n"


def hub(text: bytes = TEXT, version: str = "1.0.0", sha256: str = "") -> Answers:
    """A hub with one version of ann/story."""
    paths = {
        "/api/v1/repos/ann/story.json": record(text, version, sha256).encode(),
        f"/api/v1/repos/ann/story/versions/{version}.txt": text,
    }

    def answers(request: Request) -> Answer:
        body = paths.get(request.path)
        if body is None:
            return error(404)
        if request.headers.get("if-none-match") == tag(body):
            return answer(status=304, ETag=tag(body))
        return answer(body, ETag=tag(body))

    return answers


def tag(body: bytes) -> str:
    """The ETag that ``hub`` gives a body."""
    return f'"{hashlib.md5(body).hexdigest()}"'


def in_turn(*each: Answer) -> Answers:
    """These answers in order, then the last one repeatedly."""
    left = list(each)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def closed_port() -> Iterator[str]:
    """The address of a port that refuses connections, reserved while in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
