"""The shell client as a site releases it: with the site's address in it, and its checksum."""

import hashlib
import os
from typing import NamedTuple

from builder.render import catalogue_search
from builder.text import formats

_HERE = os.path.join(os.path.dirname(__file__), "client")
CLIENT = os.path.join(_HERE, "hub")
_FROM_FORMATS = b"from builder.text.formats import write_as\n"
_BAKED = b"baked_url='http://127.0.0.1:8000'\n"


class Release(NamedTuple):
    """``checksum`` is what ``sha256sum -c`` reads, for a file named ``hub``."""

    script: bytes
    checksum: bytes


def release(base_url: str, search_rules: str) -> Release:
    """The client for a base URL that has passed ``settings.parse_base_url``, with the rules of
    ``builder.search.rules``.
    """
    script = _read(CLIENT).replace(_BAKED, f"baked_url='{base_url}'\n".encode())
    programs = {
        "search.py": catalogue_search.for_client(search_rules),
        "show.py": _read(os.path.join(_HERE, "show.py")),
        "formats.py": _read(formats.__file__),
        "convert.py": _read(os.path.join(_HERE, "convert.py")).replace(_FROM_FORMATS, b""),
    }
    for name, source in programs.items():
        script = script.replace(f"# The build puts {name} here.\n".encode(), source)
    return Release(script, f"{hashlib.sha256(script).hexdigest()}  hub\n".encode())


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
