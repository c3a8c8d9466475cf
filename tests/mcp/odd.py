"""Requests as odd as they come: what a client might send in the place of each thing, chosen at
random.

A choice is a text of JSON, or a Python value that ``written`` writes in one of JSON's many ways.
"""

import json
from random import Random
from typing import Any, NamedTuple

import mcp_types as types

from tests.mcp.wire import ENVELOPE, STATELESS

Pairs = list[tuple[str, Any]]


class Text(str):
    """JSON that is to be sent just so."""


class Members(NamedTuple):
    """An object with its members in order, some perhaps twice."""

    pairs: Pairs


class Odd(NamedTuple):
    """A request; ``headers`` are pairs as they go over the wire."""

    body: bytes
    headers: list[tuple[bytes, bytes]]
    query: bytes


LEFT_OUT = object()
# More levels than one of the SDK's two parsers goes down.
DEEP = Text("[" * 300 + "]" * 300)

VERSIONS = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS]
ODD_VERSIONS = ["", "2025-11-25 ", "2024-10-07", "2027-01-01", "banana", "\xe4"]
TOOLS = ["search_prompts", "get_prompt", "list_versions", "list_tags"]
IDS = [1, 0, -1, 2**53, "a", "", "ä\n\"", "1"]  # fmt: skip
ODD_IDS = [
    None, True, 1.5, 1.0, [], {}, [1], LEFT_OUT, 2**64, -(2**63) - 1, 10**400,
    Text("1e3"), Text("-0"), Text("01"), Text("1" * 5000), Text(r'"\ud800"'),
    Text(r'"\ud83d\ude00"'), Text(r'"\q"'), Text('"\x01"'), Text("1.0"), Text("NaN"), "x" * 1000,
]  # fmt: skip
VALUES = [
    None, True, 0, 1, 5, -1, 1.0, 1.5, 10**30, "", "1", "ann", "zz", [], ["code"], [1], {},
    {"a": 1}, Text("1e2"), Text("1E400"), Text("NaN"), Text(r'"\ud800"'), Text("-0"),
    Text("1" * 5000), Text('"\x7f"'), "\0", "x" * 3000, DEEP, [DEEP],
    Text('{"a":' * 150 + "1" + "}" * 150), Text("[" * 5000 + "]" * 5000),
]  # fmt: skip
GOOD_ARGUMENTS = {
    "search_prompts": [
        {}, {"query": "review"}, {"query": "nothing like this"}, {"tags": ["code"]},
        {"owner": "ann", "limit": 1}, {"sort": "new"}, {"query": "review", "sort": "top"},
    ],
    "get_prompt": [
        {"id": "ann/review"}, {"id": "ann/review@1.0.0"}, {"owner": "ann", "name": "typed"},
        {"id": "ann/review", "arguments": {"code": "x = 1"}}, {"id": "ann/nothing"},
        {"id": "ann/typed", "arguments": {"language": "Go", "lines": 3}}, {"id": "ann/long"},
        {"id": "ann/long", "offset": 100_000}, {"id": "ann/review", "version": "1.0.0"},
        {"id": "ann/review@9.9.9"}, {"id": "nobody"}, {"id": "ann/typed", "arguments": {}},
        {"id": "ann/chat@1.0.0"}, {"id": "ann/chat", "arguments": {"name": '{{role "user"}}'}},
    ],
    "list_versions": [{"id": "ann/review"}, {"id": "ann/review", "limit": 1}, {"id": "bob/no"}],
    "list_tags": [{}, {"prefix": "c"}, {"limit": 1}, {"prefix": "zz"}],
}  # fmt: skip
NAMES = [
    "id", "owner", "name", "version", "arguments", "offset", "limit", "cursor", "query", "tags",
    "sort", "prefix", "extra", "", "ID",
]  # fmt: skip
METAS = [
    LEFT_OUT, {}, {"progressToken": 3}, {"progressToken": "p"},
    {"claudecode/toolUseId": "toolu_01A", "progressToken": 3}, {"traceparent": "00-1-2-01"},
]  # fmt: skip
ODD_METAS = [
    None, [], "x", 1, {"progressToken": None}, {"progressToken": 1.5}, {"progressToken": True},
    {"progressToken": {}}, {"progressToken": 10**400}, {"progressToken": Text("1.0")},
    {"progressToken": 2**70}, {"progressToken": Text(r'"\ud800"')},
    {"x": Text(r'"\ud800"')}, {"x": Text("NaN")}, {"x": Text("1E999")}, {"x": Text("1" * 5000)},
    {"x": DEEP}, {"x": Text("[" * 2000 + "]" * 2000)},
    Members([("progressToken", 1), ("progressToken", {})]), {"": 1}, {Text("x"): None},
    {types.LOG_LEVEL_META_KEY: "loudest"}, {types.PROTOCOL_VERSION_META_KEY: 1},
    {types.CLIENT_CAPABILITIES_META_KEY: 1}, {types.CLIENT_INFO_META_KEY: []},
]  # fmt: skip
ENVELOPES = [
    ENVELOPE,
    ENVELOPE | {types.LOG_LEVEL_META_KEY: "info"},
    ENVELOPE | {types.CLIENT_CAPABILITIES_META_KEY: {"sampling": {}, "roots": {}, "x/y": {}}},
    {key: value for key, value in ENVELOPE.items() if key != types.CLIENT_INFO_META_KEY},
]
ODD_ENVELOPES = [
    {key: value for key, value in ENVELOPE.items() if key != left_out} for left_out in ENVELOPE
] + [
    ENVELOPE | {key: value} for key, value in (
        (types.PROTOCOL_VERSION_META_KEY, "2025-11-25"), (types.PROTOCOL_VERSION_META_KEY, None),
        (types.CLIENT_CAPABILITIES_META_KEY, None), (types.CLIENT_CAPABILITIES_META_KEY, []),
        (types.CLIENT_CAPABILITIES_META_KEY, {"sampling": 1}),
        (types.CLIENT_CAPABILITIES_META_KEY, {"sampling": Text("NaN")}),
        (types.CLIENT_CAPABILITIES_META_KEY, {"experimental": {"a": {"b": DEEP}}}),
        (types.CLIENT_CAPABILITIES_META_KEY, {"x": Text("1" * 5000)}),
        (types.CLIENT_CAPABILITIES_META_KEY, {"experimental": {"a": Text(r'"\ud800"')}}),
        (types.CLIENT_INFO_META_KEY, None), (types.CLIENT_INFO_META_KEY, {}),
        (types.CLIENT_INFO_META_KEY, {"name": "a"}),
        (types.CLIENT_INFO_META_KEY, {"name": "a", "version": 1}),
        (types.CLIENT_INFO_META_KEY, {"name": "a", "version": "1", "more": [1]}),
        (types.CLIENT_INFO_META_KEY, Members([("name", "a"), ("version", "1"), ("name", 1)])),
        (types.LOG_LEVEL_META_KEY, "loudest"), (types.LOG_LEVEL_META_KEY, None),
        ("progressToken", 1.5), ("progressToken", None), ("x" * 5000, 1),
    )
]  # fmt: skip
PARAMS_EXTRAS = [
    ("task", {"ttl": 1}), ("task", 1), ("x", 1), ("name", "list_tags"), ("arguments", {}),
    ("_meta", {}), ("inputResponses", {}), ("requestState", "x"), ("Name", "x"), ("cursor", "x"),
]  # fmt: skip
MESSAGE_EXTRAS = [
    ("x", 1), ("id", 7), ("id", None), ("method", "ping"), ("params", {}), ("params", {"name": 1}),
    ("jsonrpc", "1.0"), ("jsonrpc", "2.0"), ("result", {}), ("error", {"code": 1, "message": ""}),
    ("", None), ("deep", DEEP), ("x", Text(r'"\ud800"')), ("x", Text("NaN")),
    ("x", Text("1E999")), ("x", Text("1" * 5000)),
]  # fmt: skip
ACCEPTS = [
    "application/json, text/event-stream", "application/json", "*/*", None, "application/*",
    "application/json;q=0.5", "text/html", "Application/JSON", "", "application/json;q=0",
    "text/event-stream", "text/event-stream, */*;q=0.1", ",application/json", "application/json x",
]  # fmt: skip
CONTENT_TYPES = [
    "application/json", "application/json; charset=utf-8", "application/json;charset=latin-1",
    "APPLICATION/JSON", " application/json ", "text/plain", None, "application/json, text/plain",
    "application/jsonx", "text/plain, application/json",
]  # fmt: skip
HEADERS = [
    ("mcp-session-id", "abc"), ("last-event-id", "1"), ("mcp-param-id", "x"), ("x-other", "1"),
    ("authorization", "Bearer x"), ("mcp-method", "tools/call"), ("mcp-name", "get_prompt"),
    ("mcp-protocol-version", "2025-11-25"), ("mcp-protocol-version", STATELESS),
    ("accept", "application/json"), ("content-type", "application/json"), ("traceparent", "x"),
    ("content-encoding", "gzip"), ("origin", "http://localhost"), ("expect", "100-continue"),
]  # fmt: skip
QUERIES = [b"", b"", b"", b"owner=ann", b"tags=code", b"owner=nobody", b"x=1", b"tags=code,careful"]


