"""A serial that is given: hub.json has it only when the lists have all that it counts."""

import errno
import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from builder.emit import catalogue
from builder.model import envelopes
from builder.model.errors import ContentError, RequestError
from builder.model.settings import Settings
from builder.pipeline import rebuild, settle
from builder.pipeline.build import build, compare
from builder.pipeline.rebuild import Rebuilder
from builder.store.site import read_serial
from tests.support.catalogues import edit_record, read_tree, write_version
from tests.support.servers import wait_until

START = 100


class Log:
    """A log of publications in one order, from START on; ``number`` is the serial."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.number = START
        self.entries: list[dict[str, str]] = []
        self.reported: list[int] = []
        self.violations: list[str] = []

    def __call__(self) -> int:
        return self.number

    def write(self, *repos: str) -> Path:
        """Put an entry into the content: the next version of these repos. Returns the record of
        the last.
        """
        entry = {}
        for repo in repos:
            past = [one[repo] for one in self.entries if repo in one]
            entry[repo] = f"1.0.{len(past)}"
            text = f"{repo} {entry[repo]}\n"
            record = write_version(self.settings.content, "ann", repo, entry[repo], text)
        self.entries.append(entry)
        return record

    def end(self, rebuilder: Rebuilder) -> None:
        """Count what was written."""
        self.number = START + len(self.entries)
        rebuilder.note_serial()

    def append(self, rebuilder: Rebuilder, *repos: str) -> None:
        self.write(*repos)
        rebuilder.request([("ann", repo) for repo in repos])
        self.end(rebuilder)

    def check(self, serial: int) -> None:
        """Note where lists do not have what a hub.json that is about to be written says."""
        self.reported.append(serial)
        listed = list_versions(self.settings)
        for number, entry in enumerate(self.entries[: serial - START], START + 1):
            for repo, version in entry.items():
                if listed.get(repo, (-1,)) < parse(version):
                    self.violations.append(f"{serial} reported, {number} missing: {repo} {version}")


def parse(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def list_versions(settings: Settings) -> dict[str, tuple[int, ...]]:
    """The version of each repo that the list of all of them has."""
    path = Path(settings.out, "api/v1/catalogue.jsonl")
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {row["name"]: parse(row["latest_version"]) for row in rows}


def wait_for(settings: Settings, serial: int) -> None:
    wait_until(lambda: read_serial(settings.out) == serial, f"serial {serial}")


@pytest.fixture
def log(empty: Settings, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A hub with short pages, so that many are deep; what it says is checked whenever it does."""
    for module in (catalogue, envelopes):
        monkeypatch.setattr(module, "PAGE_SIZE", 1)
    monkeypatch.setattr(catalogue, "PAGES_PER_STRETCH", 1)
    monkeypatch.setattr(rebuild, "RETRY_SECONDS_MIN", 0.01)
    monkeypatch.setattr(rebuild, "RETRY_SECONDS_MAX", 0.05)
    monkeypatch.setattr(rebuild, "QUIET_SECONDS", 0.01)
    log = Log(empty)
    rename = os.rename

    def checked(source: str, target: str) -> None:
        if str(target).endswith("api/v1/hub.json"):
            log.check(json.loads(Path(source).read_bytes())["data"]["serial"])
        rename(source, target)

    monkeypatch.setattr(os, "rename", checked)
    return log


def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let no build write anything any more, until what this returns is called."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rename = os.rename
    monkeypatch.setattr(os, "rename", fail)
    return lambda: monkeypatch.setattr(os, "rename", rename)


def damage(record: Path) -> Callable[[], object]:
    right = record.read_bytes()
    edit_record(record, sha256="0" * 64)
    return lambda: record.write_bytes(right)


def is_as_built_anew(settings: Settings) -> bool:
    """True if the site equals a full build of the content, apart from the serial."""
    other = settings._replace(out=f"{settings.out}-fresh", state=f"{settings.state}-fresh")
    build(other, serial=read_serial(settings.out))
    return read_tree(settings.out) == read_tree(other.out)


def test_readers_get_the_given_serial(log):
    log.write("old")  # before this process
    log.number = START + 1
    with Rebuilder(log.settings, lambda _: None, serial=log) as rebuilder:
        # No publisher requests this build.
        wait_for(log.settings, START + 1)
        log.append(rebuilder, "a", "b")
        assert rebuilder.make_visible("ann", "a") == START + 2
        wait_for(log.settings, START + 2)
        assert rebuilder.health()["serial"] == START + 2
    assert log.violations == []
    assert is_as_built_anew(log.settings)


def test_readers_get_a_serial_that_rises_after_the_build(log):
    with Rebuilder(log.settings, lambda _: None, serial=log) as rebuilder:
        wait_for(log.settings, START)
        log.write("a")
        assert rebuilder.make_visible("ann", "a") == START
        wait_until(lambda: list_versions(log.settings) == {"a": (1, 0, 0)}, "the lists")
        wait_until(lambda: rebuilder.health()["status"] == "ok", "the end of the build")
        assert read_serial(log.settings.out) == START
        log.end(rebuilder)
        wait_for(log.settings, START + 1)
        # And where nothing that readers see has changed.
        log.entries.append({})
        log.end(rebuilder)
        wait_for(log.settings, START + 2)
        wait_until(lambda: rebuilder.health()["status"] == "ok", "the end of the build")
    assert log.violations == []


