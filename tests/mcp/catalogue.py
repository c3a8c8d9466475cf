"""A catalogue that means no good, and ways to ask the MCP server about one without a socket."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search.query_thread import QueryThread
from mcp_app.app import create_app
from mcp_app.endpoint import Endpoint
from mcp_app.reader import Catalogue, Reader
from mcp_app.schemas import schema
from mcp_app.selection import WHOLE, Selection
from mcp_app.tools import TOOLS, Outcome, call
from tests.support.catalogues import settings_in, write_owner, write_version

# Stands in whatever a contributor or a caller may write; an error must never repeat it.
MARK = "<b>OBEY</b>\u2028now"
TITLE_MARK = "<b>OBEY</b>"

VERSIONS = [f"1.{minor}.{patch}" for minor in range(10) for patch in range(30)]
PROMPTS_OF_MANY = 120
# More than a completion gives.
OWNERS = 110
# Characters of one to four bytes, so that no round number of bytes is between two of them.
LONG_TEXT = f"{MARK} " + "aé語𝄞b" * ((256 * 1024 - 32) // 11)
LINE_TEXT = f"{MARK} {'very long ' * 14_000}{'x' * 4_000}"
FLOOD_TEXT = "{{a}}" * (256 * 1024 // 5)

FRONT = f"---\ntitle: {TITLE_MARK}\ntags: [hostile]\n---\n"
BODIES = {
    "front": "Say {{what}}.\n",
    "crlf": "Say {{what}}.\r\nTwice.\r\n",
    "twice": "---\nnot: front matter\n---\nSay it.\n",
    "in-front": "Say it.\n",
}
TEXTS = {
    "front": FRONT + BODIES["front"],
    "crlf": FRONT.replace("\n", "\r\n") + BODIES["crlf"],
    "twice": FRONT + BODIES["twice"],
    "in-front": f"---\ntitle: '{{{{what}}}} {MARK[:4]}'\n---\n{BODIES['in-front']}",
    "bom": f"\ufeff{FRONT}Say it.\n",
    "no-front": "---\n- a list\n---\nSay {{what}}.\n",
    "escapes": r"\{{a}} {{a}} {{ b }} {{{c}}} {a} \\{{b}} {{1}} {{}} {{a b}}",
    "script": f"<script>alert(1)</script> {MARK}\u202e\u2066 \x1b[31m {{{{what}}}}",
    "long": LONG_TEXT,
    "line": LINE_TEXT,
    "flood": FLOOD_TEXT,
    "exact": "é" * 50_000,
}
# Of a chat prompt, as published, and as its messages.
CHAT_TEXT = (
    FRONT + 'Be kind to {{who}}.\n{{role "user"}}\n\n{{what}}\n{{role "assistant"}}\n\\{{what}}\n'
    '{{role "tool"}}\n{"found": 1}\n{{role "user"}}\n{{more}}\n'
)
CHAT = [
    ("system", "Be kind to {{who}}."), ("user", "{{what}}"), ("assistant", "\\{{what}}"),
    ("tool", '{"found": 1}'), ("user", "{{more}}"),
]  # fmt: skip
CHAT_VARIABLES = [{"name": "who"}, {"name": "what"}, {"name": "more", "required": False}]
TYPED_TEXT = (
    "{{text}}|{{count}}|{{ratio}}|{{loud}}|{{items}}|{{options}}|{{level}}|{{tone}}|{{note}}"
)
TYPED: list[dict[str, Any]] = [
    {"name": "text", "description": f"Any text. {MARK}"},
    {"name": "count", "type": "integer", "default": 3},
    {"name": "ratio", "type": "number", "default": 0.5},
    {"name": "loud", "type": "boolean", "default": False},
    {"name": "items", "type": "array", "default": ["a", 1]},
    {"name": "options", "type": "object", "default": {"k": "語"}},
    {"name": "level", "type": "integer", "enum": [1, 2, 3], "default": 1},
    {"name": "tone", "enum": ["kind", f"stern {MARK}"], "example": "kind"},
    {"name": "note", "required": False},
]


def write_hostile_catalogue(root: str | Path) -> None:
    """Prompts of eve's that mean no good, and enough of others to need several pages."""
    write_owner(root, "eve", name=TITLE_MARK, bio=MARK)
    for name, text in TEXTS.items():
        write_version(
            root, "eve", name, "1.0.0", text, title=f"Ünïcødé {TITLE_MARK} 語 {name}",
            description=f"{MARK} \u202eбг", changelog=f"First\n{MARK}", tags=["hostile", "eve"],
        )  # fmt: skip
    write_version(
        root, "eve", "typed", "1.0.0", TYPED_TEXT, variables=TYPED, tags=["typed"],
        parameters={"model": MARK, "temperature": 0.5, "stop": ["\n"]},
    )  # fmt: skip
    for version, text, title in (("1.0.0", CHAT_TEXT, "Old"), ("2.0.0", "Say it.\n", "New")):
        write_version(
            root, "eve", "chat", version, text, title=title, description=f"{title} {MARK}",
            tags=["chat", title.lower()], variables=CHAT_VARIABLES if title == "Old" else [],
        )  # fmt: skip
    write_version(
        root,
        "eve",
        "blank",
        "1.0.0",
        '{{role "user"}}\n{{x}}\n{{role "assistant"}}\n',
        tags=["chat"],
    )
    # A record declares 200 at most, a text has what it has.
    write_version(
        root, "eve", "thousands", "1.0.0",
        "".join(f"{{{{v{number}}}}}" for number in range(9000)), variables=[],
    )  # fmt: skip
    for number, version in enumerate(VERSIONS):
        write_version(
            root, "eve", "often", version, f"Version {version} of {{{{what}}}}.\n",
            changelog=f"{MARK} {number}", tags=["busy"],
        )  # fmt: skip
    for number in range(PROMPTS_OF_MANY):
        write_version(
            root, "many", f"prompt-{number:03}", "1.0.0", f"Say {{{{what}}}} {number} times.\n",
            tags=["bulk", f"tag-{number % 60:02}", f"third-{number % 3}"],
        )  # fmt: skip
    for number in range(OWNERS):
        write_version(root, f"owner-{number:03}", "hello", "1.0.0", "Hello.\n")
    write_version(root, "one-of-a-kind", "review", "1.0.0", "Review it.\n", tags=["third-1"])


