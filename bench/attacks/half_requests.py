"""Opens 1,100 connections to a `hubctl serve` that may have 1,024 open files, and sends half a head
on each. Prints the number of answers then, and after twelve seconds.

    python bench/attacks/half_requests.py [--hubctl PATH]
"""

import contextlib
import socket
import time

from victim import hubctl_option, serving_samples, status_of

CONNECTIONS = 1_100
OPEN_FILES = 1_024
WAIT_SECONDS = 12  # longer than the server waits for a head


def main() -> None:
    hubctl = hubctl_option(__doc__)
    with (
        serving_samples(hubctl, open_files=OPEN_FILES) as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(CONNECTIONS):
            with contextlib.suppress(OSError):
                address = ("127.0.0.1", server.port)
                connection = stack.enter_context(socket.create_connection(address, 5))
                connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        print(f"{CONNECTIONS:,} half requests from one address, {OPEN_FILES:,} open files")
        for when, wait_seconds in (("at once", 0), ("later", WAIT_SECONDS)):
            time.sleep(wait_seconds)
            same, other = (status_of(server.port, source) for source in ("127.0.0.1", "127.0.0.2"))
            print(f"{when}: the same address got {same}, another one {other}")


if __name__ == "__main__":
    main()
