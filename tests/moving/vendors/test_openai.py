"""Reusable prompts of OpenAI, from saved responses."""

import re
from typing import Any

import pytest

from builder.model.answers import Message
from moving.importers.items import Document, History, Rejection
from moving.importers.run import Options, import_found
from moving.vendors import openai
from moving.vendors.openai import read_histories
from publisher.write.store_protocol import Folder
from tests.moving.vendors.mutations import mutate

CREATED = 1_760_000_000

SUPPORT = "pmpt_68b0c29740048196bd3a6e6ac3c4d0e20ed9a13f0d15bf5e"
LETTER = "pmpt_690069ca73ac8190a17467e9d9850aec0f5728a89768fdc9"

TOOLS = [
    {"type": "function", "name": "look_up", "parameters": {"type": "object"}, "strict": True},
    {"type": "mcp", "server_label": "orders", "server_url": "https://mcp.example",
     "authorization": "secret-of-a-server", "require_approval": "never"},
]  # fmt: skip


def make_response(
    prompt_id: str, version: str, messages: list[tuple[str, str]],
    variables: dict[str, Any] | None = None, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """A response with these variables filled in."""
    values = variables or {}
    return {
        "id": f"resp_{prompt_id[5:20]}{version}",
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"},
        "instructions": [
            {"type": "message", "role": role,
             "content": [{"type": "input_text", "text": _fill(text, values)}]}
            for role, text in messages
        ],
        "max_output_tokens": None,
        "model": "gpt-5-2025-08-07",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt": {"id": prompt_id, "variables": values, "version": version},
        "reasoning": {"effort": "low", "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": TOOLS,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 16,
            "output_tokens_details": {"reasoning_tokens": 16},
            "total_tokens": 46,
        },
        "metadata": {},
    } | fields  # fmt: skip


def _fill(text: str, values: dict[str, Any]) -> str:
    return re.sub(
        r"\{\{\s*(\w+)\s*\}\}", lambda found: str(values.get(found[1], found[0])), text
    )  # fmt: skip


def split(documents: Any) -> tuple[list[History], list[Rejection]]:
    found = list(read_histories(documents))
    histories = [one for one in found if isinstance(one, History)]
    return histories, [one for one in found if isinstance(one, Rejection)]


def saved(*values: Any) -> tuple[list[History], list[Rejection]]:
    return split(Document(f"saved.jsonl, line {n}", one) for n, one in enumerate(values, start=1))


def test_importing_again_changes_nothing(tmp_path):
    responses = [
        make_response(SUPPORT, "3", [("developer", "You answer {{customer_name}} kindly."),
                                     ("user", "My {{ product }} is broken.")]),
        make_response(SUPPORT, "1", [("developer", "You answer {{customer_name}}.")]),
        make_response(LETTER, "1", [("developer", "Write a letter.")]),
    ]  # fmt: skip
    (tmp_path / "content").mkdir()
    store, options = Folder(str(tmp_path / "content")), Options(owner="ada")
    found = [one for part in saved(*responses) for one in part]
    first, second = (
        import_found(found, openai.TITLE, store, options, lambda *_: None) for _ in range(2)
    )
    assert first.created == [
        "ada/pmpt-68b0c29740048196 with 2 versions", "ada/pmpt-690069ca73ac8190 with 1 version",
    ]  # fmt: skip
    assert second.unchanged == ["ada/pmpt-68b0c29740048196", "ada/pmpt-690069ca73ac8190"]
    assert (tmp_path / "content/ada/pmpt-68b0c29740048196/1.0.1.md").read_text() == (
        '{{role "system"}}\nYou answer {{customer_name}} kindly.\n\n'
        '{{role "user"}}\nMy {{ product }} is broken.\n'
    )


def test_values_that_can_only_be_a_variables_become_placeholders_again():
    values = {
        "customer_name": {"type": "input_text", "text": "Ada Lovelace"},
        "product": "the Analytical Engine",
        "part": "Engine room",
        "tone": "kind",
        "photo": {"type": "input_image", "file_id": "file-1"},
        "unused": "nowhere to be seen",
    }
    text = "For Ada Lovelace, kindly: the Analytical Engine. Ask Ada Lovelace, be kind."
    [history], rejected = saved(make_response(SUPPORT, "3", [("developer", text)], values))
    [revision] = history.revisions
    assert rejected == []
    assert revision.prompt == [
        Message("system", "For {{customer_name}}, kindly: {{product}}. Ask {{customer_name}}, "
                "be kind.")
    ]  # fmt: skip
    assert revision.warnings[1:] == [
        "Its variables were filled in when it was saved. Put back where their values stood: "
        "{{customer_name}}, {{product}}. Compare the text with the prompt at OpenAI.",
        "Its variables were filled in when it was saved. Not put back: {{part}}, {{photo}}, "
        "{{tone}}, {{unused}}. Look for their values in the text, and replace them.",
    ]


def test_values_that_are_parts_of_one_another_stay():
    values = {"a": "New York City", "b": "York City", "c": "same value", "d": "same value"}
    [history], _ = saved(
        make_response(SUPPORT, "3", [("user", "New York City, York City, same value")], values)
    )
    assert history.revisions[0].prompt == [Message("user", "{{a}}, York City, same value")]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("name of ours " * 30_000, {"a": "name of ours"}),
        ("".join(map(str, range(9999))), {str(n): "".join(map(str, range(n, 5000 + n)))
                                          for n in range(0, 200, 2)}),
        (" ".join(f"a value {n}." for n in range(201)), {f"v{n}": f"a value {n}."
                                                         for n in range(201)}),
    ],
)  # fmt: skip
def test_too_much_to_put_back_stays(text, values):
    [history], _ = saved(make_response(SUPPORT, "3", [("user", text)], values))
    assert history.revisions[0].prompt == [Message("user", text)]
    assert "Not put back" in history.revisions[0].warnings[-1]


