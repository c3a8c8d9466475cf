"""Reads prompts with the Langfuse SDK of the environment that this runs in.

Takes requests as lines of JSON, and answers each with a line: what the SDK gave, or its error.
Knows nothing of the hub, and has nothing of it installed.
"""

import json
import logging
import sys

from langfuse import Langfuse

logging.disable(logging.CRITICAL)
clients = {}


def client_of(base_url):
    if base_url not in clients:
        # From version 3 on, clients with the same key share a cache.
        keys = {"public_key": f"pk-lf-{len(clients)}", "secret_key": "sk-lf-unused"}
        try:
            made = Langfuse(**keys, base_url=base_url, tracing_enabled=False)
        except TypeError:
            # Version 2 has other names for both; its tracing cannot be off while it reads.
            made = Langfuse(**keys, host=base_url)
        clients[base_url] = made
    return clients[base_url]


def trace(base_url):
    """Send a trace, as an application does that has forgotten to turn tracing off."""
    keys = {"public_key": "pk-lf-traces", "secret_key": "sk-lf-unused"}
    client = Langfuse(**keys, host=base_url)
    if hasattr(client, "trace"):
        client.trace(name="made by a test")
    else:
        start = getattr(client, "start_observation", None) or client.start_span
        start(name="made by a test").end()
    client.flush()
    client.shutdown()


def answer(request):
    if "trace" in request:
        trace(request["base_url"])
        return {}
    client = client_of(request["base_url"])
    if "list" in request:
        # Version 2 calls it client.
        api = client.api if hasattr(client, "api") else client.client
        return json.loads(api.prompts.list(**request["list"]).json())
    prompt = client.get_prompt(request["name"], **request.get("options", {}))
    shown = {
        field: getattr(prompt, field)
        for field in ("name", "version", "prompt", "config", "labels", "tags", "is_fallback")
    }
    return shown | {
        "kind": type(prompt).__name__,
        "compiled": prompt.compile(**request.get("variables", {})),
    }


for line in sys.stdin:
    try:
        result = answer(json.loads(line))
    except Exception as error:
        result = {"error": type(error).__name__, "told": str(error)}
    print(json.dumps(result), flush=True)
for one in clients.values():
    one.flush()
