"""The bytes of a record in the content."""

import msgspec
from msgspec import Struct


def render(record: Struct) -> bytes:
    """A record as a person reads and diffs it: two spaces, a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
