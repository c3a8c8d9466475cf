"""PromptLayer's templates: from a server that behaves as its API's documentation says, and from
files.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.model.answers import Message
from builder.model.names import ORDINAL_MAX
from moving.importers.items import Document, History, Rejection
from moving.vendors import promptlayer
from moving.vendors.api import ApiError, download_to
from moving.vendors.documents import read_documents
from moving.vendors.promptlayer import read_histories
from tests.support.fake_api import FakeApi, Request, Said, fake_api

KEY = "pl_0123456789abcdef"


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text, "id": None, "annotations": None}]
    return {
        "role": role, "content": content, "input_variables": [], "template_format": "f-string",
        "raw_request_display_role": "", "dataset_examples": [], "name": None, **more,
    }  # fmt: skip


def version(number: int, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A version as ``GET /prompt-templates/17?version=N`` answers it."""
    template = {
        "type": "chat", "messages": list(messages), "functions": None, "tools": None,
        "function_call": "none", "tool_choice": None, "input_variables": ["topic"],
        "dataset_examples": [],
    }  # fmt: skip
    model = {"provider": "openai", "name": "gpt-4o", "parameters": {"temperature": 0.2, "seed": 0}}
    return {
        "success": True, "id": 17, "prompt_name": "support/Page title", "version": number,
        "workspace_id": 42, "prompt_template": template, "metadata": {"model": model},
        "commit_message": f"Change {number}", "tags": ["support", "Page Titles"],
        "created_at": f"2025-03-15T10:30:0{number}.123456Z", "snippets": [], "llm_kwargs": None,
        **more,
    }  # fmt: skip


TITLES = [
    version(1, message("system", ""), message("user", "About {topic}")),
    version(2, message("system", "Be brief."), message("user", "About {topic}")),
    # The third was deleted.
    version(4, message("system", "Be clear."), message("user", "About {topic}")),
]
SNIPPET = version(
    1, id=18, prompt_name="tone", commit_message=None, tags=[], metadata=None, is_snippet=True,
    prompt_template={
        "type": "completion", "content": [{"type": "text", "text": "Be kind, {{ name }}."}],
        "template_format": "jinja2", "input_variables": ["name"],
    },
)  # fmt: skip
LABELS = [("prod", 2), ("Staging Area", 4), ("latest", 4)]


class PromptLayer:
    """Its answers, one template a page."""

    def __init__(self, *versions: dict[str, Any]) -> None:
        self.templates: dict[int, dict[int, dict[str, Any]]] = {}
        for one in versions:
            self.templates.setdefault(one["id"], {})[one["version"]] = one

    def __call__(self, request: Request) -> Said:
        if request.headers.get("X-API-KEY") != KEY:
            return Said(401, {"success": False, "message": "Invalid API key", "error": "x"})
        if request.path == "/prompt-templates":
            return Said(200, self.list(int(request.params["page"])))
        template, _, labels = request.path.removeprefix("/prompt-templates/").partition("/")
        versions = self.templates[int(template)]
        if labels:
            entries = [
                {"prompt_version_id": 100 + number, "prompt_version_number": number,
                 "release_label": label, "release_label_id": 7}
                for label, number in LABELS if template == "17"
            ]  # fmt: skip
            return Said(200, {"release_labels": entries})
        found = versions.get(int(request.params["version"]))
        return Said(200, found) if found else Said(404, {"message": "Prompt template not found"})

    def list(self, page: int) -> dict[str, Any]:
        ids = sorted(self.templates)
        items = [
            {"id": one, "version": max(self.templates[one]), "prompt_name": "x"}
            for one in ids[page - 1 : page]
        ]
        return {"items": items, "has_next": page < len(ids), "page": page, "pages": len(ids)}


def download(api: FakeApi, folder: Path) -> list[tuple[str, int, int]]:
    progress: list[tuple[str, int, int]] = []
    download_to(
        promptlayer, api.url, str(folder), lambda *one: progress.append(one),
        {"PROMPTLAYER_API_KEY": KEY}, pause=lambda _: None,
    )  # fmt: skip
    return progress


def read(*values: Any) -> tuple[list[History], list[str]]:
    found = list(read_histories(Document(f"{at}.json", value) for at, value in enumerate(values)))
    return (
        [one for one in found if isinstance(one, History)],
        [f"{one.where}: {one.reason}" for one in found if isinstance(one, Rejection)],
    )


def only(template: dict[str, Any], **more: Any) -> Any:
    """The version that comes of a template."""
    [history], rejected = read(version(1, **{"prompt_template": template, **more}))
    assert not rejected
    return history.revisions[0]


