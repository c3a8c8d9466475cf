"""A node that deploys when it is its turn, started with a JSON object. It builds its site anew
for each line of input, and prints what becomes of it.
"""

import json
import signal
import sys
import threading
import uuid
from typing import Any

from builder.model.settings import Settings
from builder.pipeline.build import build
from operate.deploy import follower
from operate.deploy.follower import Deployer
from operate.deploy.job import Job
from operate.deploy.options import Options
from publisher.log import configure_logging
from publisher.nodes.turn import open_turn

follower.RETRY_SECONDS_MAX = 0.05
follower.LOOK_SECONDS = 0.1


def main(given: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logging()
    settings = Settings(**given["settings"])
    job = Job(settings.out, settings.state, given["bucket"], given["endpoint"], Options(jobs=1))
    turn = open_turn(given["database"], "deploy", str(uuid.uuid4()), given["seconds"])
    with Deployer(job, turn=turn) as deployer:
        threading.Thread(target=_print, args=(deployer,), daemon=True).start()
        for number, _ in enumerate(sys.stdin):
            deployer.tell(build(settings, index=False))
            print(f"Built {number}.", flush=True)


def _print(deployer: Deployer) -> None:
    told = None
    while True:
        status = deployer.status()
        now = f"Status {status['status']} {status['serial']}"
        if now != told:
            print(now, flush=True)
            told = now
        threading.Event().wait(0.01)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
