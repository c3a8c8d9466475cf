"""LangSmith's prompts, from its API and from files, become histories."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from builder.model.answers import Message
from moving.importers.items import History, Rejection
from moving.vendors import langsmith
from moving.vendors.documents import read_documents
from moving.vendors.langsmith import read_histories
from tests.moving.vendors import importing
from tests.moving.vendors.importing import Importing
from tests.moving.vendors.langsmith_server import AUTHOR, KEY, LangSmith, langsmith_server
from tests.moving.vendors.mutations import mutate
from tests.moving.vendors.test_langchain_manifests import MANIFESTS, chat, human, lc, template
from tests.support.fake_api import FakeApi

Served = tuple[LangSmith, FakeApi]


@pytest.fixture
def served() -> Iterator[Served]:
    with langsmith_server() as started:
        yield started


read = partial(importing.read, langsmith)


def commit(text: str, found: str = "a1", **fields: Any) -> dict[str, Any]:
    return {"commit_hash": found, "manifest": template(text)} | fields


def prompt(*commits: Any, handle: str = "joke", **fields: Any) -> dict[str, Any]:
    return {"repo": {"repo_handle": handle}, "commits": list(commits)} | fields


def texts(history: History | Rejection) -> list[Any]:
    return [one.prompt for one in history.revisions]


def test_a_workspace_comes_with_its_histories(served, tmp_path, monkeypatch):
    monkeypatch.setattr(langsmith, "PAGE_ENTRIES", 2)
    server, api = served
    server.create("joke", description="Tells a joke.", tags=["fun", "Short Texts"])
    hashes = [
        server.push("joke", template("One {topic}."), about="First"),
        server.push("joke", MANIFESTS["sequence"], "prod", "v2"),
        server.push("joke", template("Three {topic}."), "dev", about="Shorter"),
    ]
    server.create("open", is_public=True)
    server.push("open", chat(human(template("{{q}}", "mustache"))))
    for handle, fields in {
        "old": {"is_archived": True}, "agent": {"repo_type": "agent"}, "empty": {},
    }.items():  # fmt: skip
        server.create(handle, **fields)
        if handle != "empty":
            server.push(handle, template("Left out"))
    keys = {"LANGSMITH_API_KEY": KEY, "LANGSMITH_WORKSPACE_ID": "workspace-1"}
    found = importing.by_name(importing.read_api(langsmith, api.url, keys))

    assert sorted(found) == ["joke", "open"]
    first, second, third = found["joke"].revisions
    assert [first.prompt, second.prompt, third.prompt] == [
        "One {topic}.", [Message("user", "{question}")], "Three {topic}.",
    ]  # fmt: skip
    assert second.fields["parameters"]["model"] == "gpt-4o"
    assert third.fields == {"description": "Tells a joke.", "tags": ["fun", "short-texts"]}
    assert [first.labels, second.labels, third.labels] == [(), ("prod", "v2"), ("dev",)]
    assert first.changelog == f"First\n\nCommit {hashes[0][:8]} of LangSmith"
    assert second.changelog == f"Commit {hashes[1][:8]} of LangSmith"
    assert first.published_at == "2025-03-01T09:30:00Z"
    assert third.published_at == "2025-03-01T09:30:01Z"
    assert first.number is None
    assert found["joke"].owner == ""
    assert found["open"].revisions[0].convention == "mustache"
    assert AUTHOR not in str(found)
    assert {one.headers["X-Tenant-Id"] for one in api.requests} == {"workspace-1"}


def test_imports_until_the_day_of_the_move(served, tmp_path):
    """A second one changes nothing; later ones bring what is new."""
    server, api = served
    run = Importing(langsmith, api.url, tmp_path, {"LANGSMITH_API_KEY": KEY})
    server.create("joke")
    for manifest in (template("One"), MANIFESTS["structured"], template("One")):
        server.push("joke", manifest, "prod")
    assert run().created == ["ada/joke with 3 versions and 1 label"]
    assert run().unchanged == ["ada/joke"]
    first, second, third = run.read("joke")
    assert second.startswith('{{role "user"}}\nTweet about')
    assert first == third == "One"
    assert run.read_labels("joke") == {"prod": "1.0.2"}
    server.push("joke", template("Two"), "prod")
    assert run().updated == ["ada/joke with 1 version and 1 label"]
    assert run.read_labels("joke") == {"prod": "1.0.3"}


def test_commits_come_after_their_parents():
    """The order depends neither on their times nor on the list."""
    at = "2025-01-0{}T00:00:00Z".format
    commits = [
        commit("3", "c", parent_commit_hash="b", created_at=at(1)),
        commit("1", "a", parent_commit_hash="of another prompt", created_at=at(3)),
        commit("2", "b", parent_commit_hash="a", created_at=at(2)),
        commit("4", "d", created_at=at(4)),
    ]
    (history,) = read(prompt(*commits))
    assert texts(history) == ["1", "2", "3", "4"]
    # A circle has no first one, but an end.
    commits[1]["parent_commit_hash"] = "c"
    (history,) = read(prompt(*commits))
    assert sorted(texts(history)) == ["1", "2", "3", "4"]


def test_a_long_line_of_parents():
    commits = [commit("x", str(n), parent_commit_hash=str(n - 1)) for n in range(5000)]
    (history,) = read(prompt(*commits))
    assert [one.where for one in history.revisions] == [
        f"entry 1, commit {n:,}" for n in range(1, 5001)
    ]


def test_a_tag_of_a_commit_that_is_not_here():
    tags = [{"tag_name": "prod", "commit_hash": "b2"}, {"tag_name": "dev", "commit_hash": "a1"}]
    (history,) = read(prompt(commit("x"), tags=tags))
    assert history.revisions[0].labels == ("dev",)
    assert history.revisions[0].warnings == [
        "Left out tags of commits that are not in the export: prod."
    ]


def test_commits_that_the_sdk_has_pulled():
    """They name their prompt; "-" as the owner is the workspace of the key."""
    at = {"owner": "rlm", "repo": "rag", "examples": []}
    (rag, own, joke) = read(
        commit("One", "a1", **at), commit("Two", "b2", **at),
        commit("x", "c3", owner="-", repo="own"), commit("2", "e5", owner="-", repo="joke"),
        prompt(commit("1", "d4"), {"commit_hash": "e5", "parent_commit_hash": "d4"}),
    )  # fmt: skip
    assert (rag.owner, rag.name, texts(rag)) == ("rlm", "rag", ["One", "Two"])
    assert rag.revisions[1].warnings == [
        "Its versions come in the order of their times and their files."
    ]
    assert (own.owner, own.name, own.revisions[0].warnings) == ("", "own", [])
    assert (joke.owner, joke.name, texts(joke)) == ("", "joke", ["1", "2"])


def test_a_commit_that_was_made_from_another_prompt():
    """It belongs to the prompt that lists it, even if LangChain's metadata name another one."""
    noted = {"lc_hub_owner": "rlm", "lc_hub_repo": "rag", "lc_hub_commit_hash": "of-rag"}
    manifest = chat(human(template("One")), metadata=noted)
    (joke,) = read(
        {"commit_hash": "a1", "manifest": manifest}, prompt({"commit_hash": "a1"}, handle="joke")
    )
    assert (joke.owner, joke.name, joke.revisions[0].changelog) == (
        "", "joke", "Commit a1 of LangSmith",
    )  # fmt: skip


