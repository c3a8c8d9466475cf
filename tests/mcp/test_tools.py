"""What the tools answer, on content that means no good, to callers that do not either."""

import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import RequestError
from builder.model.records import Variable
from builder.model.routes import BY_NAME
from builder.pipeline.build import build
from builder.text.likeness import COMPARED_MAX
from builder.text.messages import parse_messages
from builder.text.prompts import fill, variable_names
from builder.text.values import as_text
from mcp_app.cursors import make_cursor
from mcp_app.prompt_text import FILLED_CHARS_MAX, Prompt, fill_in
from mcp_app.schemas import schema
from mcp_app.selection import WHOLE, Selection
from mcp_app.tools import TEXT_BYTES_MAX, TOOLS
from tests.mcp.catalogue import (
    BODIES,
    CHAT,
    CHAT_TEXT,
    FLOOD_TEXT,
    FRONT,
    LINE_TEXT,
    LONG_TEXT,
    MARK,
    OWNERS,
    PROMPTS_OF_MANY,
    TEXTS,
    TYPED,
    TYPED_TEXT,
    VERSIONS,
    Hub,
    Refused,
    hub_over,
    ids,
)
from tests.support.catalogues import moment, settings_in, version_hours, write_version
from tests.support.depth import searching

LISTS = ("search_prompts", "list_versions", "list_tags")
LIMIT_MAX = {"search_prompts": 50, "list_versions": 100, "list_tags": 500}


def joined(hub: Hub, **arguments: Any) -> Iterator[str]:
    """The parts of a text that takes several answers."""
    offset = 0
    while True:
        result = hub.get("get_prompt", **arguments, offset=offset)
        yield result["text"]
        if not result.get("truncated"):
            assert "next_offset" not in result
            return
        assert result["next_offset"] > offset
        offset = result["next_offset"]


# search_prompts -------------------------------------------------------------------------------


def test_browsing_gives_the_top(sample: Hub):
    result = sample.get("search_prompts")
    site = Path(sample.settings.out, BY_NAME["list"].file_for(sort="top", page=1))
    listed = json.loads(site.read_text())
    assert len(result["prompts"]) == 10
    assert result["total"] == listed["meta"]["total"]
    for prompt, row in zip(result["prompts"], listed["data"], strict=False):
        assert prompt == {
            "id": f"{row['owner']}/{row['name']}",
            **{
                key: row[key]
                for key in (
                    "title", "description", "latest_version", "tags", "updated_at", "url",
                )
            },
        }  # fmt: skip


@pytest.mark.parametrize("sort", ["top", "trending", "new"])
def test_a_sort_is_that_of_the_site(sample: Hub, sort: str):
    listed = Path(sample.settings.out, BY_NAME["list"].file_for(sort=sort, page=1)).read_text()
    expected = [f"{row['owner']}/{row['name']}" for row in json.loads(listed)["data"]]
    assert ids(sample.get("search_prompts", sort=sort, limit=50)) == expected[:50]


def test_words_tags_and_owner_narrow(hostile: Hub):
    whole = hostile.get("search_prompts", limit=1)["total"]
    assert whole == len(TEXTS) + 5 + PROMPTS_OF_MANY + 1 + OWNERS
    assert ids(hostile.get("search_prompts", query="many prompt-007"))[0] == "many/prompt-007"
    assert hostile.get("search_prompts", tags=["bulk"])["total"] == PROMPTS_OF_MANY
    both = hostile.get("search_prompts", tags=["bulk", "tag-07"])
    assert sorted(ids(both)) == ["many/prompt-007", "many/prompt-067"]
    assert hostile.get("search_prompts", owner="eve")["total"] == len(TEXTS) + 5
    assert ids(hostile.get("search_prompts", owner="eve", tags=["busy"])) == ["eve/often"]
    assert ids(hostile.get("search_prompts", owner="eve", query="version")) == ["eve/often"]
    all_of = hostile.get("search_prompts", query="say", owner="many", tags=["third-1"], sort="new")
    assert all_of["total"] == PROMPTS_OF_MANY / 3


def test_it_is_told_how_words_were_found(sample: Hub):
    told = sample.get("search_prompts", query="sql revuew")
    assert told["match"] == "all"
    assert told["corrected"] == [{"from": "revuew", "to": "review"}]
    closest = sample.get("search_prompts", query="sql review unheardof")
    assert closest["match"] == "some" and "corrected" not in closest
    assert "match" not in sample.get("search_prompts")


def test_nothing_found_is_an_answer(hostile: Hub):
    assert hostile.get("search_prompts", query="unheardof") == {"prompts": [], "total": 0}


def test_a_blank_query_browses(hostile: Hub):
    assert hostile.get("search_prompts", query=" ") == hostile.get("search_prompts")