def test_what_the_api_has_becomes_histories(tmp_path):
    with fake_api(PromptLayer(*TITLES, SNIPPET)) as api:
        progress = download(api, tmp_path / "export")
        count = len(api.requests)
        download(api, tmp_path / "export")
        assert len(api.requests) == 2 * count == 2 * (2 + 4 + 1 + 2)
    assert progress[-1] == ("Downloading prompts", 2, 2)
    documents = list(read_documents(str(tmp_path / "export")))
    titles, tone = read_histories(documents)
    assert titles.name == "support/Page title"
    assert [one.number for one in titles.revisions] == [1, 2, 4]
    assert [one.labels for one in titles.revisions] == [(), ("prod",), ("Staging Area", "latest")]
    assert [one.changelog for one in titles.revisions] == ["Change 1", "Change 2", "Change 4"]
    second = titles.revisions[1]
    assert second.prompt == [Message("system", "Be brief."), Message("user", "About {topic}")]
    assert second.published_at == "2025-03-15T10:30:02Z"
    assert second.fields == {
        "title": "support/Page title", "tags": ["support", "page-titles"],
        "parameters": {"temperature": 0.2, "seed": 0, "model": "gpt-4o", "provider": "openai"},
    }  # fmt: skip
    assert (second.convention, second.warnings) == ("f-string", [])
    assert tone.revisions[0].prompt == "Be kind, {{ name }}."
    assert tone.revisions[0].convention == "jinja"
    assert "parameters" not in tone.revisions[0].fields


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"data": []}, "no list of prompt templates"), ([], "no list of prompt templates"),
        ({"items": [5]}, "without id or version"),
        ({"items": [{"id": "../x", "version": 1}]}, "without id or version"),
        ({"items": [{"id": 1, "version": True}]}, "without id or version"),
    ],
)  # fmt: skip
def test_another_api(tmp_path, answer, reason):
    with fake_api(lambda _: Said(200, answer)) as api, pytest.raises(ApiError, match=reason):
        download(api, tmp_path / "export")


def test_lists_and_numbers_without_end_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(promptlayer, "PAGES_MAX", 3)
    endless = {"items": [{"id": 1, "version": ORDINAL_MAX}], "has_next": True}
    with fake_api(lambda _: Said(200, endless)) as api:
        with pytest.raises(ApiError, match="more than 3 pages"):
            download(api, tmp_path / "export")
        assert len(api.requests) == 3
    monkeypatch.setattr(promptlayer, "VERSIONS_PER_REPO_MAX", 5)
    endless["has_next"] = False
    with fake_api(lambda _: Said(200, endless)) as api:
        download(api, tmp_path / "export")
        assert len(api.requests) == 1 + 5 + 1
        assert api.requests[-2].params == {"version": str(ORDINAL_MAX)}


def test_what_the_sdk_gives(tmp_path):
    """``templates.all()``, saved as JSON: the latest versions, without times."""
    listed = [
        {key: value for key, value in one.items() if key != "created_at"}
        for one in (TITLES[-1], SNIPPET)
    ]
    (tmp_path / "all.json").write_text(json.dumps(listed))
    (tmp_path / "page.json").write_text(json.dumps({"items": [listed[1] | {"id": 19}]}))
    found = list(read_histories(read_documents(str(tmp_path))))
    assert [one.where for one in found] == [
        "all.json, entry 1", "all.json, entry 2", "page.json, entry 1",
    ]  # fmt: skip
    assert [one.revisions[0].published_at for one in found] == [None] * 3


def test_tools_and_metadata_of_users():
    tools = [{"type": "function", "function": {"name": "weather"}}]
    one = only(
        {"type": "chat", "messages": [message("user", "Hi")], "tools": tools,
         "tool_choice": "auto", "functions": [], "function_call": "none"},
        metadata={"model": {"name": "m", "parameters": {"maxTokens": 5, "x": None}}, "team": "A"},
    )  # fmt: skip
    assert one.fields["parameters"] == {
        "max_tokens": 5, "model": "m", "tools": tools, "tool_choice": "auto",
        "metadata": {"team": "A"},
    }  # fmt: skip


def test_labels_of_versions_that_are_not_here():
    labels = [{"release_label": "prod", "prompt_version_number": 9}]
    [history], _ = read(TITLES[0], {"id": 17, "release_labels": labels})
    assert history.revisions[0].warnings == [
        "Left out labels of versions that are not in the export: prod."
    ]


