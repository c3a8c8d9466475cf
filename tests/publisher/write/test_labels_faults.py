"""Changes of labels that are cut off, in what order they are written, and many at once."""

import errno
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from builder.model.errors import HubError, RequestError
from operate.content_check import check
from publisher.write.moves import read_labels
from tests.publisher.write.acts import REPO, labels_of, move, put
from tests.support.calls import at, noted_writes, watched
from tests.support.children import dies_at, processes_at_once
from tests.support.depth import some_of


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A content folder with a repo that has versions 1.0.0 to 1.0.2."""
    return prepared(tmp_path / "root", "first")


ACTS: dict[str, Callable[[str], object]] = {
    "remove": lambda root: move(root, None),
    "publish the same": lambda root: put(root, "Text 2.", labels=["production", "canary"]),
}


# tests/faults has the others.
@pytest.mark.parametrize("act", ACTS)
def test_a_call_that_fails(act: str, tmp_path: Path):
    wanted = after(act, tmp_path)
    failures: list[str] = []

    def fail() -> None:
        failures.append(act)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for number in range(1, 200):
        root = prepared(tmp_path / f"fail-{number}", act)
        before = read_labels(root, *REPO).versions()
        with watched(at(number, fail)):
            try:
                ACTS[act](root)
                is_acknowledged = True
            except HubError as error:
                is_acknowledged = False
                assert not isinstance(error, RequestError) or error.code == "storage_unavailable"
        if len(failures) < number:
            break
        # All of the labels have moved, or none; and all if that was said.
        assert labels_of(root) in ([wanted] if is_acknowledged else [before, wanted])
        assert not [*Path(root).rglob(".*")] or is_acknowledged
        if labels_of(root) == before:
            ACTS[act](root)
        assert labels_of(root) == wanted
    assert number > 15


@pytest.mark.parametrize("act", ACTS)
def test_a_process_that_dies_at_any_call(act: str, tmp_path: Path):
    wanted = after(act, tmp_path)
    for number in range(1, 200):
        root = prepared(tmp_path / f"die-{number}", act)
        before = read_labels(root, *REPO).versions()
        is_dead = dies_at(number, lambda root=root: ACTS[act](root))
        faults = [fault.reason for fault in check(root)]
        assert all(reason.startswith("text without record") for reason in faults)
        there = read_labels(root, *REPO).versions()
        # Only where no version is published, one label may have moved without the other.
        halves = [before | {"production": wanted["production"]}] if "same" in act else []
        assert there in ([before, wanted, *halves] if is_dead else [wanted])
        if act != "remove" or there == before:
            ACTS[act](root)
        assert labels_of(root) == wanted
        if not is_dead:
            break
    assert not is_dead and number > 15


def prepared(folder: Path, act: str) -> str:
    """A content folder before the act: production is 1.0.0; before the act ``first``, no labels
    exist.
    """
    template = folder.parent / "template"
    if not template.exists():
        template.mkdir()
        for number in range(3):
            put(str(template), f"Text {number}.")
        if act != "first":
            move(str(template), "1.0.0")
    shutil.copytree(template, folder)
    return str(folder)


def after(act: str, folder: Path) -> dict[str, str]:
    root = prepared(folder / "right", act)
    ACTS[act](root)
    return labels_of(root)


def test_the_order_of_writing(root: str):
    for number in (1, 2):
        with noted_writes(root) as writes:
            move(root, f"1.0.{number}")
        assert writes == [
            "mkdir ann/story/labels", "fsync ann/story",
            "fsync ann/story/labels/.publish.tmp", f"link ann/story/labels/{number}.json",
            "fsync ann/story/labels",
        ]  # fmt: skip
    with noted_writes(root) as writes:
        assert move(root, "1.0.2").unchanged
    # The writer may have died before the move was durable.
    assert writes == ["fsync ann/story", "fsync ann/story/labels"]


CLIENTS = 8


MOVES = some_of(16)


def move_some(root: str, client: int) -> list[tuple[str | None, str, str]]:
    """Move the label to the next version again and again; returns each move that succeeded."""
    done = []
    while len(done) < MOVES:
        now = read_labels(root, *REPO).versions().get("production")
        version = f"1.0.{(int(now[-1]) + 1) % 3}" if now else "1.0.0"
        try:
            move(root, version, expected=now, note=f"{client}-{len(done)}")
        except RequestError as error:
            if error.code != "label_moved":
                raise
            continue
        done.append((now, version, f"{client}-{len(done)}"))
    return done


def test_compare_and_set_loses_no_move(root: str):
    moved = processes_at_once(CLIENTS, partial(move_some, root))
    acknowledged = [move for moves in moved for move in moves]
    moves = read_labels(root, *REPO).history["production"][::-1]
    stored = [(move.previous, move.version, move.note) for move in moves]
    # Each move is stored once, and began from the result of the one before.
    assert len(stored) == CLIENTS * MOVES and sorted(stored, key=str) == sorted(
        acknowledged, key=str
    )
    assert list(check(root)) == []
