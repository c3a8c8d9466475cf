"""`hubctl doctor`: output and exit status. Its checks are tested in `tests/operate/doctor`."""

import json
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from operate.doctor import folders as doctor_folders
from tests.cli.test_hubctl import folders, hubctl
from tests.support.servers import Server


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run in memory, or in a container's layer: no place for a hub."""
    monkeypatch.setattr(doctor_folders, "kind_of", lambda path: "ext4")


def test_a_hub_that_is_well(live: Server) -> None:
    done = hubctl("doctor", *folders(live.settings), "--base-url", live.url)
    levels = [line.split()[0] for line in done.stdout.splitlines() if line[0] != " "]
    assert "problem" not in levels, done.stdout
    assert "ok       queries: versions and searches are found by query\n" in done.stdout
    assert done.stderr.startswith("0 problems, ")
    assert done.exit_code == 0


def test_a_problem_and_what_to_do(small: Settings) -> None:
    build(small, index=False)
    Path(small.content, "ann", "story", "1.0.0.json").unlink()
    done = hubctl("doctor", *folders(small), "--offline")
    assert f"problem  content: 2 faults in {small.content}, among them: " in done.stdout
    assert f"\n         List all with `hubctl check --content {small.content}`" in done.stdout
    assert "address:" not in done.stdout
    assert done.stderr.startswith("1 problem, ")
    assert done.exit_code == 1


def test_json(small: Settings) -> None:
    done = hubctl("doctor", *folders(small), "--offline", "--json")
    found = json.loads(done.stdout)
    assert (found["problems"], done.stderr, done.exit_code) == (0, "", 0)
    (site,) = [one for one in found["findings"] if one["check"] == "site"]
    assert site["level"] == "warning"
    assert site["do"].startswith("Run `hubctl build`")
    assert found["warnings"] >= 2  # no state folder exists, either


def test_it_asks_the_address_that_the_site_was_built_with(small: Settings) -> None:
    build(small._replace(base_url="http://127.0.0.1:1"), index=False)
    done = hubctl("doctor", *folders(small))
    assert "problem  address: No answer from http://127.0.0.1:1/api/v1/hub.json" in done.stdout
    assert "queries:" not in done.stdout  # further checks would find the same
    assert done.exit_code == 1
