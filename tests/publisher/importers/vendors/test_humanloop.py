"""What people have kept of Humanloop: the folder of its export tool, answers of its API, files."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from builder.model.records import Message
from publisher.importers.items import Document, History, PassedOver, Rejection
from publisher.importers.vendors.humanloop import read_histories, read_source

# After ``PromptResponse`` of version 5.
PERSONA = {
    "path": "support/persona", "id": "pr_3usCu3", "directory_id": "dir_1", "name": "persona",
    "version_id": "prv_1", "type": "prompt", "model": "gpt-4o", "endpoint": "chat",
    "template": [
        {"role": "system", "content": "You are {{person}}."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]},
    ],
    "template_language": "default", "provider": "openai", "max_tokens": -1, "temperature": 0.7,
    "top_p": 1.0, "stop": [], "presence_penalty": 0.0, "frequency_penalty": None,
    "other": {"logprobs": True}, "seed": None, "response_format": {"type": "json_object"},
    "reasoning_effort": None, "tools": [{"name": "a", "description": "A.", "parameters": {}}],
    "linked_tools": [{"name": "b", "description": "B.", "id": "tl_1", "version_id": "tv_1"}],
    "attributes": {"team": "A"}, "version_name": "v1", "version_description": "First",
    "description": "Speaks as someone.", "tags": ["Support Team"], "readme": "Long.",
    "environments": [{"id": "en_1", "name": "production", "tag": "default"}],
    "created_at": "2024-05-01T12:00:00.25+00:00", "updated_at": "2024-05-01T12:00:00Z",
    "created_by": {"id": "usr_1", "email_address": "grace@example.com"}, "last_used_at": None,
    "version_logs_count": 1, "total_logs_count": 1, "inputs": [{"name": "person"}],
}  # fmt: skip
LATER = PERSONA | {
    "version_id": "prv_0", "template": "Be {{ person }}", "template_language": "jinja",
    "created_at": "2024-05-02T12:00:00Z", "version_name": None, "version_description": None,
    "environments": [],
}  # fmt: skip
TOOL = {"id": "tl_1", "type": "tool", "path": "support/weather", "version_id": "tv_1"}

CHAT_FILE = """\
---
model: gpt-4o
temperature: 1.0
max_tokens: 256
provider: openai
endpoint: chat
tools: [
  {
    "name": "weather",
    "description": "The weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}
  }
]
---

<system>
  You are a friendly assistant.

    - Be {{mood}}.
</system>

<user>
  <text>
    What is in this image?
  </text>
  <image url="https://example.com/x.jpg" />
</user>
<user>Say <text>{{input}}</text></user>

<assistant>
  Wait.
  <tool name="weather" id="call_1">
    {"city": "San Francisco"}
  </tool>
</assistant>


<tool name="weather" id="call_1">
  Cloudy with a chance of meatballs.
