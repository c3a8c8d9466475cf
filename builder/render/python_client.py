"""The Python client as a site releases it: one file, with the site's address in it."""

import os

CLIENT = os.path.join(os.path.dirname(__file__), "client", "hub_prompts.py")
_BAKED = b'\nBAKED_URL = ""\n'


def release(base_url: str) -> bytes:
    """The client for a base URL that has passed ``settings.parse_base_url``."""
    with open(CLIENT, "rb") as file:
        return file.read().replace(_BAKED, f'\nBAKED_URL = "{base_url}"\n'.encode())
