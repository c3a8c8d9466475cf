"""Opik's prompts, from its API and from the files of its command line, become histories."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from builder.model.answers import Message
from moving.importers.items import History, Rejection
from moving.vendors import opik
from moving.vendors.api import ApiError, download_to
from tests.moving.vendors import importing
from tests.moving.vendors.importing import Importing
from tests.moving.vendors.mutations import mutate
from tests.moving.vendors.opik_server import AUTHOR, KEY, Opik, opik_server
from tests.support.fake_api import FakeApi

Served = tuple[Opik, FakeApi]


@pytest.fixture
def served() -> Iterator[Served]:
    with opik_server() as started:
        yield started


def download(served: Served, folder: Path, **keys: str) -> None:
    download_to(
        opik, f"{served[1].url}/api", str(folder), lambda *_: None, keys,
        pause=lambda seconds: None,
    )  # fmt: skip


read, read_folder = partial(importing.read, opik), partial(importing.read_folder, opik)


PROMPT = {"id": "p1", "name": "Joke"}


def version(template: Any = "x", **fields: Any) -> dict[str, Any]:
    return {"prompt_id": "p1", "template": template, "id": str(fields)} | fields


def read_one(template: Any = "x", **fields: Any) -> Any:
    """The one version of a prompt with these fields."""
    ((revision,),) = [one.revisions for one in read(PROMPT, version(template, **fields))]
    return revision


def test_a_time_that_is_none_is_named():
    revision = read_one(created_at="2025-02-30T00:00:00Z")
    assert revision.published_at is None and "'2025-02-30T00:00:00Z'" in revision.warnings[0]


def test_a_workspace_comes_with_its_histories(served, tmp_path, monkeypatch):
    monkeypatch.setattr(opik, "PAGE_ENTRIES", 2)
    server, api = served
    joke = server.create("My Joke", description="Tells a joke.", tags=["fun"])
    server.add(joke, "One {{topic}}.", change_description="First", environments=["staging"])
    server.add(joke, "Two {{ topic }}.", type="jinja2", tags=["fun", "Draft 2"])
    server.add(
        joke, "Three {topic}.", type="python", environments=["production", "eu"],
        metadata={"model": "m-1", "maxTokens": 9, "deep": {"a": [1]}},
    )  # fmt: skip
    server.create("Nothing yet")
    chat = server.create("Chat", template_structure="chat")
    server.add(chat, [{"role": "system", "content": "Hi."}, {"role": "user", "content": "{{q}}"}])
    download(served, tmp_path, OPIK_API_KEY=KEY, OPIK_WORKSPACE="team")
    found = read_folder(tmp_path)

    assert sorted(found) == ["Chat", "My Joke"]
    first, second, third = found["My Joke"].revisions
    assert [one.prompt for one in found["My Joke"].revisions] == [
        "One {{topic}}.", "Two {{ topic }}.", "Three {topic}.",
    ]  # fmt: skip
    assert [first.convention, second.convention, third.convention] == [
        "mustache", "jinja", "f-string",
    ]  # fmt: skip
    assert [first.number, second.number, third.number] == [1, 2, 3]
    assert [first.labels, second.labels, third.labels] == [
        ("staging",), (), ("production", "eu"),
    ]  # fmt: skip
    about = {"description": "Tells a joke."}
    assert first.fields == about | {"tags": ["fun"]}
    assert second.fields == about | {"tags": ["fun", "draft-2"]}
    assert third.fields["parameters"] == {"model": "m-1", "max_tokens": 9, "deep": {"a": [1]}}
    assert first.changelog == "First\n\nCommit c0ffee01 of Opik"
    assert first.published_at == "2025-03-01T09:01:00Z"
    assert found["Chat"].revisions[0].prompt == [Message("system", "Hi."), Message("user", "{{q}}")]
    assert AUTHOR not in str(found)
    assert {one.headers["Comet-Workspace"] for one in api.requests} == {"team"}


def test_imports_until_the_day_of_the_move(served, tmp_path):
    """A second one changes nothing; later ones bring what is new."""
    server, api = served
    run = Importing(opik, f"{api.url}/api", tmp_path, {"OPIK_API_KEY": KEY})
    joke = server.create("My Joke")
    server.add(joke, "One")
    server.add(joke, [{"role": "user", "content": "Two"}], environments=["production"])
    assert run().created == ["ada/my-joke with 2 versions and 1 label"]
    assert run().unchanged == ["ada/my-joke"]
    assert run.read("my-joke") == ["One", '{{role "user"}}\nTwo\n']
    server.add(joke, "Three")
    assert run().updated == ["ada/my-joke with 1 version"]
    assert run.read_labels("my-joke") == {"production": "1.0.1"}


def test_a_server_of_ones_own_needs_no_key(served, tmp_path):
    server, api = served
    server.key = None
    server.add(server.create("Joke"), "One")
    download(served, tmp_path)
    assert list(read_folder(tmp_path)) == ["Joke"]
    assert api.requests[0].headers["Comet-Workspace"] == "default"
    assert "Authorization" not in api.requests[0].headers


def test_a_key_is_missing(served, tmp_path):
    with pytest.raises(ApiError, match="OPIK_API_KEY"):
        download(served, tmp_path)


@pytest.mark.parametrize(
    "answer",
    [[], {"data": []}, {"content": ["x"], "total": 1}, {"content": [{}], "total": 1},
     {"content": [{"id": "1"}]}, {"content": [{"id": "1"}], "total": 10**9}],
)  # fmt: skip
def test_an_api_of_another_kind(answer):
    """One request is sent, whatever total the answer claims."""

    class Api:
        calls = 0

        def get(self, path: str, params: Any = None) -> Any:
            self.calls += 1
            return answer

    api = Api()
    with pytest.raises(ApiError):
        opik.download(api)
    assert api.calls == 1


def test_files_of_the_command_line(served, tmp_path):
    server, _ = served
    joke = server.create("Joke", tags=["fun"])
    for text in ("One", "Two", "Three"):
        server.add(joke, text, metadata={"model": text})
    chat = server.create("Chat")
    server.add(chat, [{"role": "user", "content": "{{q}}"}])
    (tmp_path / "prompts").mkdir()
    for key in (joke, chat):
        (tmp_path / f"prompts/prompt_{key}.json").write_text(json.dumps(server.export(key)))
    found = read_folder(tmp_path)
    assert [one.prompt for one in found["Joke"].revisions] == ["One", "Two", "Three"]
    last = found["Joke"].revisions[2]
    assert last.fields == {"tags": ["fun"], "parameters": {"model": "Three"}}
    assert found["Joke"].revisions[0].changelog == "Commit c0ffee01 of Opik"
    assert found["Chat"].revisions[0].prompt == [Message("user", "{{q}}")]


@pytest.mark.parametrize(
    ("history", "texts"),
    [
        (None, ["3"]),
        ([], ["3"]),
        (["3", "2", "1"], ["1", "2", "3"]),
        (["1", "2", "3"], ["1", "2", "3"]),
        (["2", "1"], ["1", "2", "3"]),
        (["3"], ["3"]),
    ],
)
def test_the_order_of_an_exported_history(history, texts):
    def exported(text: str) -> dict[str, Any]:
        return {"prompt": text, "commit": f"commit-{text}", "type": "MUSTACHE"}

    value = {
        "prompt": {"id": "p", "name": "Joke", "description": "Tells a joke."},
        "current_version": exported("3"),
        "history": history and [exported(text) for text in history],
    }
    (found,) = read(value)
    assert [one.prompt for one in found.revisions] == texts
    assert found.revisions[0].fields["description"] == "Tells a joke."


def test_versions_without_numbers_are_ordered_by_time_and_id():
    at = "2025-01-0{}T00:00:00Z".format
    (found,) = read(
        {"content": [
            version("3", created_at=at(2), id="b"), version("1", created_at=at(1), id="c"),
            version("2", created_at=at(2), id="a"),
        ]},
        PROMPT,
    )  # fmt: skip
    assert [one.prompt for one in found.revisions] == ["1", "2", "3"]


def test_pages_that_overlap_and_masks():
    (found,) = read(
        PROMPT | {"latest_version": version("2", id="b", version_number="v2")},
        {"content": [version("2", id="b", version_number="v2"), version("1", id="a")]},
        version("mask", id="c", version_type="mask"),
    )
    assert [one.prompt for one in found.revisions] == ["1", "2"]
    assert found.revisions[1].warnings == [
        "Left out 1 mask, as versions for experiments are called."
    ]


def test_parts_of_messages_that_are_not_text():
    revision = read_one(
        [
            {"role": "user", "content": [
                {"type": "text", "text": "See"}, {"type": "text", "text": "this"},
                {"type": "image_url", "image_url": {"url": "{{u}}"}},
            ]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        ],
        type="custom",
    )  # fmt: skip
    assert revision.prompt == [Message("user", "See\nthis"), Message("assistant", "")]
    assert revision.convention == "none"
    assert revision.warnings == [
        "Left out image url: messages are text here.",
        "Left out tool calls: messages are text here.",
        "Has templates of the type custom, so no text is a placeholder.",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "is neither a prompt of Opik"),
        ({"name": "a", "version": 1, "prompt": "x"}, "is neither a prompt of Opik"),
        ({"template": "x"}, "is neither a prompt of Opik"),
        ({"content": [None]}, "is neither a prompt of Opik"),
        ({"prompt_current_version_prompt": "x"}, "is CSV"),
        (version(prompt_id="p9"), "is a version of a prompt that is not in the export"),
        ({"id": "p2", "name": "Empty"}, "has no versions"),
        ({"current_version": {}}, "has no name"),
        ({"id": "p1", "name": "Joke", "current_version": {}}, "has the same prompt as entry 1"),
        ({"name": "a", "current_version": None}, "is not an object"),
        (version(7, id="z"), "has no list of messages"),
        (version("{", id="z", template_structure="chat"), "not JSON"),
        (version("{}", id="z", template_structure="chat"), "has no list of messages"),
        (version("[" * 5000, id="z", template_structure="chat"), "nested deeper than"),
        (version([{"content": "x"}], id="z"), "has a message 1 without a role"),
        (version([{"role": "critic", "content": "x"}], id="z"), "has a message of the unknown"),
        (version([{"role": "user", "content": 7}], id="z"), "has a content that is neither"),
    ],
)
def test_what_cannot_be_read_does_not_stop_the_rest(value, message):
    good = {"id": "p3", "name": "Last"}
    found = read(PROMPT, value, version("One"), good, version("Two", prompt_id="p3"))
    texts = [one.prompt for history in found if isinstance(history, History)
             for one in history.revisions]  # fmt: skip
    assert texts == ["One", "Two"]
    (rejection, *_) = [one for one in found if isinstance(one, Rejection)]
    assert rejection.where.startswith("entry 2")
    assert rejection.reason.startswith(message)


def test_a_wrong_type_anywhere(served):
    """No exception, and nothing that a record could not hold."""
    server, _ = served
    key = server.create("Joke", tags=["fun"])
    server.add(key, [{"role": "user", "content": [{"type": "text", "text": "x"}]}], metadata={})
    exported = server.export(key)
    detail = PROMPT | {"tags": ["a"], "latest_version": version(environments=["e"], metadata={})}
    for broken in (*mutate(exported), *mutate(detail)):
        importing.check_types(read(broken))
