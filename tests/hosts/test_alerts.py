"""The alerts in deploy/: each fires in promtool, and reads metrics that a hub has."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import yaml

from builder.model.settings import Settings
from tests.support.servers import (
    DEADLINE_SECONDS,
    PROJECT,
    Server,
    serving,
)

pytestmark = pytest.mark.usefixtures("installed_tools")

RULES = PROJECT / "deploy/hub-alerts.yml"
CASES = PROJECT / "tests/hosts/alerts.yml"


@pytest.fixture
def hub(small: Settings) -> Iterator[Server]:
    with serving(small, "--metrics", "127.0.0.1:0") as server:
        yield server


def metrics_url(hub: Server) -> str:
    return hub.process.wait_for_line("Metrics at").split()[-1]


def promtool(*arguments: str, text: str = "") -> None:
    done = subprocess.run(
        ["promtool", *arguments], input=text, capture_output=True, text=True,
        timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "FAILED" not in said


def test_each_alert_fires_when_it_should() -> None:
    promtool("check", "rules", str(RULES))
    promtool("test", "rules", str(CASES))
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
    fired = {
        re.search(r'alertname="(\w+)"', json.dumps(case).replace("\\", ""))[1] for case in cases
    }
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == [*dict.fromkeys(rule["alert"] for rule in rules)]
    assert fired == {rule["alert"] for rule in rules}
    page = (PROJECT / "docs/operate/monitoring.md").read_text(encoding="utf-8")
    for rule in rules:
        assert rule["annotations"]["summary"] and rule["annotations"]["action"]
        assert rule["annotations"]["runbook"].endswith(f"#{rule['alert'].lower()}")
        assert f"\n### {rule['alert']}\n" in page


def test_promtool_finds_no_fault_with_the_metrics(hub: Server) -> None:
    page = requests.get(metrics_url(hub), timeout=DEADLINE_SECONDS).text
    assert 'hub_disk_free_bytes{folder="content"}' in page
    promtool("check", "metrics", text=page)
    # The metrics that the alerts read exist under these names.
    for name in re.findall(r"\bhub_\w+", RULES.read_text(encoding="utf-8")):
        assert f"\n{name}" in page, name


def test_the_example_of_a_configuration_is_valid(tmp_path: Path) -> None:
    (tmp_path / "hub-alerts.yml").write_bytes(RULES.read_bytes())
    page = (PROJECT / "docs/operate/monitoring.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^(scrape_configs:.*?)^END$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "prometheus.yml").write_text(shown, encoding="utf-8")
    promtool("check", "config", str(tmp_path / "prometheus.yml"))
