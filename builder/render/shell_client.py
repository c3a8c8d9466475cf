"""The shell client as a site releases it: with the site's address in it, and its checksum."""

import hashlib
import os
from typing import NamedTuple

from builder.render import catalogue_search
from builder.text import formats

CLIENT = os.path.join(os.path.dirname(__file__), "client", "hub")
_BAKED = b"baked_url='http://127.0.0.1:8000'\n"
_SEARCH = b"# The build puts search.py here.\n"
_FORMATS = b"# The build puts formats.py here.\n"


class Release(NamedTuple):
    """``checksum`` is what ``sha256sum -c`` reads, for a file named ``hub``."""

    script: bytes
    checksum: bytes


def release(base_url: str, search_rules: str) -> Release:
    """The client for a base URL that has passed ``settings.parse_base_url``, with the rules of
    ``builder.search.rules``.
    """
    with open(CLIENT, "rb") as file:
        script = file.read().replace(_BAKED, f"baked_url='{base_url}'\n".encode())
    script = script.replace(_SEARCH, catalogue_search.for_client(search_rules))
    with open(formats.__file__, "rb") as file:
        script = script.replace(_FORMATS, file.read())
    return Release(script, f"{hashlib.sha256(script).hexdigest()}  hub\n".encode())
