"""Langfuse's prompts, from its API and from its database's table, become histories."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from builder.model.answers import Message
from builder.pipeline.build import build
from moving.importers.items import History, Rejection
from moving.importers.run import Options, import_found
from moving.vendors import langfuse
from moving.vendors.api import ApiError
from moving.vendors.documents import read_documents, read_export
from publisher.write.durable import FolderStore
from tests.moving.vendors import importing
from tests.moving.vendors.langfuse_server import (
    AUTHOR,
    ENVIRONMENT,
    PATH,
    LangfuseServer,
    fill,
    langfuse_server,
)
from tests.support.catalogues import read_tree, settings_in

VERSION = {
    "name": "movie-critic", "version": 1, "type": "text", "prompt": "Review {{movie}}.",
    "config": {}, "labels": [], "tags": [],
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[LangfuseServer]:
    with langfuse_server() as started:
        yield started


read = partial(importing.read, langfuse)


def read_api(server: LangfuseServer) -> list[History | Rejection]:
    return importing.read_api(langfuse, server.url, ENVIRONMENT)


def read_one(**fields: Any) -> Any:
    """The one version of a prompt with these fields."""
    ((revision,),) = [one.revisions for one in read(VERSION | fields)]
    return revision


def test_a_time_that_is_none_is_named():
    revision = read_one(createdAt="9999-01-01T00:00:00.000Z")
    assert revision.published_at is None and "'9999-01-01T00:00:00.000Z'" in revision.warnings[0]


def test_a_prompt_comes_with_its_history(server, tmp_path):
    server.create(
        "support/greeting", "Hi {{name}}.", config={"model": "m-1", "maxTokens": 9},
        labels=["production"], tags=["Short Texts"], commit_message="First",
    )  # fmt: skip
    server.create("support/greeting", "Never read.")
    server.create("support/greeting", "Hi {{name}}.", labels=["canary"])
    server.delete("support/greeting", 2)
    chat = [{"role": "developer", "content": "Be kind.\n"}, {"role": "user", "content": "{{q}}"}]
    server.create("chat", chat)
    found = importing.by_name(read_api(server))

    first, third = found["support/greeting"].revisions
    assert (first.number, third.number) == (1, 3)
    assert first.prompt == third.prompt == "Hi {{name}}."
    assert first.fields == {
        "tags": ["short-texts"], "parameters": {"model": "m-1", "maxTokens": 9},
    }  # fmt: skip
    assert (first.changelog, third.changelog) == ("First", "")
    assert first.published_at == "2025-03-01T01:30:00Z"
    assert first.labels == ("production",)
    assert set(third.labels) == {"canary", "latest"}
    (turned,) = found["chat"].revisions
    assert turned.prompt == [Message("system", "Be kind.\n"), Message("user", "{{q}}")]
    assert turned.warnings == ["The role developer became system."]
    assert {one.convention for one in (first, turned)} == {"none"}
    assert AUTHOR not in repr(found)


def test_a_hub_has_what_langfuse_has(server, tmp_path):
    """Each version, as Langfuse's API and a hub answer it."""
    names = fill(server)
    settings = settings_in(tmp_path, langfuse=True)

    def move() -> dict[str, bytes]:
        options = Options(owner="mover")
        outcome = import_found(
            read_api(server), "export", FolderStore(settings.content), options, lambda *_: None
        )
        assert (outcome.rejected, outcome.refused) == ([], [])
        assert all("{{größe}}" in warning for warning in outcome.warnings)
        return read_tree(settings.content)

    moved = move()
    # The same once more changes nothing.
    assert move() == moved
    server.create("support/greeting", [{"role": "user", "content": "{{question}}"}])
    server.move("movie-critic", "production", 1)
    assert moved.items() < move().items()

    build(settings, index=False)
    root = Path(settings.out) / PATH.replace("/api", "langfuse/api", 1)
    compared = 0
    for name, versions in server.prompts.items():
        for version in versions:
            file = root / f"mover/{names[name]}@{version['version']}"
            ours = json.loads(file.read_bytes())
            assert ours.pop("name") == f"mover/{names[name]}"
            assert sorted(ours.pop("labels")) == sorted(version["labels"])
            default = {"commitMessage": version["commitMessage"] or "Imported from export"}
            assert ours == {key: version[key] for key in ours} | default
            compared += 1
    assert compared == 6
    repo = {path: data for path, data in moved.items() if path.startswith("mover/movie-critic")}
    assert b"2025-03-01T03:30:00Z" in repo["mover/movie-critic/1.0.1.json"]
    assert AUTHOR.encode() not in b"".join(move().values())


def test_all_pages_are_asked_for_and_each_version_unresolved(server, tmp_path):
    for number in range(langfuse.PAGE_PROMPTS + 1):
        server.create(f"prompt {number}", "Hi.")
    server.create("folder/a", "@@@langfusePrompt:name=prompt 1|label=latest@@@ Bye.")
    found = importing.by_name(read_api(server))
    assert len(found) == langfuse.PAGE_PROMPTS + 2
    assert [one.params.get("page") for one in server.requests[:3]] == ["1", "2", None]
    assert f"{PATH}/folder%2Fa" in [one.path for one in server.requests]
    assert all(one.params["resolve"] == "false" for one in server.requests[2:])
    (revision,) = found["folder/a"].revisions
    assert revision.prompt.startswith("@@@langfusePrompt:name=prompt 1|label=latest@@@")
    assert revision.warnings == ["References to other prompts stay text: prompt 1."]


