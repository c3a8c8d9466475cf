"""Repeated imports, imports for other owners, and obstacles to an import."""

from pathlib import Path
from typing import Any

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.names import Version
from builder.store import content
from moving.importers.run import Options, Outcome, import_source
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore
from publisher.write.publish import publish
from tests.moving.importers.bringing import bring_text, latest, reasons
from tests.support.calls import watched


def test_a_second_import_brings_what_has_changed(root):
    bring_text(root, "a.csv", "title,prompt\nA,one\nB,two\n")
    again = bring_text(root, "a.csv", "title,prompt\nA,one\nB,two\n")
    assert again == Outcome([], [], ["imported/a 1.0.0", "imported/b 1.0.0"], [], [], [])
    changed = bring_text(root, "a.csv", "title,prompt\nA,one\nB,three\n")
    assert (changed.updated, changed.unchanged) == (["imported/b 1.0.1"], ["imported/a 1.0.0"])
    record, text = latest(root, "imported/b")
    assert (text, record.changelog) == ("three", "Changed in a.csv")


def test_options_for_all(root):
    table = 'title,prompt,tags,license\nA,x,own,MIT\nB,"---\nlicense: ISC\n---\nx",,\nC,x,,\n'
    outcome = bring_text(
        root, "a.csv", table, license="CC0-1.0", all_tags=("all",), changelog="Why.", owner="ann"
    )
    assert len(outcome.created) == 3
    records = [latest(root, f"ann/{name}")[0] for name in "abc"]
    assert [record.license for record in records] == ["MIT", "ISC", "CC0-1.0"]
    assert [record.tags for record in records] == [["all", "own"], ["all"], ["all"]]
    assert {record.changelog for record in records} == {"Why."}


def test_dry_run(root):
    outcome = bring_text(root, "a.csv", "title,prompt\nA,x\nB,\n", dry_run=True)
    assert outcome.created == ["imported/a 1.0.0"] and len(outcome.rejected) == 1
    assert list(Path(root).iterdir()) == []


def test_a_broken_repo_stops_no_other(root):
    bring_text(root, "a.csv", "title,prompt\nA,x\n")
    Path(root, "imported/a/1.0.0.md").write_text("edited")
    source = Path(root).parent / "a.csv"
    source.write_text("title,prompt\nA,y\nB,y\n")
    outcome = import_source(str(source), FolderStore(root), Options(), lambda *_: None)
    assert outcome.created == ["imported/b 1.0.0"] and "hash differs" in reasons(outcome)["row 2"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("chef.csv", "title,prompt,owner\nChef,{},Ann\n"),
        ("chef.tsv", "title\tprompt\tcontributor\nChef\t{}\tAnn\n"),
        ("chef.jsonl", '{{"title": "Chef", "prompt": "{}", "author": "Ann"}}\n'),
        ("chef.json", '[{{"title": "Chef", "prompt": "{}", "author": "Ann - https://a.example"}}]'),
    ],
)
def test_other_owners_repos_are_created_and_never_updated(root, file, text):
    assert bring_text(root, file, text.format("Cook.")).created == ["ann/chef 1.0.0"]
    assert bring_text(root, file, text.format("Cook.")).unchanged == ["ann/chef 1.0.0"]
    changed = text.format("Burn.")
    for dry_run in (True, False):
        refused = bring_text(root, file, changed, dry_run=dry_run, allowed_owners=("bob",))
        assert refused == Outcome([], [], [], ["ann/chef"], [], [])
    assert "Cook." in latest(root, "ann/chef")[1]
    allowed = bring_text(root, file, changed, allowed_owners=("bob", "ann"))
    assert allowed.updated == ["ann/chef 1.0.1"] and not allowed.refused
    assert bring_text(root, file, text.format("Boil."), owner="ann").updated == ["ann/chef 1.0.2"]


def test_what_an_owner_publishes_during_an_import_is_not_updated(root):
    is_published = []

    def publish_first(call: str, args: tuple) -> None:
        # The import waits for the lock of the repo, which was free when it looked.
        if call == "flock" and not is_published:
            is_published.append(True)
            publish(
                FolderStore(root), "ann", "chef", make_draft({"content": "Mine."}), publisher="ann"
            )

    with watched(publish_first):
        outcome = bring_text(root, "a.csv", "title,prompt,owner\nChef,Theirs.,ann\n")
    assert is_published and outcome.refused == ["ann/chef"]
    assert latest(root, "ann/chef")[1] == "Mine."


def test_what_is_no_source(root):
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.docx", "x")
    assert ".csv" in str(caught.value)


def test_no_content_folder(root):
    Path(root).rmdir()
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.csv", "title,prompt\nA,x\n")
    assert "No content folder" in str(caught.value)


def test_a_full_disk_stops_the_import(root, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.link", full)
        with pytest.raises(RequestError) as caught:
            bring_text(root, "a.csv", "title,prompt\nA,x\n")
    assert caught.value.code == "storage_unavailable"
    assert bring_text(root, "a.csv", "title,prompt\nA,x\n").created == ["imported/a 1.0.0"]
    assert content.list_versions(root, "imported", "a").versions == [Version(1, 0, 0)]


def test_an_import_adds_no_version_to_a_prompt_that_came_from_elsewhere(root):
    """It takes another name, the same one each time, unless --onto-others asks for the version."""
    publish_here(root, "python", "Mine.")
    publish_here(root, "same", "The same.")
    since = latest(root, "imported/python")[0].published_at[:10]
    rows = "title,prompt\nPython,Theirs.\nPython,Theirs too.\nSame,The same.\n"
    for _ in range(2):
        outcome = bring_text(root, "prompts.csv", rows, dry_run=True)
        assert outcome.elsewhere == [
            f"imported/python: here since {since}; this one is prompts.csv row 2: would be "
            "imported as python-2"
        ]
    outcome = bring_text(root, "prompts.csv", rows)
    assert outcome.created == ["imported/python-2 1.0.0", "imported/python-3 1.0.0"]
    outcome = bring_text(root, "prompts.csv", rows.replace("Theirs.", "Theirs again."))
    assert outcome.updated == ["imported/python-2 1.0.1"]
    assert len(outcome.elsewhere) == 1 and len(outcome.unchanged) == 2
    outcome = bring_text(root, "other.csv", "title,prompt\nPython,Third.\n")
    assert outcome.created == ["imported/python-4 1.0.0"]
    outcome = bring_text(root, "fourth.csv", "title,prompt\nPython,Fourth.\n", onto_others=True)
    assert outcome.updated == ["imported/python 1.0.1"] and not outcome.elsewhere


def publish_here(root, name, text):
    draft = make_draft({"content": text, "changelog": "First version"})
    publish(FolderStore(root), "imported", name, draft, publisher="imported")
