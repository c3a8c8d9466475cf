"""Does what `hubctl hosts` says, as an operator without root would."""

import os
import shutil
import subprocess
from pathlib import Path

from builder.model.settings import Settings
from tests.support.servers import HUBCTL, clean_environment


def start_command(host: str, file: str, settings: Settings, folder: Path, port: int) -> list[str]:
    """Have ``hubctl hosts`` write a server's configuration ``file`` below ``folder``; gives the
    command that it prints to start the server, as another user where this one is root.
    """
    done = subprocess.run(
        [HUBCTL, "hosts", host, "--target", f"{folder}/conf", "--out", settings.out,
         "--state", settings.state, "--listen", f"127.0.0.1:{port}"],
        capture_output=True, text=True, env=clean_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder}/conf/{file}\n"
    assert f"It listens on http://127.0.0.1:{port}/." in done.stderr
    line = next(line for line in done.stderr.splitlines() if line.startswith("Start it with: "))
    command = line.removeprefix("Start it with: ").split()
    if os.geteuid() != 0:
        return command
    folder.chmod(0o755)
    for path, _, _ in os.walk(f"{settings.state}/{host}"):
        shutil.chown(path, "nobody")
    return ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", *command]