def usual(random: Random, share: float, good: list[Any], odd: list[Any]) -> Any:
    """One of the good, or rarely of the odd."""
    return random.choice(good if random.random() < share else odd)


def odd_call(random: Random, calmness: float = 0.85) -> Odd:
    """A request for ``tools/call``. The nearer ``calmness`` is to 1, the more usual it is."""
    version = usual(random, calmness, VERSIONS, ODD_VERSIONS)
    tool = usual(random, calmness, TOOLS, ["no_such_tool", "", "Get_prompt", None, 1, "x" * 200])
    params: Pairs = [("name", tool)]
    arguments = _arguments(random, calmness, tool)
    if arguments is not LEFT_OUT:
        params.append(("arguments", arguments))
    if version == STATELESS:
        meta = usual(random, calmness, ENVELOPES, ODD_ENVELOPES + METAS + ODD_METAS)
        if isinstance(meta, dict) and random.random() < 0.3:
            more = random.choice(METAS)
            meta = meta | more if isinstance(more, dict) else meta
    else:
        meta = usual(random, calmness, METAS, ODD_METAS + ENVELOPES + ODD_ENVELOPES)
    if meta is not LEFT_OUT:
        params.append(("_meta", meta))
    if random.random() > calmness:
        params.insert(random.randint(0, len(params)), random.choice(PARAMS_EXTRAS))
    members: Pairs = [
        ("jsonrpc", usual(random, 0.98, ["2.0"], ["1.0", 2.0, None])),
        ("method", usual(random, 0.98, ["tools/call"], ["tools/list", "tools/Call", 1, "ping"])),
        ("params", usual(random, 0.98, [Members(params)], [None, [], "x", 1, LEFT_OUT])),
        ("id", usual(random, calmness, IDS, ODD_IDS)),
    ]
    members = [member for member in members if member[1] is not LEFT_OUT]
    if random.random() > calmness:
        members.insert(random.randint(0, len(members)), random.choice(MESSAGE_EXTRAS))
    random.shuffle(members)
    body = written(random, Members(members)).encode("utf-8", "surrogatepass")
    return Odd(body, _headers(random, calmness, version, tool), random.choice(QUERIES))


