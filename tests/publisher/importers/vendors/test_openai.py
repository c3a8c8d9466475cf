"""Reusable prompts of OpenAI: files of ids, downloads, and saved responses."""

from pathlib import Path
from typing import Any

import pytest

from builder.model.errors import OperatorError
from builder.model.records import Message
from publisher.importers.items import Document, History, Rejection
from publisher.importers.vendors import openai
from publisher.importers.vendors.api import ApiError, download_to, find_remote
from publisher.importers.vendors.documents import read_documents
from publisher.importers.vendors.openai import Wanted, read_histories, read_wanted
from tests.publisher.importers.vendors.importing import Importing
from tests.publisher.importers.vendors.mutations import mutate
from tests.publisher.importers.vendors.openai_server import (
    CREATED,
    KEY,
    LETTER,
    OLD,
    SUPPORT,
    TOOLS,
    make_response,
    openai_server,
)
from tests.support.fake_api import FakeApi, Said, fake_api


def download(
    api: FakeApi, folder: Path, *wanted: Wanted, progress: Any = lambda *_: None, **environ: str
) -> list[float]:  # fmt: skip
    """Download to a folder; returns what would have been waited for."""
    paused: list[float] = []
    ticks = iter(range(0, 10**9, 3600))
    download_to(
        openai, None, str(folder), progress,
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{api.url}/v1"} | environ,
        wanted=wanted, pause=paused.append, clock=lambda: next(ticks),
    )  # fmt: skip
    return paused


def read(folder: Path) -> tuple[list[History], list[Rejection]]:
    return split(read_documents(str(folder)))


def split(documents: Any) -> tuple[list[History], list[Rejection]]:
    found = list(read_histories(documents))
    histories = [one for one in found if isinstance(one, History)]
    return histories, [one for one in found if isinstance(one, Rejection)]


def saved(*values: Any) -> tuple[list[History], list[Rejection]]:
    return split(Document(f"saved.jsonl, line {n}", one) for n, one in enumerate(values, start=1))


# Files of ids