def test_null_is_left_out(hostile: Hub):
    nothing = dict.fromkeys(schema(TOOLS["search_prompts"].takes)["properties"])
    assert hostile.get("search_prompts", **nothing) == hostile.get("search_prompts")


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"tags": ["bulc"]}, "bulk"),
        ({"tags": ["nothing-like-it"]}, "list_tags"),
        ({"tags": ["bulk", "bulc"]}, "bulk"),
        ({"tags": ["Bulk"]}, "tag"),
        ({"tags": [MARK]}, "tag"),
        ({"tags": ["a"] * 11}, "10"),
        ({"tags": "bulk"}, "list"),
        ({"tags": [1]}, "list"),
        ({"owner": "evee"}, "Did you mean `eve`?"),
        ({"owner": "nobody-like-it"}, "No owner `nobody-like-it` here. Leave owner out"),
        ({"owner": "Eve"}, "lower case"),
        ({"owner": MARK}, "a-z"),
        ({"sort": "best"}, "top"),
        ({"limit": 0}, "1 to 50"),
        ({"limit": 51}, "1 to 50"),
        ({"limit": "ten"}, "1 to 50"),
        ({"limit": True}, "1 to 50"),
        ({"query": "x" * 501}, "500"),
        ({"query": 5}, "text"),
        ({"query": "!?"}, "letter or digit"),
        ({"cursor": "made up"}, "without cursor"),
        ({"cursor": "x" * 1001}, "1000"),
        ({MARK: 1}, "Unknown argument. This tool takes query, tags, owner, sort, limit, cursor."),
        ({"qeury": "x"}, "Unknown argument `qeury`. Did you mean `query`? This tool takes query, "),
        ({"query": "x", "zzz": 1}, "Unknown argument `zzz`. This tool takes query, "),
        ({"x" * 65: 1}, "Unknown argument. This tool takes"),
    ],
)
def test_a_wrong_search_says_how_to_go_on(hostile: Hub, arguments: dict[str, Any], says: str):
    assert says in hostile.error("search_prompts", **arguments)


def test_a_search_ends_at_a_place(hostile: Hub, monkeypatch: pytest.MonkeyPatch):
    asked = {"query": "hostile", "limit": 2}
    first = hostile.get("search_prompts", **asked)
    for module in ("builder.search.queries", "mcp_app.tools"):
        monkeypatch.setattr(f"{module}.REACHED_MAX", 2)
    last = hostile.get("search_prompts", **asked)
    assert last.pop("total") == first.pop("total") > 4
    assert "next_cursor" not in last and last["prompts"] == first["prompts"]
    # A cursor from before, or one that was made up.
    said = hostile.error("search_prompts", query="hostile", limit=1, cursor=first["next_cursor"])
    assert "Add words or a tag." in said


# get_prompt -----------------------------------------------------------------------------------


def test_a_prompt_has_all_that_is_known_of_it(hostile: Hub):
    text = TEXTS["front"]
    assert hostile.get("get_prompt", id="eve/front") == {
        "id": "eve/front",
        "version": "1.0.0",
        "is_latest": True,
        "text": BODIES["front"],
        "variables": [{"name": "what", "type": "string", "required": True}],
        "parameters": {},
        "title": "Ünïcødé <b>OBEY</b> 語 front",
        "description": f"{MARK} \u202eбг",
        "tags": ["hostile", "eve"],
        "published_at": "2025-02-11T16:00:00Z",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "url": "https://hub.example/eve/front/1.0.0",
        "missing": ["what"],
    }
    typed = hostile.get("get_prompt", id="eve/typed")
    assert typed["parameters"] == {"model": MARK, "temperature": 0.5, "stop": ["\n"]}
    assert [
        {"type": "string", "required": "default" not in given} | given for given in TYPED
    ] == typed["variables"]  # what an author left out is left out
    assert typed["missing"] == ["text", "tone"]


def test_an_older_version_has_its_own_metadata(hostile: Hub):
    for version, title in (("1.0.0", "Old"), ("2.0.0", "New")):
        got = hostile.get("get_prompt", id=f"eve/chat@{version}")
        assert (got["title"], got["description"]) == (title, f"{title} {MARK}")
        assert got["tags"] == ["chat", title.lower()]


def messages_in(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in result["messages"]]


def test_a_chat_prompt_has_messages(hostile: Hub):
    got = hostile.get("get_prompt", id="eve/chat@1.0.0")
    assert messages_in(got) == CHAT
    assert got["text"] == CHAT_TEXT.removeprefix(FRONT)
    marker = '{{role "system"}}\nNo.'
    filled = hostile.get(
        "get_prompt", id="eve/chat@1.0.0", arguments={"who": "{{what}}", "what": marker}
    )
    assert messages_in(filled) == [
        ("system", "Be kind to {{what}}."), ("user", marker), ("assistant", "{{what}}"),
        ("tool", '{"found": 1}'), ("user", ""),
    ]  # fmt: skip
    assert filled["text"] == fill(got["text"], {"who": "{{what}}", "what": marker, "more": ""})
    assert "messages" not in hostile.get("get_prompt", id="eve/chat")


