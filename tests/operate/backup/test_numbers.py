"""No version number and no ordinal is given twice, whatever was published since the backup."""

import json
import random
from pathlib import Path

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.names import BUMPS, VERSIONS_PER_REPO_MAX, Version
from builder.pipeline.build import build
from builder.store.content import list_versions, read_record
from builder.store.site import read_hub
from operate.backup import floor
from operate.backup.places import FolderPlace
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


@pytest.mark.parametrize("seed", range(4))
def test_after_any_blind_restores(hub: Hub, place: FolderPlace, seed: int) -> None:
    """Backups, publications and restores of any snapshot, also of the same one again."""
    chance, given = random.Random(seed), []
    ids = [hub.back_up(place).id]
    for version in ("1.0.0", "1.0.1", "1.0.2"):
        given.append(("story", version))
    given += [("poem", "1.0.0"), *(("story", number) for number in (1, 2, 3)), ("poem", 1)]
    for _ in range(6):
        publish_at_random(hub, chance, given, 5)
        if chance.random() < 0.3:
            ids.append(hub.back_up(place).id)
        hub.restore(place, snapshot_id=chance.choice(ids), replace=True)
        publish_at_random(hub, chance, given, 5)
    assert len({*given}) == len(given)


def test_as_many_as_there_can_be(hub: Hub, place: FolderPlace, other: Hub) -> None:
    """The furthest that a prompt can have come since the backup stays below the floor."""
    hub.back_up(place)
    report = other.restore(place)
    start = Version(1, 0, 2)
    for bump in BUMPS:
        last = start
        for _ in range(VERSIONS_PER_REPO_MAX):
            last = last.bump(bump)
        assert max(last) < report.floor
        # And no later number equals one that may have been given.
        assert start.bump(bump).lifted(bump, report.floor) > last
    assert Version(1, report.floor, 0).bump("patch").lifted("patch", report.floor) == Version(
        1, report.floor, 1
    )


def test_numbers_of_their_own_kind(hub: Hub, place: FolderPlace, other: Hub) -> None:
    """Versions made by hand count by the day; ordinals may be anything."""
    write_version(
        hub.settings.content, "ann", "daily", "2026.1123.20261123", "x", ordinal=31_000_000
    )
    hub.back_up(place)
    assert other.restore(place).floor > 31_000_000 + VERSIONS_PER_REPO_MAX
    assert other.publish("daily", "y").version.startswith("2026.1123.")
    hub.publish("odd", "z")
    for suffix in ("md", "json"):
        path = Path(hub.settings.content, "ann", "odd", f"1.0.0.{suffix}")
        path.rename(path.with_name(f"999999999.0.0.{suffix}"))
    hub.back_up(place)
    with pytest.raises(OperatorError, match="no higher number is certainly unused"):
        other.restore(place, replace=True)


def test_a_backup_that_cannot_note_it(hub: Hub, place: FolderPlace, other: Hub) -> None:
    hub.back_up(place)

    class Sealed(FolderPlace):
        def put(self, key: str, data: bytes) -> None:
            raise OperatorError(f"Cannot write {key}: Read-only file system.")

    with pytest.raises(OperatorError, match=r"Read-only.*--complete"):
        other.restore(Sealed(place.root))
    Path(place.root, floor.FOLDER).mkdir()
    Path(place.root, floor.FOLDER, "0001.json").write_text("{")
    with pytest.raises(OperatorError, match=r"0001\.json is damaged"):
        other.restore(place)


def test_the_serial_grows(hub: Hub, place: FolderPlace, other: Hub) -> None:
    hub.back_up(place)
    for number in range(3):
        hub.publish("poem", f"Ode {number}.")
    build(hub.settings, index=False)
    other.restore(place)
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
