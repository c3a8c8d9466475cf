"""Prompts come in with their histories, once, whatever was done here meanwhile."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import names
from builder.model.errors import HubError, RequestError
from builder.model.records import (
    CONTENT_BYTES_MAX,
    LabelDraft,
    LabelRemoval,
    Message,
    Variable,
    VersionFile,
    format_time,
)
from builder.store import content
from builder.store.check import check
from builder.store.labels import read_labels
from moving.importers import histories
from moving.importers.items import History, Rejection, Revision
from moving.importers.placeholding import Counts
from moving.importers.run import Options, Outcome, import_found
from publisher.write.decision import Terms
from publisher.write.drafts import make_draft, make_withdrawal_draft
from publisher.write.labels import change_label
from publisher.write.publish import publish, publish_past
from publisher.write.store_protocol import Folder
from publisher.write.withdraw import withdraw
from tests.support.calls import at, watched

UNCHANGED = Outcome(unchanged=["imported/greeting"])


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "content").mkdir()
    return str(tmp_path / "content")


def revision(text: str | list[Message], **more: Any) -> Revision:
    """A revision as a vendor's module makes it; ``more`` are fields of Revision."""
    where = more.pop("where", f"v{more.get('number', '?')} {str(text)[:9]}")
    return Revision(where, text, more.pop("fields", {}), more.pop("warnings", []), **more)


def history(*revisions: Revision, name: str = "greeting", owner: str = "") -> History:
    return History(f"{name}.json", owner, name, list(revisions))


def texts(*found: str, **more: Any) -> History:
    return history(*(revision(text, number=number) for number, text in enumerate(found, 1)), **more)


def bring(root: str, *found: History | Rejection, **options: Any) -> Outcome:
    outcome = import_found(found, "Vendor", Folder(root), Options(**options), lambda *_: None)
    assert not [fault for fault in check(root) if not fault.is_warning]
    return outcome


def versions(root: str, repo: str = "imported/greeting") -> list[tuple[VersionFile, str]]:
    owner, name = repo.split("/")
    listing = content.list_versions(root, owner, name)
    return [content.read_version(root, owner, name, version) for version in listing.versions]


def read_texts(root: str, repo: str = "imported/greeting") -> list[str]:
    return [text for _, text in versions(root, repo)]


def labels_of(root: str) -> dict[str, str]:
    return read_labels(root, "imported", "greeting").versions()


def publish_here(root: str, text: str) -> None:
    draft = make_draft({"content": text})
    publish(
        Folder(root), "imported", "greeting", draft, publisher="imported", terms=Terms(sync=False)
    )


def move_here(root: str, label: str, version: str) -> None:
    draft = LabelDraft(version=version, note="Rolled back")
    change_label(
        Folder(root), "imported", "greeting", label, draft, by="imported", terms=Terms(sync=False)
    )


def withdraw_here(root: str, version: str | None) -> None:
    draft = make_withdrawal_draft({"reason": "secret"})
    withdraw(
        Folder(root), "imported", "greeting", version, draft, by="imported", terms=Terms(sync=False)
    )


# What comes along


def test_all_versions_come_with_what_is_known_of_them(root: str):
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


def test_times_are_in_order_and_never_ahead(root: str):
    before = format_time(datetime.now(UTC))
    ahead = format_time(datetime.now(UTC) + timedelta(days=9))
    times = [None, "2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z", None, ahead, None]
    bring(root, history(*(revision(f"{n}", published_at=at) for n, at in enumerate(times))))
    found = [record.published_at for record, _ in versions(root)]
    assert found[:3] == ["2024-01-02T00:00:00Z"] * 3
    assert found == sorted(found)
    assert before <= found[3] <= found[-1] < ahead


def test_numbers_that_leave_no_room(root: str):
    numbers = [5, 3, -1, histories.NUMBER_MAX + 1, histories.NUMBER_MAX, 10**30]
    outcome = bring(root, history(*(revision(f"{n}", number=n) for n in numbers)))
    ordinals = [record.ordinal for record, _ in versions(root)]
    assert ordinals == [5, 6, 7, 8, histories.NUMBER_MAX, histories.NUMBER_MAX + 1]
    assert len(outcome.warnings) == 2
    assert "is above 1,000,000: it gets another one." in outcome.warnings[0]


def test_text_is_not_read_as_front_matter_or_as_messages(root: str):
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


def test_placeholders_are_turned(root: str):
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


