"""The shell client as a site releases it: with the site's address in it, and its checksum.

Reads ``cli/hub`` as a file; what is in it is that file's own business.
"""

import hashlib
import os
from functools import cache
from typing import NamedTuple

from builder.model.errors import OperatorError

CLIENT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "cli", "hub")
_BAKED = b"baked_url='http://127.0.0.1:8000'\n"


class Release(NamedTuple):
    """``checksum`` is what ``sha256sum -c`` reads, for a file named ``hub``."""

    script: bytes
    checksum: bytes


def release(base_url: str) -> Release:
    """The client for a base URL that has passed ``settings.parse_base_url``.

    Raises OperatorError where the client is not the one that this code knows.
    """
    script = read_source()
    if script.count(_BAKED) != 1:
        raise OperatorError(f"{CLIENT} has no place for the site's address. Install hub again.")
    script = script.replace(_BAKED, f"baked_url='{base_url}'\n".encode())
    return Release(script, f"{hashlib.sha256(script).hexdigest()}  hub\n".encode())


@cache
def read_source() -> bytes:
    """The client's file, as it was when this process first read it. Raises OperatorError."""
    try:
        with open(CLIENT, "rb") as file:
            return file.read()
    except OSError as error:
        raise OperatorError(
            f"Cannot read the client {CLIENT}: {error.strerror}. Install hub again."
        ) from None
