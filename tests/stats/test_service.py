"""The unit that counts each hour, with logs and without any."""

import subprocess
from pathlib import Path

from builder.stats.pulls import PULLS_FILE, Pulls
from tests.hosts.test_units import commands, environment, placed
from tests.stats.logs import line


def test_the_service_counts_the_logs_of_nginx(tmp_path):
    (command,) = commands("hub-stats.service", "ExecStart")
    logs = tmp_path / "logs"
    logs.mkdir()
    command = command.replace("/var/log/nginx", str(logs))
    variables = environment(tmp_path)
    state = Path(variables["HUB_STATE"])
    state.mkdir()

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            placed(command, tmp_path), env=variables, capture_output=True, text=True
        )

    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (state / PULLS_FILE).exists()

    (logs / "hub.log").write_bytes(line(client="192.0.2.1"))
    (logs / "hub.log.1").write_bytes(line(client="192.0.2.2"))
    (logs / "error.log").write_bytes(b"{}\n")
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 lines: 2 pulls counted")

    (logs / "hub.log.2").write_bytes(line(client="192.0.2.3"))
    assert run().stdout.startswith("3 lines: 1 pull counted")
    with Pulls(str(state)) as pulls:
        assert pulls.of("ann/story").total == 3

    # A fault makes the unit fail.
    (logs / "hub.log.3").mkdir()
    done = run()
    assert done.returncode != 0
    assert "Cannot read" in done.stderr
