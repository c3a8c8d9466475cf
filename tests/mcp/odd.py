"""Requests as odd as they come: usual ones, some of whose parts are replaced, left out, doubled or
added at random.
"""

import json
from random import Random
from typing import Any, NamedTuple

import mcp_types as types

from tests.mcp.wire import ENVELOPE, STATELESS, headers_of, message

VERSIONS = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS]
GOOD_ARGUMENTS = {
    "search_prompts": [
        {}, {"query": "review"}, {"query": "nothing like this"}, {"tags": ["code"]},
        {"owner": "ann", "limit": 1}, {"sort": "new"}, {"query": "review", "sort": "top"},
    ],
    "get_prompt": [
        {"id": "ann/review"}, {"id": "ann/review@1.0.0"}, {"owner": "ann", "name": "typed"},
        {"id": "ann/review", "arguments": {"code": "x = 1"}}, {"id": "ann/nothing"},
        {"id": "ann/typed", "arguments": {"language": "Go", "lines": 3}}, {"id": "ann/long"},
        {"id": "ann/review", "version": "1.0.0"},
        {"id": "ann/review@9.9.9"}, {"id": "nobody"}, {"id": "ann/typed", "arguments": {}},
        {"id": "ann/chat@1.0.0"}, {"id": "ann/chat", "arguments": {"name": '{{role "user"}}'}},
    ],
    "list_versions": [{"id": "ann/review"}, {"id": "ann/review", "limit": 1}, {"id": "bob/no"}],
    "list_tags": [{}, {"prefix": "c"}, {"limit": 1}, {"prefix": "zz"}],
}  # fmt: skip
METAS = [
    {}, {"progressToken": 3}, {"progressToken": "p"},
    {"claudecode/toolUseId": "toolu_01A", "progressToken": 3}, {"traceparent": "00-1-2-01"},
]  # fmt: skip
QUERIES = [b"", b"owner=ann", b"x=1", b"%ff"]
IDS = [1, 0, -1, 2**53, "a", "", 'ä\n"', "1"]

# Replacements for a value: JSON, and text that resembles JSON.
VALUES = [
    *"null true 0 1 -1 1.0 1.5 1e2 1E400 NaN -0 01".split(), "1" * 5000, str(2**64), "x",
    *'"" "1" "ann" "2.0" "1.0" "ping" "tools/list" "get_prompt" "2025-11-25" "loudest"'.split(),
    r'"\ud800"', r'"\ud83d\ude00"', r'"\q"', '"\x01"', '"\x7f"', '"\\u0000"', f'"{"x" * 3000}"',
    *'[] ["code"] [1] {} {"a":1} {"ttl":1} {"sampling":{}} {"sampling":1}'.split(),
    '{"progressToken":1,"progressToken":{}}', '{"name":"a","version":"1","name":1}',
    "[" * 300 + "]" * 300, '{"a":' * 150 + "1" + "}" * 150, "[" * 5000 + "]" * 5000,
]  # fmt: skip
NAMES = [
    *"jsonrpc id method params result error x Name name arguments _meta task cursor".split(),
    *"inputResponses requestState progressToken owner version limit offset tags sort ID".split(),
    "", "x" * 5000, types.LOG_LEVEL_META_KEY, *ENVELOPE,
]  # fmt: skip
HEADERS = {
    "accept": [
        "application/json", "*/*", "application/*", "application/json;q=0.5", "Application/JSON",
        "text/html", "", "application/json;q=0", "text/event-stream", ",application/json",
        "text/event-stream, */*;q=0.1", "application/json x",
    ],
    "content-type": [
        "application/json; charset=utf-8", "application/json;charset=latin-1", "text/plain",
        "APPLICATION/JSON", " application/json ", "application/json, text/plain",
        "application/jsonx", "text/plain, application/json",
    ],
    "mcp-protocol-version": [
        "", "2025-11-25 ", "2024-10-07", "2027-01-01", "banana", "\xe4", "2025-11-25", STATELESS,
    ],
    "mcp-method": ["tools/call", "tools/list", "", "Tools/Call"],
    "mcp-name": ["", "get_prompt", " list_tags ", "=?base64?bGlzdF90YWdz?="],
    "origin": ["http://localhost"],
    "mcp-session-id": ["1"], "last-event-id": ["1"], "mcp-param-id": ["1"], "traceparent": ["1"],
    "authorization": ["Bearer x"], "content-encoding": ["gzip"], "expect": ["100-continue"],
}  # fmt: skip

Pairs = list[tuple[bytes, bytes]]


class Odd(NamedTuple):
    """A request; ``headers`` are pairs as they go over the wire."""

    body: bytes
    headers: Pairs
    query: bytes


def odd_call(random: Random) -> Odd:
    """A request for ``tools/call``."""
    tool = random.choice([*GOOD_ARGUMENTS])
    params = {"name": tool, "arguments": random.choice(GOOD_ARGUMENTS[tool])}
    if meta := random.choice(METAS):
        params["_meta"] = meta
    version = random.choice([*VERSIONS, STATELESS])
    valid = message("tools/call", params, request_id=random.choice(IDS), version=version)
    pairs = headers_of(valid.headers)
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        _spoil_header(random, pairs)
    return Odd(spoilt(random, valid.body), pairs, random.choice(QUERIES))


def _spoil_header(random: Random, pairs: Pairs) -> None:
    name = random.choice([*HEADERS])
    pair = name.encode(), random.choice(HEADERS[name]).encode("latin-1")
    if random.random() < 0.8:
        pairs[:] = [one for one in pairs if one[0] != pair[0]]
    if random.random() < 0.8:
        pairs.append(pair)
    random.shuffle(pairs)


def spoilt(random: Random, body: bytes) -> bytes:
    """A message with a few members of its objects, at any depth, otherwise."""
    whole = json.loads(body)
    # Values that are no JSON have a marker until the message is written.
    texts: dict[str, str] = {}

    def mark(text: str) -> str:
        texts[f"@{len(texts)}@"] = text
        return [*texts][-1]

    for _ in range(random.choice([0, 1, 1, 2, 3])):
        place = random.choice(_objects(whole))
        name = random.choice([*place] or [""])
        match random.randrange(4):
            case 0 | 1:
                place[name] = mark(random.choice(VALUES))
            case 2:
                place.pop(name, None)
            case 3:
                added = random.choice([name, *NAMES])
                place[mark(json.dumps(added))] = mark(random.choice(VALUES))
    for place in _objects(whole):
        members = random.sample([*place.items()], len(place))
        place.clear()
        place.update(members)
    written = json.dumps(whole, indent=random.choice([None, 1]), ensure_ascii=random.random() < 0.5)
    for one, text in texts.items():
        written = written.replace(f'"{one}"', text)
    return written.encode("utf-8", "surrogatepass")


def _objects(value: Any) -> list[dict[str, Any]]:
    """All objects in a value, the outermost first."""
    if not isinstance(value, dict):
        return []
    return [value, *(one for inner in value.values() for one in _objects(inner))]
