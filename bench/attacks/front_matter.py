"""Publishes front matter that is slow to parse as YAML, and reads the prompts with changing
arguments.

The holder of a token publishes texts of up to 100 KB. Anonymous clients call ``get_prompt`` for
them, each time with another argument. A bystander reads ``/`` meanwhile.
"""

import itertools
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from victim import BEHIND_PROXY, ask, bystander, home_seconds, hubctl_option, serving

CALLS = 4
CONTENT_CHARS = 100_000
FRONTS = {
    "base 60": "k: 1" + ":1" * (CONTENT_CHARS // 2 - 10),
    "a flow list": "k: [" + "1," * (CONTENT_CHARS // 2 - 10) + "]",
    "a flow list of 16 KB": "k: [" + "1," * 8_000 + "]",
    "a mapping within the limits": "".join(f"k{number}: 1:1:1\n" for number in range(480)),
}


def main() -> None:
    hubctl = hubctl_option(__doc__)
    numbers = itertools.count(1)

    def get_prompt(name: str) -> float:
        number = next(numbers)
        arguments = {"id": f"eve/{name}", "arguments": {"what": str(number)}}
        params = {"name": "get_prompt", "arguments": arguments}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return ask(
            hub.port, "POST", "/mcp", json.dumps(call), Content_Type="application/json",
            X_Forwarded_For=f"198.18.0.{number}",
        )[2]  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "content").mkdir()
        state = ["--state", f"{folder}/var"]
        subprocess.run([hubctl, "owner", "add", "eve", *state], check=True, capture_output=True)
        create = [hubctl, "token", "create", "eve", "--name", "x", *state]
        token = subprocess.check_output(create, text=True).strip()
        with (
            serving(hubctl, folder, *BEHIND_PROXY, "--rate-limit", "0") as hub,
            ThreadPoolExecutor(CALLS) as pool,
        ):
            for number, (what, front) in enumerate(FRONTS.items()):
                path = f"/api/v1/repos/eve/front-{number}/versions"
                content = f"---\n{front}\n---\nSay {{{{what}}}}."
                with bystander(lambda: home_seconds(hub.port)) as waits:
                    response, _, seconds = ask(
                        hub.port, "POST", path, json.dumps({"content": content}),
                        Authorization=f"Bearer {token}", Content_Type="application/json",
                    )  # fmt: skip
                print(
                    f"{what}: published in {seconds:.2f} s, status {response.status}; the longest "
                    f"GET / of a bystander took {max(waits):.2f} s."
                )
                if response.status != 201:
                    continue
                with bystander(lambda: home_seconds(hub.port)) as waits:
                    took = list(pool.map(get_prompt, [f"front-{number}"] * CALLS))
                print(
                    f"{what}: {CALLS} times get_prompt took {max(took):.2f} s; the longest GET / "
                    f"of a bystander took {max(waits):.2f} s."
                )


if __name__ == "__main__":
    main()