def test_placeholders_of_a_convention_that_was_asked_for(root: str):
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


def test_placeholders_of_jinja(root: str):
    text = '{{ name | default("Ada") }} {% if x %}{{ y }}{% endif %}'
    outcome = bring(root, history(revision(text, convention="jinja")))
    ((record, turned),) = versions(root)
    assert turned == "{{name}} {% if x %}{{ y }}{% endif %}"
    assert [(variable.name, variable.default) for variable in record.variables] == [
        ("name", "Ada"), ("y", None)
    ]  # fmt: skip
    assert outcome.placeholders == Counts({"jinja": 1}, kept=1)
    (warning,) = outcome.warnings
    assert "{% if x %}" in warning


def test_a_changelog_that_is_too_long_is_shortened(root: str):
    outcome = bring(root, history(revision("a", changelog="é" * 5000)))
    ((record, _),) = versions(root)
    assert len(record.changelog.encode()) <= 8192 and record.changelog.endswith("é…")
    assert "Shortened the changelog" in outcome.warnings[0]


def test_control_characters_of_a_changelog_become_spaces(root: str):
    outcome = bring(root, history(revision("a", changelog="Red \x1b[31m\r\n\ttext\ufffe")))
    ((record, _),) = versions(root)
    assert record.changelog == "Red  [31m\r\n\ttext "
    assert "control characters in the changelog" in outcome.warnings[0]


# Again


def test_a_second_run_changes_nothing(root: str):
    found = texts("one", "two", "one", "one")
    found.revisions[1] = found.revisions[1]._replace(labels=("production",))
    bring(root, found)
    before = versions(root)
    assert bring(root, found) == UNCHANGED
    assert versions(root) == before
    # Nor does one with other options, which are for what is new.
    assert bring(root, found, all_tags=("late",), license="MIT") == UNCHANGED


def test_what_is_new_elsewhere_is_added(root: str):
    bring(root, texts("one", "two"))
    outcome = bring(root, texts("one", "two", "one", "three"))
    assert outcome == Outcome(updated=["imported/greeting with 2 versions"], versions=2)
    assert read_texts(root) == ["one", "two", "one", "three"]
    assert [record.ordinal for record, _ in versions(root)] == [1, 2, 3, 4]


def test_other_parameters_are_another_version(root: str):
    def with_model(*models: Any) -> History:
        return history(*(revision("a", fields={"parameters": {"x": one}}) for one in models))

    bring(root, with_model(1))
    assert bring(root, with_model(1, 1.0, True)).versions == 2
    assert bring(root, with_model(1, 1.0, True)) == UNCHANGED


def test_versions_are_known_by_number_and_time_too(root: str):
    """Another release, or another --placeholders, may make another text of them."""

    def dated(*found: str) -> History:
        day = "2024-01-0{}T00:00:00Z".format
        numbered = enumerate(found, 1)
        return history(*(revision(text, number=n, published_at=day(n)) for n, text in numbered))

    bring(root, dated("Hi ${name}", "Bye ${name}"))
    withdraw_here(root, "1.0.1")
    assert bring(root, dated("Hi {{name}}", "Bye {{name}}")) == UNCHANGED
    assert bring(root, dated("Hi {{name}}", "Bye {{name}}", "New")).versions == 1
    # A number without a time is not enough.
    assert bring(root, texts("Other")).versions == 1


def test_what_was_published_here_meanwhile_is_left_alone(root: str):
    bring(root, texts("one", "two"))
    publish_here(root, "mine")
    assert bring(root, texts("one", "two")) == UNCHANGED
    assert bring(root, texts("one", "two", "three")).versions == 1
    assert read_texts(root) == ["one", "two", "mine", "three"]
    assert [record.ordinal for record, _ in versions(root)] == [1, 2, 3, 4]
    # Also where what is new elsewhere was published here by hand, in another order.
    publish_here(root, "five")
    publish_here(root, "four")
    assert bring(root, texts("one", "two", "three", "four", "five")) == UNCHANGED


def test_other_versions_before_are_told_once(root: str):
    publish_here(root, "mine")
    told = "greeting.json: imported/greeting had other versions before: these come after them. "
    for dry_run in (True, False):
        outcome = bring(root, texts("one", "two"), dry_run=dry_run)
        assert outcome.warnings == [told + "If it is another prompt, import with another --owner."]
    assert bring(root, texts("one", "two", "three")).warnings == []