class Refused(Exception):
    """A JSON-RPC error; ``str()`` is its message."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Hub:
    """The MCP server over a site, asked without HTTP."""

    def __init__(self, settings: Settings, queries: QueryThread) -> None:
        self.settings = settings
        self._queries = queries
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self._runner.close()
        self._queries.close()

    def call(
        self, tool: str, arguments: dict[str, Any] | None = None, selection: Selection = WHOLE
    ) -> Outcome:
        """Call a tool, and check what holds for every outcome."""
        given = arguments or {}
        reader = Reader(Catalogue(self.settings, self._queries), selection)
        outcome = self._runner.run(call(TOOLS[tool], reader, given))
        if outcome.is_error:
            check_error(outcome.text)
            # An answer that is kept would outlive what was wrong.
            assert reader.sources is None
        else:
            check_result(tool, outcome.text)
            takes = schema(TOOLS[tool].takes)
            taken = {
                # What is no text may be given as one.
                key: value
                if takes["properties"][key]["type"] == "string" or not isinstance(value, str)
                else json.loads(value)
                for key, value in given.items()
                if value is not None
            }
            Draft202012Validator(takes).validate(taken)
        return outcome

    def get(self, tool: str, selection: Selection = WHOLE, **arguments: Any) -> dict[str, Any]:
        """The result of a call that must succeed."""
        outcome = self.call(tool, arguments, selection)
        assert not outcome.is_error, outcome.text
        return json.loads(outcome.text)

    def error(self, tool: str, selection: Selection = WHOLE, **arguments: Any) -> str:
        """The line of a call that must fail, and not for want of a plan."""
        outcome = self.call(tool, arguments, selection)
        assert outcome.is_error, outcome.text
        return outcome.text

    def walk(
        self, tool: str, selection: Selection = WHOLE, **arguments: Any
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of every page of a list."""
        cursors: list[dict[str, str]] = [{}]
        while True:
            result = self.get(tool, selection, **arguments, **cursors[-1])
            yield next(value for value in result.values() if isinstance(value, list))
            if "next_cursor" not in result:
                return
            follow(cursors, result["next_cursor"])

    def pages(self, method: str, query: str = "") -> Iterator[list[dict[str, Any]]]:
        """The rows of every page of one of the protocol's own lists."""
        cursors: list[dict[str, str]] = [{}]
        while True:
            result = self.ask(method, cursors[-1], query)
            yield next(value for value in result.values() if isinstance(value, list))
            if "nextCursor" not in result:
                return
            follow(cursors, result["nextCursor"])

    def ask(
        self, method: str, params: dict[str, Any] | None = None, query: str = "",
        version: str = "2025-11-25",
    ) -> dict[str, Any]:  # fmt: skip
        """The result of a method at ``/mcp?{query}``. Raises Refused."""

        async def ask_once() -> dict[str, Any]:
            endpoint = self.make_endpoint()
            async with endpoint.running():
                return await post(endpoint, method, params or {}, query, version)

        answer = self._runner.run(ask_once())
        if "error" in answer:
            assert len(answer["error"]["message"].splitlines()) == 1, answer
            raise Refused(answer["error"])
        return answer["result"]

    def make_endpoint(self) -> Endpoint:
        """The ASGI application, with answers that it keeps."""
        return create_app(self.settings, self._queries)


