"""Endpoints for a part of the catalogue: ``/mcp?owner=…`` and ``/mcp?tags=…``."""

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.mcp.catalogue import MARK, PROMPTS_OF_MANY, VERSIONS, Hub, Refused
from tests.mcp.test_resources import complete

EVE, BULK, THIRD, BOTH = PARTS = (
    "owner=eve",
    "tags=bulk",
    "tags=bulk,third-1",
    "owner=many&tags=third-2",
)
# A prompt that is not in the part, but in another.
OUTSIDE = {EVE: "many/prompt-001", BULK: "eve/often", THIRD: "many/prompt-002", BOTH: "eve/front"}


def everything(hub: Hub, part: str = "", **arguments: Any) -> list[dict[str, Any]]:
    pages = hub.walk("search_prompts", part, limit=50, **arguments)
    return [row for page in pages for row in page]


def belongs(row: dict[str, Any], part: str) -> bool:
    """True if a prompt is in a selection, by a second implementation of the rule."""
    asked = dict(parse_qsl(part))
    owner = row["id"].split("/")[0]
    tags = asked["tags"].split(",") if "tags" in asked else []
    return asked.get("owner") in (None, owner) and all(tag in row["tags"] for tag in tags)


@pytest.mark.parametrize("query", ["", "&", "tags=bulk&"])
def test_an_empty_parameter_is_left_out(hostile: Hub, query: str):
    assert everything(hostile, query) == everything(hostile, query.rstrip("&"))


@pytest.mark.parametrize(
    "query, says",
    [
        ("onwer=eve", "Unknown query parameter `onwer`. Did you mean `owner`?"),
        ("Owner=eve", "Unknown query parameter `Owner`. Did you mean `owner`?"),
        ("owner=eve&tag=bulk", "Unknown query parameter `tag`. Did you mean `tags`?"),
        ("zzz", "Unknown query parameter `zzz`. This address takes owner, tags."),
        (f"{MARK}=1", "Unknown query parameter. This address takes owner, tags."),
    ],
)
def test_an_unknown_parameter_does_not_open_the_whole(hostile: Hub, query: str, says: str):
    for method in ("tools/list", "prompts/list"):
        with pytest.raises(Refused) as refused:
            hostile.ask(method, part=query)
        assert str(refused.value).startswith(says)


@pytest.mark.parametrize("part", PARTS)
def test_every_list_has_what_is_in_the_part(hostile: Hub, part: str):
    for arguments in ({}, {"query": "prompt"}, {"sort": "new"}, {"tags": ["third-1"]}):
        expected = [row for row in everything(hostile, **arguments) if belongs(row, part)]
        assert everything(hostile, part, **arguments) == expected
        assert hostile.get("search_prompts", part, **arguments)["total"] == len(expected)
    whole = [row["id"] for row in everything(hostile, part)]
    for method in ("prompts/list", "resources/list"):
        assert [one["name"] for page in hostile.pages(method, part) for one in page] == whole
    assert len(everything(hostile, BULK)) == PROMPTS_OF_MANY


