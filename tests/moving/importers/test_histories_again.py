"""A second import of histories brings what is new, whatever was done in the hub meanwhile."""

import contextlib
import errno
import os
import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import HubError, RequestError
from builder.model.records import CONTENT_BYTES_MAX
from builder.model.request_bodies import WithdrawalDraft
from builder.store import content
from moving.importers.items import History, Rejection
from moving.importers.run import Options, Outcome, import_found
from operate.content_check import check
from publisher.write.decision import Terms
from publisher.write.drafts import make_change, make_draft
from publisher.write.durable import FolderStore
from publisher.write.publish import publish
from publisher.write.withdraw import withdraw
from tests.moving.importers.histories import (
    UNCHANGED,
    bring,
    history,
    labels_of,
    move_here,
    read_texts,
    revision,
    texts,
    versions,
)
from tests.support.calls import at, watched


def publish_here(root: str, text: str, **fields: Any) -> None:
    draft = make_draft({"content": text} | fields)
    publish(
        FolderStore(root),
        "imported",
        "greeting",
        draft,
        publisher="imported",
        terms=Terms(sync=False),
    )


def withdraw_here(root: str, version: str | None) -> None:
    draft = make_change(WithdrawalDraft, {"reason": "secret"})
    withdraw(
        FolderStore(root),
        "imported",
        "greeting",
        version,
        draft,
        by="imported",
        terms=Terms(sync=False),
    )


def test_a_second_run_changes_nothing(root):
    found = texts("one", "two", "one", "one")
    found.revisions[1] = found.revisions[1]._replace(labels=("production",))
    bring(root, found)
    before = versions(root)
    assert bring(root, found) == UNCHANGED
    assert versions(root) == before
    # A run with other options changes nothing either: they apply only to new prompts.
    assert bring(root, found, all_tags=("late",), license="MIT") == UNCHANGED


def test_what_is_new_elsewhere_is_added(root):
    bring(root, texts("one", "two"))
    outcome = bring(root, texts("one", "two", "one", "three"))
    assert outcome == Outcome(updated=["imported/greeting with 2 versions"], versions=2)
    assert read_texts(root) == ["one", "two", "one", "three"]
    assert [record.ordinal for record, _ in versions(root)] == [1, 2, 3, 4]


@pytest.mark.parametrize("dry_run", [True, False])
def test_files_that_were_added_here_stay(root, dry_run: bool):
    bring(root, texts("one"))
    publish_here(root, "here", files=[{"path": "run.sh", "content": "ls", "executable": True}])
    outcome = bring(root, texts("one", "two", "three"), dry_run=dry_run)
    assert outcome.versions == 2 and "Kept 1 file" in str(outcome.warnings)
    records = [record for record, _ in versions(root)]
    assert len(records) == (2 if dry_run else 4)
    assert all(record.files == records[1].files for record in records[1:])


def test_other_parameters_are_another_version(root):
    def with_model(*models: Any) -> History:
        return history(*(revision("a", fields={"parameters": {"x": one}}) for one in models))

    bring(root, with_model(1))
    assert bring(root, with_model(1, 1.0, True)).versions == 2
    assert bring(root, with_model(1, 1.0, True)) == UNCHANGED


def test_versions_are_known_by_number_and_time_too(root):
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


def test_what_was_published_here_meanwhile_is_left_alone(root):
    bring(root, texts("one", "two"))
    publish_here(root, "mine")
    assert bring(root, texts("one", "two")) == UNCHANGED
    assert bring(root, texts("one", "two", "three")).versions == 1
    assert read_texts(root) == ["one", "two", "mine", "three"]
    assert [record.ordinal for record, _ in versions(root)] == [1, 2, 3, 4]
    # New texts may have been published here by hand, in another order.
    publish_here(root, "five")
    publish_here(root, "four")
    assert bring(root, texts("one", "two", "three", "four", "five")) == UNCHANGED


