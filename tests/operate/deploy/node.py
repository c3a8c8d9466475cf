"""A node that deploys while it has the turn, started with a JSON object. It builds its site again
for each line of input, and prints its status.
"""

import json
import signal
import sys
import threading
from typing import Any

from builder.model.settings import Settings
from builder.pipeline.build import build
from operate.deploy import follower
from operate.deploy.follower import Deployer
from operate.deploy.options import Job, Options
from publisher.accounts.postgres_pool import Connections
from publisher.log import configure_logging
from publisher.nodes.turn import Turn

follower.RETRY_SECONDS_MAX = 0.05
follower.LOOK_SECONDS = 0.1


def main(given: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logging()
    settings = Settings(**given["settings"])
    job = Job(settings.out, settings.state, given["bucket"], given["endpoint"], Options(jobs=1))
    turn = Turn(Connections(given["database"]), "deploy", seconds=given["seconds"])
    with Deployer(job, turn=turn) as deployer:
        threading.Thread(target=_print, args=(deployer,), daemon=True).start()
        for number, _ in enumerate(sys.stdin):
            deployer.tell(build(settings, index=False))
            print(f"Built {number}.", flush=True)


def _print(deployer: Deployer) -> None:
    shown = None
    while True:
        status = deployer.status()
        now = f"Status {status['status']} {status['serial']}"
        if now != shown:
            print(now, flush=True)
            shown = now
        threading.Event().wait(0.01)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
