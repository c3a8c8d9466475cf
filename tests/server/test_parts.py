"""The whole application: reads, the publish service and MCP, in a server inside the test."""

import asyncio
import contextlib
import http.client
from collections.abc import AsyncIterator, Callable

import pytest
import uvicorn

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import build
from server.app import Receive, Scope, Send
from server.mount import REQUESTS, Hub, run_lifespan
from tests.server.running import reads_of
from tests.support.servers import DEADLINE_SECONDS


class Mcp:
    """Stands for the MCP endpoint: says which path it was asked, and when it ran."""

    def __init__(self, failing: str = "") -> None:
        self.events: list[str] = []
        self._failing = failing

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._note("start")
        yield
        self._note("end")

    def _note(self, event: str) -> None:
        self.events.append(event)
        if event == self._failing:
            raise OperatorError(f"The {event} went wrong; mend it.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.events.append(f"{scope['method']} {scope['path']}")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"mcp"})


def publisher(environ: dict, start_response: Callable) -> list[bytes]:
    start_response("200 OK", [])
    return [f"publisher {environ['SCRIPT_NAME']}".encode()]


def make_server(app: Callable) -> uvicorn.Server:
    return uvicorn.Server(uvicorn.Config(app, port=0, http="httptools", log_config=None))


@contextlib.asynccontextmanager
async def running(app: Callable) -> AsyncIterator[uvicorn.Server]:
    """The application behind the server that `hubctl serve` uses, on a free port."""
    server = make_server(app)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.001)
        yield server
    finally:
        server.should_exit = True
        await serving


async def ask(server: uvicorn.Server, method: str, target: str) -> bytes:
    """The body of the answer."""
    port = server.servers[0].sockets[0].getsockname()[1]

    def request() -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, target)
            return connection.getresponse().read()

    return await asyncio.to_thread(request)


@pytest.mark.parametrize("root", ["", "/prompts", "/mcp"])
def test_who_answers(small: Settings, root: str) -> None:
    small = small._replace(base_url=f"https://hub.example{root}")
    build(small)
    publish, below = "/api/v1/repos/ann/story/versions", f"publisher {root}".encode()

    async def ask_all() -> None:
        mcp = Mcp()
        async with running(Hub(reads_of(small), publisher, mcp)) as server:
            for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT"):
                for path in ("/mcp", "/mcp/", "/mcp?owner=ann", "/mcp/?x"):
                    assert await ask(server, method, root + path) == b"mcp"
                    asked = root + path.partition("?")[0]
                    assert mcp.events[-1] == f"{method} {asked}"
            before = len(mcp.events)
            assert await ask(server, "POST", root + publish) == below
            assert await ask(server, "GET", f"{root}/healthz") == below
            assert b'"total":1' in await ask(server, "GET", f"{root}/api/v1/repos?q=care")
            assert b"story" in await ask(server, "GET", root + publish)
            for path in ("/mcp/x", "/mcpx", "/mcp//", "/MCP", "/x/mcp", "//mcp"):
                assert b"not_found" in await ask(server, "GET", f"{root}/api{path}")
                assert await ask(server, "GET", root + path) not in (b"mcp", below)
            if root:
                for path in ("/healthz", publish):
                    assert await ask(server, "POST", path) not in (b"mcp", below)
            assert len(mcp.events) == before
        assert mcp.events[0] == "start"
        assert mcp.events[-1] == "end"

    asyncio.run(ask_all())


def test_a_request_is_counted_also_if_its_part_fails(small: Settings) -> None:
    build(small)

    def failing(environ: dict, start_response: Callable) -> list[bytes]:
        raise OSError("a defect")

    def counted() -> list[int]:
        counts = dict(REQUESTS.samples())
        return [counts[labels] for labels in (("mcp", "2xx"), ("publish", "5xx"), ("read", "2xx"))]

    async def ask_all(*, is_measured: bool) -> None:
        hub = Hub(reads_of(small), failing, Mcp(), is_measured=is_measured)
        async with running(hub) as server:
            await ask(server, "POST", "/mcp")
            await ask(server, "POST", "/api/v1/repos/ann/story/versions")
            await ask(server, "GET", "/api/v1/repos")

    before = counted()
    asyncio.run(ask_all(is_measured=False))
    assert counted() == before
    asyncio.run(ask_all(is_measured=True))
    assert counted() == [count + 1 for count in before]


def test_without_mcp_its_address_is_a_read_like_others(small: Settings) -> None:
    build(small)

    async def ask_all() -> None:
        async with running(Hub(reads_of(small), publisher)) as server:
            assert b"</html>" in await ask(server, "GET", "/mcp")
            assert b"method_not_allowed" in await ask(server, "POST", "/mcp")
            assert await ask(server, "GET", "/healthz") == b"publisher "

    asyncio.run(ask_all())


def test_a_part_that_cannot_start_stops_the_server(
    small: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = Mcp(failing="start")
    server = make_server(Hub(reads_of(small), publisher, mcp))
    with pytest.raises(SystemExit) as caught:
        server.run()
    assert caught.value.code
    assert mcp.events == ["start"]
    assert "The start went wrong; mend it." in caplog.messages


# The protocol of its life, with a server that the test plays


class Life:
    """A server's side of the lifespan protocol: asks to start, then to end, and notes answers."""

    def __init__(self) -> None:
        self.answers: list[dict] = []
        self._questions = iter(("lifespan.startup", "lifespan.shutdown"))

    async def receive(self) -> dict:
        return {"type": next(self._questions)}

    async def send(self, answer: dict) -> None:
        self.answers.append(answer)

    def told(self) -> list[str]:
        return [answer["type"].removeprefix("lifespan.") for answer in self.answers]


@pytest.mark.parametrize(
    ("failing", "told"),
    [("start", ["startup.failed"]), ("end", ["startup.complete", "shutdown.failed"])],
)
def test_failure_at_the_start_or_the_end(failing: str, told: list[str]) -> None:
    life = Life()
    with pytest.raises(OperatorError):
        asyncio.run(run_lifespan(life.receive, life.send, Mcp(failing).running()))
    assert life.told() == told
    assert life.answers[-1]["message"] == f"The {failing} went wrong; mend it."


def test_defect_at_the_start_is_reported_with_its_place() -> None:
    @contextlib.asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        yield 1 // 0

    life = Life()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_lifespan(life.receive, life.send, broken()))
    assert life.told() == ["startup.failed"]
    assert "yield 1 // 0" in life.answers[0]["message"]
