"""The unit that counts each hour, with logs and without any."""

import subprocess
from pathlib import Path

from builder.stats.pulls import PULLS_FILE, Pulls
from tests.hosts.test_units import commands, environment, placed
from tests.stats.logs import caddy_line, line


def test_the_service_counts_the_logs_of_nginx_and_caddy(tmp_path):
    (command,) = commands("hub-stats.service", "ExecStart")
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

    for name, data in (
        ("caddy/access.log", caddy_line(remote_ip="192.0.2.1")),
        ("caddy/access.log.1", caddy_line(remote_ip="192.0.2.2")),
        ("caddy/caddy.log", b"{}\n"),
    ):
        (state / name).parent.mkdir(exist_ok=True)
        (state / name).write_bytes(data)
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 lines: 2 pulls counted")

    (state / "nginx").mkdir()
    (state / "nginx" / "access.log").write_bytes(line(client="192.0.2.3"))
    assert run().stdout.startswith("3 lines: 1 pull counted")
    with Pulls(str(state)) as pulls:
        assert pulls.of("ann/story").total == 3

    # A fault makes the unit fail.
    (state / "nginx" / "access.log.1").mkdir()
    done = run()
    assert done.returncode != 0
    assert "Cannot read" in done.stderr
