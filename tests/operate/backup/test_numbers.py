"""No version number and no ordinal is given twice, whatever was published since the backup."""

import json
import os
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.names import BUMPS, VERSIONS_PER_REPO_MAX, Version
from builder.pipeline.build import build
from builder.store.content import list_versions, read_record
from builder.store.site import read_hub
from operate.backup import floor
from operate.backup.take import STREAM
from tests.operate.backup.conftest import Hub
from tests.support.catalogues import write_version

NAMES = ("story", "poem", "letter")


def publish_at_random(hub: Hub, chance: random.Random, given: list[tuple], steps: int) -> None:
    """Note each new number and ordinal with its prompt."""
    for _ in range(steps):
        name = chance.choice(NAMES)
        text = f"{chance.random()}"
        done = hub.publish(name, text, bump=chance.choice(BUMPS))
        record = read_record(hub.settings.content, "ann", name, Version.parse(done.version))
        given.append((name, done.version))
        given.append((name, record.ordinal))
        if chance.random() < 0.2:
            hub.withdraw(name, done.version)


def begin_again(hub: Hub, source: str, **options: int) -> int:
    """Lose all of the hub and restore it; returns the floor."""
    for folder in (hub.settings.content, hub.settings.state):
        shutil.rmtree(folder, ignore_errors=True)
    lines = hub.restore(source, **options)
    (floor,) = [line.split()[5] for line in lines if line.startswith("New versions get numbers")]
    return int(floor.replace(",", ""))


@pytest.mark.parametrize("seed", range(4))
def test_after_any_blind_restores(hub: Hub, tmp_path: Path, seed: int) -> None:
    """Backups, publications and restores of any backup, also of the same one again."""
    chance, given = random.Random(seed), []
    files = [hub.back_up(f"{tmp_path}/0.tar")]
    for version in ("1.0.0", "1.0.1", "1.0.2"):
        given.append(("story", version))
    given += [("poem", "1.0.0"), *(("story", number) for number in (1, 2, 3)), ("poem", 1)]
    for _ in range(6):
        publish_at_random(hub, chance, given, 5)
        if chance.random() < 0.3:
            files.append(hub.back_up(f"{tmp_path}/{len(files)}.tar"))
        begin_again(hub, chance.choice(files))
        publish_at_random(hub, chance, given, 5)
    assert len({*given}) == len(given)


def test_restores_of_streams(hub: Hub, tar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be noted beside a stream: each day has a floor, and people pass the last one."""
    hub.back_up(tar)

    def restore(day: int, **options: int) -> int:
        class Clock(datetime):
            @classmethod
            def now(cls, zone: object) -> datetime:
                return datetime(2030, 1, day, 12, tzinfo=UTC)

        monkeypatch.setattr(floor, "datetime", Clock)
        with open(tar, "rb") as stream:
            monkeypatch.setattr("sys.stdin", Mock(buffer=stream))
            return begin_again(hub, STREAM, **options)

    first = restore(1)
    assert restore(2) > first + VERSIONS_PER_REPO_MAX
    assert restore(1, above=first) > first + VERSIONS_PER_REPO_MAX
    assert restore(1, above=2) == first
    assert not Path(tar.parent, "restored.json").exists()


def test_as_many_as_there_can_be(hub: Hub, tar: Path, other: Hub) -> None:
    """The furthest that a prompt can have come since the backup stays below the floor."""
    hub.back_up(tar)
    lowest = begin_again(other, str(tar))
    start = Version(1, 0, 2)
    for bump in BUMPS:
        last = start
        for _ in range(VERSIONS_PER_REPO_MAX):
            last = last.bump(bump)
        assert max(last) < lowest
        # And no later number equals one that may have been given.
        assert start.bump(bump).lifted(bump, lowest) > last
    assert Version(1, lowest, 0).bump("patch").lifted("patch", lowest) == Version(1, lowest, 1)


def test_numbers_of_their_own_kind(hub: Hub, tar: Path, other: Hub) -> None:
    """Versions made by hand count by the day; ordinals may be anything."""
    write_version(
        hub.settings.content, "ann", "daily", "2026.1123.20261123", "x", ordinal=31_000_000
    )
    hub.back_up(tar)
    assert begin_again(other, str(tar)) > 31_000_000 + VERSIONS_PER_REPO_MAX
    assert other.publish("daily", "y").version.startswith("2026.1123.")
    hub.publish("odd", "z")
    for suffix in ("md", "json"):
        path = Path(hub.settings.content, "ann", "odd", f"1.0.0.{suffix}")
        path.rename(path.with_name(f"999999999.0.0.{suffix}"))
    hub.back_up(tar)
    with pytest.raises(OperatorError, match="no higher number is certainly unused"):
        begin_again(other, str(tar))
    assert os.listdir(other.settings.content) == []


@pytest.mark.parametrize("data", ["{", "{}", '{"floor": -1}'])
def test_a_note_that_cannot_be_used(hub: Hub, tar: Path, other: Hub, data: str) -> None:
    """Without it, this restore could take the numbers of an earlier one."""
    hub.back_up(tar)
    Path(tar.parent, "restored.json").write_text(data)
    with pytest.raises(OperatorError, match=r"restored\.json: "):
        other.restore(tar)
    other.restore(tar, complete=True)
    assert other.publish("story", "On.").version == "1.0.3"


def test_the_serial_grows(hub: Hub, tar: Path, other: Hub) -> None:
    hub.back_up(tar)
    for number in range(3):
        hub.publish("poem", f"Ode {number}.")
    build(hub.settings, index=False)
    other.restore(tar)
    build(other.settings, index=False)
    before, after = read_hub(hub.settings.out).serial, read_hub(other.settings.out).serial
    assert before == 9 < after
    other.publish("poem", "Another.")
    build(other.settings, changed=[("ann", "poem")], index=False)
    assert read_hub(other.settings.out).serial == after + 1


def test_a_faulty_floor_stops_publications(hub: Hub) -> None:
    path = Path(hub.settings.content, "restored.json")
    path.write_text(json.dumps({"floor": 0}))
    with pytest.raises((OperatorError, RequestError), match=r"restored\.json"):
        hub.publish("poem", "An ode.")
    with pytest.raises(OperatorError, match=r"restored\.json"):
        build(hub.settings, index=False)
    versions = list_versions(hub.settings.content, "ann", "poem").versions
    assert versions == [Version(1, 0, 0)]
