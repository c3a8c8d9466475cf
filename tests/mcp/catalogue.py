"""A catalogue that means no good, and ways to ask the MCP server about one without a socket."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from builder.model.settings import Settings
from builder.model.version_files import BYTES_MAX, FILES_MAX, PATH_CHARS_MAX
from builder.pipeline.build import build
from builder.search.query_thread import QueryThread
from mcp_app.app import create_app
from mcp_app.endpoint import Endpoint
from tests.mcp.wire import HANDSHAKE, ask, error_of, inside, message
from tests.support.catalogues import settings_in, write_owner, write_version

# A text in everything that contributors and callers write; an error must never repeat it.
MARK = "<b>OBEY</b>\u2028now"
TITLE_MARK = "<b>OBEY</b>"

# The tools, with their arguments.
TAKES = {
    "search_prompts": ["query", "tags", "owner", "sort", "limit", "cursor"],
    "get_prompt": ["id", "owner", "name", "version", "label", "arguments"],
    "list_versions": ["id", "limit", "cursor"],
    "list_tags": ["prefix", "limit", "cursor"],
}
VERSIONS = [f"1.{minor}.{patch}" for minor in range(10) for patch in range(30)]
PROMPTS_OF_MANY = 120
# With the others, more prompts than a list of the top has (TOP_MAX).
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
# The text of a chat prompt as published, and as messages.
CHAT_TEXT = (
    FRONT + 'Be kind to {{who}}.\n{{role "user"}}\n\n{{what}}\n{{role "assistant"}}\n\\{{what}}\n'
    '{{role "tool"}}\n{"found": 1}\n{{role "user"}}\n{{more}}\n'
)
CHAT = [
    ("system", "Be kind to {{who}}."), ("user", "{{what}}"), ("assistant", "\\{{what}}"),
    ("tool", '{"found": 1}'), ("user", "{{more}}"),
]  # fmt: skip
CHAT_VARIABLES = [{"name": "who"}, {"name": "what"}, {"name": "more", "required": False}]
# Files of eve's prompts in their latest versions, and those of the one before.
FILES = {
    "folder": {
        "empty": b"",
        "image.png": bytes(range(256)),
        "notes/a@2+b_c-d.html": f"<script>é語</script>\r\n\t{MARK}".encode(),
        "notes/latin.txt": b"caf\xe9",
        "notes/zero.md": b"a\0b",
        "scripts/run.sh": b"\xef\xbb\xbfecho new\n",
        "scripts/walk.sh": b"walk\n",
    },
    # As many and as large as a version may have, in characters that JSON escapes.
    "heavy": {
        f"{number:03}{'a' * (PATH_CHARS_MAX - 3)}": b'"' * (BYTES_MAX if number == 0 else 0)
        for number in range(FILES_MAX)
    },
}
OLD_FILES = {"gone.md": b"Gone.\n", "scripts/run.sh": b"echo old\n"}
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
    blank = '{{role "user"}}\n{{x}}\n{{role "assistant"}}\n'
    write_version(root, "eve", "blank", "1.0.0", blank, tags=["chat"])
    write_version(root, "eve", "folder", "1.0.0", "Run scripts/run.sh.\n", OLD_FILES)
    for name, files in FILES.items():
        write_version(root, "eve", name, "1.1.0", "Read the files.\n", files)
    surge = [{"name": "a", "default": "x" * 100}]
    write_version(root, "eve", "surge", "1.0.0", FLOOD_TEXT, variables=surge)
    gentle = [{"name": "tone", "default": "kind"}]
    write_version(root, "eve", "gentle", "1.0.0", "Be {{tone}}.\n", variables=gentle)
    # A record declares at most 200; a text may use more.
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
    """An endpoint over a site, asked without a socket."""

    def __init__(self, settings: Settings, runner: asyncio.Runner, endpoint: Endpoint) -> None:
        self.settings = settings
        self._runner = runner
        self._endpoint = endpoint

    @cached_property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools by name, as they are listed."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["tools"]}

    def ask(
        self, method: str, params: dict[str, Any] | None = None, version: str = HANDSHAKE
    ) -> dict[str, Any]:
        """The result of a method. Raises Refused."""
        valid = message(method, params or {}, version=version)
        reply = self._runner.run(ask(self._endpoint, *valid))
        if "error" in reply.json:
            error = error_of(reply)
            assert len(error["message"].splitlines()) == 1, error
            raise Refused(error)
        return reply.result

    def call(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a tool, after the checks that hold for every result."""
        given = arguments or {}
        result = self.ask("tools/call", {"name": tool, "arguments": given})
        (content,) = result["content"]
        if result["isError"]:
            assert result.keys() == {"content", "isError"}
            check_error(content["text"])
            return result
        check_result(self.tools[tool]["outputSchema"], result["structuredContent"], content["text"])
        takes = self.tools[tool]["inputSchema"]
        # A value that is no text may be given as its JSON.
        taken = {
            key: value
            if takes["properties"][key]["type"] == "string" or not isinstance(value, str)
            else json.loads(value)
            for key, value in given.items()
            if value is not None
        }
        Draft202012Validator(takes).validate(taken)
        return result

    def get(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that must succeed."""
        result = self.call(tool, arguments)
        assert not result["isError"], result
        return result["structuredContent"]

    def error(self, tool: str, **arguments: Any) -> str:
        """The line of a call that must fail, and not because the server does."""
        result = self.call(tool, arguments)
        assert result["isError"], result
        return result["content"][0]["text"]

    def walk(self, tool: str, **arguments: Any) -> Iterator[list[dict[str, Any]]]:
        """The rows of every page of a tool's list."""
        return pages("next_cursor", lambda cursor: self.get(tool, **arguments, **cursor))

    def pages(self, method: str) -> Iterator[list[dict[str, Any]]]:
        """The rows of every page of one of the protocol's own lists."""
        return pages("nextCursor", lambda cursor: self.ask(method, cursor))


def pages(
    key: str, get: Callable[[dict[str, str]], dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    """The rows of every page. Fails if a cursor repeats, which would cause an endless loop."""
    cursors: list[dict[str, str]] = [{}]
    while True:
        result = get(cursors[-1])
        yield next(value for value in result.values() if isinstance(value, list))
        if key not in result:
            return
        assert {"cursor": result[key]} not in cursors
        cursors.append({"cursor": result[key]})


def check_error(text: str) -> None:
    """An error is a line that says what to do, and repeats nothing that a caller wrote."""
    assert len(text.splitlines()) == 1 and len(text) < 1000, text
    assert text.isprintable(), text
    assert "OBEY" not in text
    assert "server failed" not in text


def check_result(schema: dict[str, Any], result: dict[str, Any], text: str) -> None:
    """A result is as its schema says, and complete as compact JSON."""
    Draft202012Validator(schema).validate(result)
    assert result.keys() <= schema["properties"].keys()
    assert None not in result.values()
    assert text == json.dumps(result, ensure_ascii=False, separators=(",", ":"))


@contextlib.contextmanager
def hub_over(settings: Settings) -> Iterator[Hub]:
    """A hub over a site that is built, or not."""
    with contextlib.closing(QueryThread(settings)) as queries:
        endpoint = create_app(settings, queries)
        with inside(endpoint) as runner:
            yield Hub(settings, runner, endpoint)


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
