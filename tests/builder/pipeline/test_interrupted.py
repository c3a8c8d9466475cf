"""Builds that end in the middle, meet another build, or find their work gone."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys

import pytest

from builder.model.errors import OperatorError
from builder.pipeline.build import build
from builder.store import database
from builder.store.state import State
from tests.builder.pipeline.sites import Stopped, change_everything, stop_at
from tests.support.catalogues import (
    build_files,
    freshly_built,
    read_tree,
    settings_in,
    write_small_catalogue,
    write_version,
)
from tests.support.depth import some


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_a_build_that_ends_anywhere_is_made_good_by_the_next(tmp_path, monkeypatch, is_killed):
    # One end after another costs too long for every run; these meet every kind of file.
    for number in some(itertools.count(1, 13 if is_killed else 7)):
        settings = settings_in(tmp_path / str(number))
        write_small_catalogue(settings.content)
        build_files(settings)
        change_everything(settings.content)
        with monkeypatch.context() as patch:
            stop_at(patch, "rename", number)
            if is_killed:  # a killed process leaves the temporary file
                patch.setattr(os, "unlink", lambda path: None)
            try:
                build_files(settings)
                break
            except Stopped:
                patch.undo()
        build_files(settings, changed=[("ann", "story")])
        build_files(settings)
        assert read_tree(settings.out) == freshly_built(settings)
        shutil.rmtree(tmp_path / str(number))
    assert number > 30


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_build_that_ends_while_it_removes_is_made_good(small, monkeypatch, number):
    build_files(small)
    shutil.rmtree(f"{small.content}/bob")
    build_files(small)
    with monkeypatch.context() as patch:
        stop_at(patch, "unlink", number)
        with pytest.raises(Stopped):
            build_files(small)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_a_full_build_that_ends_early_is_remembered_as_one(small, monkeypatch):
    build_files(small)
    record = write_version(small.content, "ann", "story", "2.0.0", "Soon gone.\n", tags=["soon"])
    with monkeypatch.context() as patch:
        stop_at(patch, "rename", 15)
        with pytest.raises(Stopped):
            build_files(small, full=True)
    record.unlink()
    record.with_suffix(".md").unlink()
    build_files(small, changed=[("ann", "story")])
    assert build_files(small) == freshly_built(small)


KILLED_BUILD = """
import os, signal, sys
from builder.pipeline.build import build
from builder.model.settings import Settings
number, rename = int(sys.argv[1]), os.rename
def count(*args):
    global number
    number -= 1
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*args)
os.rename = count
build(Settings(*sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [1, 12])
def test_the_next_build_fixes_what_a_killed_process_leaves(small, number):
    build(small)
    change_everything(small.content)
    command = [sys.executable, "-c", KILLED_BUILD, str(number), *small[:5]]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert any(file.endswith(".tmp") for file in read_tree(small.out))
    build(small, changed=[])
    build(small)
    assert read_tree(small.out) == freshly_built(small)


def test_a_full_disk_is_reported_and_made_good(small, monkeypatch):
    build_files(small)
    change_everything(small.content)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *args: (_ for _ in ()).throw(OSError(28, "No space")))
        with pytest.raises(OperatorError, match="No space"):
            build(small, index=False)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_a_state_of_another_release_is_thrown_away(small):
    build(small)
    with contextlib.closing(database.connect(State.path_in(small.state), read_only=False)) as db:
        db.execute("DROP TABLE orphan")
        db.execute("CREATE TABLE orphan (file TEXT PRIMARY KEY, old BLOB)")
        db.execute("PRAGMA user_version = 1")
        db.execute("UPDATE meta SET value = 'the stamp of another release'")
    assert build(small).rendered > 0
    assert build(small).rendered == 0


PARALLEL_BUILD = """
import sys
from builder.pipeline.build import build
from builder.model.settings import Settings
settings = Settings(*sys.argv[1:])
for _ in range(5):
    build(settings, full=True)
"""


def test_two_builds_at_once_do_not_collide(small):
    command = [sys.executable, "-c", PARALLEL_BUILD, *small[:5]]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert read_tree(small.out) == freshly_built(small)
    assert build(small).written == 0


def test_a_build_that_has_to_wait_says_so(small):
    from builder.store.locks import build_lock

    class NotNow(Exception):
        pass

    def refuse():
        raise NotNow

    with build_lock(small.state), pytest.raises(NotNow):
        build(small, on_wait=refuse)
    build(small, on_wait=refuse)
