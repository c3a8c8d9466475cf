"""Fixtures that several test modules share, and how hard Hypothesis tries."""

import difflib
import functools
import gc
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

from builder.emit import fixed
from builder.model.settings import Settings
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.clock import settled, stop_clock  # noqa: F401
from tests.support.depth import QUARTER, QUARTERS, chosen
from tests.support.fixed_files import remembering
from tests.support.postgres import accounts_place, postgres  # noqa: F401
from tests.support.servers import built_sample, live, static_url  # noqa: F401

# The same examples on every run. HYPOTHESIS_PROFILE=search looks for new ones, as does `deep`.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeat", derandomize=True, database=None, max_examples=30, **_common)
settings.register_profile("search", max_examples=2000, **_common)
settings.register_profile("deep", max_examples=100, print_blob=True, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# Folders of tests, with thousands of small files, are in memory where the system offers enough of
# it: that saves a third of the time. Containers often have 64 MiB, in which nothing may be run.
_MEMORY = "/dev/shm"
if (
    os.access(_MEMORY, os.W_OK)
    and shutil.disk_usage(_MEMORY).free >= 4 << 30
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
):
    tempfile.tempdir = _MEMORY

# A fifth of a small build compresses assets, which are the same in all sites that tests build; half
# of the rest writes what depends on code and settings alone.
gzip.compress = functools.lru_cache(maxsize=64)(gzip.compress)
fixed.write_fixed_files = remembering(fixed.write_fixed_files)


@pytest.fixture(scope="session")
def installed_tools() -> None:
    """Marks tests that need programs from ``tests/install-tools``.

    Tests that use this fixture, directly or through another one, get the mark ``tools``: `make
    test` leaves them to `make test-all`.
    """


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "installed_tools" in getattr(item, "fixturenames", ()):
            item.add_marker("tools")
    kept = [*chosen(items)]
    left_out = [item for item, is_kept in zip(items, kept, strict=True) if not is_kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item, is_kept in zip(items, kept, strict=True) if is_kept]


def pytest_report_header() -> str:
    if QUARTER is None:
        return "long proofs: all cases"
    return f"long proofs: quarter {QUARTER} of 0 to {QUARTERS - 1}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if QUARTER is not None and terminalreporter.stats.get("failed"):
        terminalreporter.write_line(
            f"Run a failed test again with: TEST_QUARTER={QUARTER} .venv/bin/pytest NODEID"
        )


# A third of the time in which tests are collected would be searches for garbage, with little found.
gc.disable()


def pytest_collection_finish() -> None:
    """Freeze the objects of the collection, so that the garbage collector skips them."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def empty(tmp_path: Path) -> Settings:
    """Settings with an empty content folder."""
    return settings_in(tmp_path)


@pytest.fixture
def small(empty: Settings) -> Settings:
    """Settings with the small catalogue as content; nothing is built."""
    write_small_catalogue(empty.content)
    return empty


@pytest.fixture
def compared_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that this process has compared with a wrong one, in order."""
    compared = []
    set_seq1 = difflib.SequenceMatcher.set_seq1

    def counted(self: difflib.SequenceMatcher, text: str) -> None:
        if text:  # with none yet, a matcher is made
            compared.append(text)
        set_seq1(self, text)

    monkeypatch.setattr(difflib.SequenceMatcher, "set_seq1", counted)
    return compared


@dataclass
class YamlWork:
    """Work with YAML: the texts that were parsed, and the number of events that were read."""

    loaded: list[str] = field(default_factory=list)
    events: int = 0


@pytest.fixture
def yaml_work(monkeypatch: pytest.MonkeyPatch) -> YamlWork:
    """Counts what is done with YAML from here on, in this process."""
    work = YamlWork()
    parse = yaml.parse

    def counted_parse(text: str, loader: Any) -> Iterator[yaml.Event]:
        work.loaded.append(text)
        for event in parse(text, loader):
            work.events += 1
            yield event

    monkeypatch.setattr(yaml, "parse", counted_parse)
    return work