def test_of_several_responses_of_a_version_the_one_with_most_of_the_prompt_counts():
    def made(created: int, text: str, **values: str) -> dict[str, Any]:
        return make_response(SUPPORT, "3", [("user", text)], values, created_at=created)

    [history], rejected = saved(
        made(CREATED + 1, "Hi Bob.", name="Bob"),
        made(CREATED, "Hi Cyd.", name="Cyd"),
        made(CREATED + 2, "Hi {{name}}.", name="{{name}}"),
        made(CREATED + 3, "Hi {{name}}!", name="{{ name }}"),
    )
    [revision] = history.revisions
    assert revision.prompt == [Message("user", "Hi {{name}}.")]
    assert revision.published_at == "2025-10-09T08:53:20Z"
    assert rejected == [
        Rejection("saved.jsonl, line 4", "has another text for version 3 than saved.jsonl, line 3")
    ]


def test_responses_that_do_not_say_their_version_are_versions_by_text_and_time():
    def made(created: int, text: str) -> dict[str, Any]:
        return make_response(SUPPORT, None, [("user", text)], created_at=created)

    [history], _ = saved(made(CREATED + 9, "new"), made(CREATED, "old"), made(CREATED + 5, "old"))
    assert [(one.prompt[0].content, one.number) for one in history.revisions] == [
        ("old", None), ("new", None),
    ]  # fmt: skip


def test_settings_become_parameters():
    text = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
    [history], _ = saved(
        make_response(
            SUPPORT, "3", [("user", "x")], temperature=0.2, top_p=0.9, max_output_tokens=500,
            text=text, tools=[], tool_choice="required", reasoning={"effort": None},
        )
    )  # fmt: skip
    assert history.revisions[0].fields["parameters"] == {
        "model": "gpt-5-2025-08-07", "temperature": 0.2, "top_p": 0.9, "max_tokens": 500,
        "text": text, "tool_choice": "required",
    }  # fmt: skip
    assert history.revisions[0].warnings == []


