"""A process that holds a lease when it can, started with STORE NODE TTL FILE. It notes in FILE what
it does with the right to do it: tenure, and when that was checked.
"""

import os
import signal
import sys
import time

from builder.model.errors import OperatorError
from publisher.nodes.deadline import now
from publisher.nodes.lease import Lease
from publisher.nodes.objects import Objects


def main(store: str, node: str, ttl: str, file: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with Lease(Objects(store), "test", node, float(ttl)) as lease:
        print("Started", flush=True)
        told = None
        while True:
            tenure = lease.tenure()
            if tenure != told:
                print(f"{node} holds {tenure}.", flush=True)
                told = tenure
            if tenure is not None:
                lease.deadline.expect(tenure)
                at = now()
                try:
                    lease.deadline.check()
                except OperatorError:
                    continue
                os.write(descriptor, f"{tenure} {at!r}\n".encode())
            time.sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
