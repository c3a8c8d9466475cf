"""The rebuilder: lists lag behind publications, for so long and no longer."""

import math
import time
from types import SimpleNamespace

import pytest

from builder.emit import catalogue
from builder.model import envelopes
from builder.model.routes import SORTS
from builder.pipeline import rebuild, settle
from builder.pipeline.build import build
from builder.store.state import work
from tests.builder.pipeline.rebuilds import Hub, rebuilding
from tests.support.servers import wait_until


@pytest.fixture
def never_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps lists from being settled in quiet moments."""
    monkeypatch.setattr(rebuild, "QUIET_SECONDS", 60.0)


@pytest.fixture
def one_step_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build for a waiting publisher does one step of the other lists, which are late at once."""
    for name in ("LAG_SECONDS_MAX", "SLICE_SECONDS", "SLICE_SHARE"):
        monkeypatch.setattr(settle, name, 0.0)


@pytest.mark.usefixtures("never_quiet")
def test_deep_pages_are_left_until_it_is_quiet(built):
    with rebuilding(built) as hub:
        hub.publish("ann/story", "1.0.1")
        wait_until(lambda: hub.health["last_build"], "the build")
        health = hub.health
        assert (health["status"], health["serial"]) == ("behind", 4)
        assert health["lag_seconds"] > 0
    # The next start continues from there, even without a hint.
    assert build(built, changed=()).is_settled
    assert hub.serial == 5
    hub.check_site()


@pytest.mark.usefixtures("one_step_a_build")
def test_lists_are_not_put_off_for_ever(built):
    hub = Hub(built)
    for number in range(1, 100):
        hub.write("ann/story", f"1.0.{number}")
        report = build(built, changed=[("ann", "story")], is_wanted=lambda: True)
        # A change during a pass waits for the next one, so each pass ends.
        assert hub.serial <= 4 + number
        if hub.serial > 10:
            break
    assert hub.serial > 10
    assert not report.is_settled or hub.serial == 4 + number
    build(built)
    hub.check_site()


@pytest.mark.usefixtures("one_step_a_build")
def test_under_constant_load_every_publication_is_settled_after_some_builds(empty, monkeypatch):
    """Each build has something new of its own, and the clock counts builds."""
    repos = 3
    for module in (catalogue, envelopes):
        monkeypatch.setattr(module, "PAGE_SIZE", 1)
    monkeypatch.setattr(catalogue, "PAGES_PER_STRETCH", 1)
    clock = [0]
    monkeypatch.setattr(work, "time", SimpleNamespace(time=lambda: clock[0]))
    hub = Hub(empty)
    for number in range(repos):
        hub.write(f"ann/repo-{number}")
    build(empty)
    # The list in each order, the index, and the files of the catalogue.
    steps = len(SORTS) * repos + 1 + 5
    reached = 0
    for clock[0] in range(1, 4 * steps):
        name = f"repo-{clock[0] % repos}"
        hub.write(f"ann/{name}", f"1.0.{clock[0]}")
        report = build(empty, changed=[("ann", name)], is_wanted=lambda: True)
        # Publication n came at time n, and was version n after the first ones.
        reached = max(reached, hub.serial - repos)
        # In the worst case the publication came just after a pass began.
        assert clock[0] - reached <= 2 * steps
        assert report.behind_seconds == clock[0] - (reached + 1)
        if reached > steps:
            break
    assert reached > steps
    build(empty)
    hub.check_site()


@pytest.mark.usefixtures("never_quiet", "one_step_a_build")
def test_the_lag_is_that_of_the_oldest_change_that_lists_do_not_have(built):
    requested_at: dict[int, float] = {}
    with rebuilding(built) as hub:
        for number in range(1, 60):
            requested_at[4 + number] = time.monotonic()
            hub.publish("ann/story", f"1.0.{number}")
            if hub.health["serial"] > 10:
                break

        def is_right() -> bool:
            health = hub.health
            oldest = requested_at.get(health["serial"] + 1, math.inf)
            return health["lag_seconds"] <= max(0.0, time.monotonic() - oldest)

        assert hub.health["serial"] > 10
        wait_until(is_right, "the end of the build")


def test_a_look_at_everything_is_not_put_off_for_ever(built, monkeypatch):
    """Publications arrive before each build ends, and no hint names the change to find."""
    monkeypatch.setattr(rebuild, "LOOK_LATE_SECONDS", 0.0)

    class Busy(list):
        def append(self, outcome: object) -> None:
            super().append(outcome)
            if len(self) < 20 and not hub.has("zoe/repo"):
                hub.ask_for("ann/story")

    with rebuilding(built, outcomes=Busy()) as hub:
        hub.ask_for("ann/story")
        hub.write("zoe/repo")
        hub.rebuilder.request(None)
        wait_until(lambda: hub.has("zoe/repo"), "the look")
        assert len(hub.outcomes) < 20