def test_nothing_can_be_put_between(root: str):
    bring(root, texts("one", "three"))
    outcome = bring(root, texts("one", "two", "three"))
    reason = "older than 1.0.1, which is here already"
    assert outcome == Outcome(
        unchanged=["imported/greeting"], rejected=[Rejection("v2 two", reason)]
    )


def test_one_that_is_rejected_is_rejected_for_the_same_reason_each_time(root: str):
    many = " ".join(f"{{{{v{n}}}}}" for n in range(201))
    bad = [
        revision(" ", where="empty"),
        revision([], where="no messages"),
        revision("x" * (CONTENT_BYTES_MAX + 1), where="large"),
        revision(many, where="many"),
        revision("half \ud800", where="half"),
        revision("twice", number=1, where="twice"),
    ]
    found = history(revision("one", number=1, where="first"), *bad, revision("two"))
    outcome = bring(root, found)
    assert outcome.created == ["imported/greeting with 2 versions"]
    told = dict(outcome.rejected)
    assert told.keys() == {one.where for one in bad}
    assert "content: is empty" in told["empty"] and "content: is empty" in told["no messages"]
    assert "262,144" in told["large"]
    assert "uses 201 variables" in told["many"]
    assert "surrogate" in told["half"]
    assert told["twice"] == "has the number 1, as first"
    again = bring(root, found)
    assert dict(again.rejected) == told
    assert (again.unchanged, again.versions) == (["imported/greeting"], 0)


def test_a_prompt_of_which_nothing_can_be_imported(root: str):
    many = " ".join(f"{{{{v{n}}}}}" for n in range(201))
    outcome = bring(root, history(name="none"), texts("", name="empty"), texts(many, name="many"))
    assert [where for where, _ in outcome.rejected] == ["none.json", "v1 ", "v1 {{v0}} {{"]
    assert (outcome.created, outcome.unchanged) == ([], [])
    assert content.list_owners(root) == []


def test_a_withdrawn_version_does_not_come_back(root: str):
    found = texts("one", "secret", "three")
    found.revisions[1] = found.revisions[1]._replace(labels=("production",))
    bring(root, found)
    withdraw_here(root, "1.0.1")
    outcome = bring(root, found)
    assert (outcome.unchanged, outcome.versions, outcome.rejected) == (UNCHANGED.unchanged, 0, [])
    assert outcome.warnings == [
        "v2 secret: Left out label production: its version was withdrawn here."
    ]
    # Nor as a version that is new elsewhere.
    outcome = bring(root, texts("one", "secret", "three", "secret", "five"))
    assert "was withdrawn" in dict(outcome.rejected)["v4 secret"]
    assert read_texts(root) == ["one", "three", "five"]


def test_a_withdrawn_prompt_does_not_come_back(root: str):
    bring(root, texts("one"))
    withdraw_here(root, None)
    outcome = bring(root, texts("one", "two"), texts("other", name="other"))
    assert [where for where, _ in outcome.rejected] == ["greeting.json"]
    assert outcome.created == ["imported/other with 1 version"]


