"""The alerts in deploy/: each fires in promtool, and one in a real Prometheus for a real cause."""

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
    Process,
    Server,
    free_port,
    serving,
    wait_until,
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


def test_a_lost_content_folder_raises_an_alert_until_it_is_back(
    hub: Server, tmp_path: Path
) -> None:
    rules = re.sub(r"for: \d+m", "for: 1s", RULES.read_text(encoding="utf-8"))
    (tmp_path / "hub-alerts.yml").write_text(rules, encoding="utf-8")
    page = (PROJECT / "docs/operate/monitoring.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^(scrape_configs:.*?)^END$", page, re.DOTALL | re.MULTILINE)
    config = "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n" + shown
    address = metrics_url(hub).removeprefix("http://").removesuffix("/metrics")
    (tmp_path / "prometheus.yml").write_text(config.replace("127.0.0.1:9108", address))
    url = f"http://127.0.0.1:{free_port()}"
    prometheus = Process(
        "prometheus", f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={url[7:]}",
    )  # fmt: skip
    content = Path(hub.settings.content)
    try:
        prometheus.wait_for_line("Server is ready")

        def ask(query: str) -> list[dict]:
            answer = requests.get(
                f"{url}/api/v1/query", params={"query": query}, timeout=DEADLINE_SECONDS
            )
            return answer.json()["data"]["result"]

        def alert() -> dict | None:
            answer = requests.get(f"{url}/api/v1/alerts", timeout=DEADLINE_SECONDS).json()
            ours = (one for one in answer["data"]["alerts"] if one["state"] == "firing")
            return next((one for one in ours if one["labels"]["alertname"] == "HubNotReady"), None)

        wait_until(lambda: ask("hub_ready == 1"), "a first scrape")
        assert not alert()
        content.rename(content.with_name("moved"))
        fired = wait_until(alert, "the alert")
        assert fired["annotations"]["summary"].startswith(f"{address} cannot be read")
        assert ask('hub_unready{reason="content_not_writable"} == 1')
        content.with_name("moved").rename(content)
        wait_until(lambda: not alert(), "the end of the alert")
    finally:
        prometheus.stop()