def test_manifests_in_files(tmp_path):
    """They are named after their files, or after what LangChain has noted in them."""
    (tmp_path / "deep").mkdir()
    pulled = {"lc_hub_owner": "rlm", "lc_hub_repo": "rag", "lc_hub_commit_hash": "a1b2c3d4e5"}
    for file, value in {
        "movie critic.json": template("One"),
        "deep/movie critic.json": {"commit_hash": "a1", "manifest": template("Two")},
        "list.json": [template("Three"), template("Four")],
        "pulled.json": chat(human(template("Five")), metadata=pulled),
    }.items():
        (tmp_path / file).write_text(json.dumps(value))
    found = [
        (one.owner, one.name, one.revisions[0].changelog)
        for one in read_histories(read_documents(str(tmp_path)))
    ]
    assert sorted(found) == [
        ("", "list 1", ""), ("", "list 2", ""), ("", "movie critic", ""),
        ("", "movie critic", "Commit a1 of LangSmith"),
        ("rlm", "rag", "Commit a1b2c3d4 of LangSmith"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "is not a LangSmith prompt"),
        (None, "is not a LangSmith prompt"),
        ({"name": "a", "version": 1, "prompt": "x"}, "is not a LangSmith prompt"),
        ({"repos": [], "total": 0}, "is not a LangSmith prompt"),
        ({"commits": []}, "has commits, but no repo with a repo_handle"),
        (prompt(handle="empty"), "has no commits"),
        (prompt(commit("x"), handle="joke"), "has the same prompt as entry 1"),
        ({"commit_hash": "a", "manifest": None}, "has no prompt template that can be read"),
        (lc("Tool", name="x"), "has no prompt template that can be read, only Tool"),
        (prompt({"commit_hash": "b2"}, handle="b"), "has no manifest. Download the prompt again"),
        (prompt({"manifest": template("x")}, handle="c"), "has no commit_hash"),
        (prompt(commit("x", "d4", manifest={}), handle="d"), "has no manifest"),
    ],
)
def test_what_cannot_be_read_does_not_stop_the_rest(value, message):
    found = read(prompt(commit("One")), value, commit("Two", "z9", repo="last"))
    assert [texts(one) for one in found if isinstance(one, History)] == [["One"], ["Two"]]
    reasons = [one for one in found if isinstance(one, Rejection)]
    assert reasons
    assert all(one.where.startswith("entry 2") for one in reasons)
    assert reasons[0].reason.startswith(message)


def test_a_broken_commit_among_good_ones():
    found = read(
        prompt(commit("1", "a"), {"commit_hash": "b"}, commit("3", "c")),
        {"commit_hash": "b", "manifest": lc("Tool")},
    )
    assert [one for one in found if isinstance(one, Rejection)] == [
        Rejection("entry 2", "has no prompt template that can be read, only Tool")
    ]
    assert [texts(one) for one in found if isinstance(one, History)] == [["3", "1"]]


def test_a_wrong_type_anywhere():
    """No exception, and nothing that a record could not hold."""
    tags = [{"tag_name": "prod", "commit_hash": "a1"}]
    about = {"created_at": "2025-01-01T00:00:00Z", "description": "x", "parent_commit_hash": "0"}
    value = prompt(commit("x", **about), commit("y", "b2"), tags=tags)
    value["repo"] |= {"description": "About", "tags": ["a"]}
    for broken in (*mutate(value), *mutate(commit("x", owner="o", repo="r", **about))):
        importing.check_types(read(broken))


def test_a_time_that_is_none_is_named():
    (history,) = read(prompt(commit("x", created_at="0001-01-01T00:00:00")))
    (revision,) = history.revisions
    assert revision.published_at is None and "'0001-01-01T00:00:00'" in revision.warnings[0]
