"""Endpoints for a part of the catalogue: ``/mcp?owner=…`` and ``/mcp?tags=…``."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.selection import WHOLE, Selection, parse_selection
from tests.mcp.catalogue import MARK, PROMPTS_OF_MANY, VERSIONS, Hub, Refused
from tests.support.depth import searching

EVE = Selection(owner="eve")
BULK = Selection(tags=("bulk",))
THIRD = Selection(tags=("bulk", "third-1"))
BOTH = Selection("many", ("third-2",))
SELECTIONS = {
    "owner=eve": EVE,
    "tags=bulk": BULK,
    "tags=bulk,third-1": THIRD,
    "owner=many&tags=third-2": BOTH,
    "tags=bulk&": BULK,
}
# With repos of eve's, of many's, and of others'.
OUTSIDE = {EVE: "many/prompt-001", BULK: "eve/often", THIRD: "many/prompt-002", BOTH: "eve/front"}


def everything(hub: Hub, selection: Selection = WHOLE, **arguments: Any) -> list[dict[str, Any]]:
    pages = hub.walk("search_prompts", selection, limit=50, **arguments)
    return [row for page in pages for row in page]


def belongs(row: dict[str, Any], selection: Selection) -> bool:
    """What a selection is, said again."""
    owner = row["id"].split("/")[0]
    return selection.owner in (None, owner) and all(tag in row["tags"] for tag in selection.tags)


@pytest.mark.parametrize("query", SELECTIONS)
def test_a_query_is_a_selection(query: str):
    assert parse_selection(query.encode()) == SELECTIONS[query]


@pytest.mark.parametrize("query", ["", "&"])
def test_without_a_selection_it_is_the_whole(query: str):
    assert parse_selection(query.encode()) == WHOLE


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
            hostile.ask(method, query=query)
        assert str(refused.value).startswith(says)


@pytest.mark.parametrize("query", SELECTIONS)
def test_a_search_finds_what_is_in_the_selection(hostile: Hub, query: str):
    selection = SELECTIONS[query]
    for arguments in ({}, {"query": "prompt"}, {"sort": "new"}, {"tags": ["third-1"]}):
        expected = [row for row in everything(hostile, **arguments) if belongs(row, selection)]
        found = everything(hostile, selection, **arguments)
        assert found == expected
        assert hostile.get("search_prompts", selection, **arguments)["total"] == len(expected)


@searching(30)
@given(
    selection=st.sampled_from([EVE, BULK, THIRD, BOTH]), limit=st.integers(1, 50),
    arguments=st.fixed_dictionaries(
        {}, optional={"query": st.just("prompt"), "sort": st.sampled_from(["top", "new"])}
    ),
)  # fmt: skip
def test_pages_of_any_size_give_each_row_once(
    hostile: Hub, selection: Selection, limit: int, arguments: dict[str, Any]
):
    pages = list(hostile.walk("search_prompts", selection, limit=limit, **arguments))
    assert [row for page in pages for row in page] == everything(hostile, selection, **arguments)
    assert all(len(page) == limit for page in pages[:-1])


@pytest.mark.parametrize("selection", [EVE, BULK, THIRD, BOTH])
def test_tags_are_counted_in_the_selection(hostile: Hub, selection: Selection):
    rows = everything(hostile, selection)
    tags = [tag for page in hostile.walk("list_tags", selection, limit=7) for tag in page]
    counts = {tag: sum(tag in row["tags"] for row in rows) for row in rows for tag in row["tags"]}
    assert tags == [
        {"name": name, "count": count}
        for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    third = [tag for tag in tags if tag["name"].startswith("third")]
    assert hostile.get("list_tags", selection, prefix="third") == {"tags": third}


@pytest.mark.parametrize("selection", OUTSIDE)
def test_what_is_outside_is_not_there(hostile: Hub, selection: Selection):
    outside = OUTSIDE[selection]
    owner, name = outside.split("/")
    for tool, arguments in (
        ("get_prompt", {"id": outside}),
        ("get_prompt", {"id": f"{outside}@1.0.0"}),
        ("get_prompt", {"owner": owner, "name": name}),
        ("list_versions", {"id": outside}),
    ):
        hostile.get(tool, **arguments)
        error = hostile.error(tool, selection, **arguments)
        assert f"No prompt `{outside}` here" in error
        # What is like it may only be of the selection.
        assert error.count(outside) == 1
    inside = everything(hostile, selection)[0]["id"]
    assert hostile.get("get_prompt", selection, id=inside)["id"] == inside
    assert hostile.get("list_versions", selection, id=inside)["versions"]


def test_similar_ids_are_of_the_selection(hostile: Hub):
    rows = {row["id"] for row in everything(hostile, THIRD)}
    error = hostile.error("get_prompt", THIRD, id="many/prompt-0011")
    similar = re.findall("`([^`]+)`", error.partition("Did you mean ")[2])
    assert similar and set(similar) <= rows


def test_another_owner_is_not_answered_with_the_selections(hostile: Hub):
    assert everything(hostile, EVE, owner="eve") == everything(hostile, EVE)
    assert "eve" in hostile.error("search_prompts", EVE, owner="many")
    assert everything(hostile, BULK, owner="many") == everything(hostile, BULK)
    assert everything(hostile, BULK, owner="eve") == []


def test_a_tag_of_others_finds_nothing_and_is_told(hostile: Hub):
    outcome = hostile.call("search_prompts", {"tags": ["bulk"]}, EVE)
    assert "bulk" in outcome.text if outcome.is_error else '"total":0' in outcome.text


def test_a_cursor_does_not_lead_into_another_selection(hostile: Hub):
    for tool in ("search_prompts", "list_tags"):
        cursor = hostile.get(tool, BULK, limit=2)["next_cursor"]
        hostile.get(tool, BULK, limit=2, cursor=cursor)
        for selection in (WHOLE, EVE, THIRD):
            assert "without cursor" in hostile.error(tool, selection, cursor=cursor)


@pytest.mark.parametrize(
    "selection", [Selection(owner="gone"), Selection(tags=("gone",)), Selection("eve", ("gone",)),
              Selection(tags=("bulk", "gone")), Selection(tags=("busy", "bulk"))]
)  # fmt: skip
def test_a_selection_that_has_lost_its_last_prompt_is_empty(hostile: Hub, selection: Selection):
    empty = {"prompts": [], "total": 0}
    assert hostile.get("search_prompts", selection) == empty
    assert hostile.get("search_prompts", selection, query="prompt") == empty
    assert hostile.get("list_tags", selection) == {"tags": []}
    assert "No prompt `eve/often` here" in hostile.error("get_prompt", selection, id="eve/often")
    query = "&".join(
        f"{key}={value}"
        for key, value in (("owner", selection.owner), ("tags", ",".join(selection.tags)))
        if value
    )
    assert hostile.ask("prompts/list", query=query)["prompts"] == []
    assert hostile.ask("resources/list", query=query)["resources"] == []


@pytest.mark.parametrize("method", ["prompts/list", "resources/list"])
@pytest.mark.parametrize("query", SELECTIONS)
def test_lists_are_of_the_selection(hostile: Hub, method: str, query: str):
    names = [one["name"] for page in hostile.pages(method, query) for one in page]
    assert names == [row["id"] for row in everything(hostile, SELECTIONS[query])]


def test_prompts_and_resources_outside_are_not_there(hostile: Hub):
    for query, selection in SELECTIONS.items():
        outside = OUTSIDE[selection]
        for method, params in (
            ("prompts/get", {"name": outside, "arguments": {"what": "x"}}),
            ("resources/read", {"uri": f"prompt://{outside}"}),
            ("resources/read", {"uri": f"prompt://{outside}/1.0.0"}),
        ):
            hostile.ask(method, params)
            with pytest.raises(Refused, match="No prompt"):
                hostile.ask(method, params, query)


def completed(hub: Hub, query: str, argument: str, value: str, **given: str) -> list[str]:
    params = {
        "ref": {"type": "ref/resource", "uri": "prompt://{owner}/{name}/{version}"},
        "argument": {"name": argument, "value": value},
        "context": {"arguments": given},
    }
    return hub.ask("completion/complete", params, query)["completion"]["values"]


def test_completions_are_of_the_selection(hostile: Hub):
    assert completed(hostile, "owner=eve", "owner", "") == ["eve"]
    assert completed(hostile, "owner=eve", "owner", "m") == []
    assert "often" in completed(hostile, "owner=eve", "name", "", owner="eve")
    assert completed(hostile, "tags=busy", "name", "", owner="eve") == ["often"]
    assert completed(hostile, "owner=eve", "name", "", owner="many") == []
    versions = completed(hostile, "tags=busy", "version", "", owner="eve", name="often")
    assert versions == VERSIONS[::-1][:100]
    assert completed(hostile, "tags=bulk", "version", "", owner="eve", name="often") == []


@pytest.mark.parametrize(
    "query",
    ["owner=", "tags=", "owner=Eve", "owner=a b", "tags=A", "tags=a,,b", "tags=a,b,", "owner=a/b",
     "tags=" + ",".join("abcdefghijk"), f"owner={MARK[:4]}", "owner=%ff", "owner=eve&owner=many",
     "tags=bulk&tags=busy"],
)  # fmt: skip
def test_a_wrong_selection_is_refused(hostile: Hub, query: str):
    with pytest.raises(Refused) as refused:
        hostile.ask("tools/list", query=query)
    assert "OBEY" not in str(refused.value)


def test_many_prompts_in_the_selection(hostile: Hub):
    assert hostile.get("search_prompts", BULK)["total"] == PROMPTS_OF_MANY