def test_a_failed_download_ends_it_and_the_next_one_sees_moved_labels(server):
    server.create("a", "One", labels=["production"])
    server.create("a", "Two")
    server.broken_version = 2
    with pytest.raises(ApiError, match="InvalidRequestError"):
        read_api(server)
    server.broken_version = 0
    server.create("a", "Three")
    server.move("a", "production", 2)
    labels = [set(one.labels) for one in importing.by_name(read_api(server))["a"].revisions]
    assert labels == [set(), {"production"}, {"latest"}]


@pytest.mark.parametrize("name", ["deleted", "..", "\ud800"])
def test_a_listed_version_that_is_not_found(name, server):
    server.create("a", "One")
    server.create(name, "Never answered")
    server.gone = name
    found = read_api(server)
    assert [one.name for one in found if isinstance(one, History)] == ["a"]
    assert len(found) == 2


class _Lists:
    """An API that answers with these lists."""

    def __init__(self, list_page: Any) -> None:
        self._list_page = list_page
        self.pages = 0

    def get(self, path: str, params: dict[str, int]) -> Any:
        self.pages += 1
        return self._list_page(params["page"])

    def count(self, done: int, total: int) -> None:
        assert done <= total


@pytest.mark.parametrize(
    "answer",
    [
        None, [], "<html>", {"data": []}, {"data": [{}], "meta": {"totalPages": 1}},
        {"data": [{"name": 1, "versions": [1]}], "meta": {"totalPages": 1}},
        {"data": [{"name": "a", "versions": [1e400]}], "meta": {"totalPages": 1}},
    ],
)  # fmt: skip
def test_what_is_no_list(answer):
    with pytest.raises(ApiError, match=r"page 1, is no list of prompts: .+Pass the address"):
        list(langfuse.download(_Lists(lambda page: answer)))


def test_a_list_without_an_end(monkeypatch):
    monkeypatch.setattr(langfuse, "FILES_MAX", 100)
    endless = _Lists(lambda page: {
        "data": [{"name": f"a{page}", "versions": list(range(1, 11))}],
        "meta": {"totalPages": 10**9},
    })  # fmt: skip
    with pytest.raises(ApiError, match="more than 100 versions"):
        list(langfuse.download(endless))
    assert endless.pages == 11
    # Pages that say nothing new end it, too.
    empty = _Lists(lambda page: {"data": [], "meta": {"totalPages": 10**9}})
    assert not list(langfuse.download(empty))
    assert empty.pages == 1


# The output of psql's \copy for the table: JSON and arrays are text.
TABLE = r'''id,created_at,project_id,created_by,prompt,name,version,type,is_active,config,tags,labels,commit_message
c1,2024-05-01 10:20:30.5,p1,grace@example.com,"""Say \""hi\"" to {{name}}.\nBye.""",hi,1,text,,"{""model"": ""m""}","{}",{},
c2,2024-05-02 10:20:30,p1,grace@example.com,"""Hello.""",hi,2,text,,{},"{short,""two words""}","{production,latest}",Shorter
c3,2024-05-01 10:20:30,p1,API,"[{""role"": ""system"", ""content"": ""Be kind.""}, {""type"": ""placeholder"", ""name"": ""history""}]",talk,1,chat,t,{},{},,
c4,2024-05-01 10:20:30,p2,API,"""Of another project.""",hi,1,text,,{},{},{},
'''  # noqa: E501 - a line of a table


def check_table(path: Path) -> None:
    hi, talk, other = read_export(langfuse, read_documents(str(path)))
    first, second = hi.revisions
    assert first.prompt == 'Say "hi" to {{name}}.\nBye.'
    assert first.published_at == "2024-05-01T10:20:30Z"
    assert first.fields["parameters"] == {"model": "m"}
    assert (first.labels, second.labels) == ((), ("production", "latest"))
    assert second.fields["tags"] == ["short", "two-words"]
    assert (first.changelog, second.changelog) == ("", "Shorter")
    (talk_first,) = talk.revisions
    assert talk_first.prompt == [Message("system", "Be kind."), Message("user", "{{history}}")]
    assert talk_first.warnings == [
        "The placeholder history became a message of the user with the variable history, which "
        "takes text, not messages."
    ]
    # Versions before labels say that they are in use.
    assert talk_first.labels == ("production",)
    assert (other.name, other.revisions[0].prompt) == ("hi", "Of another project.")


def test_the_table_as_csv(tmp_path):
    path = tmp_path / "prompts.csv"
    path.write_text(TABLE, encoding="utf-8")
    check_table(path)