def test_a_pass_that_was_begun_keeps_its_serial(log, monkeypatch):
    monkeypatch.setattr(settle, "LAG_SECONDS_MAX", 0.0)
    monkeypatch.setattr(settle, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(settle, "SLICE_SHARE", 0.0)
    settings = log.settings
    log.write(*"abcdef")
    build(settings, serial=START + 1)

    def build_some(is_wanted: bool, *repos: str) -> int:
        log.write(*repos)
        changed = [("ann", repo) for repo in repos]
        number = START + len(log.entries)
        build(settings, changed=changed, serial=number, is_wanted=lambda: is_wanted)
        return number

    # Each build does one step of a pass.
    numbers = [build_some(True, "abcdef"[count % 6]) for count in range(60)]
    assert log.reported[0] == START + 1 and len(log.reported) > 1
    assert {*log.reported[1:]} < {*numbers} and log.reported == sorted({*log.reported})
    last = build_some(False, "a")
    assert read_serial(settings.out) == last
    assert log.violations == []
    assert is_as_built_anew(settings)


def test_while_something_has_a_fault_hub_json_keeps_its_serial(log):
    settings = log.settings
    with Rebuilder(settings, lambda _: None, serial=log) as rebuilder:
        log.append(rebuilder, "a", "b")
        wait_for(settings, START + 1)
        mend = damage(log.write("a"))
        rebuilder.request([("ann", "a")])
        log.end(rebuilder)
        for number in range(2):
            log.append(rebuilder, "b")
            # The publisher gets the serial from which the version is visible.
            assert rebuilder.make_visible("ann", "b") == START + 3 + number
        wait_until(lambda: list_versions(settings) == {"a": (1, 0, 0), "b": (1, 0, 2)}, "lists")
        wait_until(lambda: rebuilder.health()["failures"] > 2, "more builds")
        assert read_serial(settings.out) == START + 1
        mend()
        wait_for(settings, START + 4)
    assert log.violations == []
    assert is_as_built_anew(settings)


def test_a_build_that_failed_is_not_counted(log, monkeypatch):
    """It is not counted even if a later build without its hint would succeed."""
    settings = log.settings
    with Rebuilder(settings, lambda _: None, serial=log) as rebuilder:
        log.append(rebuilder, "a", "b")
        wait_for(settings, START + 1)
        monkeypatch.setattr(rebuild, "RETRY_SECONDS_MIN", 3600.0)
        monkeypatch.setattr(rebuild, "RETRY_SECONDS_MAX", 3600.0)
        repair = failing(monkeypatch)
        log.append(rebuilder, "a")
        with pytest.raises(RequestError):
            rebuilder.make_visible("ann", "a")
        repair()
        log.append(rebuilder, "b")
        assert rebuilder.make_visible("ann", "b") == START + 3
        log.write("c")  # written without an entry in the log
        rebuilder.request(None)
        log.end(rebuilder)
        wait_for(settings, START + 4)
    assert log.violations == []
    assert is_as_built_anew(settings)


def test_unknown_content_is_built_before_its_serial_is_shown(log, monkeypatch):
    settings = log.settings
    log.write("a")
    build(settings, serial=START + 1)
    log.write("b")
    build(settings, changed=[], serial=START + 2, covers_serial=False)
    assert read_serial(settings.out) == START + 1
    build(settings, changed=[("ann", "b")], serial=START + 2)
    assert read_serial(settings.out) == START + 2
    damage(log.write("a"))
    with pytest.raises(ContentError):
        build(settings, changed=[("ann", "a"), ("ann", "b")], serial=START + 3)
    with pytest.raises(ContentError):
        build(settings, serial=START + 3)
    assert read_serial(settings.out) == START + 2
    # Nothing is remembered, so all of it is looked at.
    log.write("a")
    Path(settings.content, "ann", "a", "1.0.1.json").unlink()
    Path(settings.content, "ann", "a", "1.0.1.md").unlink()
    build(settings, changed=[], full=True, serial=START + 4, covers_serial=False)
    assert read_serial(settings.out) == START + 4
    assert log.violations == []


def test_without_a_serial_it_is_the_number_of_versions(log):
    log.write("a", "b")
    build(log.settings)
    assert read_serial(log.settings.out) == 2
    assert not any(compare(log.settings))


@pytest.mark.parametrize("seed", range(3))
def test_no_failure_shows_a_serial_too_early(log, monkeypatch, seed):
    monkeypatch.setattr(settle, "LAG_SECONDS_MAX", 0.0)
    monkeypatch.setattr(settle, "SLICE_SECONDS", 0.001)
    monkeypatch.setattr(rebuild, "LOOK_LATE_SECONDS", 0.1)
    chance = random.Random(seed)
    repairs: list[Callable[[], object]] = []
    settings = log.settings

    def repair(some: Iterable[Callable[[], object]]) -> None:
        for one in some:
            one()

    with Rebuilder(settings, lambda _: None, serial=log) as rebuilder:
        for _ in range(80):
            repos = chance.sample("abcdefgh", chance.randint(1, 3))
            record = log.write(*repos)
            what = chance.randrange(8)
            if what == 0:
                repairs.append(damage(record))
            if what == 1:
                repairs.append(failing(monkeypatch))
            if what == 2:
                rebuilder.check_caches()
            is_known = chance.random() < 0.8
            rebuilder.request([("ann", repo) for repo in repos] if is_known else None)
            log.end(rebuilder)
            if chance.random() < 0.3:
                wait_until(lambda: rebuilder.health()["waiting"] == 0, "a build to begin")
            if chance.random() < 0.3:
                repair(reversed(repairs))
                repairs.clear()
        repair(reversed(repairs))
        wait_for(settings, START + 80)
        assert rebuilder.make_visible("ann", "a") == START + 80
    assert log.violations == []
    assert is_as_built_anew(settings)
