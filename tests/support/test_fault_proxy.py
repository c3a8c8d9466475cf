"""What tests rely on when they make trouble."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.fault_proxy import FaultProxy, Rule
from tests.support.servers import DEADLINE_SECONDS, wait_until


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
def proxy(echo: Echo) -> Iterator[FaultProxy]:
    with FaultProxy(f"127.0.0.1:{echo.port}") as proxy:
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


def test_cut_and_lost(echo: Echo, proxy: FaultProxy) -> None:
    proxy.set_rules(Rule("cut", target="cut"), Rule("lost", target="lost"))
    with connected(proxy) as connection:
        for _ in range(2):
            connection.sendall(b"hello")
            assert received(connection) == b"HELLO"
        connection.sendall(b"cut this")
        assert received(connection) == b""
    assert echo.reached == b"hellohello"
    with connected(proxy) as connection:
        connection.sendall(b"lost this")
        assert received(connection) == b""
    assert echo.reached == b"hellohellolost this"
    assert [seen.method for seen in proxy.take_seen()] == [
        "CONNECT", "SEND", "SEND", "SEND", "CONNECT", "SEND"
    ]  # fmt: skip


def test_hang_delay_and_late(echo: Echo, proxy: FaultProxy) -> None:
    proxy.set_rules(
        Rule("hang", target="hang"), Rule("delay", target="slow", seconds=0.2),
        Rule("late", target="late", seconds=0.1),
    )  # fmt: skip
    with connected(proxy) as connection:
        connection.sendall(b"slow")
        assert received(connection) == b"SLOW"
        connection.settimeout(0.2)
        connection.sendall(b"hang")
        with pytest.raises(TimeoutError):
            received(connection)
    with connected(proxy) as connection:
        connection.sendall(b"late")
        assert received(connection) == b""
    wait_until(lambda: echo.reached == b"slowlate", "the late piece")


@pytest.mark.parametrize("fault", ["cut", "lost"])
def test_connections(fault: str, proxy: FaultProxy) -> None:
    proxy.set_rules(Rule(fault, "CONNECT", times=1))
    with connected(proxy) as connection:
        assert received(connection) == b""
    with connected(proxy) as connection:
        connection.sendall(b"again")
        assert received(connection) == b"AGAIN"


def outcomes(proxy: FaultProxy, count: int) -> list[bool]:
    """Whether each of some connections is cut."""
    found = []
    for _ in range(count):
        with connected(proxy) as connection:
            with contextlib.suppress(OSError):  # cut before it was sent
                connection.sendall(b"x")
            found.append(received(connection) != b"X")
    return found


@pytest.mark.parametrize(("rule", "met"), [
    (Rule("cut", "CONNECT", every=3), [0, 3, 6, 9]),
    (Rule("cut", "CONNECT", skip=4, times=1), [4]),
    (Rule("cut", "CONNECT", skip=1, every=2, times=2), [1, 3]),
    (Rule("cut", "C"), []),
    (Rule("cut", "SEND", target="^y"), []),
    (Rule("cut", "SEND", target="x$"), [*range(10)]),
])  # fmt: skip
def test_which_connections(rule: Rule, met: list[int], proxy: FaultProxy) -> None:
    proxy.set_rules(rule)
    assert [at for at, is_cut in enumerate(outcomes(proxy, 10)) if is_cut] == met


def test_chance_is_the_same_for_a_seed(proxy: FaultProxy) -> None:
    def found(seed: int) -> list[bool]:
        proxy.set_rules(Rule("cut", "CONNECT", chance=0.5, seed=seed))
        return outcomes(proxy, 40)

    first = found(1)
    assert {True, False} == {*first}
    assert found(1) == first != found(2)


def test_new_connections_go_to_another_upstream(echo: Echo, proxy: FaultProxy) -> None:
    with contextlib.closing(Echo()) as other:
        proxy.set_upstream(f"127.0.0.1:{other.port}")
        with connected(proxy) as connection:
            connection.sendall(b"x")
            assert received(connection) == b"X"
        assert (other.reached, echo.reached) == (b"x", b"")
