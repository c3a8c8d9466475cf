"""A small hub that is built and whole, for checks to find what a test spoils in it."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from operate.doctor import certificate
from operate.doctor.findings import Finding, Subject
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.outside import fetch
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy otherwise may take longer than an operator would wait."""
    monkeypatch.setattr(fetch, "TIMEOUT_SECONDS", DEADLINE_SECONDS)
    monkeypatch.setattr(certificate, "TIMEOUT_SECONDS", DEADLINE_SECONDS)


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = settings_in(tmp_path_factory.mktemp("doctor"))
    write_small_catalogue(settings.content)
    build(settings)
    with Database(settings.state) as database:
        Accounts(database).add_owner("ann")
    return settings


@pytest.fixture
def hub(_built: Settings, tmp_path: Path) -> Settings:
    """A copy, with accounts."""
    shutil.copytree(Path(_built.content).parent, tmp_path, dirs_exist_ok=True)
    return settings_in(tmp_path)


@pytest.fixture
def subject(hub: Settings) -> Subject:
    return Subject(hub, hub)


def told(found: Iterable[Finding], level: str) -> list[str]:
    """What there is at this level, each as one text; all of them say what to do."""
    wrong = [one for one in found if one.level == level]
    return [f"{one.what} {one.do}" for one in wrong]


def only_problem(check: Callable[[Subject], Iterable[Finding]], subject: Subject) -> str:
    """The one problem that a check finds, and no warning."""
    return _only("problem", check(subject))


def only_warning(check: Callable[[Subject], Iterable[Finding]], subject: Subject) -> str:
    """The one warning that a check finds, and no problem."""
    return _only("warning", check(subject))


def _only(level: str, found: Iterable[Finding]) -> str:
    (one,) = [one for one in found if one.level != "ok"]
    assert one.level == level
    return f"{one.what} {one.do}"


def levels(check: Callable[[Subject], Iterable[Finding]], subject: Subject) -> set[str]:
    return {one.level for one in check(subject)}