def test_what_is_no_text_is_left_out_with_a_warning():
    image = {"type": "image_url", "image_url": {"url": "https://example.com/x.png"}}
    one = only({
        "type": "chat",
        "messages": [
            message("developer", "Rules: @@@tone@@@"),
            message("user", "") | {"content": [image, {"type": "text", "text": "a"}, image,
                                               {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "placeholder", "name": "history", "template_format": "f-string"},
            message("tool", "Sunny", tool_call_id="1"),
        ],
    })  # fmt: skip
    assert one.prompt == [
        Message("system", "Rules: @@@tone@@@"), Message("user", "a\nb"), Message("assistant", ""),
        Message("user", "{history}"), Message("tool", "Sunny"),
    ]  # fmt: skip
    assert one.warnings == [
        "The placeholder history became a message of the user with the variable history, which "
        "takes text, not messages.",
        "Left out image url: messages are text here.",
        "Left out tool calls: messages are text here.",
        "References to snippets (@@@…@@@) stay text.",
    ]


@pytest.mark.parametrize(
    ("formats", "texts", "convention"),
    [
        (("f-string", "jinja2"), ("None.", "{{ x }}"), "jinja"),
        (("jinja2", None), ("None.", "{x}"), "f-string"),
        (("jinja2", "jinja2"), ("No", "placeholders"), "f-string"),
        (("f-string", "jinja2"), ("{x}", "{{ x }}"), "none"),
        (("mustache", "mustache"), ("{{x}}", "{{y}}"), "none"),
        (("f-string", ["list"]), ("None.", "{x}"), "none"),
    ],
)
def test_conventions(formats, texts, convention):
    one = only({
        "messages": [
            message("user", text, template_format=kind)
            for kind, text in zip(formats, texts, strict=True)
        ]
    })  # fmt: skip
    assert one.convention == convention
    assert bool(one.warnings) == (convention == "none")


CHAT = {"type": "chat", "messages": [message("user", "Hi")]}
BROKEN: dict[str, tuple[Any, str]] = {
    "vendor": ({"name": "x", "prompt": "Hi", "version": 1}, "is no version of a prompt template"),
    "text": ("Hi", "is no version of a prompt template"),
    "null": (None, "is no version of a prompt template"),
    "template": (version(1, prompt_template="Hi"), "is no version of a prompt template"),
    "name": (version(1, prompt_template=CHAT, prompt_name=5), "has no prompt_name"),
    "nameless": (version(1, prompt_template=CHAT, prompt_name=" "), "has no prompt_name"),
    "number": (version("1", prompt_template=CHAT), "has a version that is no number from 1 to"),
    "zero": (version(0, prompt_template=CHAT), "has a version that is no number from 1 to"),
    "true": (version(True, prompt_template=CHAT), "has a version that is no number from 1 to"),
    "messages": (version(1, prompt_template={"messages": "Hi"}), "has no list of messages"),
    "none": (version(1, prompt_template={"messages": []}), "has no list of messages"),
    "message": (version(1, prompt_template={"messages": [1]}), "has a message 1 without a role"),
    "role": (version(1, message("wizard", "Hi")), "the unknown role 'wizard'"),
    "content": (version(1, prompt_template={"content": 5}), "has a content that is neither"),
    "part": (version(1, prompt_template={"content": [5]}), "has a content that is neither"),
    "part's text": (version(1, prompt_template={"content": [{}]}), "has a part whose text"),
    "placeholder": (
        version(1, {"role": "placeholder", "name": "a b"}), "whose name is no variable's",
    ),
    "labels": ({"release_labels": []}, "no list of release labels with the id"),
    "label": ({"release_labels": [5], "id": 1}, "has a release label without"),
}  # fmt: skip


def test_what_is_broken_is_reported_and_the_rest_comes():
    histories, rejected = read(*(value for value, _ in BROKEN.values()), TITLES[0])
    assert [len(one.revisions) for one in histories] == [1]
    assert len(rejected) == len(BROKEN)
    for at, (line, (_, reason)) in enumerate(zip(rejected, BROKEN.values(), strict=True)):
        assert line.startswith(f"{at}.json: ") and reason in line


@pytest.mark.parametrize("odd", [None, 5, "text", ["x"], {"x": ["y"]}])
@pytest.mark.parametrize(
    "key", ["metadata", "tags", "commit_message", "created_at", "snippets", "id"]
)
def test_odd_types_lose_no_version(key, odd):
    [history], rejected = read(version(1, message("user", "Hi"), **{key: odd}))
    assert not rejected
    assert history.revisions[0].prompt == [Message("user", "Hi")]


def test_templates_of_one_name_in_two_workspaces_are_two():
    there = version(1, message("user", "Other"), id=99)
    histories, _ = read(TITLES[0], there, version(2, message("user", "Other 2"), id=99))
    assert [len(one.revisions) for one in histories] == [1, 2]
