"""Signs in with wrong passwords from ever new networks, on many connections at once.

Each of the 40 connections sends forms for 15 seconds. Meanwhile a bystander signs in, and a CI job
requests a token, again and again.
"""

import collections
import itertools
import re
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

from victim import BEHIND_PROXY, ask, bystander, hubctl_option, serving

CONNECTIONS = 40
SECONDS = 15
LOGIN = "/account/login"
TOKENS = "/api/v1/trusted-publishing/token"
FORM = "application/x-www-form-urlencoded"


def main() -> None:
    hubctl = hubctl_option(__doc__)
    numbers = itertools.count(1)
    turn = threading.Lock()

    def address() -> str:
        # Over http, only this machine can reach the account pages: all of 127.0.0.0/8.
        with turn:
            number = next(numbers)
        return f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def sign_in(cookie: str, csrf: str) -> tuple[int, float]:
        form = urlencode({"csrf_token": csrf, "handle": "nobody", "password": "wrong"})
        response, _, seconds = ask(
            hub.port,
            "POST",
            LOGIN,
            form,
            Cookie=cookie,
            Content_Type=FORM,
            X_Forwarded_For=address(),
        )
        return response.status, seconds

    def visit() -> tuple[str, str]:
        response, page, _ = ask(hub.port, "GET", LOGIN, X_Forwarded_For=address())
        cookie = response.headers["Set-Cookie"].partition(";")[0]
        return cookie, re.search(r'name="csrf_token" value="([^"]+)"', page)[1]

    def flood(end: float) -> None:
        while time.monotonic() < end:
            statuses[sign_in(*visitor)[0]] += 1

    def look() -> float:
        status, seconds = sign_in(*visitor)
        seen.append((status, seconds))
        return seconds

    def exchange() -> float:
        headers = {"Content_Type": "application/json", "X_Forwarded_For": address()}
        return ask(hub.port, "POST", TOKENS, "{}", **headers)[2]

    statuses: collections.Counter[int] = collections.Counter()
    seen: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "content").mkdir()
        with serving(hubctl, folder, *BEHIND_PROXY) as hub, ThreadPoolExecutor(CONNECTIONS) as pool:
            visitor = visit()
            with bystander(look) as signs_in, bystander(exchange) as exchanges:
                list(pool.map(flood, [time.monotonic() + SECONDS] * CONNECTIONS))
    print(f"{CONNECTIONS} connections, {SECONDS} s: answers by status {dict(statuses)}.")
    refused = sum(status == 503 for status, _ in seen)
    print(
        f"A bystander's sign-in took at most {max(signs_in):.2f} s (median "
        f"{statistics.median(signs_in):.2f} s, {refused} of {len(seen)} were 503), the exchange of "
        f"a CI job at most {max(exchanges):.2f} s."
    )


if __name__ == "__main__":
    main()
