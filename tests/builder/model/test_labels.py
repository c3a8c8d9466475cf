"""Labels of a repo: what its moves come to, and what can be wrong with them. Pure."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.answers import LabelMove
from builder.model.content_tree import LABEL
from builder.model.labels import Move, find_faults, fold, move_of, moves_with
from builder.model.records import LabelFile, VersionFile

AT = "2026-01-31T09:30:00Z"
RECORD = {"publisher": "ann", "published_at": AT, "sha256": "0" * 64, "title": "A"}
EVENT = {"label": "production", "version": "1.0.0", "at": AT, "by": "ann"}


def move(number: int, label: str, version: str | None, at: str = AT, file: str = "") -> Move:
    return Move(number, file or LABEL.file(number), label, version, at, "ann")


def faults_of(*moves: Move, versions=("1.0.0", "1.1.0")) -> list[tuple[str, str, bool]]:
    return [
        (fault.path, fault.reason, fault.is_warning) for fault in find_faults(moves, versions, "a/")
    ]


def test_no_moves_are_no_labels():
    assert fold([]) == ({}, {}, 1)
    assert faults_of() == []


def test_moves_in_any_order_come_to_labels_and_history():
    moves = [
        move(3, "canary", "1.1.0"), move(9, "production", None), move(1, "production", "1.0.0"),
        move(2, "production", "1.1.0"),
    ]  # fmt: skip
    labels = fold(moves)
    assert labels.versions() == {"canary": "1.1.0"}
    assert labels.next_number == 10
    assert labels.history == {
        "canary": [LabelMove("canary", "1.1.0", None, AT, "ann", "")],
        "production": [
            LabelMove("production", None, "1.1.0", AT, "ann", ""),
            LabelMove("production", "1.1.0", "1.0.0", AT, "ann", ""),
            LabelMove("production", "1.0.0", None, AT, "ann", ""),
        ],
    }
    assert list(labels.history) == ["canary", "production"]


def test_a_label_that_is_back_has_its_history():
    labels = fold([move(1, "a", "1.0.0"), move(2, "a", None), move(3, "a", "1.0.0")])
    assert [(one.version, one.previous) for one in labels.history["a"]] == [
        ("1.0.0", None), (None, "1.0.0"), ("1.0.0", None),
    ]  # fmt: skip
    assert labels.versions() == {"a": "1.0.0"}


def test_the_labels_of_a_version_are_sorted():
    labels = fold([move(1, "b", "1.0.0"), move(2, "a", "1.0.0"), move(3, "c", "1.1.0")])
    assert labels.by_version() == {"1.0.0": ["a", "b"], "1.1.0": ["c"]}


def test_a_publication_moves_all_its_labels_with_one_number():
    record = VersionFile(**RECORD, labels=["production", "eu"], label_number=4)
    moves = moves_with("1.1.0", record)
    assert moves == [
        Move(4, "1.1.0.json", "production", "1.1.0", AT, "ann"),
        Move(4, "1.1.0.json", "eu", "1.1.0", AT, "ann"),
    ]
    labels = fold([*moves, move(2, "eu", "1.0.0")])
    assert labels.versions() == {"eu": "1.1.0", "production": "1.1.0"}
    assert labels.history["eu"][0].previous == "1.0.0"
    assert faults_of(*moves, move(2, "eu", "1.0.0")) == []
    assert moves_with("1.1.0", VersionFile(**RECORD)) == []


def test_a_file_of_its_own_is_one_move():
    event = LabelFile(**EVENT, note="Passed the review.")
    assert move_of(7, event) == (
        7, "labels/7.json", "production", "1.0.0", AT, "ann", "Passed the review.", None,
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1.0.0", "1.1.0", None])),
        max_size=12,
    )
)
def test_labels_are_what_was_said_of_each_last(said):
    moves = [move(number, *one) for number, one in enumerate(said, 1)]
    labels = fold(reversed(moves))
    last = dict(said)
    assert labels.versions() == {label: last[label] for label in sorted(last) if last[label]}
    assert sum(map(len, labels.history.values())) == len(said)
    assert labels.next_number == len(said) + 1


@pytest.mark.parametrize(
    "fields",
    [
        {"label": "latest"}, {"label": "1.0.0"}, {"label": "a.json"}, {"label": "Production"},
        {"label": "a\n"}, {"label": ""}, {"version": "1.0"}, {"version": "1.0.0\n"}, {"version": 1},
        {"at": "yesterday"}, {"at": "2026-02-31T09:30:00Z"}, {"by": "Ann"}, {"by": "ann\n"},
        {"note": "x" * 1025}, {"number": 1},
    ],
)  # fmt: skip
def test_a_file_with_a_wrong_field_is_refused(fields):
    good = EVENT | {"note": "x" * 1024}
    assert msgspec.json.decode(msgspec.json.encode(good), type=LabelFile)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(good | fields), type=LabelFile)


@pytest.mark.parametrize("missing", EVENT)
def test_every_field_but_the_note_is_needed(missing):
    event = {key: value for key, value in EVENT.items() if key != missing}
    with pytest.raises(msgspec.ValidationError, match=missing):
        msgspec.json.decode(msgspec.json.encode(event), type=LabelFile)


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": ["a"]}, {"label_number": 1}, {"labels": [], "label_number": 1},
        {"labels": ["a"], "label_number": 0}, {"labels": ["a", "a"], "label_number": 1},
        {"labels": ["latest"], "label_number": 1}, {"labels": ["a\n"], "label_number": 1},
        {"labels": ["a"], "label_number": 1_000_000_000},
        {"labels": [f"a{number}" for number in range(21)], "label_number": 1},
    ],
)  # fmt: skip
def test_a_publication_with_wrong_labels_is_refused(fields):
    good = RECORD | {"labels": [f"a{number}" for number in range(20)], "label_number": 1}
    assert msgspec.json.decode(msgspec.json.encode(good), type=VersionFile)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(RECORD | fields), type=VersionFile)


def test_a_publication_without_labels_is_stored_as_ever():
    assert b"label" not in msgspec.json.encode(VersionFile(**RECORD))
