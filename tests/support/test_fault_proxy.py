"""What tests rely on when they make trouble."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.fault_proxy import FaultProxy, Rule, Seen
from tests.support.servers import DEADLINE_SECONDS, in_thread, wait_until


class Upstream:
    """A server that notes what reached it, over HTTP."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, str, bytes]] = []
        reached = self.reached

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                reached.append((self.command, self.path, body))
                self.send_response(200)
                if self.path == "/chunked":
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"3\r\none\r\n2;x=y\r\n, \r\n3\r\ntwo\r\n0\r\n\r\n")
                    return
                self.send_header("Content-Length", str(len(body) + 1))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"=" + body)

            do_GET = do_HEAD = do_PUT = do_DELETE = do

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    with in_thread(upstream.server):
        yield upstream


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[FaultProxy]:
    with FaultProxy(f"127.0.0.1:{upstream.server.server_port}") as proxy:
        yield proxy


def ask(
    address: str, method: str, path: str, body: bytes | None = None, seconds: float | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=seconds or DEADLINE_SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()


def is_cut(address: str, method: str, path: str, body: bytes | None = None) -> bool:
    try:
        ask(address, method, path, body)
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return True
    return False


def test_without_rules_it_forwards(upstream: Upstream, proxy: FaultProxy) -> None:
    connection = http.client.HTTPConnection(proxy.address, timeout=DEADLINE_SECONDS)
    with contextlib.closing(connection):
        asked = [("PUT", "/a", b"x" * 100_000), ("HEAD", "/b", b""), ("GET", "/c?d=e", b"")]
        for method, path, body in asked:
            connection.request(method, path, body or None)
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.read() == (b"" if method == "HEAD" else b"=" + body)
        connection.request("GET", "/chunked")
        assert connection.getresponse().read() == b"one, two"
    assert upstream.reached == [*asked, ("GET", "/chunked", b"")]
    assert proxy.take_seen() == [
        *(Seen(method, path, "") for method, path, _ in asked), Seen("GET", "/chunked", "")
    ]  # fmt: skip
    assert proxy.take_seen() == []


def test_cut_and_lost(upstream: Upstream, proxy: FaultProxy) -> None:
    proxy.set_rules(Rule("cut", target="/cut"), Rule("lost", "PUT"))
    assert is_cut(proxy.address, "PUT", "/cut")
    assert upstream.reached == []
    assert is_cut(proxy.address, "PUT", "/x", b"data")
    assert upstream.reached == [("PUT", "/x", b"data")]
    assert ask(proxy.address, "GET", "/x") == (200, b"=")
    assert [seen.fault for seen in proxy.take_seen()] == ["cut", "lost", ""]


def test_late(upstream: Upstream, proxy: FaultProxy) -> None:
    """What a client has given up may still be done."""
    proxy.set_rules(Rule("late", times=1, seconds=0.2))
    assert is_cut(proxy.address, "PUT", "/late", b"data")
    assert ask(proxy.address, "PUT", "/next")[0] == 200
    wait_until(lambda: len(upstream.reached) == 2, "the late request")
    assert upstream.reached[1] == ("PUT", "/late", b"data")


def test_delay_and_busy(upstream: Upstream, proxy: FaultProxy) -> None:
    proxy.set_rules(Rule("delay", seconds=0.2), Rule("busy", target="busy"))
    started = time.monotonic()
    assert ask(proxy.address, "GET", "/busy")[0] == 503
    assert ask(proxy.address, "GET", "/x")[0] == 200
    assert time.monotonic() - started >= 0.4
    assert "/busy" not in [path for _, path, _ in upstream.reached]


def test_hang(upstream: Upstream, proxy: FaultProxy) -> None:
    proxy.set_rules(Rule("hang"))
    with pytest.raises(TimeoutError):
        ask(proxy.address, "GET", "/x", seconds=0.2)
    proxy.set_rules()
    assert ask(proxy.address, "GET", "/x")[0] == 200
    assert len(upstream.reached) == 1


@pytest.mark.parametrize(("rule", "met"), [
    (Rule("busy", every=3), [0, 3, 6, 9]),
    (Rule("busy", skip=4, times=1), [4]),
    (Rule("busy", skip=1, every=2, times=2), [1, 3]),
    (Rule("busy", "P.*"), []),
    (Rule("busy", target=r"/[78]$"), [7, 8]),
])  # fmt: skip
def test_which_requests(rule: Rule, met: list[int], proxy: FaultProxy) -> None:
    proxy.set_rules(rule)
    statuses = [ask(proxy.address, "GET", f"/{number}")[0] for number in range(10)]
    assert [number for number, status in enumerate(statuses) if status == 503] == met


def test_chance_is_the_same_for_a_seed(proxy: FaultProxy) -> None:
    def statuses(seed: int) -> list[int]:
        proxy.set_rules(Rule("busy", chance=0.5, seed=seed))
        return [ask(proxy.address, "GET", "/")[0] for _ in range(40)]

    first = statuses(1)
    assert {200, 503} == {*first}
    assert statuses(1) == first != statuses(2)


@pytest.mark.parametrize("fault", ["lost", "hang"])
def test_nobody_behind_it(fault: str, proxy: FaultProxy, upstream: Upstream) -> None:
    upstream.server.server_close()
    assert is_cut(proxy.address, "GET", "/x")


class Echo:
    """A server that sends back each piece, over TCP."""

    def __init__(self) -> None:
        self.reached = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                self.reached += piece
                connection.sendall(piece.upper())

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with contextlib.closing(Echo()) as echo:
        yield echo


@pytest.fixture
def plain(echo: Echo) -> Iterator[FaultProxy]:
    with FaultProxy(f"127.0.0.1:{echo.port}", plain=True) as proxy:
        yield proxy


@contextlib.contextmanager
def connected(proxy: FaultProxy) -> Iterator[socket.socket]:
    host, _, port = proxy.address.rpartition(":")
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as connection:
        yield connection


def received(connection: socket.socket) -> bytes:
    """What comes next; nothing where the connection has ended."""
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_plain(echo: Echo, plain: FaultProxy) -> None:
    plain.set_rules(Rule("cut", target="cut"), Rule("lost", target="lost"))
    with connected(plain) as connection:
        for _ in range(2):
            connection.sendall(b"hello")
            assert received(connection) == b"HELLO"
        connection.sendall(b"cut this")
        assert received(connection) == b""
    assert echo.reached == b"hellohello"
    with connected(plain) as connection:
        connection.sendall(b"lost this")
        assert received(connection) == b""
    assert echo.reached == b"hellohellolost this"
    assert [seen.method for seen in plain.take_seen()] == [
        "CONNECT", "SEND", "SEND", "SEND", "CONNECT", "SEND"
    ]  # fmt: skip


def test_plain_hang_delay_and_late(echo: Echo, plain: FaultProxy) -> None:
    plain.set_rules(
        Rule("hang", target="hang"), Rule("delay", target="slow", seconds=0.2),
        Rule("late", target="late", seconds=0.1),
    )  # fmt: skip
    with connected(plain) as connection:
        connection.sendall(b"slow")
        assert received(connection) == b"SLOW"
        connection.settimeout(0.2)
        connection.sendall(b"hang")
        with pytest.raises(TimeoutError):
            received(connection)
    with connected(plain) as connection:
        connection.sendall(b"late")
        assert received(connection) == b""
    wait_until(lambda: echo.reached == b"slowlate", "the late piece")


@pytest.mark.parametrize("fault", ["cut", "lost"])
def test_plain_connections(fault: str, echo: Echo, plain: FaultProxy) -> None:
    plain.set_rules(Rule(fault, "CONNECT", times=1))
    with connected(plain) as connection:
        assert received(connection) == b""
    with connected(plain) as connection:
        connection.sendall(b"again")
        assert received(connection) == b"AGAIN"
