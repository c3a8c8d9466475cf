"""Requests names that do not exist, and searches for the same word again and again.

An owner has 1,100 prompts with names of two letters, which takes the longest comparisons. Anonymous
clients call ``get_prompt`` for others; then they search for ``a a a …``. A bystander searches
meanwhile.
"""

import hashlib
import itertools
import json
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

from victim import BEHIND_PROXY, ask, bystander, hubctl_option, serving

NAMES = 1_100
NAME_CHARS = 64
CALLS = 12
CLIENTS = 4


def main() -> None:
    hubctl = hubctl_option(__doc__)
    numbers = itertools.count(1)
    chance = random.Random(1)

    def client() -> str:
        return "198.18.{}.{}".format(*divmod(next(numbers), 250))

    def get_prompt(name: str) -> float:
        params = {"name": "get_prompt", "arguments": {"id": f"victim/{name}"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response, text, seconds = ask(
            hub.port, "POST", "/mcp", json.dumps(call), Content_Type="application/json",
            X_Forwarded_For=client(),
        )  # fmt: skip
        assert response.status == 200 and "no prompt" in text, text
        return seconds

    def search(words: str) -> float:
        path = f"/api/v1/repos?q={quote(words)}"
        return ask(hub.port, "GET", path, X_Forwarded_For=client())[2]

    def names(count: int) -> list[str]:
        return ["".join(chance.choices("ab", k=NAME_CHARS)) for _ in range(count)]

    with tempfile.TemporaryDirectory() as folder:
        for name in names(NAMES):
            write_prompt(Path(folder, "content/victim", name))
        with serving(hubctl, folder, *BEHIND_PROXY) as hub, ThreadPoolExecutor(CLIENTS) as pool:
            for what, attack, arguments in (
                ("get_prompt of wrong names", get_prompt, names(CALLS)),
                ("q=a", search, ["a"] * CALLS),
                ("q=a a a ...", search, [" ".join("a" * 50)] * CALLS),
            ):
                with bystander(lambda: search("prompt")) as waits:
                    took = sorted(pool.map(attack, arguments))
                print(
                    f"{CALLS} times {what}, {CLIENTS} at once: median {took[CALLS // 2]:.3f} s; "
                    f"the longest search of a bystander took {max(waits):.3f} s."
                )


def write_prompt(folder: Path) -> None:
    text = f"A a prompt named {folder.name}.\n"
    folder.mkdir(parents=True)
    (folder / "1.0.0.md").write_text(text)
    record = {
        "publisher": "victim", "published_at": "2026-01-01T00:00:00Z", "title": folder.name,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }  # fmt: skip
    (folder / "1.0.0.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main()
