"""Tool calls have the same answers as over the SDK's transport, and follow the site's files."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NamedTuple

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search.query_thread import QueryThread
from mcp_app.app import create_app
from mcp_app.calls import Calls
from mcp_app.endpoint import Endpoint
from mcp_app.reader import Catalogue
from mcp_app.server import make_server
from server.access import Access
from tests.mcp.odd import GOOD_ARGUMENTS, METAS, VERSIONS, odd_call
from tests.mcp.wire import (
    ENVELOPE,
    HANDSHAKE,
    STATELESS,
    Message,
    Reply,
    ask,
    built_catalogue,
    call,
    inside,
    message,
)
from tests.support.catalogues import write_version
from tests.support.depth import some, some_of

CALLS = some_of(2000)
READER = "mcp_app.reader"
TRANSPORT = "mcp.server.streamable_http_manager"


class Both(NamedTuple):
    """The same catalogue with ``Calls`` and without."""

    settings: Settings
    queries: QueryThread
    runner: asyncio.Runner
    quick: Endpoint
    slow: Endpoint

    def ask(self, *request: Any, **options: Any) -> Reply:
        """The answer, which is the same from both ways."""
        ours, theirs = (
            self.runner.run(ask(endpoint, *request, **options))
            for endpoint in (self.quick, self.slow)
        )
        assert seen(ours) == seen(theirs), request
        return ours


def seen(reply: Reply) -> tuple[Any, ...]:
    """The JSON of an answer as a client sees it: in any order of members, but 1 differs
    from 1.0.
    """
    content = json.dumps(reply.json, sort_keys=True) if reply.body else ""
    return reply.status, reply.headers.get("content-type"), content


@contextlib.contextmanager
def both(settings: Settings) -> Iterator[Both]:
    with contextlib.closing(QueryThread(settings)) as queries:
        catalogue = Catalogue(settings, queries)
        quick = create_app(settings, queries)
        slow = Endpoint(make_server(catalogue), Access(settings.base_url))
        with inside(quick, slow) as runner:
            yield Both(settings, queries, runner, quick, slow)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both(built_catalogue(tmp_path_factory.mktemp("same"))) as pair:
        yield pair


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Both]:
    """Over a catalogue of its own, which a test may change."""
    with both(built_catalogue(tmp_path)) as pair:
        yield pair


# The same answers


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tool", GOOD_ARGUMENTS)
def test_every_tool_in_every_revision(pair: Both, tool: str, version: str | None):
    for arguments, meta in some([*product(GOOD_ARGUMENTS[tool], METAS)]):
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if isinstance(meta, dict):
            params["_meta"] = meta
        valid = message("tools/call", params, version=version)
        reply, kept = (pair.ask(*valid) for _ in range(2))
        assert reply == kept
        content = reply.result["content"]
        if not reply.result["isError"]:
            assert json.loads(content[0]["text"]) == reply.given


def test_odd_calls(pair: Both):
    random = Random(8)
    for _ in range(CALLS):
        odd = odd_call(random)
        pair.ask(odd.body, odd.headers, query=odd.query)


UNUSUAL = {
    "another method": message("tools/list"),
    "another tool": call("no_such_tool"),
    "unknown revision": call("list_tags")._replace(headers={"MCP-Protocol-Version": "2030-01-01"}),
    "empty revision": call("list_tags")._replace(headers={"MCP-Protocol-Version": ""}),
    "no name": message("tools/call", {"arguments": {}}),
    "more parameters": message("tools/call", {"name": "list_tags", "task": {"ttl": 1}}),
    "a task": message("tools/call", {"name": "list_tags", "task": None}),
    "arguments are none": message("tools/call", {"name": "list_tags", "arguments": []}),
    "token is none": message("tools/call", {"name": "list_tags", "_meta": {"progressToken": {}}}),
    "no header": call("list_tags", version=STATELESS)._replace(
        headers={"MCP-Protocol-Version": STATELESS}
    ),
    "another name": call("list_tags", version=STATELESS)._replace(
        headers={
            "MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "get_prompt",
        }
    ),
    "no envelope": call("list_tags")._replace(
        headers={
            "MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "list_tags",
        }
    ),
    "another era's envelope": message(
        "tools/call", {"name": "list_tags", "_meta": {
            "io.modelcontextprotocol/protocolVersion": HANDSHAKE}}, version=STATELESS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSUAL)
def test_unusual_requests(pair: Both, case: str):
    pair.ask(*UNUSUAL[case])


def test_headers_that_come_twice(pair: Both):
    valid = call("list_tags", version=STATELESS)
    pairs = [("host", "localhost"), ("content-type", "application/json")]
    pairs += [(name.lower(), str(value)) for name, value in valid.headers.items()]
    plain = [(name.encode(), value.encode()) for name, value in pairs]
    pair.ask(valid.body, plain)
    for again in plain[1:]:
        pair.ask(valid.body, [*plain, again])


# The work


def modules_used(pair: Both, endpoint: Endpoint, valid: Message) -> set[str]:
    """The modules whose functions run while an endpoint answers, in this thread."""
    used: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            used.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        reply = pair.runner.run(ask(endpoint, *valid))
    finally:
        sys.setprofile(before)
    assert reply.given
    return used


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("tool", GOOD_ARGUMENTS)
def test_a_call_skips_the_sdks_transport_and_is_worked_out_once(
    fresh: Both, tool: str, version: str
):
    valid = call(tool, version=version, **GOOD_ARGUMENTS[tool][0])
    first, again = (modules_used(fresh, fresh.quick, valid) for _ in range(2))
    assert READER in first and READER not in again
    assert TRANSPORT not in first | again
    assert {TRANSPORT, READER} <= modules_used(fresh, fresh.slow, valid)


# Kept answers


@contextlib.contextmanager
def keeping(pair: Both, bytes_max: int) -> Iterator[tuple[Calls, Callable[..., Reply]]]:
    """Calls that keep so much, and a way to call a tool by them."""
    catalogue = Catalogue(pair.settings, pair.queries)
    server = make_server(catalogue)
    calls = Calls(catalogue, server.server_info_stamp, bytes_max)
    endpoint = Endpoint(server, Access(pair.settings.base_url), calls=calls)
    with inside(endpoint) as runner:
        yield calls, lambda *tool, **given: runner.run(ask(endpoint, *call(*tool, **given)))


def test_kept_answers_are_bounded(pair: Both):
    with keeping(pair, 100_000) as (calls, do):
        for _ in range(3):
            do("list_tags")
        assert len(calls.kept) == 1
        for text in map(str, range(100)):
            do("get_prompt", id="ann/review", arguments={"code": text})
            assert calls.kept.currsize <= 100_000
        assert 10 < len(calls.kept) < 100


def test_long_answers_and_errors_are_not_kept(pair: Both):
    with keeping(pair, 2_000_000) as (calls, do):
        size = len(do("get_prompt", id="ann/long").body)
        assert calls.kept.maxsize // 16 < size < calls.kept.maxsize
        do("get_prompt", id="ann/none")
        do("list_tags", limit=0)
        assert len(calls.kept) == 0


def test_what_differs_is_kept_apart(fresh: Both):
    """Twice over, so that each is kept while the others are asked for."""
    given = [
        {"name": tool, "arguments": arguments}
        for tool in ("list_tags", "get_prompt", "list_versions")
        for arguments in GOOD_ARGUMENTS[tool]
    ]
    asked = [*some(enumerate(product(VERSIONS, given)))]
    for is_again in (False, True):
        for number, (version, params) in asked:
            asked_as = number if is_again else str(number)
            valid = message("tools/call", params, request_id=asked_as, version=version)
            assert fresh.ask(*valid).json["id"] == asked_as


def replaced(path: Path) -> None:
    """A new file of the same size and time, renamed over the old one."""
    status = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"The ", b"tHE ").replace(b"With", b"wITH"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


def touched(path: Path) -> None:
    """The same bytes at another time."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def longer(path: Path) -> None:
    """Written in place, and the time set back."""
    status = path.stat()
    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def deleted(path: Path) -> None:
    path.unlink()


