"""Bytes that no client would send: the endpoint answers each with one answer of HTTP and JSON-RPC,
repeats nothing of it in an error's message, and logs no failure.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from builder.search.query_thread import QueryThread
from mcp_app.app import create_app
from mcp_app.endpoint import BODY_BYTES_MAX, Endpoint
from tests.mcp.odd import spoilt
from tests.mcp.wire import (
    HANDSHAKE,
    STATELESS,
    Message,
    Reply,
    ask,
    built_catalogue,
    call,
    error_of,
    inside,
    message,
)

STATUSES = {200, 202, 400, 404, 406, 413, 415}
MARKER = "xPLANTEDx"
MUTANTS = 4000

CLIENT = {"name": "fuzz", "version": "1"}
# Every method, and those that the endpoint does not have.
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}),
    *(
        (method, {})
        for method in (
            "server/discover",
            "notifications/initialized",
            "ping",
            "tools/list",
            "prompts/list",
            "resources/list",
            "no/such/method",
        )
    ),
    ("tools/call", {"name": "get_prompt", "arguments": {"id": "ann/review"}}),
    ("tools/call", {"name": "search_prompts", "arguments": {"query": "review"}}),
    ("tools/call", {"name": "list_versions", "arguments": {"id": "ann/review"}}),
    ("tools/call", {"name": "list_tags", "arguments": {"prefix": "c"}}),
    ("resources/read", {"uri": "prompt://ann/review/1.0.0"}),
    ("skills/list", {}),
    ("skills/get", {"uri": "skill://ann/review/SKILL.md"}),
    ("prompts/get", {"name": "ann/review", "arguments": {"code": "x"}}),
    ("completion/complete", {"ref": {}, "argument": {"name": "owner", "value": "a"}}),
    ("logging/setLevel", {"level": "info"}),
    ("resources/subscribe", {"uri": "prompt://ann/review"}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("tasks/get", {"taskId": "1"}),
]
ERAS = [None, HANDSHAKE, STATELESS]
VALID = [message(method, params, version=era) for method, params in METHODS for era in ERAS]
VALID_CALLS = [
    call(tool, version=era, **arguments)
    for era in ERAS
    for tool, arguments in (
        ("get_prompt", {"id": "ann/review"}), ("get_prompt", {"id": "bob/sql"}),
        ("search_prompts", {"query": "review"}), ("search_prompts", {"query": "write"}),
        ("list_versions", {"id": "ann/review"}), ("list_tags", {"limit": 1}),
        ("get_prompt", {"id": "ann/none"}),
    )
]  # fmt: skip

# Values that JSON allows and programs often reject, and invalid ones.
HARD_PARTS = [
    b"null", b"-0", b"1e999", b"NaN", b"-Infinity", b"1" * 5000, b"1E-9999", b"[" * 600,
    b"[" * 5000 + b"]" * 5000, b'{"a":' * 300 + b"1" + b"}" * 300, rb'"\ud800"', rb'"\udc00\ud800"',
    b'"\xff"', b"\xef\xbb\xbf", b"\x00", b'"\\u0000"', b"[]", b"{}", b'""', b"true", b"'",
    b'"id":1,', b'"method":"ping",', b'"params":{},', b'"jsonrpc":"1.0",', b'"_meta":{},',
    b"\xed\xa0\x80", b"\xc0\xaf", b"/*", b",,", b"\xf4\x90\x80\x80", b'"' + b"\\" * 99,
]  # fmt: skip


Edge = Callable[..., Reply]


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Endpoint]]:
    settings = built_catalogue(tmp_path_factory.mktemp("fuzzed"))
    with contextlib.closing(QueryThread(settings)) as queries:
        endpoint = create_app(settings, queries)
        with inside(endpoint) as runner:
            yield runner, endpoint


@pytest.fixture
def edge(loop: tuple[asyncio.Runner, Endpoint], caplog: pytest.LogCaptureFixture) -> Iterator[Edge]:
    """Sends a request, and checks what does not depend on it."""
    runner, endpoint = loop

    def send(body: bytes, headers: Any = (), **options: Any) -> Reply:
        reply = runner.run(ask(endpoint, body, headers, **options))
        check(reply, body)
        return reply

    yield send
    failures = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not failures, failures[0].getMessage()


def check(reply: Reply, body: bytes) -> None:
    assert reply.status in STATUSES, (reply, body)
    if reply.status == 202:
        assert reply.body == b""
        return
    assert reply.headers["content-type"] == "application/json", (reply, body)
    answer = reply.json
    assert answer["jsonrpc"] == "2.0"
    if "error" in answer:
        assert MARKER not in own_words(error_of(reply)["message"]), (reply, body)
        assert len(error_of(reply)["message"]) < 1000
        if answer["id"] is None:
            return
    else:
        assert reply.status == 200
        assert answer.keys() == {"jsonrpc", "id", "result"}
        result = answer["result"]
        if result.get("isError"):
            (content,) = result["content"]
            assert MARKER not in own_words(content["text"])
            assert "server failed" not in content["text"]
    sent = from_json(body)["id"]
    assert (type(answer["id"]), answer["id"]) == (type(sent), sent)


def own_words(error: str) -> str:
    """An error without the one name that it repeats, where that cannot be a sentence."""
    return re.sub(r"^Unknown argument `[A-Za-z0-9_.-]{1,64}`\.", "", error)


def mutated(random: Random, body: bytes) -> bytes:
    """The body with a few of its bytes, or its parts, otherwise."""
    data = bytearray(body)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        start = random.randint(0, len(data))
        end = min(len(data), start + random.choice([0, 1, 1, 2, 5, 20]))
        match random.randrange(6):
            case 0:
                data[start:end] = random.choice(HARD_PARTS)
            case 1:
                data[start:end] = random.randbytes(random.randint(0, 3))
            case 2:
                del data[start:end]
            case 3:
                data[start:end] = data[start:end] * 2
            case 4:
                other = random.choice(VALID).body
                cut = random.randint(0, len(other))
                data[start:end] = other[cut : cut + 30]
            case 5:
                data[start:end] = random.choice([b'"', b"{", b"}", b"[", b"]", b":", b",", b"\\"])
    return bytes(data)


def planted(random: Random, body: bytes) -> bytes:
    """The body with the marker in the place of one of its texts."""
    texts = body.split(b'"')
    place = random.randrange(1, len(texts), 2)
    texts[place] = random.choice(
        [MARKER.encode(), MARKER.encode() + b"\\n" * 50, texts[place] + MARKER.encode()]
    )
    return b'"'.join(texts)


def headers_for(random: Random, valid: Message) -> Any:
    """The message's headers; rarely with one that is wrong."""
    if random.random() < 0.9:
        return valid.headers
    name = random.choice(["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "MCP-Session-Id"])
    return valid.headers | {name: random.choice([MARKER, "", "\xff", STATELESS, "tools/call"])}


def test_what_is_mutated_is_answered(edge: Edge):
    statuses = Counter(edge(valid.body, valid.headers).status for valid in VALID)
    assert statuses[200] >= len(METHODS) * 2


def test_mutants(edge: Edge):
    random = Random(6)
    statuses = Counter()
    for valid in itertools.islice(itertools.cycle(VALID), MUTANTS):
        body = mutated(random, valid.body)
        if random.random() < 0.3:
            body = mutated(random, planted(random, valid.body))
        statuses[edge(body, headers_for(random, valid)).status] += 1
    # Mutants that are all refused at the door would try nothing behind it.
    assert statuses[200] > MUTANTS / 20
    assert statuses[400] > MUTANTS / 10


def test_a_marker_in_every_place(edge: Edge):
    for valid in VALID:
        for place in range(1, len(valid.body.split(b'"')), 2):
            texts = valid.body.split(b'"')
            texts[place] = MARKER.encode()
            edge(b'"'.join(texts), valid.headers)


HEADERS = ["Mcp-Method", "Mcp-Name", "Accept", "MCP-Session-Id", "Content-Type", "Last-Event-ID"]


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", *HEADERS])
def test_a_marker_in_a_header(edge: Edge, name: str):
    for valid in VALID:
        for value in (MARKER, f"=?base64?{MARKER}?=", f"application/json, {MARKER}"):
            edge(valid.body, valid.headers | {name: value})


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode()))
def test_any_bytes(loop: tuple[asyncio.Runner, Endpoint], body: bytes):
    runner, endpoint = loop
    for headers in ({}, {"MCP-Protocol-Version": STATELESS}):
        check(runner.run(ask(endpoint, body, headers)), body)