@pytest.mark.parametrize("part", PARTS)
def test_tags_are_counted_in_the_part(hostile: Hub, part: str):
    rows = everything(hostile, part)
    tags = [tag for page in hostile.walk("list_tags", part, limit=7) for tag in page]
    counts = {tag: sum(tag in row["tags"] for row in rows) for row in rows for tag in row["tags"]}
    assert tags == [
        {"name": name, "count": count}
        for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    third = [tag for tag in tags if tag["name"].startswith("third")]
    assert hostile.get("list_tags", part, prefix="third") == {"tags": third}


@pytest.mark.parametrize("part", PARTS)
def test_what_is_outside_is_not_there(hostile: Hub, part: str):
    outside = OUTSIDE[part]
    owner, name = outside.split("/")
    for tool, arguments in (
        ("get_prompt", {"id": outside}),
        ("get_prompt", {"id": f"{outside}@1.0.0"}),
        ("get_prompt", {"owner": owner, "name": name}),
        ("list_versions", {"id": outside}),
    ):
        hostile.get(tool, **arguments)
        error = hostile.error(tool, part, **arguments)
        assert f"No prompt `{outside}` here" in error
        # Suggestions come only from the selection.
        assert error.count(outside) == 1
    for method, params in (
        ("prompts/get", {"name": outside, "arguments": {"what": "x"}}),
        ("resources/read", {"uri": f"prompt://{outside}"}),
        ("resources/read", {"uri": f"prompt://{outside}/1.0.0"}),
    ):
        hostile.ask(method, params)
        with pytest.raises(Refused, match="No prompt"):
            hostile.ask(method, params, part)
    inside = everything(hostile, part)[0]["id"]
    assert hostile.get("get_prompt", part, id=inside)["id"] == inside
    assert hostile.get("list_versions", part, id=inside)["versions"]


def test_similar_ids_are_of_the_part(hostile: Hub):
    rows = {row["id"] for row in everything(hostile, THIRD)}
    error = hostile.error("get_prompt", THIRD, id="many/prompt-0011")
    similar = re.findall("`([^`]+)`", error.partition("Did you mean ")[2])
    assert similar and set(similar) <= rows


def test_another_owner_is_not_answered_with_the_parts(hostile: Hub):
    assert everything(hostile, EVE, owner="eve") == everything(hostile, EVE)
    assert "eve" in hostile.error("search_prompts", EVE, owner="many")
    assert everything(hostile, BULK, owner="many") == everything(hostile, BULK)
    assert everything(hostile, BULK, owner="eve") == []


def test_a_tag_of_others_finds_nothing(hostile: Hub):
    assert hostile.get("search_prompts", EVE, tags=["bulk"]) == {"prompts": [], "total": 0}


def test_a_cursor_does_not_lead_into_another_part(hostile: Hub):
    for tool in ("search_prompts", "list_tags"):
        cursor = hostile.get(tool, BULK, limit=2)["next_cursor"]
        hostile.get(tool, BULK, limit=2, cursor=cursor)
        for part in ("", EVE, THIRD):
            assert "without cursor" in hostile.error(tool, part, cursor=cursor)


@pytest.mark.parametrize(
    "part", ["owner=gone", "tags=gone", "owner=eve&tags=gone", "tags=bulk,gone", "tags=busy,bulk"]
)
def test_a_part_that_has_lost_its_last_prompt_is_empty(hostile: Hub, part: str):
    empty = {"prompts": [], "total": 0}
    assert hostile.get("search_prompts", part) == empty
    assert hostile.get("search_prompts", part, query="prompt") == empty
    assert hostile.get("list_tags", part) == {"tags": []}
    assert "No prompt `eve/often` here" in hostile.error("get_prompt", part, id="eve/often")
    assert hostile.ask("prompts/list", part=part)["prompts"] == []
    assert hostile.ask("resources/list", part=part)["resources"] == []


def test_completions_are_of_the_part(hostile: Hub):
    def completed(part: str, argument: str, value: str, **given: str) -> list[str]:
        return complete(hostile, argument, value, part, **given)["values"]

    assert completed("owner=eve", "owner", "") == ["eve"]
    assert completed("owner=eve", "owner", "m") == []
    assert "often" in completed("owner=eve", "name", "", owner="eve")
    assert completed("tags=busy", "name", "", owner="eve") == ["often"]
    assert completed("owner=eve", "name", "", owner="many") == []
    often = {"owner": "eve", "name": "often"}
    assert completed("tags=busy", "version", "", **often) == VERSIONS[::-1][:100]
    assert completed("tags=bulk", "version", "", **often) == []


@pytest.mark.parametrize(
    "query",
    ["owner=", "tags=", "owner=Eve", "owner=a b", "tags=A", "tags=a,,b", "tags=a,b,", "owner=a/b",
     "tags=" + ",".join("abcdefghijk"), f"owner={MARK[:4]}", "owner=%ff", "owner=eve&owner=many",
     "tags=bulk&tags=busy"],
)  # fmt: skip
def test_a_wrong_part_is_refused(hostile: Hub, query: str):
    with pytest.raises(Refused) as refused:
        hostile.ask("tools/list", part=query)
    assert "OBEY" not in str(refused.value)
