"""Answers of search_prompts."""

import json
from pathlib import Path

import pytest

from builder.model.routes import BY_NAME
from builder.pipeline.build import build
from builder.text.likeness import COMPARED_MAX
from tests.mcp.catalogue import MARK, OWNERS, PROMPTS_OF_MANY, TEXTS, Hub, hub_over, ids
from tests.support.catalogues import settings_in, write_version

FIELDS = ("title", "description", "latest_version", "tags", "updated_at", "url")


@pytest.mark.parametrize("sort", ["top", "trending", "new"])
def test_browsing_gives_the_lists_of_the_site(sample: Hub, sort: str):
    site = Path(sample.settings.out, BY_NAME["list"].file_for(sort=sort, page=1))
    listed = json.loads(site.read_text())
    expected = [
        {"id": f"{row['owner']}/{row['name']}"} | {key: row[key] for key in FIELDS}
        for row in listed["data"]
    ]
    result = sample.get("search_prompts", sort=sort, limit=50)
    assert result["prompts"] == expected[:50]
    assert result["total"] == listed["meta"]["total"]
    if sort == "top":
        assert sample.get("search_prompts")["prompts"] == expected[:10]


def test_words_tags_and_owner_narrow(hostile: Hub):
    whole = hostile.get("search_prompts", limit=1)["total"]
    assert whole == len(TEXTS) + 9 + PROMPTS_OF_MANY + 1 + OWNERS
    assert ids(hostile.get("search_prompts", query="many prompt-007"))[0] == "many/prompt-007"
    assert hostile.get("search_prompts", tags=["bulk"])["total"] == PROMPTS_OF_MANY
    both = hostile.get("search_prompts", tags=["bulk", "tag-07"])
    assert sorted(ids(both)) == ["many/prompt-007", "many/prompt-067"]
    assert hostile.get("search_prompts", owner="eve")["total"] == len(TEXTS) + 9
    assert ids(hostile.get("search_prompts", owner="eve", tags=["busy"])) == ["eve/often"]
    assert ids(hostile.get("search_prompts", owner="eve", query="version")) == ["eve/often"]
    all_of = hostile.get("search_prompts", query="say", owner="many", tags=["third-1"], sort="new")
    assert all_of["total"] == PROMPTS_OF_MANY / 3


def test_the_answer_says_how_words_were_found(sample: Hub):
    told = sample.get("search_prompts", query="sql revuew")
    assert told["match"] == "all"
    assert told["corrected"] == [{"from": "revuew", "to": "review"}]
    closest = sample.get("search_prompts", query="sql review unheardof")
    assert closest["match"] == "some" and "corrected" not in closest
    browsed = sample.get("search_prompts")
    assert "match" not in browsed and "line" not in browsed["prompts"][0]
    (labelled,) = sample.get("search_prompts", query="review label:production")["prompts"]
    assert labelled["id"] == "sam-ferreira/diff-review"
    (found,) = sample.get("search_prompts", query="aggregate")["prompts"]
    assert "aggregat" in found["line"].lower()


def test_blank_and_null_are_left_out(hostile: Hub):
    nothing = dict.fromkeys(hostile.tools["search_prompts"]["inputSchema"]["properties"])
    for arguments in (nothing, {"query": " "}):
        assert hostile.get("search_prompts", **arguments) == hostile.get("search_prompts")
    assert hostile.get("search_prompts", query="unheardof") == {"prompts": [], "total": 0}


WRONG = {
    "bulk": [{"tags": ["bulc"]}, {"tags": ["bulk", "bulc"]}],
    "list_tags": [{"tags": ["nothing-like-it"]}, {"tags": ["Bulk"]}, {"tags": [MARK]}],
    "a list of at most 10": [{"tags": ["a"] * 11}, {"tags": "bulk"}, {"tags": [1]}],
    "Did you mean `eve`?": [{"owner": "evee"}],
    "No owner `nobody-like-it` here. Leave owner out": [{"owner": "nobody-like-it"}],
    "lower case": [{"owner": "Eve"}],
    "a-z": [{"owner": MARK}],
    "top": [{"sort": "best"}],
    "1 to 50": [{"limit": limit} for limit in (0, 51, "ten", True)],
    "a text of at most 500": [{"query": "x" * 501}, {"query": 5}],
    "letter or digit": [{"query": "!?"}],
    "without cursor": [{"cursor": "made up"}],
    "1000": [{"cursor": "x" * 1001}],
    "Unknown argument. This tool takes query, tags, owner, sort": [{MARK: 1}, {"x" * 65: 1}],
    "`qeury`. Did you mean `query`? This tool takes query, ": [{"qeury": "x"}],
    "Unknown argument `zzz`. This tool takes query, ": [{"query": "x", "zzz": 1}],
}


@pytest.mark.parametrize("says", WRONG)
def test_a_wrong_search_says_how_to_go_on(hostile: Hub, says: str):
    for arguments in WRONG[says]:
        assert says in hostile.error("search_prompts", **arguments), arguments


def test_a_search_ends_at_a_place(hostile: Hub, monkeypatch: pytest.MonkeyPatch):
    asked = {"query": "hostile", "limit": 2}
    first = hostile.get("search_prompts", **asked)
    for module in ("builder.search.queries", "mcp_app.tools"):
        monkeypatch.setattr(f"{module}.REACHED_MAX", 2)
    with hub_over(hostile.settings) as hub:
        last = hub.get("search_prompts", **asked)
        assert last.pop("total") == first.pop("total") > 4
        assert "next_cursor" not in last and last["prompts"] == first["prompts"]
        # An earlier cursor, or an invented one.
        said = hub.error("search_prompts", query="hostile", limit=1, cursor=first["next_cursor"])
        assert "Add words or a tag." in said


def test_a_wrong_tag_is_compared_with_few_tags(tmp_path: Path, compared_names: list[str]):
    settings = settings_in(tmp_path, queries=True)
    for number in range(20):
        tags = [f"ab{number:02}{letter}" for letter in "abcdefghij"]
        write_version(settings.content, "ann", f"p{number}", "1.0.0", "x", tags=tags)
    write_version(settings.content, "ann", "last", "1.0.0", "x", tags=["tone", "zone"])
    build(settings)
    with hub_over(settings) as hub:
        compared_names.clear()
        for wrong in ("ab07", "zzz", "no-such-tag"):
            hub.error("search_prompts", tags=[wrong])
            assert len(compared_names) == COMPARED_MAX
            compared_names.clear()
        # Those that begin alike come before those that are used more.
        assert "Did you mean `zone`?" in hub.error("search_prompts", tags=["zones"])
        assert "Did you mean `tone`?" in hub.error("search_prompts", tags=["tune"])