def test_any_value_in_any_place(edge: Edge):
    random = Random(7)
    for valid in itertools.islice(itertools.cycle(VALID), MUTANTS // 2):
        edge(spoilt(random, valid.body), valid.headers)


@pytest.mark.parametrize("part", HARD_PARTS, ids=lambda part: repr(part[:12]))
def test_hard_parts_in_the_place_of_every_value(edge: Edge, part: bytes):
    for era in ERAS:
        valid = call("get_prompt", id="ann/review", version=era)
        for piece in (b'"2.0"', b"1", b'"tools/call"', b'"get_prompt"', b'"ann/review"', b'{"id"'):
            for body in (
                valid.body.replace(piece, part, 1),
                valid.body.replace(piece, piece + b"," + part, 1),
                part + valid.body,
                valid.body + part,
            ):
                edge(body, valid.headers)


def test_large_bodies(edge: Edge):
    for era in ERAS:
        for filling in (b"[", b'{"a":', b'"', b"1", b" ", b"\\u0000", b"[],", b"\xff"):
            valid = call("get_prompt", id="FILLING", version=era)
            size = BODY_BYTES_MAX - len(valid.body)
            body = valid.body.replace(b'"FILLING"', filling * (size // len(filling)))
            assert edge(body, valid.headers).status in (200, 400)
            assert edge(body + b" " * BODY_BYTES_MAX, valid.headers).status == 413


def test_answers_at_once_are_kept_apart(loop: tuple[asyncio.Runner, Endpoint]):
    runner, endpoint = loop

    async def ask_for(number: int) -> None:
        for turn in range(20):
            valid_number = (number + turn) % len(VALID_CALLS)
            valid = VALID_CALLS[valid_number]
            for id in (number, str(number)):
                body = json.dumps(json.loads(valid.body) | {"id": id}).encode()
                reply = await ask(endpoint, body, valid.headers)
                assert (type(reply.json["id"]), reply.json["id"]) == (type(id), id)
                assert reply.result == expected[valid_number]

    async def all_at_once() -> None:
        await asyncio.gather(*map(ask_for, range(8)))

    expected = [runner.run(ask(endpoint, *valid)).result for valid in VALID_CALLS]
    runner.run(all_at_once())
