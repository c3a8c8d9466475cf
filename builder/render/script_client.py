"""The TypeScript client as a site serves it: with the site's address in it, and its types."""

import json
import os

# Links to the files of the npm package, which has no links.
_FOLDER = os.path.join(os.path.dirname(__file__), "client")
_BAKED = b'const BUILT_FOR = "";\n'


def release(base_url: str) -> tuple[bytes, bytes]:
    """The client for a base URL that has passed ``settings.parse_base_url``, and its types."""
    with open(os.path.join(_FOLDER, "hub.js"), "rb") as file:
        built_for = f"const BUILT_FOR = {json.dumps(base_url)};\n".encode()
        script = file.read().replace(_BAKED, built_for)
    with open(os.path.join(_FOLDER, "hub.d.ts"), "rb") as file:
        return script, file.read()
