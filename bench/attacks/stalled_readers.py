"""Thirty readers request 56 MB from `hubctl serve` and read nothing; prints its memory.

python bench/attacks/stalled_readers.py [--hubctl PATH]
"""

import contextlib
import os
import socket
import time

from victim import bystander, home_seconds, hubctl_option, memory_mib, serving_samples

READERS = 30
PAGE_BYTES = 56_000_000
HOLD_SECONDS = 15


def main() -> None:
    hubctl = hubctl_option(__doc__)
    with serving_samples(hubctl) as server, contextlib.ExitStack() as stack:
        with open(f"{server.site}/api/v1/catalogue.jsonl", "wb") as file:
            file.write(os.urandom(PAGE_BYTES // 8) * 8)
        before = memory_mib(server.pid)
        with bystander(lambda: home_seconds(server.port)) as waits:
            for _ in range(READERS):
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.connect(("127.0.0.1", server.port))
                connection.sendall(b"GET /api/v1/catalogue.jsonl HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(HOLD_SECONDS)
        print(
            f"{READERS} readers of {PAGE_BYTES // 1_000_000} MB that take nothing: server "
            f"{before} -> {memory_mib(server.pid)} MiB; bystander's longest GET / "
            f"{max(waits):.2f} s"
        )


if __name__ == "__main__":
    main()
