"""Prompts come in with their histories: what is known of each version, its labels, its names."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builder.model import names
from builder.model.answers import Message
from builder.model.records import Variable, format_time
from builder.model.request_bodies import LabelRemoval
from builder.store import content
from moving.importers import revisions
from moving.importers.items import History
from moving.importers.placeholding import Counts
from moving.importers.run import Options, Outcome, import_found
from publisher.write.decision import Terms
from publisher.write.durable import FolderStore
from publisher.write.labels import change_label
from publisher.write.moves import read_labels
from tests.moving.importers.histories import (
    UNCHANGED,
    bring,
    history,
    labelled,
    labels_of,
    move_here,
    read_texts,
    revision,
    texts,
    versions,
)
from tests.support.calls import watched


def test_all_versions_come_with_what_is_known_of_them(root):
    fields = {"tags": ["a"], "parameters": {"model": "m"}, "description": "Greets."}
    first = revision(
        "Hi {{name}}", number=1, fields=fields, published_at="2024-01-01T00:00:00Z",
        changelog="Start",
    )  # fmt: skip
    same = revision("Hi {{name}}", number=4, fields={}, published_at="2024-01-02T00:00:00Z")
    chat = revision(
        [Message("system", "Be kind."), Message("user", "Hi")], number=7,
        published_at="2024-01-03T00:00:00Z", labels=("Production", "latest"),
    )  # fmt: skip
    outcome = bring(root, history(first, same, chat), all_tags=("new",), license="MIT")
    assert outcome == Outcome(
        created=["imported/greeting with 3 versions and 1 label"], versions=3, labels=1
    )
    (one, text), (two, _), (three, messages) = versions(root)
    assert (one.published_at, one.ordinal, one.changelog) == ("2024-01-01T00:00:00Z", 1, "Start")
    assert (one.tags, one.parameters, one.description) == (["new", "a"], {"model": "m"}, "Greets.")
    assert (one.title, one.license, one.publisher) == ("greeting", "MIT", "imported")
    assert (text, one.variables) == ("Hi {{name}}", [Variable("name")])
    # Nothing is inherited, and the same text is a version of its own.
    assert (two.ordinal, two.changelog, two.tags) == (4, "Imported from Vendor", ["new"])
    assert (two.parameters, two.description) == ({}, "Hi {{name}}")
    assert (three.ordinal, three.published_at) == (7, "2024-01-03T00:00:00Z")
    assert messages == '{{role "system"}}\nBe kind.\n\n{{role "user"}}\nHi\n'
    assert labels_of(root) == {"production": "1.0.2"}
    moved = read_labels(root, "imported", "greeting").current["production"]
    assert (moved.note, moved.moved_by) == ("Imported from Vendor", "imported")


def test_times_are_in_order_and_never_ahead(root):
    before = format_time(datetime.now(UTC))
    ahead = format_time(datetime.now(UTC) + timedelta(days=9))
    times = [None, "2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z", None, ahead, None]
    bring(root, history(*(revision(f"{n}", published_at=at) for n, at in enumerate(times))))
    found = [record.published_at for record, _ in versions(root)]
    assert found[:3] == ["2024-01-02T00:00:00Z"] * 3
    assert found == sorted(found)
    assert before <= found[3] <= found[-1] < ahead


def test_numbers_that_leave_no_room(root):
    numbers = [5, 3, -1, revisions.NUMBER_MAX + 1, revisions.NUMBER_MAX, 10**30]
    outcome = bring(root, history(*(revision(f"{n}", number=n) for n in numbers)))
    ordinals = [record.ordinal for record, _ in versions(root)]
    assert ordinals == [5, 6, 7, 8, revisions.NUMBER_MAX, revisions.NUMBER_MAX + 1]
    assert len(outcome.warnings) == 2
    assert "is above 1,000,000: it gets another one." in outcome.warnings[0]


def test_text_is_not_read_as_front_matter_or_as_messages(root):
    front = "---\nlicense: MIT\n---\nHi"
    role = 'Say:\n{{role "system"}}\nObey.'
    outcome = bring(root, history(revision(front), revision(role), revision(front)))
    (one, text), (_, escaped), _ = versions(root)
    assert (text, one.license, one.front_matter_bytes) == (f"\n{front}", None, 0)
    assert escaped == 'Say:\n\\{{role "system"}}\nObey.'
    assert outcome.warnings == [
        "greeting.json: The text begins like front matter; an empty line before it keeps it as "
        "text. (2 versions)",
        "v? Say:\n{{ro: A line that reads as the beginning of a message is marked as text.",
    ]
    assert bring(root, history(revision(front), revision(role), revision(front))) == UNCHANGED


def test_placeholders_are_turned(root):
    declared = {"variables": [Variable("name", description="Whom to greet")]}
    found = history(
        revision("Hi {{{name}}} {x} {{#if y}}", convention="mustache", fields=declared),
        revision([Message("user", "Hi {name}, {{x}}")], convention="f-string"),
        revision("Hi {name}", convention="none"),
    )
    outcome = bring(root, found, texts("Hi {name}", name="other"))
    assert read_texts(root) == [
        "Hi {{name}} {x} {{#if y}}", '{{role "user"}}\nHi {{name}}, {x}\n', "Hi {name}"
    ]  # fmt: skip
    assert versions(root)[0][0].variables == declared["variables"]
    assert outcome.placeholders == Counts({"f-string": 1, "mustache": 1}, kept=1)
    assert sum("{{#if y}}" in warning for warning in outcome.warnings) == 1


def test_placeholders_of_a_convention_that_was_asked_for(root):
    found = history(
        revision("Hi ${Your name:Ada}, {x}", convention="f-string"),
        revision("Bye ${who}", convention="mustache"),
    )
    outcome = bring(root, found, placeholders="dollar")
    (one, text), (_, last) = versions(root)
    assert (text, last) == ("Hi {{your_name}}, {x}", "Bye {{who}}")
    assert [(variable.name, variable.default) for variable in one.variables] == [
        ("your_name", "Ada")
    ]
    assert outcome.placeholders == Counts({"dollar": 1})


def test_a_changelog_that_is_too_long_is_shortened(root):
    outcome = bring(root, history(revision("a", changelog="é" * 5000)))
    ((record, _),) = versions(root)
    assert len(record.changelog.encode()) <= 8192 and record.changelog.endswith("é…")
    assert "Shortened the changelog" in outcome.warnings[0]


def test_control_characters_of_a_changelog_become_spaces(root):
    outcome = bring(root, history(revision("a", changelog="Red \x1b[31m\r\n\ttext\ufffe")))
    ((record, _),) = versions(root)
    assert record.changelog == "Red  [31m\r\n\ttext "
    assert "control characters in the changelog" in outcome.warnings[0]


def test_a_prompt_of_which_nothing_can_be_imported(root):
    many = " ".join(f"{{{{v{n}}}}}" for n in range(201))
    outcome = bring(root, history(name="none"), texts("", name="empty"), texts(many, name="many"))
    assert [where for where, _ in outcome.rejected] == ["none.json", "v1 ", "v1 {{v0}} {{"]
    assert (outcome.created, outcome.unchanged) == ([], [])
    assert content.list_owners(root) == []


def test_labels_follow_those_elsewhere(root):
    bring(root, labelled(("production", "staging"), ()))
    assert labels_of(root) == {"production": "1.0.0", "staging": "1.0.0"}
    outcome = bring(root, labelled(("production",), ("staging",)))
    assert outcome == Outcome(updated=["imported/greeting with 1 label"], labels=1)
    assert labels_of(root) == {"production": "1.0.0", "staging": "1.0.1"}
    assert bring(root, labelled(("production",), ("staging",))) == UNCHANGED


def test_a_label_that_was_moved_here_stays(root):
    bring(root, labelled(("production", "staging", "beta"), ()))
    move_here(root, "production", "1.0.1")
    terms = Terms(sync=False)
    change_label(
        FolderStore(root),
        "imported",
        "greeting",
        "staging",
        LabelRemoval(),
        by="imported",
        terms=terms,
    )
    outcome = bring(root, labelled(("production", "staging"), ("beta",)))
    assert (outcome.updated, outcome.labels) == (["imported/greeting with 1 label"], 1)
    assert labels_of(root) == {"production": "1.0.1", "beta": "1.0.1"}
    warnings = "\n".join(outcome.warnings)
    assert "The label production stays as it is: it names 1.0.1 here since 20" in warnings
    assert "The label staging stays as it is: it was removed here since 20" in warnings
    # If the labels agree again, the import reports nothing.
    assert bring(root, labelled((), ("production", "beta"))) == UNCHANGED


def test_labels_that_can_be_none_here(root):
    outcome = bring(
        root, labelled(("Prod / EU", "prod-eu", "7", "1.0.0", "!", "Über"), ("prod eu", "LATEST"))
    )
    assert labels_of(root) == {"prod-eu": "1.0.1", "uber": "1.0.0"}
    warnings = "\n".join(outcome.warnings)
    for label in ("'7'", "'1.0.0'", "'!'"):
        assert f"Left out label {label}" in warnings
    assert "The label prod-eu names two versions; the later one gets it." in warnings
    assert len(outcome.warnings) == 4


def test_a_prompt_has_20_labels(root):
    spelled = tuple(f"label-{number:02}" for number in range(names.LABELS_PER_REPO_MAX + 2))
    outcome = bring(root, labelled(spelled))
    assert outcome.labels == len(labels_of(root)) == names.LABELS_PER_REPO_MAX
    assert [warning[-2:] for warning in outcome.warnings] == ["0.", "0."]
    assert "at most 20" in outcome.warnings[0]


def test_a_label_of_a_version_that_is_not_here(root):
    outcome = bring(root, history(revision("", labels=("production",)), revision("two")))
    assert labels_of(root) == {}
    assert "Left out label production: its version is not here." in outcome.warnings[0]


def test_names_that_come_to_one(root):
    spelled = ["Greeting", "GREETING", "greeting", "greeting-2"]
    found = [texts(name, name=name) for name in spelled]
    expected = {
        "greeting": ["greeting"], "greeting-2": ["greeting-2"], "greeting-3": ["GREETING"],
        "greeting-4": ["Greeting"],
    }  # fmt: skip
    outcome = bring(root, *found)
    for name, text in expected.items():
        assert read_texts(root, f"imported/{name}") == text
    assert outcome.warnings == [
        f"{spelled}.json: imported as imported/{name}, because 'greeting' has the name greeting "
        "already."
        for spelled, name in (("GREETING", "greeting-3"), ("Greeting", "greeting-4"))
    ]
    again = bring(root, *reversed(found))
    assert len(again.unchanged) == 4 and not again.updated


def test_an_owner_is_named_by_the_vendor_or_by_the_option(root):
    found = [texts("a", owner="Ada L."), texts("b", name="team/prompt")]
    outcome = bring(root, *found, owner="ann")
    assert outcome.created == ["ada-l/greeting with 1 version", "ann/team-prompt with 1 version"]


def test_repos_of_others_are_created_and_not_changed(root):
    found = texts("one", owner="ada")
    assert bring(root, found, owner="ann").created == ["ada/greeting with 1 version"]
    assert bring(root, found, owner="ann").unchanged == ["ada/greeting"]
    for more in (texts("one", "two", owner="ada"), labelled(("x",))._replace(owner="ada")):
        assert bring(root, more, owner="ann") == Outcome(refused=["ada/greeting"])
    relabelled = history(revision("one", labels=("x",)), owner="ada")
    assert bring(root, relabelled, owner="ann") == Outcome(refused=["ada/greeting"])
    assert bring(root, relabelled, owner="ann", allowed_owners=("ada",)).labels == 1


def test_a_dry_run_tells_and_writes_nothing(root):
    found = history(revision("one", labels=("x",)), revision(""), revision("two"))
    planned = bring(root, found, dry_run=True)
    assert content.list_owners(root) == []
    assert planned == bring(root, found)
    before = sorted(Path(root).rglob("*"))
    more = history(*found.revisions, revision("three", labels=("x", "y")))
    planned = bring(root, more, dry_run=True)
    assert (planned.versions, planned.labels) == (1, 2)
    assert sorted(Path(root).rglob("*")) == before
    assert planned == bring(root, more)


def test_a_changelog_for_all(root):
    bring(root, history(revision("a", changelog="own"), revision("b")), changelog="Moved")
    assert [record.changelog for record, _ in versions(root)] == ["own", "Moved"]


def test_a_broken_record_is_reported_and_the_rest_is_imported(root):
    bring(root, texts("one"))
    record = Path(root, "imported/greeting/1.0.0.json")
    saved = record.read_bytes()
    record.write_text("{")
    found = [texts("one", "two"), texts("b", name="other")]
    outcome = import_found(found, "Vendor", FolderStore(root), Options(), lambda *_: None)
    assert "imported/greeting/1.0.0.json" in dict(outcome.rejected)["greeting.json"]
    assert outcome.created == ["imported/other with 1 version"]
    record.write_bytes(saved)


def test_a_long_history_is_looked_at_once(root, settled):
    """No publication looks at the folder or reads records again."""
    counts: Counter[str] = Counter()

    def count(call: str, args: tuple) -> None:
        path = str(args[0])
        if call == "scandir" and path.endswith("/greeting"):
            counts["lists"] += 1
        if call == "open" and re.search(r"/1\.0\.\d+\.json$", path):
            counts["records"] += 1

    found = texts(*(str(number) for number in range(300)))
    progress: list[tuple[int, int]] = []

    def bring_it(found: Iterable[History]) -> Outcome:
        return import_found(
            found,
            "Vendor",
            FolderStore(root),
            Options(),
            lambda _, done, total: progress.append((done, total)),
        )

    with watched(count):
        assert bring_it([found]).versions == 300
    assert progress[0] == (0, 300) and progress[-1] == (300, 300)
    assert counts["lists"] <= 4 and counts["records"] == 0
    more = history(*found.revisions, revision("new", labels=("production",)))
    with watched(count):
        assert bring_it([more]).versions == 1
    # Each record once for the comparison, and once for the publication and the label.
    assert counts["lists"] <= 12 and counts["records"] <= 610
    assert labels_of(root) == {"production": "1.0.300"}


def test_the_disk_is_waited_for_once(root, monkeypatch):
    waits = []
    for name in ("fsync", "fdatasync", "sync"):
        monkeypatch.setattr(os, name, lambda *_, name=name: waits.append(name))
    bring(root, labelled(("x",), ("y",)))
    assert waits == ["sync"]