def test_a_prompt_that_came_from_elsewhere_is_not_changed(root):
    publish_here(root, "mine")
    since = versions(root)[0][0].published_at[:10]
    for dry_run in (True, False):
        outcome = bring(root, texts("one", "two"), dry_run=dry_run)
        done = "would be imported" if dry_run else "imported"
        assert outcome.elsewhere == [
            f"imported/greeting: here since {since}; this one is Vendor, greeting.json: {done} as "
            "greeting-2"
        ]
    assert read_texts(root) == ["mine"]
    assert read_texts(root, "imported/greeting-2") == ["one", "two"]
    assert bring(root, texts("one", "two", "three")).versions == 1
    assert read_texts(root, "imported/greeting-2") == ["one", "two", "three"]
    bring(root, texts("four"), onto_others=True)
    assert read_texts(root) == ["mine", "four"]


def test_nothing_can_be_put_between(root):
    bring(root, texts("one", "three"))
    outcome = bring(root, texts("one", "two", "three"))
    reason = "older than 1.0.1, which is here already"
    assert outcome == Outcome(
        unchanged=["imported/greeting"], rejected=[Rejection("v2 two", reason)]
    )


def test_one_that_is_rejected_is_rejected_for_the_same_reason_each_time(root):
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
    reasons = dict(outcome.rejected)
    assert reasons.keys() == {one.where for one in bad}
    assert "content: is empty" in reasons["empty"] and "content: is empty" in reasons["no messages"]
    assert "262,144" in reasons["large"]
    assert "uses 201 variables" in reasons["many"]
    assert "surrogate" in reasons["half"]
    assert reasons["twice"] == "has the number 1, as first"
    again = bring(root, found)
    assert dict(again.rejected) == reasons
    assert (again.unchanged, again.versions) == (["imported/greeting"], 0)


def test_a_withdrawn_version_does_not_come_back(root):
    found = texts("one", "secret", "three")
    found.revisions[1] = found.revisions[1]._replace(labels=("production",))
    bring(root, found)
    withdraw_here(root, "1.0.1")
    outcome = bring(root, found)
    assert (outcome.unchanged, outcome.versions, outcome.rejected) == (UNCHANGED.unchanged, 0, [])
    assert outcome.warnings == [
        "v2 secret: Left out label production: its version was withdrawn here."
    ]
    # It is not imported as a new version of the source either.
    outcome = bring(root, texts("one", "secret", "three", "secret", "five"))
    assert "was withdrawn" in dict(outcome.rejected)["v4 secret"]
    assert read_texts(root) == ["one", "three", "five"]


def test_a_withdrawn_prompt_does_not_come_back(root):
    bring(root, texts("one"))
    withdraw_here(root, None)
    outcome = bring(root, texts("one", "two"), texts("other", name="other"))
    assert [where for where, _ in outcome.rejected] == ["greeting.json"]
    assert outcome.created == ["imported/other with 1 version"]


def test_another_process_publishes_meanwhile(root):
    """The repo changes after the comparison, and still no text is published twice."""
    bring(root, texts("one"))
    is_published = []

    def publish_first(call: str, args: tuple) -> None:
        # The import waits for the lock of the prompt, which was free when it looked.
        if call == "flock" and not is_published:
            is_published.append(True)
            publish_here(root, "two")

    with watched(publish_first):
        outcome = bring(root, texts("one", "two", "three"))
    assert is_published and "Another process changed" in dict(outcome.rejected)["greeting.json"]
    assert bring(root, texts("one", "two", "three")).versions == 1
    assert read_texts(root) == ["one", "two", "three"]


steps = st.one_of(
    st.tuples(st.just("elsewhere"), st.sampled_from(("one", "two", "", "{{#if}}"))),
    st.tuples(st.just("here"), st.sampled_from(("one", "two", "mine"))),
    st.tuples(st.just("withdraw"), st.integers(0, 5)),
    st.tuples(st.just("label"), st.integers(0, 5)),
    st.tuples(st.just("import"), st.none()),
)


@given(st.lists(steps, max_size=12), st.sampled_from(("dated", "numbered", "plain")))
def test_whatever_happens_a_second_run_changes_nothing(done, kind):
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
                first = bring(root, found, onto_others=True)
                after = versions(root)
                assert after[: len(before)] == before
                assert len(after) == len(before) + first.versions
                again = bring(root, found, onto_others=True)
                assert (again.versions, again.labels) == (0, 0)
                assert again.rejected == first.rejected
                assert versions(root) == after


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_an_import_that_is_cut_off_goes_on(root, error, monkeypatch):
    """If any system call fails or is interrupted, the next run imports the rest."""
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
            import_found([found], "Vendor", FolderStore(root), Options(), lambda *_: None)
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