def test_the_table_as_json_lines(tmp_path):
    path = tmp_path / "prompts.jsonl"
    common = {"type": "text", "is_active": None, "config": {}, "tags": [], "labels": []}
    rows = [
        {"created_at": "2024-05-01T10:20:30.5", "name": "hi", "version": 1, "project_id": "p1",
         "prompt": 'Say "hi" to {{name}}.\nBye.', "config": {"model": "m"}},
        {"created_at": "2024-05-02T10:20:30", "name": "hi", "version": 2, "project_id": "p1",
         "prompt": "Hello.", "tags": ["short", "two words"], "labels": ["production", "latest"],
         "commit_message": "Shorter"},
        {"created_at": "2024-05-01T10:20:30", "name": "talk", "version": 1, "project_id": "p1",
         "type": "chat", "is_active": True, "labels": None,
         "prompt": [{"role": "system", "content": "Be kind."},
                    {"type": "placeholder", "name": "history"}]},
        {"created_at": "2024-05-01T10:20:30", "name": "hi", "version": 1, "project_id": "p2",
         "prompt": "Of another project."},
    ]  # fmt: skip
    path.write_text("".join(f"{json.dumps(common | row)}\n" for row in rows), encoding="utf-8")
    check_table(path)


@pytest.mark.parametrize(
    ("array", "labels"),
    [
        ("{}", ()), ("", ()), ("{a,b}", ("a", "b")), (r'{"a\"b","c,d",NULL}', ('a"b', "c,d")),
        ('["a", "b"]', ("a", "b")), ("{a", None), ('{"a', None), ("[1]", None), ("nonsense", None),
    ],
)  # fmt: skip
def test_lists_in_tables(array, labels):
    revision = read_one(version="1", labels=array)
    assert revision.labels == (labels or ())
    warnings = ["Left out the labels, which are no list of texts."] if labels is None else []
    assert revision.warnings == warnings


def test_answers_of_lists_have_no_texts():
    listed = {"name": "a", "versions": [1], "labels": [], "tags": [], "lastConfig": {}}
    assert read({"data": [listed], "meta": {"page": 1}}) == []
    # If such a list also contains versions, they are read.
    (history,) = read({"data": [listed, VERSION]})
    assert history.where == "entry 1, entry 2"


def test_what_is_not_ours_is_reported():
    revision = read_one(config=[1], tags=["ok", 1], resolutionGraph={"root": {}})
    assert revision.fields == {"tags": []}
    assert revision.warnings == [
        "The server has put the texts of other prompts in the place of references to them.",
        "Left out the tags, which are no list of texts.",
        "Left out the config, which is no object.",
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("text", "is no version of a prompt of Langfuse"),
        ({"id": "pmpt_1", "instructions": "Hi."}, "is no version of a prompt of Langfuse"),
        (VERSION | {"name": " "}, "has no name"),
        (VERSION | {"name": {}}, "has no name"),
        (VERSION | {"version": 1.5}, "has a version that is no whole number"),
        (VERSION | {"version": True}, "has a version that is no whole number"),
        (VERSION | {"version": "9" * 5000}, "has a version that is no whole number"),
        (VERSION | {"version": 0}, "has a version that is no whole number from 1 to 999,999,999"),
        (VERSION | {"type": "image"}, "has the type 'image', which is neither text nor chat"),
        (VERSION | {"type": [1]}, "has the type '[1]', which is neither text nor chat"),
        (VERSION | {"type": "chat"}, "has the type chat, but its prompt is not a list of"),
        (VERSION | {"prompt": None}, "has the type text, but its prompt is not text"),
        (VERSION | {"type": "chat", "prompt": ["Hi"]}, "has a message 1 that is no object"),
        (VERSION | {"type": "chat", "prompt": [{"content": "Hi"}]}, "has a message 1 without a"),
        (VERSION | {"type": "chat", "prompt": [{"role": "user", "content": {}}]},
         "has a content that is neither text nor a list of parts"),
        (VERSION | {"type": "chat", "prompt": [{"role": "narrator", "content": "Hi"}]},
         "has a message of the unknown role 'narrator'"),
        (VERSION | {"type": "chat", "prompt": [{"type": "placeholder", "name": "a}} b"}]},
         "has a placeholder, message 1, without a name of letters"),
    ],
)  # fmt: skip
def test_what_is_rejected(value, reason):
    good = VERSION | {"version": 2}
    rejection, history = read(value, good)
    assert rejection.where == "entry 1"
    assert rejection.reason.startswith(reason)
    assert [one.number for one in history.revisions] == [2]


ODD = (None, True, -1, 10**30, 1.5, float("inf"), "", "\ud800", "{{", [], [[]], {}, {"a": [1]})


@pytest.mark.parametrize(
    "field",
    ["name", "version", "type", "prompt", "config", "labels", "tags", "commitMessage", "createdAt",
     "isActive", "resolutionGraph", "projectId", "data"],
)  # fmt: skip
@pytest.mark.parametrize("common", [VERSION, VERSION | {"version": "1"}, {}])
def test_no_value_ends_a_run(field, common):
    good = VERSION | {"name": "good"}
    for odd in ODD:
        found = read(common | {field: odd}, good, odd, {"data": [odd]})
        assert [one.name for one in found if isinstance(one, History)][-1] == "good"
        assert all(isinstance(one, History | Rejection) for one in found)