def test_another_process_publishes_meanwhile(root: str, monkeypatch: pytest.MonkeyPatch):
    """What was compared is not what is there: nothing comes twice."""
    bring(root, texts("one"))

    def publish_late(*args: Any, **options: Any) -> Any:
        publish_here(root, "two")
        return publish_past(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(histories, "publish_past", publish_late)
        outcome = bring(root, texts("one", "two", "three"))
    assert "Another process changed" in dict(outcome.rejected)["greeting.json"]
    assert bring(root, texts("one", "two", "three")).versions == 1
    assert read_texts(root) == ["one", "two", "three"]


# Labels


def labelled(*labels: tuple[str, ...]) -> History:
    return history(*(revision(f"{n}", labels=these) for n, these in enumerate(labels)))


def test_labels_follow_those_elsewhere(root: str):
    bring(root, labelled(("production", "staging"), ()))
    assert labels_of(root) == {"production": "1.0.0", "staging": "1.0.0"}
    outcome = bring(root, labelled(("production",), ("staging",)))
    assert outcome == Outcome(updated=["imported/greeting with 1 label"], labels=1)
    assert labels_of(root) == {"production": "1.0.0", "staging": "1.0.1"}
    assert bring(root, labelled(("production",), ("staging",))) == UNCHANGED


def test_a_label_that_was_moved_here_stays(root: str):
    bring(root, labelled(("production", "staging", "beta"), ()))
    move_here(root, "production", "1.0.1")
    terms = Terms(sync=False)
    change_label(
        Folder(root), "imported", "greeting", "staging", LabelRemoval(), by="imported", terms=terms
    )
    outcome = bring(root, labelled(("production", "staging"), ("beta",)))
    assert (outcome.updated, outcome.labels) == (["imported/greeting with 1 label"], 1)
    assert labels_of(root) == {"production": "1.0.1", "beta": "1.0.1"}
    told = "\n".join(outcome.warnings)
    assert "The label production stays as it is: it names 1.0.1 here since 20" in told
    assert "The label staging stays as it is: it was removed here since 20" in told
    # If they agree again, there is nothing to tell.
    assert bring(root, labelled((), ("production", "beta"))) == UNCHANGED


def test_labels_that_can_be_none_here(root: str):
    outcome = bring(
        root, labelled(("Prod / EU", "prod-eu", "7", "1.0.0", "!", "Über"), ("prod eu", "LATEST"))
    )
    assert labels_of(root) == {"prod-eu": "1.0.1", "uber": "1.0.0"}
    told = "\n".join(outcome.warnings)
    for label in ("'7'", "'1.0.0'", "'!'"):
        assert f"Left out label {label}" in told
    assert "The label prod-eu names two versions; the later one gets it." in told
    assert len(outcome.warnings) == 4


def test_a_prompt_has_20_labels(root: str):
    spelled = tuple(f"label-{number:02}" for number in range(names.LABELS_PER_REPO_MAX + 2))
    outcome = bring(root, labelled(spelled))
    assert outcome.labels == len(labels_of(root)) == names.LABELS_PER_REPO_MAX
    assert [warning[-2:] for warning in outcome.warnings] == ["0.", "0."]
    assert "at most 20" in outcome.warnings[0]


def test_a_label_of_a_version_that_is_not_here(root: str):
    outcome = bring(root, history(revision("", labels=("production",)), revision("two")))
    assert labels_of(root) == {}
    assert "Left out label production: its version is not here." in outcome.warnings[0]


# Names, owners, options


def test_names_that_come_to_one(root: str):
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


def test_an_owner_is_named_by_the_vendor_or_by_the_option(root: str):
    found = [texts("a", owner="Ada L."), texts("b", name="team/prompt")]
    outcome = bring(root, *found, owner="ann")
    assert outcome.created == ["ada-l/greeting with 1 version", "ann/team-prompt with 1 version"]


def test_repos_of_others_are_created_and_not_changed(root: str):
    found = texts("one", owner="ada")
    assert bring(root, found, owner="ann").created == ["ada/greeting with 1 version"]
    assert bring(root, found, owner="ann").unchanged == ["ada/greeting"]
    for more in (texts("one", "two", owner="ada"), labelled(("x",))._replace(owner="ada")):
        assert bring(root, more, owner="ann") == Outcome(refused=["ada/greeting"])
    relabelled = history(revision("one", labels=("x",)), owner="ada")
    assert bring(root, relabelled, owner="ann") == Outcome(refused=["ada/greeting"])
    assert bring(root, relabelled, owner="ann", allowed_owners=("ada",)).labels == 1


def test_a_dry_run_tells_and_writes_nothing(root: str):
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


def test_a_changelog_for_all(root: str):
    bring(root, history(revision("a", changelog="own"), revision("b")), changelog="Moved")
    assert [record.changelog for record, _ in versions(root)] == ["own", "Moved"]


def test_a_broken_record_is_told_and_the_rest_is_imported(root: str):
    bring(root, texts("one"))
    record = Path(root, "imported/greeting/1.0.0.json")
    saved = record.read_bytes()
    record.write_text("{")
    found = [texts("one", "two"), texts("b", name="other")]
    outcome = import_found(found, "Vendor", Folder(root), Options(), lambda *_: None)
    assert "imported/greeting/1.0.0.json" in dict(outcome.rejected)["greeting.json"]
    assert outcome.created == ["imported/other with 1 version"]
    record.write_bytes(saved)


steps = st.one_of(
    st.tuples(st.just("elsewhere"), st.sampled_from(("one", "two", "", "{{#if}}"))),
    st.tuples(st.just("here"), st.sampled_from(("one", "two", "mine"))),
    st.tuples(st.just("withdraw"), st.integers(0, 5)),
    st.tuples(st.just("label"), st.integers(0, 5)),
    st.tuples(st.just("import"), st.none()),
)


@given(st.lists(steps, max_size=12), st.sampled_from(("dated", "numbered", "plain")))
def test_whatever_happens_a_second_run_changes_nothing(done: list[tuple[str, Any]], kind: str):
    """And no run loses or changes a version that is here, or brings one twice."""
    found = history()
    with tempfile.TemporaryDirectory() as root:
        for step, what in [*done, ("import", None)]:
            listing = content.list_versions(root, "imported", "greeting")
            there = [str(version) for version in listing.versions]
            if step == "elsewhere":
                number = len(found.revisions) + 1
                about = {} if kind == "plain" else {"number": number}
                if kind == "dated":
                    about["published_at"] = f"2024-01-{number:02}T00:00:00Z"
                found.revisions.append(
                    revision(what, where=f"v{number}", labels=("production",), **about)
                )
            elif step == "here":
                with contextlib.suppress(RequestError):  # it was withdrawn
                    publish_here(root, what)
            elif step == "withdraw" and what < len(there):
                withdraw_here(root, there[what])
            elif step == "label" and what < len(there):
                move_here(root, "production", there[what])
            elif step == "import":
                before = versions(root)
                first = bring(root, found)
                after = versions(root)
                assert after[: len(before)] == before
                assert len(after) == len(before) + first.versions
                again = bring(root, found)
                assert (again.versions, again.labels) == (0, 0)
                assert again.rejected == first.rejected
                assert versions(root) == after


# Size


def test_a_long_history_is_looked_at_once(
    root: str, settled: None, monkeypatch: pytest.MonkeyPatch
):
    """No publication looks at the folder or reads records again."""
    counts = {"list_versions": 0, "read_record": 0}

    def counted(name: str) -> Any:
        function = getattr(content, name)

        def call(*args: Any) -> Any:
            counts[name] += 1
            return function(*args)

        return call

    for name in counts:
        monkeypatch.setattr(content, name, counted(name))
    found = texts(*(str(number) for number in range(300)))
    told: list[tuple[int, int]] = []

    def bring_it(found: Iterable[History]) -> Outcome:
        return import_found(
            found,
            "Vendor",
            Folder(root),
            Options(),
            lambda _, done, total: told.append((done, total)),
        )

    assert bring_it([found]).versions == 300
    assert told[0] == (0, 300) and told[-1] == (300, 300)
    assert counts["list_versions"] <= 4 and counts["read_record"] == 0
    more = history(*found.revisions, revision("new", labels=("production",)))
    assert bring_it([more]).versions == 1
    # Each record once to compare it, and once for what a publication and a label depend on.
    assert counts["list_versions"] <= 12 and counts["read_record"] <= 610
    assert labels_of(root) == {"production": "1.0.300"}


def test_the_disk_is_waited_for_once(root: str, monkeypatch: pytest.MonkeyPatch):
    waits = []
    for name in ("fsync", "fdatasync", "sync"):
        monkeypatch.setattr(os, name, lambda *_, name=name: waits.append(name))
    bring(root, labelled(("x",), ("y",)))
    assert waits == ["sync"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_an_import_that_is_cut_off_goes_on(
    root: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
):
    """Whatever system call fails or is interrupted, the next run brings the rest."""
    monkeypatch.setattr(os, "sync", lambda: None)  # takes long
    found = history(
        *(revision(text, number=number) for number, text in ((2, "one"), (5, "one"))),
        revision("three", labels=("production",)),
    )
    cut_off = []

    def fail() -> None:
        cut_off.append(error)
        raise error

    for number in range(1, 300):
        with watched(at(number, fail)), contextlib.suppress(HubError, KeyboardInterrupt):
            import_found([found], "Vendor", Folder(root), Options(), lambda *_: None)
        if len(cut_off) < number:
            break
        left = {fault.reason.partition(";")[0] for fault in check(root)}
        assert left <= {"no versions", "text without record"}, left
        bring(root, found)
        assert [(record.ordinal, text) for record, text in versions(root)] == [
            (2, "one"), (5, "one"), (6, "three")
        ]  # fmt: skip
        assert labels_of(root) == {"production": "1.0.2"}
        assert bring(root, found) == UNCHANGED
        shutil.rmtree(f"{root}/imported")
    assert number > 40