</tool>
"""
COMPLETION_FILE = """\
---
model: claude-2
endpoint: complete
---
<user>
Autocomplete {{sentence}}
"""


def read(source: Path | str) -> tuple[dict[str, History], dict[str, str]]:
    """The histories by their names, and what else there is, as the import reads them."""
    found = list(read_source(str(source)))
    rejected = [one for one in found if isinstance(one, Rejection)]
    histories = {}
    for one in read_histories(one for one in found if isinstance(one, Document)):
        if isinstance(one, History):
            histories[one.name] = one
        else:
            rejected.append(one)
    return histories, {one.where: one.reason for one in rejected}


def read_values(*values: Any) -> tuple[list[History], list[str]]:
    found = list(read_histories(Document(f"{at}.json", value) for at, value in enumerate(values)))
    return (
        [one for one in found if isinstance(one, History)],
        [f"{one.where}: {one.reason}" for one in found if isinstance(one, Rejection)],
    )


EXPORT: dict[str, Any] = {
    "export.log": "text",
    "files/pr_3usCu3/file.json": LATER,
    "files/pr_3usCu3/versions/prv_0": LATER,
    "files/pr_3usCu3/versions/prv_1": PERSONA,
    "files/pr_3usCu3/deployments.json": [
        {"version_id": "prv_0", "environment_id": "en_2", "environment_name": "staging",
         "environment_tag": "other"},
        {"version_id": "prv_1", "environment_id": "en_1", "environment_name": "production",
         "environment_tag": "default"},
    ],
    "files/pr_3usCu3/logs/1.jsonl": {"output": "x"},
    "files/pr_3usCu3/evaluations/evr_1/evaluation.json": {"id": "evr_1"},
    "files/tl_1/file.json": TOOL,
    "files/tl_1/versions/tv_1": TOOL,
    "files/ds_1/datapoints/dsv_1/1.jsonl": {"inputs": {}},
}  # fmt: skip


@pytest.mark.parametrize("is_zip", [False, True])
def test_the_folder_of_the_export_tool(tmp_path: Path, is_zip: bool):
    for name, value in EXPORT.items():
        path = tmp_path / "20250605-120000" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    source = tmp_path / "20250605-120000"
    if is_zip:
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for name in EXPORT:
                archive.write(source / name, name)
        source = tmp_path / "all.zip"
    histories, rejected = read(source)
    assert rejected == {"files/tl_1/file.json": "is a tool of Humanloop, not a prompt"}
    first, second = histories["support/persona"].revisions
    assert first.prompt == [Message("system", "You are {{person}}."), Message("user", "Hi")]
    assert first.warnings == ["Left out image url: messages are text here."]
    assert (first.convention, second.convention) == ("mustache", "jinja")
    assert (first.changelog, second.changelog) == ("v1: First", "")
    assert (first.labels, second.labels) == (("production",), ("staging",))
    assert (first.published_at, second.published_at) == (
        "2024-05-01T12:00:00Z", "2024-05-02T12:00:00Z",
    )  # fmt: skip
    assert first.fields == {
        "title": "persona", "description": "Speaks as someone.", "tags": ["support-team"],
        "parameters": {
            "logprobs": True, "model": "gpt-4o", "provider": "openai", "endpoint": "chat",
            "temperature": 0.7, "top_p": 1.0, "presence_penalty": 0.0,
            "response_format": {"type": "json_object"},
            "tools": [
                {"name": "a", "description": "A.", "parameters": {}},
                {"name": "b", "description": "B."},
            ],
            "attributes": {"team": "A"},
        },
    }  # fmt: skip
    assert second.prompt == "Be {{ person }}"
    assert "grace" not in str(histories)


def test_prompt_files(tmp_path: Path):
    (tmp_path / "support").mkdir()
    (tmp_path / "support/chat.prompt").write_text(CHAT_FILE)
    (tmp_path / "support/agent.agent").write_text(
        CHAT_FILE.replace("max_tokens: 256", "max_iterations: 5\nname: Ignored\ncolor: red")
    )
    (tmp_path / "text.prompt").write_text(COMPLETION_FILE)
    (tmp_path / "notes.md").write_text("No prompt.")
    histories, rejected = read(tmp_path)
    assert not rejected
    assert [*histories] == ["support/agent", "support/chat", "text"]
    [chat] = histories["support/chat"].revisions
    assert chat.prompt == [
        Message("system", "You are a friendly assistant.\n\n  - Be {{mood}}."),
        Message("user", "What is in this image?"),
        Message("user", "Say <text>{{input}}</text>"),
        Message("assistant", "Wait."),
        Message("tool", "Cloudy with a chance of meatballs."),
    ]
    assert chat.warnings == [
        "Left out image: messages are text here.", "Left out tool calls: messages are text here.",
    ]  # fmt: skip
    assert chat.fields["title"] == "chat"
    assert chat.fields["parameters"]["max_tokens"] == 256
    assert chat.fields["parameters"]["tools"][0]["name"] == "weather"
    agent = histories["support/agent"].revisions[0]
    assert agent.fields["parameters"]["max_iterations"] == 5
    assert any("color" in warning for warning in agent.warnings)
    text = histories["text"].revisions[0]
    assert text.prompt == "<user>\nAutocomplete {{sentence}}"
    assert text.fields["parameters"] == {"model": "claude-2", "endpoint": "complete"}
    assert [*read(tmp_path / "text.prompt")[0]] == ["text"]


def test_answers_of_the_api():
    agent = PERSONA | {"type": "agent", "id": "ag_1", "max_iterations": 3}
    older = {key: value for key, value in PERSONA.items() if key not in ("type", "id")} | {
        "commit_message": "Committed", "committed_at": "2024-06-01T00:00:00Z",
        "version_name": None, "version_description": None, "path": "older",
    }  # fmt: skip
    [one, two, three], rejected = read_values(
        {"records": [LATER, PERSONA, LATER], "page": 1, "size": 10, "total": 3}, agent, older
    )
    assert not rejected
    assert [len(history.revisions) for history in (one, two, three)] == [2, 1, 1]
    assert one.revisions[0].where == "0.json, entry 2"
    assert two.revisions[0].fields["parameters"]["max_iterations"] == 3
    assert (three.revisions[0].changelog, three.revisions[0].published_at) == (
        "Committed", "2024-06-01T00:00:00Z",
    )  # fmt: skip


def of(**more: Any) -> dict[str, Any]:
    return PERSONA | more


BROKEN: dict[str, tuple[Any, str]] = {
    "vendor": ({"name": "x", "prompt": "Hi"}, "is no prompt of Humanloop"),
    "Opik": ({"id": "1", "name": "x"}, "is no prompt of Humanloop"),
    "Langfuse": ({"id": "1", "name": "x", "type": "text"}, "is no prompt of Humanloop"),
    "null": (None, "is no prompt of Humanloop"),
    "list": ([PERSONA], "is no prompt of Humanloop"),
    "type": (of(type=5), "is no prompt of Humanloop"),
    "deleted": (of(status="deleted"), "was deleted at Humanloop"),
    "name": (of(path=5, name=["x"]), "has neither path nor name"),
    "nameless": (of(path="", name=None), "has neither path nor name"),
    "none": (of(template=None), "has no template"),
    "empty": (of(template=[]), "has no template"),
    "template": (of(template={"a": "b"}), "has no template"),
    "message": (of(template=[5]), "has a message 1 without a role"),
    "content": (of(template=[{"role": "user", "content": {}}]), "has a content that is neither"),
    "role": (of(template=[{"role": "wizard", "content": ""}]), "the unknown role 'wizard'"),
    "open": ("<user>\nHi", "has a <user> that does not end"),
    "outside": ("<user>Hi</user>\nBye", "has text outside the tags"),
    "before": ("Hi\n<user>Hi</user>", "has text outside the tags"),
    "front": ("---\na: [\n---\nHi", "The front matter is invalid"),
    "deep": (f"---\na: {'[' * 60}{']' * 60}\n---\nHi", "nested deeper"),
    "dotprompt": ('{{role "user"}}\nHi', "is a dotprompt"),
}


def test_what_is_broken_is_told_and_the_rest_comes():
    histories, rejected = read_values(*(value for value, _ in BROKEN.values()), LATER)
    assert [len(one.revisions) for one in histories] == [1]
    assert len(rejected) == len(BROKEN)
    for at, (told, (_, reason)) in enumerate(zip(rejected, BROKEN.values(), strict=True)):
        assert told.startswith(f"{at}.json: ") and reason in told


def test_what_is_no_prompt_is_told_once():
    flows = [of(type="flow", id=f"fl_{number % 3}") for number in range(9)]
    values = [of(type="tool"), *flows]
    found = read_histories(Document(f"{at}.json", value) for at, value in enumerate(values))
    assert list(found) == [
        PassedOver("0.json", "is a tool of Humanloop, not a prompt"),
        PassedOver("1.json", "is a flow of Humanloop, not a prompt, and so are 2 more files"),
    ]


@pytest.mark.parametrize("odd", [None, 5, "text", ["x"], {"x": ["y"]}])
def test_odd_types_lose_no_version(odd: Any):
    keys = PERSONA.keys() - {"path", "type", "template"}
    for key in sorted(keys):
        histories, rejected = read_values(of(**{key: odd}))
        assert not rejected, key
        assert len(histories[0].revisions[0].prompt) == 2, key


def test_hostile_bodies_take_linear_time():
    """What takes quadratic time would not end."""
    for body in (
        "<user>" * 60_000, "<user></user>\n" * 20_000, "<tool " * 60_000,
        "<assistant>" + "<tool a>" * 40_000 + "</assistant>",
        "<assistant>" + "<tool a></tool>" * 20_000 + "</assistant>",
        "<user>" + "<image " * 40_000 + "</user>", " " * 300_000 + "<user>",
        "\n " * 150_000, "<user>" + "\t\n " * 90_000 + "</user>",
    ):  # fmt: skip
        list(read_histories([Document("a.prompt", body)]))