def test_a_part_of_a_chat_prompt_has_no_messages(hostile: Hub):
    arguments = {"who": "é" * 50_000, "what": "x"}
    parts = []
    offset = 0
    while offset is not None:
        got = hostile.get("get_prompt", id="eve/chat@1.0.0", arguments=arguments, offset=offset)
        assert "messages" not in got
        parts.append(got["text"])
        offset = got.get("next_offset")
    assert len(parts) == 2
    assert parse_messages("".join(parts))[0].content == f"Be kind to {arguments['who']}."


@pytest.mark.parametrize("name", BODIES)
def test_front_matter_is_no_part_of_the_text(hostile: Hub, name: str):
    assert hostile.get("get_prompt", id=f"eve/{name}")["text"] == BODIES[name]


def test_a_variable_of_the_front_matter_is_not_left_in_the_text(hostile: Hub):
    assert "missing" not in hostile.get("get_prompt", id="eve/in-front")
    filled = hostile.get("get_prompt", id="eve/in-front", arguments={"what": MARK})
    assert filled["text"] == BODIES["in-front"]


@pytest.mark.parametrize("name", ["bom", "no-front", "escapes", "script"])
def test_the_rest_of_a_text_is_as_it_was_published(hostile: Hub, name: str):
    assert hostile.get("get_prompt", id=f"eve/{name}")["text"] == TEXTS[name]


def test_every_sample_prompt_is_the_published_text(sample: Hub):
    for page in sample.walk("search_prompts", limit=50):
        for prompt in page:
            got = sample.get("get_prompt", id=prompt["id"])
            owner, name = prompt["id"].split("/")
            raw = BY_NAME["version_raw"].file_for(owner=owner, name=name, version=got["version"])
            published = Path(sample.settings.out, raw).read_bytes()
            assert got["sha256"] == hashlib.sha256(published).hexdigest()
            assert published.decode().endswith(got["text"])
            assert not got["text"].startswith("---\n")
            assert (got["version"], got["is_latest"]) == (prompt["latest_version"], True)
            filled = sample.get(
                "get_prompt", id=prompt["id"],
                arguments={
                    variable["name"]: example(variable) for variable in got["variables"]
                },
            )  # fmt: skip
            assert "missing" not in filled


def example(variable: dict[str, Any]) -> Any:
    """A value that a variable takes."""
    plain = {"integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}
    return next(iter(variable.get("enum", [])), plain.get(variable["type"], "x"))


@pytest.mark.parametrize(
    "arguments",
    [
        {"id": "eve/often@1.3.7"},
        {"id": "eve/often", "version": "1.3.7"},
        {"id": "eve/often@1.3.7", "version": "1.3.7"},
        {"owner": "eve", "name": "often", "version": "1.3.7"},
        {"id": " eve/often@1.3.7 "},
    ],
)
def test_one_version_by_any_spelling(hostile: Hub, arguments: dict[str, Any]):
    got = hostile.get("get_prompt", **arguments)
    assert (got["id"], got["version"], got["is_latest"]) == ("eve/often", "1.3.7", False)
    assert got["text"] == "Version 1.3.7 of {{what}}.\n"
    assert got["url"] == "https://hub.example/eve/often/1.3.7"


@pytest.mark.parametrize(
    "arguments",
    [{"id": "eve/often"}, {"owner": "eve", "name": "often"}, {"id": "eve/often@1.9.29"}],
)
def test_the_latest_version(hostile: Hub, arguments: dict[str, Any]):
    got = hostile.get("get_prompt", **arguments)
    assert (got["version"], got["is_latest"]) == (VERSIONS[-1], True)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({}, "owner/name"),
        ({"id": "eve/front", "owner": "eve"}, "owner and name"),
        ({"id": "eve/front", "owner": "eve", "name": "front"}, "owner and name"),
        ({"owner": "eve"}, "prompt name"),
        ({"name": "front"}, "owner"),
        ({"id": "front"}, "owner/name"),
        ({"id": MARK}, "owner"),
        ({"id": f"eve/{MARK}"}, "prompt name"),
        ({"id": "eve/../often"}, "prompt name"),
        ({"id": "Eve/front"}, "eve"),
        ({"id": "eve/front@"}, "x.y.z"),
        ({"id": f"eve/front@{MARK}"}, "x.y.z"),
        ({"id": "eve/front@production"}, "No label `production` of eve/front. It has no labels."),
        ({"id": "eve/front", "label": "Production"}, "'production'"),
        ({"id": "eve/front", "label": "1.0.0"}, "as version"),
        ({"id": "eve/front@1.0.0", "label": "production"}, "as label"),
        ({"id": "eve/front@canary", "label": "production"}, "as label"),
        ({"id": "eve/front@canary", "version": "1.0.0"}, "Leave version out"),
        ({"id": "eve/front", "version": "latest"}, "x.y.z"),
        ({"id": "eve/front@1.0.0", "version": "1.0.1"}, "id and version differ"),
        ({"id": "eve/front@1.0.1"}, "1.0.0"),
        ({"id": "eve/often", "version": "7.0.0"}, "1.9.29, 1.9.28, "),
        ({"id": "eve/often", "version": "7.0.0"}, "list_versions"),
        ({"id": "eve/oftn"}, "eve/often"),
        ({"id": "ewe/often"}, "eve/often"),
        ({"id": "nobody/unheardof"}, "No prompt `nobody/unheardof` here. Call search_prompts"),
        ({"id": "eve/front", "arguments": [MARK]}, "object"),
        ({"id": "eve/front", "arguments": MARK}, "object"),
        ({"id": "eve/front", "arguments": {MARK: MARK}}, "what"),
        ({"id": "many/prompt-001", "arguments": {"waht": "x"}}, "`waht`. Did you mean `what`?"),
        ({"id": "eve/long", "arguments": {"x": 1}}, "takes no arguments"),
        ({"id": "eve/front", "offset": -1}, "from 0"),
        ({"id": "eve/front", "offset": 10**30}, "Leave it out"),
        ({"id": "eve/front", "offset": True}, "whole number"),
    ],
)
def test_a_wrong_id_says_how_to_go_on(hostile: Hub, arguments: dict[str, Any], says: str):
    assert says in hostile.error("get_prompt", **arguments)