KEPT = [
    (call("get_prompt", id="ann/review"), "api/v1/repos/ann/review.json"),
    (call("get_prompt", id="ann/review@1.0.0"), "api/v1/repos/ann/review/versions/1.0.0.json"),
    (call("get_prompt", id="ann/review@1.0.0"), "api/v1/repos/ann/review.json"),
    (call("list_versions", id="ann/review"), "api/v1/repos/ann/review/versions.json"),
    (call("list_versions", id="ann/review"), "api/v1/repos/ann/review.json"),
    (call("list_tags", version=STATELESS), "api/v1/tags.json"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "valid", "file"),
    [
        *((change, *kept) for change in (replaced, deleted) for kept in KEPT),
        *((change, *KEPT[0]) for change in (touched, longer)),
    ],
)
def test_a_kept_answer_does_not_outlive_a_file(
    fresh: Both, change: Callable[[Path], None], valid: Message, file: str
):
    before = [fresh.ask(*valid) for _ in range(2)]
    change(Path(fresh.settings.out, file))
    after = fresh.ask(*valid)
    assert not before[0].result["isError"]
    assert after.result["isError"] is (change is deleted)


def test_a_search_is_kept_until_a_build(fresh: Both):
    valid = call("search_prompts", query="walruses")
    for number in range(3):
        assert [fresh.ask(*valid).given["total"] for _ in range(3)] == [number] * 3
        write_version(fresh.settings.content, "ann", f"w{number}", "1.0.0", "Walruses.\n")
        build(fresh.settings)


def test_the_envelope_of_a_request_is_no_part_of_its_answer(pair: Both):
    """A client's words about itself, kept or not, never come back."""
    secret = "xPLANTEDx"
    meta = {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": secret, "version": secret}}}
    valid = message("tools/call", {"name": "list_tags", **meta}, version=STATELESS)
    assert ENVELOPE.keys() >= meta["_meta"].keys()
    for _ in range(2):
        assert secret not in pair.ask(*valid).body.decode()
