"""A small hub that is built and whole, for checks to find what a test spoils in it."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.site import read_hub
from operate.doctor import web
from operate.doctor.findings import Finding, Subject
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.outside import fetch
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy otherwise may take longer than an operator would wait."""
    monkeypatch.setattr(fetch, "TIMEOUT_SECONDS", DEADLINE_SECONDS)
    monkeypatch.setattr(web, "TIMEOUT_SECONDS", DEADLINE_SECONDS)


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = settings_in(tmp_path_factory.mktemp("doctor"), queries=True)
    write_small_catalogue(settings.content)
    build(settings)
    with Database(settings.state) as database:
        Accounts(database).add_owner("ann")
    return settings


@pytest.fixture
def hub(_built: Settings, tmp_path: Path) -> Settings:
    """A copy, with accounts."""
    shutil.copytree(Path(_built.content).parent, tmp_path, dirs_exist_ok=True)
    return settings_in(tmp_path, queries=True)


@pytest.fixture
def subject(hub: Settings) -> Subject:
    """The hub, whose service runs."""
    return Subject(hub, read_hub(hub.out), hub, hub)


def faults(found: Iterable[Finding]) -> list[tuple[str, str]]:
    """The findings other than ok: the level of each, and its texts as one."""
    return [(one.level, f"{one.what} {one.do}") for one in found if one.level != "ok"]


def only(found: Iterable[Finding], level: str) -> str:
    """The text of the only finding that is not fine; checks that it has this level."""
    ((is_level, text),) = faults(found)
    assert is_level == level
    return text
