"""Answers of list_versions and list_tags, and rules for the pages of every list, every envelope and
any argument.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.pipeline.build import build
from mcp_app.cursors import make_cursor
from tests.mcp.catalogue import MARK, PROMPTS_OF_MANY, TAKES, VERSIONS, Hub, Refused, hub_over
from tests.support.catalogues import moment, settings_in, version_hours, write_version
from tests.support.depth import searching

LIMIT_MAX = {"search_prompts": 50, "list_versions": 100, "list_tags": 500}


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


WRONG = {
    "`id` must be": ("list_versions", [{}, {"id": None}, {"id": 5}]),
    "An id is owner/name": ("list_versions", [{"id": ""}]),
    "without a version": ("list_versions", [{"id": "eve/front@1.0.0"}]),
    "eve/often": ("list_versions", [{"id": "eve/oftn"}]),
    "Invalid owner": ("list_versions", [{"id": f"{MARK}/x"}]),
    "1 to 100": ("list_versions", [{"id": "eve/often", "limit": 101}]),
    "id, limit, cursor": ("list_versions", [{"id": "eve/often", "owner": "eve"}]),
    "a text of at most 48": ("list_tags", [{"prefix": "x" * 49}, {"prefix": ["a"]}]),
    "1 to 500": ("list_tags", [{"limit": 501}]),
    "prefix, limit, cursor": ("list_tags", [{MARK: MARK}]),
}


@pytest.mark.parametrize("says", WRONG)
def test_wrong_arguments_say_how_to_go_on(hostile: Hub, says: str):
    tool, wrong = WRONG[says]
    for arguments in wrong:
        assert says in hostile.error(tool, **arguments), arguments


# Pages ----------------------------------------------------------------------------------------

SEARCHES = st.fixed_dictionaries(
    {},
    optional={
        "query": st.sampled_from(["say", "prompt", "version", "times say"]),
        "tags": st.sampled_from([["bulk"], ["third-1"], ["bulk", "third-2"], ["hostile"]]),
        "owner": st.sampled_from(["many", "eve"]),
        "sort": st.sampled_from(["top", "trending", "new"]),
    },
)
PREFIXES = st.sampled_from([{}, *({"prefix": prefix} for prefix in ("t", "tag-", "third", "b"))])
listings = st.one_of(
    st.tuples(st.just("search_prompts"), SEARCHES),
    st.just(("list_versions", {"id": "eve/often"})),
    st.tuples(st.just("list_tags"), PREFIXES),
)


@searching(30)
@given(listing=listings, data=st.data())
def test_pages_of_any_size_give_each_row_once(hostile: Hub, listing, data):
    tool, arguments = listing
    pages = hostile.walk(tool, **arguments, limit=LIMIT_MAX[tool])
    large = [row for page in pages for row in page]
    least = 1 if len(large) <= 60 else 7
    limit = data.draw(st.integers(least, LIMIT_MAX[tool]))
    pages = list(hostile.walk(tool, **arguments, limit=limit))
    assert [row for page in pages for row in page] == large
    assert all(len(page) == limit for page in pages[:-1])
    keys = [json.dumps(row) for row in large]
    assert len(set(keys)) == len(keys)


def test_a_cursor_is_for_what_it_was_given_for(hostile: Hub):
    lists = [
        ("list_versions", {"id": "eve/often"}),
        ("list_tags", {}),
        ("list_tags", {"prefix": "t"}),
    ]
    for arguments in ({}, {"query": "say"}, {"sort": "new"}, {"tags": ["bulk"]}, {"owner": "many"}):
        lists.append(("search_prompts", arguments))
    cursors = {
        (tool, json.dumps(arguments)): hostile.get(tool, **arguments, limit=2)["next_cursor"]
        for tool, arguments in lists
    }
    for tool, arguments in cursors:
        for whose, cursor in cursors.items():
            asked = json.loads(arguments) | {"limit": 3, "cursor": cursor}
            if whose == (tool, arguments):
                hostile.get(tool, **asked)
            else:
                assert "without cursor" in hostile.error(tool, **asked)


BROWSED = ("", (), None, None)
WORDED = ("say", (), None, None)
NO_PLACES = [-1, -51, 10**18, 10**600, True, None, "1", 1.5, [1]]


@pytest.mark.parametrize(
    ("asked", "tool", "arguments", "positions"),
    [
        (BROWSED, "search_prompts", {}, [*NO_PLACES, 10**6]),
        (WORDED, "search_prompts", {"query": "say"}, [*NO_PLACES, 10**6]),
        (("versions", "eve", "often"), "list_versions", {"id": "eve/often"}, NO_PLACES),
        (("tags", ""), "list_tags", {}, NO_PLACES),
    ],
)
def test_a_cursor_to_no_place_is_refused(
    hostile: Hub, asked: tuple[Any, ...], tool: str, arguments: dict[str, Any], positions: list[Any]
):
    for cursor in ("AAAA", MARK, *(forged(position, *asked) for position in positions)):
        assert "without cursor" in hostile.error(tool, **arguments, cursor=cursor)


def forged(position: Any, *asked: object) -> str:
    """A cursor with a valid digest, which anyone who reads the source can create."""
    # Raw: also numbers that the encoder does not write.
    return make_cursor(msgspec.Raw(json.dumps(position).encode()), *asked)


def test_cursors_outlive_a_build(tmp_path: Path):
    settings = settings_in(tmp_path, queries=True)
    for patch in range(5):
        write_version(settings.content, "ann", "story", f"1.0.{patch}", "Tell.")
    build(settings)
    with hub_over(settings) as hub:
        versions = hub.get("list_versions", id="ann/story", limit=2)
        write_version(settings.content, "ann", "story", "1.0.5", "Tell.")
        build(settings)
        assert (
            hub.get("list_versions", id="ann/story", limit=1)["versions"][0]["version"] == "1.0.5"
        )
        rest = hub.get("list_versions", id="ann/story", cursor=versions["next_cursor"])
        assert [row["version"] for row in rest["versions"]] == ["1.0.3", "1.0.2", "1.0.1", "1.0.0"]


# The envelope ---------------------------------------------------------------------------------


def test_arguments_may_be_left_out_altogether(hostile: Hub):
    result = hostile.ask("tools/call", {"name": "list_tags"})
    assert result["structuredContent"] == hostile.get("list_tags")


@pytest.mark.parametrize("name", ["", "publish", "Get_Prompt", MARK, "read_arguments", "x" * 5000])
def test_an_unknown_tool_is_an_error_of_the_protocol(hostile: Hub, name: str):
    with pytest.raises(Refused) as refused:
        hostile.ask("tools/call", {"name": name, "arguments": {}})
    assert refused.value.code == -32602
    assert str(refused.value).endswith(f"The tools are {', '.join(TAKES)}.")
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
    "query": ["say", MARK, "!", "語"],
    MARK: [1],
    "tags": [["bulk"], [MARK], ["bulk", "third-1"], ["bulc"]],
    "sort": ["top", "new", MARK],
    "limit": [1, 7, 50, 500, 501],
    "prefix": ["t", "ta", MARK],
    "label": ["production", "latest", "1.0.0", MARK],
    "cursor": [make_cursor(3, "versions", "eve", "often"), make_cursor(5, *BROWSED),
               make_cursor(5, "tags", ""), MARK],
}  # fmt: skip


calls = st.one_of(
    st.tuples(
        st.just(tool),
        st.fixed_dictionaries(
            {}, optional={name: st.sampled_from(_likely[name]) | _json for name in (*takes, MARK)}
        ),
    )
    for tool, takes in TAKES.items()
)


@given(asked=calls)
def test_no_argument_breaks_a_tool(hostile: Hub, asked: tuple[str, dict[str, Any]]):
    # Hub.call checks the rules for every outcome.
    tool, arguments = asked
    first = hostile.call(tool, arguments)
    assert hostile.call(tool, arguments) == first
