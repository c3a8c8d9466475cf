"""Folders that are missing, within each other, or another user's."""

import os
import shutil
from pathlib import Path

import pytest

from operate.doctor import folders
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import levels, only_problem, only_warning, told

NOBODY = 65_534


def test_all_is_well(subject: Subject) -> None:
    for check in (folders.places, folders.owners, folders.privacy):
        assert levels(check, subject) == {"ok"}


def test_no_content_folder(subject: Subject) -> None:
    shutil.rmtree(subject.settings.content)
    assert "No content folder" in only_problem(folders.places, subject)


def test_no_state_folder_yet(subject: Subject) -> None:
    shutil.rmtree(subject.settings.state)
    assert "The first build makes it" in only_warning(folders.places, subject)


def test_a_file_in_the_place_of_a_folder(subject: Subject) -> None:
    shutil.rmtree(subject.settings.out)
    Path(subject.settings.out).write_text("")
    assert "is no folder" in only_problem(folders.places, subject)


def test_state_within_the_content(subject: Subject) -> None:
    inside = subject.settings._replace(state=f"{subject.settings.content}/var")
    Path(inside.state).mkdir()
    told = only_problem(folders.places, subject._replace(settings=inside))
    assert "is inside --content" in told


def test_a_folder_that_may_not_be_written(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:  # whom nothing stops: so what the kernel tells others
        monkeypatch.setattr(os, "access", lambda path, mode: path != subject.settings.out)
    else:
        Path(subject.settings.out).chmod(0o555)
    told = only_problem(folders.places, subject)
    assert f"may not read and write {subject.settings.out}" in told


def test_files_of_another_user(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = f"{subject.settings.content}/ann/review"
    if os.geteuid() == 0:
        os.chown(stranger, NOBODY, NOBODY)
    else:
        user_of = folders._owner
        monkeypatch.setattr(
            folders, "_owner", lambda entry: NOBODY if entry.path == stranger else user_of(entry)
        )
    told = only_problem(folders.owners, subject)
    assert f"{subject.settings.content} belongs to " in told
    assert f"but not all that is in it: {stranger}. Stop the hub" in told


def test_root_looks_at_a_hub_of_another_user(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid() or NOBODY
    if os.geteuid() == 0:
        for path, names, files in os.walk(Path(subject.settings.content).parent):
            for name in (".", *names, *files):
                os.chown(f"{path}/{name}", user, user, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    warnings = told(folders.owners(subject), "warning")
    assert len(warnings) == 3
    assert all("Run hubctl as that user" in one for one in warnings)


def test_what_others_may_write(subject: Subject) -> None:
    Path(subject.settings.content).chmod(0o777)
    assert f"chmod o-w {subject.settings.content}" in only_problem(folders.privacy, subject)


def test_accounts_that_others_may_read(subject: Subject) -> None:
    path = Path(subject.settings.state, "accounts.sqlite3")
    path.chmod(0o644)
    assert f"Run: chmod 600 {path}" in only_problem(folders.privacy, subject)
