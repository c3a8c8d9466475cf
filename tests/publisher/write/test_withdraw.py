"""Withdrawing: what is stored, what goes, what is refused afterwards."""

import json
from pathlib import Path

import pytest

from builder.model.errors import ContentError
from builder.model.request_bodies import WithdrawalDraft
from operate.content_check import check
from publisher.accounts.database import Database
from publisher.write.drafts import make_change
from publisher.write.durable import FolderStore
from publisher.write.idempotency import IdempotencyKey
from publisher.write.moves import read_labels
from publisher.write.quotas import QuotaKeeper, Quotas
from publisher.write.withdraw import Withdrawn, preview, withdraw
from tests.publisher.write.acts import (
    NOON,
    REPO,
    code_of,
    labels_of,
    move,
    put,
    refusal,
    take_back,
    versions_of,
)  # fmt: skip
from tests.support.calls import watched
from tests.support.catalogues import read_tree

SECRET = "sk-1234"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A content folder with a repo; its versions 1.0.0 to 1.0.2 have a secret in every field."""
    for number in range(3):
        text = f"{SECRET} {number} {{{{{'v' * (number + 1)}}}}}."
        put(tmp_path, text, changelog=SECRET, title=f"T {text[-9:]}")
    move(str(tmp_path), "1.0.1")
    return str(tmp_path)


def test_nothing_that_was_written_in_a_version_stays(root: str):
    done = take_back(root, note="Use 1.0.2.")
    assert done == Withdrawn(
        "2026-01-01T12:00:00Z", "ann", "secret", "Use 1.0.2.", ["production"], 2, owner="ann",
        name="story", version="1.0.1", versions=["1.0.1"], was_latest="1.0.2", latest="1.0.2",
        unchanged=False,
    )  # fmt: skip
    tree = read_tree(root)
    assert not [file for file in tree if file.startswith("ann/story/1.0.1.")]
    assert not [file for file, data in tree.items() if "1.0.1" in file and SECRET in data.decode()]
    stored = json.loads(tree["ann/story/withdrawn/1.0.1.json"])
    assert stored["withdrawn"] == {
        "at": done.at, "by": "ann", "reason": "secret", "note": "Use 1.0.2.",
        "labels": ["production"], "label_number": 2,
    }  # fmt: skip
    assert {*stored["versions"]["1.0.1"]} == {
        "publisher", "published_at", "sha256", "size", "ordinal",
    }  # fmt: skip
    assert stored["versions"]["1.0.1"]["ordinal"] == 2
    assert versions_of(root) == ["1.0.0", "1.0.2"]
    assert [*check(root)] == []


def test_labels_lose_the_version_and_their_history_says_why(root: str):
    take_back(root, note="Use 1.0.2")
    labels = read_labels(root, *REPO)
    assert labels.versions() == {}
    newest = labels.history["production"][0]
    assert (newest.version, newest.previous, newest.moved_by) == (None, "1.0.1", "ann")
    assert newest.note == (
        "Version 1.0.1 was withdrawn on 2026-01-01 because it contained a secret. Use 1.0.2."
    )
    error = refusal(move, root, "1.0.1")
    assert error.code == "version_withdrawn"
    assert "contained a secret" in str(error) and "1.0.2" in str(error)
    move(root, "1.0.2")
    assert labels_of(root) == {"production": "1.0.2"}


def test_labels_move_in_the_same_step(root: str):
    done = take_back(root, move_labels="1.0.0")
    assert done.move_labels == "1.0.0"
    assert done.about_labels == "The label production names 1.0.0 now."
    labels = read_labels(root, *REPO)
    assert labels_of(root) == {"production": "1.0.0"}
    newest = labels.history["production"][0]
    assert (newest.version, newest.previous) == ("1.0.0", "1.0.1")
    assert newest.note == "Version 1.0.1 was withdrawn on 2026-01-01 because it contained a secret."
    stored = json.loads(read_tree(root)["ann/story/withdrawn/1.0.1.json"])
    assert stored["withdrawn"]["move_labels"] == "1.0.0"
    # Nothing names this version, so there is nothing to move.
    take_back(root, "1.0.2", move_labels="1.0.0")
    assert "move_labels" not in read_tree(root)["ann/story/withdrawn/1.0.2.json"].decode()


@pytest.mark.parametrize(
    ("version", "target", "code"),
    [
        ("1.0.1", "1.0.1", "validation_failed"), (None, "1.0.0", "validation_failed"),
        ("1.0.1", "9.9.9", "version_not_found"), ("1.0.1", "1.0.2", "version_withdrawn"),
    ],
)  # fmt: skip
def test_labels_move_only_to_a_version_that_stays(root: str, version, target: str, code: str):
    if code == "version_withdrawn":
        take_back(root, target)
    before = read_tree(root)
    error = refusal(take_back, root, version, move_labels=target)
    assert (error.code, error.details[0].field) == (code, "move_labels")
    assert read_tree(root) == before


def test_what_publications_did_to_labels_stays_known(tmp_path: Path):
    root = str(tmp_path)
    for text, labels in (("One.", ["a", "b"]), ("Two.", ["a"])):
        put(root, text, labels=labels)
    before = read_labels(root, *REPO).history
    take_back(root, "1.0.0")
    assert labels_of(root) == {"a": "1.0.1"}
    after = read_labels(root, *REPO).history
    assert after["a"] == before["a"] and after["b"][1:] == before["b"]


@pytest.mark.parametrize("version", ["1.0.1", None])
def test_a_preview_writes_nothing_and_says_the_same(root: str, version: str | None):
    before = read_tree(root)
    planned = preview(root, *REPO, version, WithdrawalDraft(reason="legal"), by="ann", now=NOON)
    assert read_tree(root) == before
    assert take_back(root, version, reason="legal") == planned


@pytest.mark.parametrize("version", ["1.0.1", None])
def test_twice_is_once(root: str, version: str | None):
    first = take_back(root, version, note="First.")
    before = read_tree(root)
    again = take_back(root, version, reason="error", note="Second.")
    assert again.unchanged and (again.reason, again.note) == ("secret", "First.")
    assert again.versions == first.versions and again.labels == first.labels
    assert read_tree(root) == before


def test_a_number_is_never_given_again(root: str):
    take_back(root, "1.0.2")
    done = put(root, "New.")
    assert (done.version, done.previous_version) == ("1.0.3", "1.0.1")
    for version in ("1.0.0", "1.0.1", "1.0.3"):
        take_back(root, version)
    assert versions_of(root) == [] and [*check(root)] == []
    assert code_of(put, root, "x", base_version="1.0.3") == "base_version_mismatch"
    done = put(root, "Newer.")
    assert (done.version, done.previous_version) == ("1.0.4", None)


def test_a_withdrawn_text_is_refused(root: str, tmp_path: Path):
    take_back(root, "1.0.2")
    error = refusal(put, root, f"{SECRET} 2 {{{{vvv}}}}.")
    assert error.code == "version_withdrawn"
    assert "1.0.2" in str(error) and SECRET not in str(error)
    assert put(root, "Clean.").version == "1.0.3"
    with Database(str(tmp_path / "state")) as database:
        key = IdempotencyKey(database, "ann", "k", b"mark")
        assert put(root, "Keyed.", idempotency_key=key).version == "1.0.4"
        take_back(root, "1.0.4")
        assert code_of(put, root, "Keyed.", idempotency_key=key) == "version_withdrawn"


def test_a_withdrawn_text_is_refused_with_other_files_and_a_withdrawn_folder_as_a_whole(root: str):
    def put_files(text: str, *files: str) -> str:
        sent = [{"path": path, "content": path} for path in files]
        return put(root, text, files=sent).version

    text = put_files("Alone.")
    folder = put_files("In a folder.", "a", "b")
    for version in (text, folder):
        take_back(root, version)
    assert code_of(put_files, "Alone.", "a") == "version_withdrawn"
    assert code_of(put_files, "In a folder.", "b", "a") == "version_withdrawn"
    # The cause may be in one of the files.
    assert put_files("In a folder.", "a") == "1.0.5"
    assert put_files("In a folder.") == "1.0.6"


def test_the_latest_text_is_no_withdrawn_one(root: str):
    put(root, "Same.")
    put(root, "Other.")
    assert put(root, "Same.").version == "1.0.5"
    take_back(root, "1.0.3")
    assert put(root, "Same.").unchanged


def test_a_whole_prompt_closes_its_name(root: str):
    done = take_back(root, None, reason="legal")
    assert done.versions == ["1.0.0", "1.0.1", "1.0.2"] and done.latest is None
    assert done.labels == ["production"]
    assert not [data for data in read_tree(root).values() if SECRET in data.decode()]
    assert {*read_tree(root)} == {
        "ann/owner.json", "ann/story/labels/1.json", "ann/story/withdrawn/all.json",
    }  # fmt: skip
    assert [*check(root)] == []
    for act, what in ((put, "New."), (move, "1.0.0")):
        error = refusal(act, root, what)
        assert error.code == "version_withdrawn" and "for legal reasons" in str(error)
    assert take_back(root, "1.0.1").unchanged
    assert code_of(take_back, root, "3.0.0") == "version_not_found"


def test_all_versions_one_by_one_and_then_the_prompt(root: str):
    for version in ("1.0.0", "1.0.1", "1.0.2"):
        take_back(root, version)
    done = take_back(root, None)
    assert not done.unchanged and done.versions == []
    assert code_of(put, root, "New.") == "version_withdrawn"
    assert [*check(root)] == []


@pytest.mark.parametrize(
    ("repo", "version", "code"),
    [
        (("ann", "poem"), None, "repo_not_found"), (("bob", "story"), None, "repo_not_found"),
        (("ann", "story"), "9.9.9", "version_not_found"),
        (("ann", "story"), "1.0", "invalid_version"), (("ann", "Story"), None, "invalid_name"),
        (("..", "story"), None, "invalid_name"),
    ],
)  # fmt: skip
def test_what_is_not_there(root: str, repo: tuple[str, str], version: str | None, code: str):
    before = read_tree(root)
    draft = WithdrawalDraft(reason="error")
    assert code_of(withdraw, FolderStore(root), *repo, version, draft, by="ann") == code
    assert read_tree(root) == before


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({}, "choose one of error, secret, legal, owner"),
        ({"reason": "boredom"}, "must be one of"),
        ({"reason": "error", "note": "é" * 513}, "1,024 bytes"),
    ],
)
def test_reasons_and_notes_are_bounded(fields: dict, part: str):
    error = refusal(make_change, WithdrawalDraft, fields)
    assert error.code == "validation_failed" and part in str(error)


@pytest.mark.parametrize("version", ["1.0.1", None])
def test_the_next_one_removes_what_a_crash_has_left(root: str, version: str | None):
    class Died(BaseException):
        pass

    def die(call: str, args: tuple) -> None:
        if call == "unlink" and args[0].endswith(("1.0.1.md", "1.0.1.json")):
            raise Died

    with watched(die), pytest.raises(Died):
        take_back(root, version)
    left = [fault.path for fault in check(root)]
    assert "ann/story/1.0.1.md" in left and "ann/story/1.0.1.json" in left
    # Readers do not see it meanwhile.
    assert "1.0.1" not in versions_of(root)
    assert take_back(root, version).unchanged
    assert [*check(root)] == []


def test_withdrawn_versions_count_but_need_no_room(root: str):
    quotas = QuotaKeeper(root, Quotas(versions=3))
    take_back(root, "1.0.1")
    assert code_of(put, root, "New.", quotas=quotas) == "validation_failed"
    assert put(root, "New.", quotas=QuotaKeeper(root, Quotas(repos=1, versions=4))).version


@pytest.mark.parametrize(
    ("what", "change", "reason"),
    [
        ("1.0.1", lambda stored: stored["withdrawn"].update(reason="x"), "Invalid enum value"),
        ("1.0.1", lambda stored: stored["versions"].update({"1.0.0": {}}), "missing required"),
        ("1.0.1", lambda stored: stored.update(versions={}), "must withdraw 1.0.1"),
        ("1.0.1", lambda stored: stored["withdrawn"].pop("label_number"), "need each other"),
        ("1.0.1", lambda stored: stored["withdrawn"].update(at="2026-02-30T00:00:00Z"), "day"),
        ("all", lambda stored: stored["versions"].update({"1.0": {}}), "matching regex"),
    ],
)
def test_a_faulty_file_is_reported(root: str, what: str, change, reason: str):
    take_back(root, None if what == "all" else what)
    path = Path(root, *REPO, "withdrawn", f"{what}.json")
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    (fault,) = [one for one in check(root) if "withdrawn" in one.path]
    assert fault.path == f"ann/story/withdrawn/{what}.json" and reason in fault.reason
    with pytest.raises(ContentError):
        put(root, "New.")