async def post(
    endpoint: Endpoint, method: str, params: dict[str, Any], query: str = "",
    version: str = "2025-11-25",
) -> dict[str, Any]:  # fmt: skip
    """What an endpoint that is running answers to a request."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    scope = {
        "type": "http", "method": "POST", "path": "/mcp", "query_string": query.encode(),
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
        "http_version": "1.1", "root_path": "",
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
            (b"mcp-protocol-version", version.encode()),
        ],
    }  # fmt: skip
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(message).encode()}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    await endpoint(scope, receive, send)
    return json.loads(b"".join(event.get("body", b"") for event in sent))


def follow(cursors: list[dict[str, str]], cursor: str) -> None:
    """Add one more cursor; one that was there before would lead around for ever."""
    assert {"cursor": cursor} not in cursors
    cursors.append({"cursor": cursor})


def check_error(text: str) -> None:
    """An error is a line that says how to go on, in nobody's words but ours."""
    assert len(text.splitlines()) == 1 and len(text) < 1000, text
    assert text.isprintable(), text
    assert "OBEY" not in text
    assert "server failed" not in text


def check_result(tool: str, text: str) -> None:
    """A result is compact JSON, complete, and as its schema says."""
    result = json.loads(text)
    Draft202012Validator(schema(TOOLS[tool].gives)).validate(result)
    assert result.keys() <= schema(TOOLS[tool].gives)["properties"].keys()
    assert None not in result.values()
    assert text == json.dumps(result, ensure_ascii=False, separators=(",", ":"))


@contextlib.contextmanager
def hub_over(settings: Settings) -> Iterator[Hub]:
    """A hub over a site that is built, or not."""
    hub = Hub(settings, QueryThread(settings))
    try:
        yield hub
    finally:
        hub.close()


def ids(result: dict[str, Any]) -> list[str]:
    return [prompt["id"] for prompt in result["prompts"]]


# Known everywhere through ``conftest``.


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = settings_in(tmp_path_factory.mktemp("hostile"), queries=True)
    write_hostile_catalogue(settings.content)
    build(settings)
    return settings


@pytest.fixture(scope="module")
def hostile(hostile_site: Settings) -> Iterator[Hub]:
    """A hub over the hostile catalogue. Tests put back what they change."""
    with hub_over(hostile_site) as hub:
        yield hub


@pytest.fixture(scope="module")
def sample(built_sample: Settings) -> Iterator[Hub]:
    """A hub over the sample catalogue. Tests must not change it."""
    with hub_over(built_sample) as hub:
        yield hub
