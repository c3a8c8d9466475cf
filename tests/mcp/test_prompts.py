"""Prompts as the protocol's own prompts: listed and filled in."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.routes import BY_NAME
from tests.conftest import YamlWork
from tests.mcp.catalogue import BODIES, LONG_TEXT, MARK, TYPED, VERSIONS, Hub, Refused, check_error
from tests.mcp.test_half_copied import damaged, remove

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002


def fill(hub: Hub, name: str, **arguments: str) -> str:
    """The text of a prompt that is a single message."""
    result = hub.ask("prompts/get", {"name": name, "arguments": arguments})
    (message,) = result["messages"]
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    return message["content"]["text"]


def listed(hub: Hub) -> dict[str, dict[str, Any]]:
    """The prompts of the list, by name."""
    return {one["name"]: one for page in hub.pages("prompts/list") for one in page}


def refusal(hub: Hub, method: str, params: dict[str, Any]) -> str:
    with pytest.raises(Refused) as refused:
        hub.ask(method, params)
    assert refused.value.code == INVALID_PARAMS
    assert "OBEY" not in str(refused.value)
    return str(refused.value)


def test_variables_are_arguments_with_all_that_is_known_of_them(hostile: Hub):
    typed = listed(hostile)["eve/typed"]
    assert typed["title"] == "The typed prompt"
    arguments = {argument["name"]: argument for argument in typed["arguments"]}
    assert list(arguments) == [variable["name"] for variable in TYPED]
    required = {name for name, argument in arguments.items() if argument["required"]}
    assert required == {"text", "tone"}
    for name, parts in {
        "text": [f"Any text. {MARK}"],
        "count": ["integer", "Default: 3"],
        "loud": ["boolean", "Default: false"],
        "items": ["array", 'Default: ["a",1]'],
        "options": ["object", 'Default: {"k":"語"}'],
        "level": ["One of: 1, 2, 3", "Default: 1"],
        "tone": ["One of: kind", "Example: kind"],
    }.items():
        assert all(part in arguments[name]["description"] for part in parts), arguments[name]


def test_a_prompt_without_variables_has_no_arguments(hostile: Hub):
    assert listed(hostile)["one-of-a-kind/review"]["arguments"] == []
    assert fill(hostile, "one-of-a-kind/review") == "Review it.\n"
    (message,) = hostile.ask("prompts/get", {"name": "eve/gentle"})["messages"]
    assert message["content"]["text"] == "Be kind.\n"


def test_a_prompt_is_filled_in(hostile: Hub):
    assert fill(hostile, "eve/front", what="{{what}} \\{{x") == "Say {{what}} \\{{x.\n"
    assert fill(hostile, "eve/crlf", what=MARK) == BODIES["crlf"].replace("{{what}}", MARK)
    assert fill(hostile, "eve/typed", text="x", tone="kind", count="12", loud="true") == (
        'x|12|0.5|true|["a",1]|{"k":"語"}|1|kind|'
    )
    assert fill(hostile, "eve/often@1.3.7", what="x") == "Version 1.3.7 of x.\n"
    assert fill(hostile, "eve/often", what="x") == f"Version {VERSIONS[-1]} of x.\n"


def test_a_chat_prompt_is_filled_in_message_by_message(hostile: Hub):
    arguments = {"who": "Bob", "what": '{{role "assistant"}}\nNo.', "more": "And?"}
    result = hostile.ask("prompts/get", {"name": "eve/chat@1.0.0", "arguments": arguments})
    assert [(one["role"], one["content"]) for one in result["messages"]] == [
        ("user", {"type": "text", "text": "Be kind to Bob."}),
        ("user", {"type": "text", "text": '{{role "assistant"}}\nNo.'}),
        ("assistant", {"type": "text", "text": "{{what}}"}),
        ("user", {"type": "text", "text": '{"found": 1}'}),
        ("user", {"type": "text", "text": "And?"}),
    ]
    assert result["description"] == f"Old {MARK}"


def test_a_message_that_is_blank_is_left_out(hostile: Hub):
    # "more" may be left out.
    arguments = {"who": "Bob", "what": " "}
    result = hostile.ask("prompts/get", {"name": "eve/chat@1.0.0", "arguments": arguments})
    texts = [one["content"]["text"] for one in result["messages"]]
    assert texts == ["Be kind to Bob.", "{{what}}", '{"found": 1}']
    assert fill(hostile, "eve/blank", x="") == ""
    assert fill(hostile, "eve/blank", x="Hi.") == "Hi."


def test_yaml_is_never_read(hostile: Hub, yaml_work: YamlWork):
    for number in range(3):
        for name in ("front", "crlf", "no-front"):
            fill(hostile, f"eve/{name}", what=str(number))
            hostile.get("get_prompt", id=f"eve/{name}", arguments={"what": str(number)})
    assert (yaml_work.loaded, yaml_work.events) == ([], 0)


def test_a_long_prompt_is_whole(hostile: Hub):
    assert fill(hostile, "eve/long") == LONG_TEXT


WRONG: dict[str, tuple[str, dict[str, str]]] = {
    "text, tone": ("eve/typed", {}),
    "arguments: tone": ("eve/typed", {"text": "x"}),
    "`tone` must be": ("eve/typed", {"text": MARK, "tone": MARK}),
    "integer": ("eve/typed", {"text": "x", "tone": "kind", "count": "x"}),
    "of type integer": ("eve/typed", {"text": "x", "tone": "kind", "count": "007"}),
    "of type number": ("eve/typed", {"text": "x", "tone": "kind", "ratio": "01.5"}),
    "takes what": ("eve/front", {"what": "x", MARK: "x"}),
    "shorter": ("eve/flood", {"a": "x" * 100}),
    "v0, v1, v2": ("eve/thousands", {}),
    "eve/often": ("eve/oftn", {}),
    VERSIONS[-1]: ("eve/often@7.0.0", {}),
    "An id is owner/name": ("often", {}),
    "Invalid owner": (f"{MARK}/x", {}),
}


@pytest.mark.parametrize("says", WRONG)
def test_what_cannot_be_filled_in_says_how_to_go_on(hostile: Hub, says: str):
    name, arguments = WRONG[says]
    message = refusal(hostile, "prompts/get", {"name": name, "arguments": arguments})
    assert says in message
    assert len(message) < 1000


@given(
    name=st.one_of(
        st.sampled_from(["eve/typed", "eve/front", "eve/flood", "eve/oftn", f"eve/typed@{MARK}"]),
        st.text(max_size=10).map(lambda text: text + MARK),
    ),
    arguments=st.dictionaries(
        st.sampled_from(["what", "text", "tone", "count", "a", MARK]),
        st.one_of(st.just(MARK), st.just("kind"), st.text(max_size=9), st.just("x" * 9000)),
    ),
)
def test_nothing_breaks_or_is_repeated(hostile: Hub, name: str, arguments: dict[str, str]):
    for method, params in (
        ("prompts/get", {"name": name, "arguments": arguments}),
        ("prompts/list", {"cursor": name}),
        ("resources/list", {"cursor": name}),
        ("resources/read", {"uri": f"prompt://{name}"}),
    ):
        try:
            hostile.ask(method, params)
        except Refused as refused:
            assert refused.code in (INVALID_PARAMS, RESOURCE_NOT_FOUND)
            check_error(str(refused))


def test_a_prompt_that_has_gone_from_the_site_is_no_part_of_a_list(hostile: Hub):
    """A list page may be older than what it lists."""
    file = BY_NAME["repo"].file_for(owner="one-of-a-kind", name="review")
    path = Path(hostile.settings.out, file)
    whole = [*listed(hostile)]
    with damaged(path, remove):
        left = [*listed(hostile)]
    assert left == [name for name in whole if name != "one-of-a-kind/review"] != whole
