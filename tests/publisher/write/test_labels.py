"""Moving labels: what is stored, what is refused, and what a fault may leave."""

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from msgspec import UNSET

from builder.model import names
from builder.model.errors import HubError
from builder.model.request_bodies import LabelDraft
from builder.store import content
from operate.content_check import check
from publisher.accounts.database import Database
from publisher.write import labels
from publisher.write.durable import FolderStore
from publisher.write.idempotency import IdempotencyKey
from publisher.write.labels import LabelChange, change_label
from publisher.write.publish import Published
from publisher.write.quotas import QuotaKeeper, Quotas
from tests.publisher.write.acts import (
    NOON,
    REPO,
    code_of,
    events,
    history,
    labels_of,
    move,
    put,
    refusal,
)
from tests.support.calls import at, watched
from tests.support.catalogues import read_tree, write_label


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A content folder with a repo that has versions 1.0.0 to 1.0.2."""
    for number in range(3):
        put(str(tmp_path), f"Text {number}.")
    return str(tmp_path)


@pytest.mark.parametrize("change", ["publish", "label"])
def test_a_clock_before_the_release_changes_nothing(
    root: str, change: str, monkeypatch: pytest.MonkeyPatch
):
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(1970, 1, 1, tzinfo=tz)

    monkeypatch.setattr(labels, "datetime", Clock)
    before = read_tree(root)
    error = refusal(put if change == "publish" else move, root, "1.0.0", now=None)
    assert error.status == 503 and "it shows 1970-01-01T00:00:00Z" in str(error)
    assert read_tree(root) == before


def test_a_label_that_moves(root: str):
    first = move(root, "1.0.0", note="First.")
    assert first == LabelChange(
        owner="ann", name="story", label="production", version="1.0.0", previous=None,
        moved_at="2026-01-01T12:00:00Z", moved_by="ann", note="First.", unchanged=False,
    )  # fmt: skip
    second = move(root, "1.0.2", by="bob", now=NOON + timedelta(seconds=1))
    assert (second.previous, second.moved_by, second.note) == ("1.0.0", "bob", "")
    assert move(root, "1.0.0").previous == "1.0.2"
    assert labels_of(root) == {"production": "1.0.0"}
    assert history(root) == [("1.0.2", "1.0.0"), ("1.0.0", "1.0.2"), (None, "1.0.0")]
    assert events(root) == ["1.json", "2.json", "3.json"]
    raw = Path(root, *REPO, "labels", "1.json").read_text()
    assert raw.endswith("}\n") and '\n  "label": "production",\n  "version": "1.0.0",\n' in raw


def test_repos_that_are_not_there(root: str):
    def act(owner: str, name: str, where: str = root) -> LabelChange:
        draft = LabelDraft(version="1.0.0")
        return change_label(FolderStore(where), owner, name, "production", draft, by="ann")

    for owner in ("ann", "nobody"):
        assert code_of(act, owner, "nothing") == "repo_not_found"
        assert not Path(root, owner, "nothing").exists()
    # The folder that a crashed first publication left is no repo.
    Path(root, "ann", "empty").mkdir()
    assert code_of(act, "ann", "empty") == "repo_not_found"
    with pytest.raises(HubError):
        act(*REPO, f"{root}/nowhere")


def test_compare_and_set(root: str):
    assert code_of(move, root, "1.0.0", expected="1.0.1") == "label_moved"
    assert move(root, "1.0.0", expected=None).version == "1.0.0"
    error = refusal(move, root, "1.0.1", expected=None)
    assert (error.code, error.details) == ("label_moved", [("expected", "1.0.0")])
    assert "it names 1.0.0" in str(error)
    # The check also applies to moves that would change nothing.
    assert code_of(move, root, "1.0.0", expected="1.0.2") == "label_moved"
    assert code_of(move, root, None, expected="1.0.2") == "label_moved"
    assert code_of(move, root, None, "canary") == "label_not_found"
    assert move(root, "1.0.1", expected="1.0.0").previous == "1.0.0"
    assert move(root, None, expected="1.0.1").version is None


def test_too_many_labels(root: str):
    for number in range(names.LABELS_PER_REPO_MAX):
        move(root, "1.0.0", f"label-{number}")
    for field, error in (
        ("label", refusal(move, root, "1.0.0", "another")),
        ("labels", refusal(put, root, "New.", labels=["label-0", "another"])),
    ):
        assert (error.code, error.details[0].field) == ("validation_failed", field)
        assert "at most 20" in str(error)
    assert put(root, "Text 2.", labels=["another"]).unchanged
    assert move(root, "1.0.1", "label-7").previous == "1.0.0"
    assert put(root, "New.", labels=["label-0", "label-1"]).version == "1.0.3"
    move(root, None, "label-8")
    assert move(root, "1.0.0", "another").version == "1.0.0"


def test_too_many_changes(root: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("builder.model.names.LABEL_EVENTS_PER_REPO_MAX", 3)
    for version in ("1.0.0", "1.0.1", "1.0.2"):
        move(root, version)
    for act in (("1.0.0",), (None,), ("1.0.0", "new")):
        assert "which is the limit" in str(refusal(move, root, *act))
    # The way out that the message names.
    assert put(root, "New.", labels=["production"]).version == "1.0.3"
    assert labels_of(root) == {"production": "1.0.3"}


def test_the_last_number(root: str):
    move(root, "1.0.0")
    folder = Path(root, *REPO, "labels")
    (folder / "1.json").rename(folder / f"{names.LABEL_NUMBER_MAX}.json")
    assert code_of(move, root, "1.0.1") == "validation_failed"
    assert code_of(put, root, "New.", labels=["production"]) == "validation_failed"


def test_a_clock_that_was_set_back(root: str):
    move(root, "1.0.0")
    early = NOON - timedelta(days=1)
    assert move(root, "1.0.1", now=early).moved_at == "2026-01-01T12:00:00Z"
    move(root, "1.0.2", now=NOON + timedelta(days=1))
    done = put(root, "New.", labels=["canary"])
    assert done.published_at == "2026-01-02T12:00:00Z"
    assert labels_of(root) == {"canary": "1.0.3", "production": "1.0.2"}


def test_a_damaged_history_stops_it(root: str):
    move(root, "1.0.0")
    Path(root, *REPO, "labels", "1.json").write_text("{")
    with pytest.raises(HubError, match=r"labels/1\.json"):
        move(root, "1.0.1")
    with pytest.raises(HubError, match=r"labels/1\.json"):
        put(root, "New.", labels=["production"])
    assert put(root, "New.").version == "1.0.3"


# Labels in a publication


def test_labels_of_a_publication(root: str):
    move(root, "1.0.0")
    done = put(root, "New.", labels=["production", "canary"])
    assert (done.version, done.labels) == ("1.0.3", ["canary", "production"])
    assert labels_of(root) == {"canary": "1.0.3", "production": "1.0.3"}
    assert history(root) == [("1.0.0", "1.0.3"), (None, "1.0.0")]
    assert events(root) == ["1.json"]
    record = content.read_record(root, *REPO, names.Version(1, 0, 3))
    assert (record.labels, record.label_number) == (["production", "canary"], 2)
    assert move(root, "1.0.3", "beta").version == "1.0.3" and events(root) == ["1.json", "3.json"]


def test_labels_of_a_text_that_is_there(root: str):
    move(root, "1.0.0")
    done = put(root, "Text 2.", labels=["production", "canary"])
    assert (done.unchanged, done.version, done.labels) == (True, "1.0.2", UNSET)
    assert done.warnings == [
        "1.0.2 is not a new version, so no label was moved. To move canary, production, change the "
        "label itself."
    ]
    assert labels_of(root) == {"production": "1.0.0"}
    assert events(root) == ["1.json"]


def test_a_publication_without_labels(root: str):
    assert put(root, "New.").labels is UNSET
    assert put(root, "Newer.", labels=[]).labels is UNSET
    record = Path(root, *REPO, "1.0.4.json").read_text()
    assert "label" not in record and not Path(root, *REPO, "labels").exists()


# Requests that are sent again


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    with Database(str(tmp_path_factory.mktemp("state"))) as database:
        yield database


def key_in(database: Database, name: str = "k", mark: bytes = b"mark") -> IdempotencyKey:
    return IdempotencyKey(database, "ann", name, mark)


def test_the_first_answer_again(root: str, database: Database):
    key = key_in(database)
    first = move(root, "1.0.0", note="First.", idempotency_key=key)
    move(root, "1.0.1")
    assert move(root, "1.0.0", note="First.", idempotency_key=key) == first
    assert labels_of(root) == {"production": "1.0.1"} and len(events(root)) == 2
    same = key_in(database, "same")
    unchanged = move(root, "1.0.1", idempotency_key=same)
    assert unchanged.unchanged
    gone = move(root, None, idempotency_key=key_in(database, "gone"))
    assert move(root, "1.0.1", idempotency_key=same) == unchanged
    assert move(root, None, idempotency_key=key_in(database, "gone")) == gone
    assert labels_of(root) == {}
    other = key_in(database, mark=b"other")
    assert code_of(move, root, "1.0.1", idempotency_key=other) == "idempotency_key_reused"


def test_the_first_answer_of_a_label_that_a_publication_moved(root: str, database: Database):
    put(root, "New.", labels=["production"])
    first = move(root, "1.0.3", idempotency_key=key_in(database))
    move(root, "1.0.0")
    assert move(root, "1.0.3", idempotency_key=key_in(database)) == first
    assert first.unchanged and labels_of(root) == {"production": "1.0.0"}


def test_the_first_answer_of_a_publication_with_labels(root: str, database: Database):
    def publish_again(text: str, key: str) -> Published:
        both = ["production", "canary"]
        return put(root, text, labels=both, idempotency_key=key_in(database, key))

    for text, key, is_unchanged in (("New.", "new", False), ("New.", "same", True)):
        first = publish_again(text, key)
        assert first.unchanged == is_unchanged
        moved = "1.0.0" if is_unchanged else "1.0.3"
        assert labels_of(root) == {"canary": "1.0.3", "production": moved}
        move(root, "1.0.0")
        assert publish_again(text, key) == first
        assert labels_of(root)["production"] == "1.0.0"


@pytest.mark.parametrize("what", ["move", "remove", "publish"])
def test_a_request_with_a_key_that_died_anywhere(what: str, tmp_path: Path):
    """Sent again, it has its effect exactly once, even if another request came in between."""
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        root = str(folder / "content")
        folder.mkdir()
        Path(root).mkdir()
        for text in ("One.", "Two."):
            put(root, text)
        move(root, "1.0.0")
        with Database(str(folder / "state")) as database:
            act = request(root, what, key_in(database))
            died = []

            def die(died: list[bool] = died) -> None:
                died.append(True)
                raise KeyboardInterrupt

            try:
                with watched(at(number, die)):
                    act()
            except KeyboardInterrupt:
                pass
            before = history(root)
            act()
            assert history(root)[0][1] == {"remove": None, "publish": "1.0.2"}.get(what, "1.0.1")
            assert len(history(root)) == 2
            # The retry found the first attempt's move, or made the move itself.
            assert len(before) in (1, 2)
            if len(before) == 2:
                move(root, "1.0.0", now=NOON + timedelta(days=1))
                act()
                assert history(root)[0][1] == "1.0.0"
            assert list(check(root)) == []
        if not died:
            break
    assert number > 15


def request(root: str, what: str, key: IdempotencyKey) -> Callable[[], object]:
    """One request, to be sent any number of times."""
    if what == "publish":
        return lambda: put(root, "New.", labels=["production"], idempotency_key=key)
    version = None if what == "remove" else "1.0.1"
    return lambda: move(root, version, idempotency_key=key)


# Quotas


def test_changes_count_as_bytes(root: str, settled: None):
    used = sum(path.stat().st_size for path in Path(root).glob("*/*/*") if path.is_file())
    keeper = QuotaKeeper(root, Quotas(repos=1, versions=3, bytes=used + 1000))
    move(root, "1.0.0", quotas=keeper, note="x" * 800)
    error = refusal(move, root, "1.0.1", quotas=keeper)
    assert "This change of labels exceeds the quota" in str(error)
    assert [detail.field for detail in error.details] == ["quota_bytes"]
    # Labels written by hand count too, even while counts are kept.
    Path(root, *REPO, "labels", "1.json").unlink()
    write_label(Path(root), "/".join(REPO), 1, "production", "1.0.0")
    move(root, "1.0.1", quotas=keeper)
    write_label(Path(root), "/".join(REPO), 3, "canary", "1.0.0", note="x" * 700)
    assert code_of(move, root, "1.0.2", quotas=keeper) == "validation_failed"
    assert events(root) == ["1.json", "2.json", "3.json"]


def test_a_label_of_a_name_that_is_reserved_today_moves_and_goes(root: str):
    write_label(Path(root), "/".join(REPO), 1, "nul", "1.0.0")
    assert move(root, "1.0.1", "nul").previous == "1.0.0"
    assert move(root, None, "nul").version is None
    assert code_of(move, root, "1.0.1", "nul") == "name_reserved"
