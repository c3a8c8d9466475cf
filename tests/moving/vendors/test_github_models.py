"""Prompts of GitHub Models, with their past in git and without."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from builder.model.answers import Message
from builder.model.errors import OperatorError
from moving.importers import git_history
from moving.importers.items import Document, History, Rejection
from moving.vendors.documents import TEXT_BYTES_MAX
from moving.vendors.github_models import read_histories, read_source
from tests.moving.importers.test_git_history import work

__all__ = ["work"]

# After GitHub's documentation.
SUMMARIZER = """\
name: Text Summarizer
description: Summarizes input text concisely
model: openai/gpt-4o-mini
modelParameters:
  temperature: 0.5
  maxTokens: 200
messages:
  - role: system
    content: You are a text summarizer.
  - role: user
    content: |
      Summarize the given text:
      <text>
      {{input}}
      </text>
"""
TRIALS = """\
testData:
  - input: The quick brown fox
    expected: A fox
evaluators:
  - name: Output should start with 'Summary -'
    string:
      startsWith: 'Summary -'
"""


def read(source: Path | str) -> tuple[dict[str, History], list[Rejection]]:
    """The histories by their names, and what was rejected, as the import reads them."""
    found = list(read_source(str(source)))
    rejected = [one for one in found if isinstance(one, Rejection)]
    histories = {}
    for one in read_histories(one for one in found if isinstance(one, Document)):
        if isinstance(one, Rejection):
            rejected.append(one)
        else:
            histories[one.name] = one
    return histories, rejected


def test_each_commit_that_changes_the_prompt_is_a_version(work):
    file = ".github/prompts/summarize.prompt.yml"
    work.commit("Add it", **{file: SUMMARIZER})
    work.commit("Only trials", **{file: SUMMARIZER + TRIALS, "README.md": "{}"})
    work.commit("Be brief\n\nbody", **{file: SUMMARIZER.replace("a text", "a brief") + TRIALS})
    histories, rejected = read(work.folder)
    assert not rejected
    first, second = histories["summarize"].revisions
    assert first.prompt == [
        Message("system", "You are a text summarizer."),
        Message("user", "Summarize the given text:\n<text>\n{{input}}\n</text>\n"),
    ]
    assert first.fields == second.fields == {
        "title": "Text Summarizer", "description": "Summarizes input text concisely",
        "parameters": {"model": "openai/gpt-4o-mini", "temperature": 0.5, "max_tokens": 200},
    }  # fmt: skip
    assert second.prompt[0].content == "You are a brief summarizer."
    assert (first.changelog, second.changelog) == ("Add it", "Be brief")
    assert (first.published_at, second.published_at) == (
        "2025-06-15T15:06:41Z", "2025-06-15T15:06:43Z",
    )  # fmt: skip
    assert (first.convention, first.number, first.labels) == ("mustache", None, ())
    assert first.warnings == []
    assert second.warnings == ["Left out testData and evaluators: prompts have none here (1 file)."]


def test_the_file_as_it_is_is_the_newest_version(work):
    work.commit("one", **{"a.prompt.yml": SUMMARIZER, "sub/b.prompt.yml": SUMMARIZER})
    work.commit("two", **{"a.prompt.yml": SUMMARIZER.replace("0.5", "0.6")})
    work.write(**{
        "a.prompt.yml": SUMMARIZER.replace("0.5", "0.7"), "new.prompt.yaml": SUMMARIZER,
        "sub/b.prompt.yml": SUMMARIZER.replace("\n", "\r\n"),
    })  # fmt: skip
    histories, rejected = read(work.folder)
    assert not rejected
    temperatures = [one.fields["parameters"]["temperature"] for one in histories["a"].revisions]
    assert temperatures == [0.5, 0.6, 0.7]
    assert histories["a"].revisions[-1].published_at is None
    assert [len(histories[name].revisions) for name in ("new", "b")] == [1, 1]
    # A part of the repository.
    assert [*read(work.folder / "sub")[0]] == ["b"]
    one, _ = read(work.folder / "a.prompt.yml")
    assert [*one] == ["a"] and len(one["a"].revisions) == 3


def test_a_file_or_an_archive_without_a_past(tmp_path):
    (tmp_path / "one.Prompt.YML").write_text(SUMMARIZER)
    (tmp_path / "other.yml").write_text("a: b")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("in/one.prompt.yml", SUMMARIZER)
        archive.writestr(".github/prompts/two.prompt.yml", SUMMARIZER)
        archive.writestr(".hidden/three.prompt.yml", SUMMARIZER)
        archive.writestr("in/other.json", "{}")
    (tmp_path / ".github/prompts").mkdir(parents=True)
    (tmp_path / ".github/prompts/two.prompt.yml").write_text(SUMMARIZER)
    (tmp_path / ".github/workflow.yml").write_text("a: b")
    places = {"": "one.Prompt.YML", "all.zip": "in/one.prompt.yml"}
    for source, where in places.items():
        histories, rejected = read(tmp_path / source)
        assert not rejected
        assert sorted(histories) == ["one", "two"]
        assert histories["one"].where == where
        assert [one.changelog for one in histories["one"].revisions] == [""]
    with pytest.raises(OperatorError, match=r"ends in \.prompt\.yml"):
        read(tmp_path / "other.yml")


def test_a_message_of_the_user_alone_and_schemas(tmp_path):
    schema = {"name": "animal", "schema": {"type": "object"}}
    for name, kind, given in (
        ("json_schema", "json_schema", json.dumps(schema)), ("object", "json_object", None),
        ("broken", "json_schema", "{"),
    ):  # fmt: skip
        text = f"messages: [{{role: user, content: 'Hi {{{{x}}}}'}}]\nresponseFormat: {kind}\n"
        text += f"jsonSchema: {json.dumps(given)}\n" if given else ""
        (tmp_path / f"{name}.prompt.yml").write_text(text)
    histories, rejected = read(tmp_path)
    assert not rejected
    found = {name: one.revisions[0] for name, one in histories.items()}
    assert {one.prompt for one in found.values()} == {"Hi {{x}}"}
    formats = {name: one.fields["parameters"]["response_format"] for name, one in found.items()}
    assert formats == {
        "json_schema": {"type": "json_schema", "json_schema": schema},
        "object": {"type": "json_object"}, "broken": {"type": "json_schema"},
    }  # fmt: skip
    assert "jsonSchema" in found["broken"].warnings[0]


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "cut": (SUMMARIZER[:100] + "\n  - [", "invalid YAML in line"),
    "empty": ("", "has no list of messages"),
    "vendor": ("model: x\nprompt: Hi\n", "has no list of messages"),
    "list": ("- a\n", "has no list of messages"),
    "type": ("messages: text\n", "has no list of messages"),
    "message": ("messages: [text]\n", "has a message 1 without a role"),
    "no content": ("messages: [{role: user}]\n", "has a message 1 without content"),
    "content": ("messages: [{role: user, content: {a: 5}}]\n", "has a content that is neither"),
    "part": ("messages: [{role: user, content: [{type: text}]}]\n", "whose text is not text"),
    "role": ("messages: [{role: wizard, content: x}]\n", "the unknown role 'wizard'"),
    "deep": (f"messages: {'[' * 60}{']' * 60}\n", "nested deeper"),
    "bomb": ("a: &a [x]\nmessages: [*a]\n", "aliases"),
    "encoding": (b"messages: \xff", "not UTF-8 at byte 10"),
}


@pytest.mark.parametrize("is_committed", [False, True])
def test_what_is_broken_is_reported_and_the_rest_comes(work, is_committed):
    files: dict[str, Any] = {f"{name}.prompt.yml": text for name, (text, _) in BROKEN.items()}
    work.commit("one", **{"good.prompt.yml": SUMMARIZER, "mended.prompt.yml": "messages: x"})
    if is_committed:
        work.commit("two", **files, **{"mended.prompt.yml": SUMMARIZER})
    else:
        work.write(**files)
    histories, rejected = read(work.folder)
    assert histories.keys() == ({"good", "mended"} if is_committed else {"good"})
    reasons = {one.where.partition(".")[0]: one.reason for one in rejected}
    assert reasons.keys() == BROKEN.keys() | (set() if is_committed else {"mended"})
    for name, (_, reason) in BROKEN.items():
        assert reason in reasons[name]
    if is_committed:
        [mended] = histories["mended"].revisions
        assert mended.changelog == "two"
        first = work.git("rev-parse", "HEAD~1")[:10]
        assert mended.warnings == [
            f"Passed over mended.prompt.yml, commit {first}: has no list of messages."
        ]
        assert {one.where for one in rejected} >= {
            f"{name}.prompt.yml, commit {work.git('rev-parse', 'HEAD')[:10]}" for name in BROKEN
        }


def test_a_huge_state_is_reported(work):
    work.commit("one", **{"a.prompt.yml": f"{SUMMARIZER}# {'x' * TEXT_BYTES_MAX}"})
    work.commit("two", **{"a.prompt.yml": SUMMARIZER})
    work.write(**{"b.prompt.yml": "x" * (TEXT_BYTES_MAX + 1)})
    histories, rejected = read(work.folder)
    assert [one.changelog for one in histories["a"].revisions] == ["two"]
    assert "larger than 1,048,576 bytes, or not in" in histories["a"].revisions[0].warnings[0]
    assert rejected == [Rejection("b.prompt.yml", "larger than 1,048,576 bytes")]


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"file": 1, "text": "x"}, {"text": "x"}, {"messages": []}]
)
def test_documents_of_others(value):
    [found] = read_histories([Document("x.json", value)])
    assert found == Rejection("x.json", "is no .prompt.yml file")


def test_what_is_not_taken_is_reported_once(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.prompt.yml").write_text(SUMMARIZER + TRIALS)
    histories, _ = read(tmp_path)
    assert [len(one.revisions[0].warnings) for one in histories.values()] == [1, 0, 0]
    assert histories["a"].revisions[0].warnings[0].endswith("(3 files).")


def test_a_past_that_cannot_be_read_leaves_the_files(work):
    work.commit("one", **{"a.prompt.yml": SUMMARIZER})
    (work.folder / ".git/HEAD").write_text("rubbish")
    histories, [rejected] = read(work.folder)
    assert len(histories["a"].revisions) == 1
    assert rejected.where == ".git"
    assert rejected.reason.startswith("its commits cannot be read, so each file is one version: ")


def test_missing_commits_are_reported(work, monkeypatch):
    for number in range(3):
        work.commit(f"{number}", **{"a.prompt.yml": SUMMARIZER.replace("0.5", f"0.{number}")})
    monkeypatch.setattr(git_history, "COMMITS_MAX", 2)
    histories, rejected = read(work.folder)
    assert len(histories["a"].revisions) == 2
    reason = "older versions are missing: more than 2 commits change such files"
    assert rejected == [Rejection(".git", reason)]