def _arguments(random: Random, calmness: float, tool: Any) -> Any:
    if random.random() > 0.95:
        return random.choice(
            [LEFT_OUT, None, [], "x", 1, Members([("id", 1), ("id", "ann/review")])]
        )
    good = random.choice(GOOD_ARGUMENTS.get(tool, [{}]) if isinstance(tool, str) else [{}])
    if random.random() < calmness:
        return good
    return good | {random.choice(NAMES): random.choice(VALUES)}


def _headers(
    random: Random, calmness: float, version: str | None, tool: Any
) -> list[tuple[bytes, bytes]]:
    pairs = [("host", "127.0.0.1:8000")]
    for name, choices in (("accept", ACCEPTS), ("content-type", CONTENT_TYPES)):
        value = usual(random, calmness, choices[:1], choices)
        if value is not None:
            pairs.append((name, value))
    if version is not None:
        pairs.append(("mcp-protocol-version", version))
    if version == STATELESS or random.random() > calmness:
        method = usual(random, 0.95, ["tools/call"], ["tools/list", "", None, "Tools/Call"])
        name = str(tool)
        named = usual(
            random, 0.95, [name], ["", None, "get_prompt", "=?base64?bGlzdF90YWdz?=", f" {name} "]
        )
        pairs += [("mcp-method", method)] if method is not None else []
        pairs += [("mcp-name", named)] if named is not None else []
    if random.random() > calmness:
        pairs.append(random.choice(HEADERS))
    random.shuffle(pairs)
    return [(name.encode(), value.encode("latin-1")) for name, value in pairs]


def written(random: Random, value: Any) -> str:
    """JSON with spaces, escapes and the order of members as it happens."""
    if isinstance(value, Text):
        return value
    if isinstance(value, str):
        return _quoted(random, value)
    if isinstance(value, dict):
        pairs = list(value.items())
        random.shuffle(pairs)
        value = Members(pairs)
    space = random.choice(["", "", "", " ", "\n\t", "\r\n  "])
    if isinstance(value, Members):
        inside = f",{space}".join(
            f"{_quoted(random, name)}{space}:{space}{written(random, one)}"
            for name, one in value.pairs
        )
        return f"{{{space}{inside}{space}}}"
    if isinstance(value, list):
        inside = f",{space}".join(written(random, one) for one in value)
        return f"[{space}{inside}{space}]"
    return json.dumps(value)


def _quoted(random: Random, text: str) -> str:
    if random.random() < 0.8:
        return json.dumps(text, ensure_ascii=random.random() < 0.5)
    inside = "".join(
        f"\\u{ord(letter):04x}" if random.random() < 0.5 and ord(letter) < 0x10000
        else json.dumps(letter)[1:-1]
        for letter in text
    )  # fmt: skip
    return f'"{inside}"'
