"""Versions that do not fit, and sites of other releases."""

import sqlite3
from importlib import metadata

import pytest

from builder.pipeline import build as pipeline
from builder.store.state import State
from operate.doctor import release
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import levels, only_problem, only_warning


def test_this_machine_is_fine(subject: Subject) -> None:
    assert levels(release.versions, subject) == {"ok"}
    assert levels(release.libraries, subject) == {"ok"}


def test_an_old_sqlite(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert "SQLite 3.34.1 is older than 3.35.0." in only_problem(release.versions, subject)


def test_libraries_that_are_too_old_or_missing(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "msgspec":
            raise metadata.PackageNotFoundError
        return {"flask": "2.0", "obstore": "0.1"}.get(name) or known(name)

    known = metadata.version
    monkeypatch.setattr(metadata, "version", version)
    told = only_problem(release.libraries, subject)
    assert "flask 2.0 does not fit >=3.1.3, msgspec is missing." in told
    assert "obstore" not in told  # of an extra


def test_a_site_of_this_release(subject: Subject) -> None:
    assert levels(release.site, subject) == {"ok"}


def test_a_site_of_another_release(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_code_digest", lambda: b"newer")
    assert "Another release of hub built" in only_warning(release.site, subject)


def test_a_full_build_that_did_not_end(subject: Subject) -> None:
    with State(subject.settings.state) as state:
        state.begin(forget=True)
        state.abandon()
    assert "its last build did not end" in only_warning(release.site, subject)


def test_no_site_yet(subject: Subject) -> None:
    told = only_warning(release.site, subject._replace(noted=None))
    assert "No build with the state folder" in told


def test_a_site_for_another_address(subject: Subject) -> None:
    elsewhere = subject.settings._replace(base_url="https://other.example")
    told = only_problem(release.site, subject._replace(settings=elsewhere))
    assert "was built for https://hub.example, not for https://other.example" in told