def test_a_file_of_ids(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text(
        f"\ufeff# The support team's\n\n{SUPPORT} all Support greeting # the old one\n"
        f"  {LETTER}\t2\n{LETTER} A letter in C# or F#\n{LETTER} 2\n"
    )
    assert read_wanted(str(path)) == [
        Wanted(SUPPORT, "all", "Support greeting"),
        Wanted(LETTER, "2"),
        Wanted(LETTER, "", "A letter in C# or F#"),
    ]
    remote = find_remote(openai, str(path))
    assert remote and remote.calls == 3 and remote.url is None
    assert "2 prompts of OpenAI: at least 3 calls" in remote.cost
    assert "16 output tokens" in remote.cost


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# none",
        '[{"id": "resp_1", "instructions": "x"}]',
        '{"id": "pmpt_1"}',
        "a,b",
    ],
)
def test_what_is_no_file_of_ids_is_an_export(text: str, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(text)
    assert find_remote(openai, str(path)) is None
    assert find_remote(openai, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{SUPPORT}\nsupport 2", "line 2: 'support 2' is no prompt"),
        (f"{SUPPORT} 0", f"line 1: '{SUPPORT} 0' is no prompt"),
        ("pmpt_a/../b", "line 1: 'pmpt_a/../b' is no prompt"),
        (f"{SUPPORT}\n" * 25_000, "more than 1,048,576 bytes of ids"),
    ],
)
def test_wrong_ids_are_told_before_anything_is_asked(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "ids.txt"
    path.write_text(text)
    with pytest.raises(OperatorError, match=message):
        find_remote(openai, str(path))


def test_an_address_alone_is_not_enough() -> None:
    with pytest.raises(OperatorError, match="Pass a file with their ids"):
        find_remote(openai, "https://api.openai.com/v1")


# Downloads


def test_all_versions_of_a_prompt_are_downloaded_as_they_were_written(tmp_path: Path) -> None:
    with openai_server() as api:
        download(api, tmp_path / "x", Wanted(SUPPORT, "all", "Support greeting"))
    # Each version once without its variables and once with them; 2 and 5 are not there.
    versions = [one.body["prompt"].get("version", "") for one in api.asked]
    assert versions == ["", "", "1", "1", "2", "4", "4", "5"]
    for asked in api.asked:
        # Nothing is stored, no tool is called, and the least possible is paid.
        assert asked.body["store"] is False and asked.body["tool_choice"] == "none"
        assert asked.body["max_output_tokens"] == 16 and "model" not in asked.body
    [history], rejected = read(tmp_path / "x")
    assert rejected == [] and history.name == "Support greeting" and history.owner == ""
    assert [one.number for one in history.revisions] == [1, 3, 4]
    assert [one.labels for one in history.revisions] == [(), ("current",), ()]
    assert {one.convention for one in history.revisions} == {"mustache"}
    third = history.revisions[1]
    assert third.prompt == [
        Message("system", "You answer {{customer_name}} kindly."),
        Message("user", "I am {{customer_name}}. My {{product}} is broken."),
        Message("assistant", "I am sorry."),
    ]
    assert third.published_at == "2025-10-09T08:53:20Z"
    # What the call itself has set is not the prompt's.
    assert third.fields["parameters"] == {
        "model": "gpt-5-2025-08-07",
        "reasoning": {"effort": "low"},
        "tools": [TOOLS[0], {key: TOOLS[1][key] for key in TOOLS[1] if key != "authorization"}],
    }
    assert third.warnings == ["Left out authorization and headers of tools, which can have keys."]


def test_one_version_and_the_current_one(tmp_path: Path) -> None:
    with openai_server(busy=2) as api:
        paused = download(api, tmp_path / "x", Wanted(SUPPORT, "1"), Wanted(LETTER))
    assert paused == [3, 3]
    histories, _ = read(tmp_path / "x")
    assert [(one.name, len(one.revisions)) for one in histories] == [
        (SUPPORT[:21], 1), (LETTER[:21], 1),
    ]  # fmt: skip
    assert [one.revisions[0].labels for one in histories] == [(), ("current",)]


def test_what_is_wrong_with_one_prompt_does_not_stop_the_others(tmp_path: Path) -> None:
    wanted = (Wanted("pmpt_gone"), Wanted(SUPPORT, "9"), Wanted(OLD), Wanted(LETTER, "all"))
    with openai_server() as api:
        download(api, tmp_path / "x", *wanted)
    histories, rejected = read(tmp_path / "x")
    assert [one.name for one in histories] == [LETTER[:21]]
    assert [one.where for one in rejected] == ["pmpt_gone", f"{SUPPORT} 9", OLD]
    assert "Prompt with id 'pmpt_gone' not found." in rejected[0].reason
    assert rejected[2].reason.endswith("To ask another model for the prompt, set OPENAI_MODEL.")


def test_a_prompt_whose_model_has_ended_is_asked_of_another(tmp_path: Path) -> None:
    with openai_server() as api:
        download(api, tmp_path / "x", Wanted(OLD), Wanted(LETTER), OPENAI_MODEL="gpt-6-mini")
    histories, rejected = read(tmp_path / "x")
    other, asked = (one.revisions[0] for one in histories)
    assert rejected == [] and asked.fields["parameters"].keys() == {"reasoning", "tools"}
    assert "Left out the model: its own has ended" in asked.warnings[-1]
    assert other.fields["parameters"]["model"] == "gpt-5-2025-08-07"


def test_a_download_that_goes_on_knows_which_model_it_asked(tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with openai_server() as api:
        with pytest.raises(KeyboardInterrupt):
            download(api, tmp_path / "x", Wanted(OLD), progress=stop, OPENAI_MODEL="gpt-6-mini")
        download(api, tmp_path / "x", Wanted(OLD), OPENAI_MODEL="gpt-6-mini")
    # The last one fails, and is not billed.
    assert [one.body.get("model") for one in api.asked] == [None, "gpt-6-mini", None]
    [[history], rejected] = read(tmp_path / "x")
    assert rejected == [] and "model" not in history.revisions[0].fields["parameters"]


def test_a_model_that_is_none_is_named(tmp_path: Path) -> None:
    def answer(asked: Any) -> Said:
        told = f"The model '{asked.body.get('model', 'gpt-old')}' does not exist."
        return Said(404, {"error": {"message": told, "code": "model_not_found"}})

    with fake_api(answer) as api:
        download(api, tmp_path / "x", Wanted(OLD), OPENAI_MODEL="gpt-6-mimi")
    assert "The model 'gpt-6-mimi' does not exist." in read(tmp_path / "x")[1][0].reason


def test_a_wrong_key_ends_it(tmp_path: Path) -> None:
    with openai_server() as api, pytest.raises(ApiError, match="Check OPENAI_API_KEY"):
        download(api, tmp_path / "x", Wanted(LETTER), Wanted(SUPPORT), OPENAI_API_KEY="sk-wrong")
    assert len(api.asked) == 1


def test_a_download_goes_on_without_paying_twice(tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if (done, total) == (1, 2):
            raise KeyboardInterrupt

    with openai_server() as api:
        with pytest.raises(KeyboardInterrupt):
            download(api, tmp_path / "x", Wanted(SUPPORT, "all"), Wanted(LETTER), progress=stop)
        before = len(api.asked)
        download(api, tmp_path / "x", Wanted(SUPPORT, "all"), Wanted(LETTER))
        # What is not there is asked for again, which is not billed.
        versions = [one.body["prompt"].get("version") for one in api.asked[before:]]
    assert versions == ["2", "5", None]
    histories, rejected = read(tmp_path / "x")
    assert [len(one.revisions) for one in histories] == [3, 1] and rejected == []


@pytest.mark.parametrize(
    "message",
    [
        "Missing prompt variables: 'a', 'b c'",
        'Missing required variables for prompt "x": ["a", "b c"].',
        "Missing prompt variables: `a`, `b c`. Pass them.",
    ],
)
def test_variables_are_found_in_what_the_api_says(message: str, tmp_path: Path) -> None:
    def answer(asked: Any) -> Said:
        prompt = asked.body["prompt"]
        if "variables" not in prompt:
            return Said(400, {"error": {"message": message}})
        return Said(200, make_response(LETTER, "1", [("user", "{{x}}")], prompt["variables"]))

    with fake_api(answer) as api:
        download(api, tmp_path / "x", Wanted(LETTER))
    assert api.asked[-1].body["prompt"]["variables"] == {"a": "{{a}}", "b c": "{{b c}}"}


def test_a_word_of_the_message_that_is_no_variable_is_taken_back(tmp_path: Path) -> None:
    def answer(asked: Any) -> Said:
        given = asked.body["prompt"].get("variables", {}).keys()
        if missing := {"name", "topic"} - given:
            told = f"Missing prompt variables: {' and '.join(sorted(missing))}. Pass them."
            return Said(400, {"error": {"message": told}})
        if given - {"name", "topic"}:
            return Said(400, {"error": {"message": "Unknown prompt variables: and"}})
        return Said(200, make_response(LETTER, "1", [("user", "{{name}}")]))

    with fake_api(answer) as api:
        download(api, tmp_path / "x", Wanted(LETTER))
    assert api.asked[-1].body["prompt"]["variables"].keys() == {"name", "topic"}
    assert len(api.asked) == 3


def test_an_api_that_never_is_content_is_asked_a_bounded_number_of_times(tmp_path: Path) -> None:
    def answer(_: Any) -> Said:
        told = f"Missing prompt variables: v{len(api.asked)}"
        return Said(400, {"error": {"message": told}})

    with fake_api(answer) as api:
        download(api, tmp_path / "x", Wanted(LETTER))
    assert len(api.asked) == openai.TRIES_MAX
    assert "Missing prompt variables" in read(tmp_path / "x")[1][0].reason


def test_a_high_number_makes_no_endless_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "VERSIONS_PER_REPO_MAX", 30)

    def answer(asked: Any) -> Said:
        if "version" in asked.body["prompt"]:
            return Said(400, {"error": {"message": "Version 1 of the prompt does not exist."}})
        return Said(200, make_response(LETTER, "999999999", [("user", "x")]))

    with fake_api(answer) as api:
        download(api, tmp_path / "x", Wanted(LETTER, "all"))
    assert len(api.asked) == 1 + 30
    assert len(read(tmp_path / "x")[0][0].revisions) == 1


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    wanted = [Wanted(SUPPORT, "all", "Support greeting"), Wanted(LETTER)]
    with openai_server() as api:
        importing = Importing(
            openai, f"{api.url}/v1", tmp_path, {"OPENAI_API_KEY": KEY}, wanted
        )  # fmt: skip
        first, second = importing(), importing()
    assert first.created == [
        "ada/support-greeting with 3 versions and 1 label",
        "ada/pmpt-690069ca73ac8190 with 1 version and 1 label",
    ]
    assert second.unchanged == ["ada/support-greeting", "ada/pmpt-690069ca73ac8190"]
    assert importing.read("support-greeting")[1] == (
        '{{role "system"}}\nYou answer {{customer_name}} kindly.\n\n'
        '{{role "user"}}\nI am {{customer_name}}. My {{product}} is broken.\n\n'
        '{{role "assistant"}}\nI am sorry.\n'
    )
    assert importing.read_labels("support-greeting") == {"current": "1.0.1"}


# Saved responses


def test_values_that_can_only_be_a_variables_become_placeholders_again() -> None:
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


def test_values_that_are_parts_of_one_another_stay() -> None:
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
def test_too_much_to_put_back_stays(text: str, values: dict[str, str]) -> None:
    [history], _ = saved(make_response(SUPPORT, "3", [("user", text)], values))
    assert history.revisions[0].prompt == [Message("user", text)]
    assert "Not put back" in history.revisions[0].warnings[-1]


def test_of_several_responses_of_a_version_the_one_with_most_of_the_prompt_counts() -> None:
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
        Rejection(
            "saved.jsonl, line 4",
            "has another text for version 3 than saved.jsonl, line 3",
        )
    ]


def test_responses_that_do_not_say_their_version_are_versions_by_text_and_time() -> None:
    def made(created: int, text: str) -> dict[str, Any]:
        return make_response(SUPPORT, None, [("user", text)], created_at=created)

    [history], _ = saved(made(CREATED + 9, "new"), made(CREATED, "old"), made(CREATED + 5, "old"))
    assert [(one.prompt[0].content, one.number) for one in history.revisions] == [
        ("old", None), ("new", None),
    ]  # fmt: skip


def test_settings_become_parameters() -> None:
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


def test_a_response_that_the_sdk_has_written_says_the_same() -> None:
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


def test_lists_events_and_batches_are_opened() -> None:
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
def test_what_is_no_response_is_rejected_with_its_place(value: Any, reason: str) -> None:
    good = make_response(SUPPORT, "1", [("user", "x")])
    histories, rejected = saved(value, good)
    assert [one.name for one in histories] == [SUPPORT[:21]]
    assert [one.where for one in rejected] == ["saved.jsonl, line 1"]
    assert reason in rejected[0].reason


def test_each_value_may_be_of_another_type() -> None:
    values = {"name": "Ada Lovelace", "text": {"type": "input_text", "text": "a text of hers"}}
    response = make_response(
        LETTER, "1", [("user", "Ada Lovelace: a text of hers")], values, max_output_tokens=16
    )  # fmt: skip
    for one in mutate({"data": [response, {"prompts_asked_for": {"names": {LETTER: "a"}}}]}):
        for found in split([Document("saved.json", one)])[0]:
            assert found.name and all(revision.prompt for revision in found.revisions)


@pytest.mark.parametrize("notes", [None, [], {"names": {LETTER: 7}, "faults": [1, ["a"]]}])
def test_notes_that_somebody_has_changed_are_passed_over(notes: Any) -> None:
    [history], rejected = saved({"prompts_asked_for": notes}, broken())
    assert rejected == [] and history.name == LETTER[:21]