def test_errors_are_short_where_a_prompt_takes_much(hostile: Hub):
    error = hostile.error("get_prompt", id="eve/thousands", arguments={"x": 1})
    assert "v0, v1, v2" in error


# Long texts


@pytest.mark.parametrize("name, text", [("long", LONG_TEXT), ("line", LINE_TEXT)])
def test_the_parts_of_a_long_text_are_the_whole(hostile: Hub, name: str, text: str):
    parts = list(joined(hostile, id=f"eve/{name}"))
    assert "".join(parts) == text
    assert len(parts) == -(-len(text.encode()) // TEXT_BYTES_MAX)
    # Whole characters, and not one fewer than fit.
    assert all(TEXT_BYTES_MAX - 4 < len(part.encode()) <= TEXT_BYTES_MAX for part in parts[:-1])


def test_a_long_text_says_where_to_go_on(hostile: Hub):
    first = hostile.get("get_prompt", id="eve/line")
    assert first["truncated"] is True
    assert first["next_offset"] == len(first["text"].encode())


def test_up_to_100_kb_is_whole(hostile: Hub):
    exact = hostile.get("get_prompt", id="eve/exact")
    assert exact["text"] == TEXTS["exact"] and len(exact["text"].encode()) == TEXT_BYTES_MAX
    assert not {"truncated", "next_offset"} & exact.keys()
    value = "語" * 30_000 + "é"
    arguments = {"id": "eve/front", "arguments": {"what": value}}
    assert [*joined(hostile, **arguments)] == [f"Say {value}.\n"]


@pytest.mark.parametrize("size", [1, 33_328, 33_333, 40_000, 66_666])
def test_a_filled_in_text_is_cut_alike(hostile: Hub, size: int):
    for character in ("x", "é", "語", "𝄞"):
        value = character * size
        parts = [*joined(hostile, id="eve/front", arguments={"what": value})]
        assert "".join(parts) == f"Say {value}.\n"


def test_an_offset_that_was_not_given_is_refused(hostile: Hub):
    assert "Leave it out" in hostile.error(
        "get_prompt", id="eve/long", offset=len(MARK.encode()) + 3
    )
    size = len(LINE_TEXT.encode())
    assert "Leave it out" in hostile.error("get_prompt", id="eve/line", offset=size + 1)


# Filling in


def substituted(text: str, values: dict[str, str]) -> str:
    """What the contract says of variables, a character at a time."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
    result, at = [], 0
    while at < len(text):
        if text.startswith("\\{{", at):
            result.append("{{")
            at += 3
            continue
        end = text.find("}}", at) + 2
        name = text[at + 2 : end - 2].strip(" \t")
        if (
            text.startswith("{{", at)
            and end - 2 >= at + 2
            and 1 <= len(name) <= 64
            and name[0] in letters
            and all(one in letters + "0123456789" for one in name)
        ):
            result.append(values.get(name, text[at:end]))
            at = end
        else:
            result.append(text[at])
            at += 1
    return "".join(result)


def prompt_of(text: str, *variables: Variable) -> Prompt:
    return Prompt(
        None, "1.0.0", "", "", [], text, text, parse_messages(text), "", "", list(variables), {}
    )


names_drawn = st.sampled_from(["a", "b", "_", "A1", "a" * 64])
pieces = st.one_of(
    names_drawn.map("{{{{{}}}}}".format),
    st.tuples(names_drawn, st.text(" \t\n", max_size=2)).map(
        lambda one: f"{{{{{one[1]}{one[0]}}}}}"
    ),
    st.sampled_from(
        [
            "{{",
            "}}",
            "{",
            "}",
            "\\{{",
            "\\",
            "{{1}}",
            "{{é}}",
            "{{ }}",
            "{{a b}}",
            f"{{{{{'a' * 65}}}}}",
        ]
    ),
    st.text(max_size=5),
)


@given(
    pieces=st.lists(pieces, max_size=12),
    values=st.dictionaries(names_drawn, st.lists(pieces, max_size=3).map("".join)),
)
def test_filling_in_is_the_contracts(pieces: list[str], values: dict[str, str]):
    text = "".join(pieces)
    # Declared, so that each of them is a variable whether the text has it or not.
    declared = [Variable(name) for name in values]
    filled = fill_in(prompt_of(text, *declared), values)
    assert filled.text == substituted(text, values)
    unfilled = fill_in(prompt_of(text), None)
    assert (unfilled.text, unfilled.missing) == (text, variable_names(text))
    assert filled.missing == [name for name in unfilled.missing if name not in values]


def test_a_value_is_not_looked_at_again(hostile: Hub):
    got = hostile.get(
        "get_prompt", id="eve/escapes", arguments={"a": "{{b}} \\{{a}}", "b": "{{a}}", "c": "}}"}
    )
    assert got["text"] == (r"{{a}} {{b}} \{{a}} {{a}} {}}} {a} \{{b}} {{1}} {{}} {{a b}}")
    assert "missing" not in got


def test_values_that_are_no_texts_become_json(hostile: Hub):
    arguments = {
        "text": MARK, "count": 7, "ratio": 1.5, "loud": True, "items": [1, "é"],
        "options": {"a": None}, "level": 2, "tone": "kind", "note": "n",
    }  # fmt: skip
    filled = hostile.get("get_prompt", id="eve/typed", arguments=arguments)
    assert filled["text"] == f'{MARK}|7|1.5|true|[1,"é"]|{{"a":null}}|2|kind|n'
    assert "missing" not in filled
    # As clients give them that have only texts.
    texts = {name: as_text(value) for name, value in arguments.items()}
    assert hostile.get("get_prompt", id="eve/typed", arguments=texts) == filled


def test_json_in_a_text_is_taken_for_what_it_holds(hostile: Hub):
    for tool, plain in (
        ("search_prompts", {"tags": ["bulk", "third-1"], "limit": 2}),
        ("search_prompts", {"limit": 50.0, "query": "say"}),
        ("get_prompt", {"id": "eve/typed", "arguments": {"text": '{"a": [1]}', "count": 7}}),
        ("get_prompt", {"id": "eve/typed", "offset": 0}),
        ("list_tags", {"prefix": "t", "limit": 500}),
    ):
        as_texts = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in plain.items()
        }
        assert hostile.get(tool, **as_texts) == hostile.get(tool, **plain)
    for tool, name, text in (
        ("search_prompts", "tags", "bulk"), ("search_prompts", "tags", '["bulk"'),
        ("search_prompts", "tags", '{"bulk": 1}'), ("search_prompts", "limit", "two"),
        ("search_prompts", "limit", "51"), ("search_prompts", "limit", ""),
        ("search_prompts", "limit", "null"), ("search_prompts", "limit", '"2"' * 2),
        ("get_prompt", "arguments", "[" * 20_000), ("get_prompt", "arguments", '{"a": NaN}'),
        ("get_prompt", "arguments", "text=x"), ("get_prompt", "offset", "-1"),
    ):  # fmt: skip
        assert hostile.error(tool, **{name: text}).startswith(f"`{name}` must be ")


def test_defaults_and_what_may_be_left_out(hostile: Hub):
    filled = hostile.get("get_prompt", id="eve/typed", arguments={"text": "x"})
    assert filled["text"] == 'x|3|0.5|false|["a",1]|{"k":"語"}|1|{{tone}}|'
    assert filled["missing"] == ["tone"]
    nulls = dict.fromkeys((variable["name"] for variable in TYPED[1:]), None)
    assert filled == hostile.get("get_prompt", id="eve/typed", arguments={"text": "x"} | nulls)
    assert hostile.get("get_prompt", id="eve/typed", arguments={})["missing"] == ["text", "tone"]
    # Nothing to fill in: a template, with its own way to write two braces.
    assert hostile.get("get_prompt", id="eve/typed")["text"] == TYPED_TEXT


@pytest.mark.parametrize(
    "name, value",
    [
        ("text", ["x"]),
        ("text", {"x": 1}),
        ("count", "three"),
        ("count", 1.5),
        ("count", True),
        ("count", ""),
        ("count", MARK),
        ("ratio", "half"),
        ("ratio", True),
        ("ratio", "nan"),
        ("ratio", [1]),
        ("loud", "yes"),
        ("loud", 1),
        ("items", 5),
        ("items", {}),
        ("options", 5),
        ("options", []),
        ("level", 4),
        ("level", "4"),
        ("tone", MARK),
        ("tone", "rude"),
    ],
)
def test_a_value_of_another_kind_is_refused(hostile: Hub, name: str, value: Any):
    error = hostile.error("get_prompt", id="eve/typed", arguments={"text": "x", name: value})
    assert error.startswith(f"`{name}` must be ")


def test_amplification_is_refused_before_it_takes_memory(hostile: Hub):
    arguments = {"id": "eve/flood", "arguments": {"a": "語" * 80_000}}
    hostile.error("get_prompt", **arguments)
    tracemalloc.start()
    try:
        error = hostile.error("get_prompt", **arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert f"{FILLED_CHARS_MAX:,}" in error
    # Filled in it would have been 4 GB of characters.
    assert peak < 20_000_000


def test_amplification_up_to_the_limit_is_cut_like_any_text(hostile: Hub):
    value = "x" * 13
    whole = "".join(joined(hostile, id="eve/flood", arguments={"a": value}))
    assert whole == FLOOD_TEXT.replace("{{a}}", value)
    assert FILLED_CHARS_MAX * 0.6 < len(whole) < FILLED_CHARS_MAX


def test_defaults_do_not_amplify_either():
    flood = prompt_of(FLOOD_TEXT, Variable("a", default="x" * 1000))
    with pytest.raises(RequestError, match="more than"):
        fill_in(flood, {})


# list_versions and list_tags ------------------------------------------------------------------


def test_versions_are_newest_first_with_what_changed(hostile: Hub):
    result = hostile.get("list_versions", id="eve/often", limit=1)
    text = f"Version {VERSIONS[-1]} of {{{{what}}}}.\n".encode()
    assert result["versions"] == [
        {
            "version": VERSIONS[-1],
            "published_at": moment(version_hours(VERSIONS[-1])),
            "changelog": f"{MARK} {len(VERSIONS) - 1}",
            "size": len(text),
            "sha256": hashlib.sha256(text).hexdigest(),
        }
    ]
    listed = [
        row["version"] for page in hostile.walk("list_versions", id="eve/often") for row in page
    ]
    assert listed == VERSIONS[::-1]


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({}, "`id` must"),
        ({"id": None}, "`id` must"),
        ({"id": ""}, "owner/name"),
        ({"id": "eve/front@1.0.0"}, "without a version"),
        ({"id": "eve/oftn"}, "eve/often"),
        ({"id": MARK}, "owner"),
        ({"id": 5}, "text"),
        ({"id": "eve/often", "limit": 101}, "1 to 100"),
        ({"id": "eve/often", "cursor": MARK}, "without cursor"),
        ({"id": "eve/often", "owner": "eve"}, "id, limit, cursor"),
    ],
)
def test_wrong_versions_say_how_to_go_on(hostile: Hub, arguments: dict[str, Any], says: str):
    assert says in hostile.error("list_versions", **arguments)


def test_tags_are_those_of_the_site(sample: Hub):
    site = json.loads(Path(sample.settings.out, BY_NAME["tags"].file).read_text())["data"]
    assert sample.get("list_tags", limit=500) == {"tags": site}


def test_tags_by_their_beginning(hostile: Hub):
    assert hostile.get("list_tags", prefix="third-") == {
        "tags": [
            {"name": "third-1", "count": PROMPTS_OF_MANY // 3 + 1},
            {"name": "third-0", "count": PROMPTS_OF_MANY // 3},
            {"name": "third-2", "count": PROMPTS_OF_MANY // 3},
        ]
    }
    assert hostile.get("list_tags", prefix="nothing-like-it") == {"tags": []}
    assert hostile.get("list_tags", prefix="hird-") == {"tags": []}
    assert hostile.get("list_tags", prefix=MARK) == {"tags": []}


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"prefix": "x" * 49}, "48"),
        ({"prefix": ["a"]}, "text"),
        ({"limit": 501}, "1 to 500"),
        ({"cursor": "AAAA"}, "without cursor"),
        ({MARK: MARK}, "prefix, limit, cursor"),
    ],
)
def test_wrong_tags_say_how_to_go_on(hostile: Hub, arguments: dict[str, Any], says: str):
    assert says in hostile.error("list_tags", **arguments)


# Pages ----------------------------------------------------------------------------------------

listings = st.one_of(
    st.tuples(
        st.just("search_prompts"),
        st.fixed_dictionaries(
            {},
            optional={
                "query": st.sampled_from(["say", "prompt", "version", "times say"]),
                "tags": st.sampled_from([["bulk"], ["third-1"], ["bulk", "third-2"], ["hostile"]]),
                "owner": st.sampled_from(["many", "eve"]),
                "sort": st.sampled_from(["top", "trending", "new"]),
            },
        ),
    ),
    st.tuples(st.just("list_versions"), st.just({"id": "eve/often"})),
    st.tuples(
        st.just("list_tags"),
        st.fixed_dictionaries(
            {}, optional={"prefix": st.sampled_from(["t", "tag-", "third", "b"])}
        ),
    ),
)


@searching(30)
@given(listing=listings, data=st.data())
def test_pages_of_any_size_give_each_row_once(hostile: Hub, listing, data):
    tool, arguments = listing
    large = [row for page in hostile.walk(tool, **arguments, limit=LIMIT_MAX[tool]) for row in page]
    least = 1 if len(large) <= 60 else 7
    limit = data.draw(st.integers(least, LIMIT_MAX[tool]))
    pages = list(hostile.walk(tool, **arguments, limit=limit))
    assert [row for page in pages for row in page] == large
    assert all(len(page) == limit for page in pages[:-1])
    keys = [json.dumps(row) for row in large]
    assert len(set(keys)) == len(keys)


@given(limit=st.integers(1, 50))
def test_the_whole_catalogue_a_page_at_a_time(sample: Hub, limit: int):
    rows = [row["id"] for page in sample.walk("search_prompts", limit=limit) for row in page]
    total = sample.get("search_prompts")["total"]
    assert len(rows) == len(set(rows)) == total


def test_a_cursor_is_for_what_it_was_given_for(hostile: Hub):
    cursors = {
        (tool, json.dumps(arguments)): hostile.get(tool, **arguments, limit=2)["next_cursor"]
        for tool, arguments in (
            ("search_prompts", {}),
            ("search_prompts", {"query": "say"}),
            ("search_prompts", {"sort": "new"}),
            ("search_prompts", {"tags": ["bulk"]}),
            ("search_prompts", {"owner": "many"}),
            ("list_versions", {"id": "eve/often"}),
            ("list_tags", {}),
            ("list_tags", {"prefix": "t"}),
        )
    }
    for tool, arguments in cursors:
        for whose, cursor in cursors.items():
            asked = json.loads(arguments) | {"limit": 3, "cursor": cursor}
            if whose == (tool, arguments):
                hostile.get(tool, **asked)
            else:
                assert "without cursor" in hostile.error(tool, **asked)


BROWSED = ("", (), None, None, *WHOLE)
WORDED = ("say", (), None, None, *WHOLE)


@pytest.mark.parametrize("position", [-1, -51, 10**6, 10**18, 10**600, True, None, "1", 1.5, [1]])
def test_a_cursor_to_no_place_is_refused(hostile: Hub, position: Any):
    data = make_cursor(0, *BROWSED)
    assert hostile.get("search_prompts", cursor=data) == hostile.get("search_prompts")
    for asked, arguments in ((BROWSED, {}), (WORDED, {"query": "say"})):
        cursor = forged(position, *asked)
        assert "without cursor" in hostile.error("search_prompts", cursor=cursor, **arguments)


@pytest.mark.parametrize("position", ["", MARK, "1.0", "1.0.0\n", 1, None, ["1.0.0"], "9" * 500])
def test_a_cursor_to_no_version_is_refused(hostile: Hub, position: Any):
    cursor = forged(position, "eve", "often")
    assert "without cursor" in hostile.error("list_versions", id="eve/often", cursor=cursor)


@pytest.mark.parametrize("position", [[1], ["a", 1], "a", None, [1, "a", 1], {}])
def test_a_cursor_to_no_tag_is_refused(hostile: Hub, position: Any):
    cursor = forged(position, "tags", "", *WHOLE)
    assert "without cursor" in hostile.error("list_tags", cursor=cursor)


def forged(position: Any, *asked: object) -> str:
    """A cursor with the digest of a good one, as anybody can make it who reads the source."""
    # Raw: also numbers that the encoder does not write.
    return make_cursor(msgspec.Raw(json.dumps(position).encode()), *asked)


def test_cursors_outlive_a_build(tmp_path: Path):
    settings = settings_in(tmp_path, queries=True)
    for patch in range(5):
        write_version(settings.content, "ann", "story", f"1.0.{patch}", "Tell.", tags=["a", "b"])
    build(settings)
    with hub_over(settings) as hub:
        versions = hub.get("list_versions", id="ann/story", limit=2)
        tags = hub.get("list_tags", limit=1)
        write_version(settings.content, "ann", "story", "1.0.5", "Tell.", tags=["0", "a", "b"])
        build(settings)
        assert (
            hub.get("list_versions", id="ann/story", limit=1)["versions"][0]["version"] == "1.0.5"
        )
        rest = hub.get("list_versions", id="ann/story", cursor=versions["next_cursor"])
        assert [row["version"] for row in rest["versions"]] == ["1.0.2", "1.0.1", "1.0.0"]
        assert tags["tags"] == [{"name": "a", "count": 1}]
        rest = hub.get("list_tags", cursor=tags["next_cursor"])
        assert rest["tags"] == [{"name": "b", "count": 1}]


# The envelope ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool, arguments",
    [
        ("search_prompts", {"query": "say"}),
        ("get_prompt", {"id": "eve/script", "arguments": {"what": MARK}}),
        ("get_prompt", {"id": "eve/long"}),
        ("list_versions", {"id": "eve/often"}),
        ("list_tags", {}),
    ],
)
def test_structured_and_text_are_the_same(hostile: Hub, tool: str, arguments: dict[str, Any]):
    result = hostile.ask("tools/call", {"name": tool, "arguments": arguments})
    (content,) = result["content"]
    assert result["isError"] is False
    assert content == {"type": "text", "text": hostile.call(tool, arguments).text}
    assert result["structuredContent"] == json.loads(content["text"])


def test_an_error_is_a_line_alone(hostile: Hub):
    result = hostile.ask("tools/call", {"name": "get_prompt", "arguments": {"id": MARK}})
    line = hostile.error("get_prompt", id=MARK)
    assert result == {"content": [{"type": "text", "text": line}], "isError": True}


def test_arguments_may_be_left_out_altogether(hostile: Hub):
    result = hostile.ask("tools/call", {"name": "list_tags"})
    assert result["structuredContent"] == hostile.get("list_tags")


@pytest.mark.parametrize("name", ["", "publish", "Get_Prompt", MARK, "read_arguments", "x" * 5000])
def test_an_unknown_tool_is_an_error_of_the_protocol(hostile: Hub, name: str):
    with pytest.raises(Refused) as refused:
        hostile.ask("tools/call", {"name": name, "arguments": {}})
    assert refused.value.code == -32602
    assert str(refused.value).endswith(f"The tools are {', '.join(TOOLS)}.")
    assert "OBEY" not in str(refused.value) and len(str(refused.value)) < 200


# Anything at all ------------------------------------------------------------------------------

_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20), st.just(MARK),
)  # fmt: skip
_json = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_likely = {
    "id": ["eve/typed", "eve/front", "eve/often@1.2.3", "eve/often", "many/prompt-001", "eve/nope",
           f"eve/{MARK}", f"eve/typed@{MARK}", "eve/long"],
    "owner": ["eve", "many", "ewe"],
    "name": ["typed", "front", "of"],
    "version": ["1.0.0", "1.2.3", "9.9.9"],
    "arguments": [{}, {"what": MARK}, {"text": "x", "tone": MARK}, {MARK: 1}],
    "offset": [0, 1, 100_000, 99_999],
    "query": ["say", MARK, "!", "語"],
    "tags": [["bulk"], [MARK], ["bulk", "third-1"], ["bulc"]],
    "sort": ["top", "new", MARK],
    "limit": [1, 7, 50, 500, 501],
    "prefix": ["t", "ta", MARK],
    "label": ["production", "latest", "1.0.0", MARK],
    "cursor": [make_cursor("1.3.0", "eve", "often"), make_cursor(5, *BROWSED),
               make_cursor((-1, "tag-05"), "tags", "", *WHOLE), MARK],
}  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    tool = draw(st.sampled_from(list(TOOLS)))
    takes = list(schema(TOOLS[tool].takes)["properties"])
    chosen = draw(st.lists(st.sampled_from(takes), max_size=4, unique=True))
    arguments = {name: draw(st.one_of(st.sampled_from(_likely[name]), _json)) for name in chosen}
    if "id" in takes and draw(st.booleans()):
        arguments["id"] = draw(st.sampled_from(_likely["id"]))
    if "arguments" in arguments and draw(st.booleans()):
        arguments["arguments"] = {
            name: draw(_json) for name in draw(st.sets(st.sampled_from([v["name"] for v in TYPED])))
        }
    if draw(st.integers(0, 9)) == 0:
        arguments[draw(st.text(max_size=5)) + MARK] = draw(_json)
    return tool, arguments


@given(asked=calls())
def test_no_argument_breaks_a_tool(hostile: Hub, asked: tuple[str, dict[str, Any]]):
    # What holds for every outcome, Hub.call checks.
    tool, arguments = asked
    first = hostile.call(tool, arguments)
    assert hostile.call(tool, arguments) == first


def test_a_wrong_tag_is_compared_with_few_tags(tmp_path: Path, compared_names: list[str]):
    settings = settings_in(tmp_path, queries=True)
    for number in range(20):
        tags = [f"ab{number:02}{letter}" for letter in "abcdefghij"]
        write_version(settings.content, "ann", f"p{number}", "1.0.0", "x", tags=tags)
    write_version(settings.content, "ann", "last", "1.0.0", "x", tags=["tone", "zone"])
    build(settings)
    compared_names.clear()
    with hub_over(settings) as hub:
        for selection in (WHOLE, Selection(owner="ann")):
            for wrong in ("ab07", "zzz", "no-such-tag"):
                hub.error("search_prompts", selection, tags=[wrong])
                assert len(compared_names) == COMPARED_MAX
                compared_names.clear()
        # Those that begin alike come before those that are used more.
        assert "Did you mean `zone`?" in hub.error("search_prompts", tags=["zones"])
        assert "Did you mean `tone`?" in hub.error("search_prompts", tags=["tune"])