def test_a_response_that_the_sdk_has_written_says_the_same():
    """``model_dump_json`` writes all that is missing as null, and some keys as Python has them."""
    schema = {"type": "object", "default": None}
    one = {"type": "json_schema", "name": "x"}
    tool = {"type": "function", "name": "look_up"}
    plain = broken(text={"format": one | {"schema": schema}}, tools=[tool])
    dumped = broken(
        text={"format": one | {"schema_": schema, "strict": None}, "verbosity": None},
        tools=[tool | {"description": None, "authorization": None}],
        top_logprobs=None,
    )
    (first,), (second,) = (saved(value)[0] for value in (plain, dumped))
    assert second.revisions == first.revisions
    assert first.revisions[0].fields["parameters"]["text"]["format"]["schema"] == schema


def test_lists_events_and_batches_are_opened():
    one = make_response(LETTER, "1", [("user", "x")])
    text = one | {"instructions": "As a text."}
    histories, rejected = saved(
        {"object": "list", "data": [one, text | {"prompt": {"id": "pmpt_b", "version": "1"}}]},
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "response.completed", "response": one},
        {"custom_id": "1", "error": None, "response": {"status_code": 200, "body": one}},
    )
    assert rejected == []
    assert [(one.name, one.where) for one in histories] == [
        (LETTER[:21], "saved.jsonl, line 1, entry 1"), ("pmpt_b", "saved.jsonl, line 1, entry 2"),
    ]  # fmt: skip
    assert histories[1].revisions[0].prompt == "As a text."


def broken(**fields: Any) -> dict[str, Any]:
    return make_response(LETTER, "1", [("user", "x")]) | fields


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "is no response of OpenAI's API"),
        ("a text", "is no response of OpenAI's API"),
        ({"name": "x", "version": 1, "prompt": "of Langfuse"}, "is no response of OpenAI's API"),
        ({"data": {"a": 1}}, "is no response"),
        ({"type": "response.completed", "response": [1]}, "is no response"),
        ({"custom_id": "1", "response": {"body": None}}, "is no response"),
        (broken(prompt=None), "made without a reusable prompt"),
        (broken(prompt={"id": 7}), "made without a reusable prompt"),
        (broken(instructions=None), "has no instructions"),
        (broken(instructions=" "), "has no instructions"),
        (broken(instructions={"a": 1}), "has no instructions"),
        (broken(instructions=[]), "has no message with a text"),
        (broken(instructions=[7]), "no message"),
        (broken(instructions=[{"type": ["x"]}]), "no message"),
        (broken(instructions=[{"role": "user", "content": 7}]), "has a content that is neither"),
        (broken(instructions=[{"role": "user", "content": [{"type": "input_text", "text": 7}]}]),
         "has a part whose text is not text"),
        (broken(instructions=[{"role": ["user"], "content": "x"}]), "unknown role"),
    ],
)  # fmt: skip
def test_what_is_no_response_is_rejected_with_its_place(value, reason):
    good = make_response(SUPPORT, "1", [("user", "x")])
    histories, rejected = saved(value, good)
    assert [one.name for one in histories] == [SUPPORT[:21]]
    assert [one.where for one in rejected] == ["saved.jsonl, line 1"]
    assert reason in rejected[0].reason


def test_each_value_may_be_of_another_type():
    values = {"name": "Ada Lovelace", "text": {"type": "input_text", "text": "a text of hers"}}
    response = make_response(
        LETTER, "1", [("user", "Ada Lovelace: a text of hers")], values, max_output_tokens=16
    )  # fmt: skip
    for one in mutate({"data": [response]}):
        for found in split([Document("saved.json", one)])[0]:
            assert found.name and all(revision.prompt for revision in found.revisions)
