"""The bytes of a record in the content."""

import msgspec
from msgspec import Struct


def render(record: Struct) -> bytes:
    """Returns a record as JSON that a person can read and diff: indented by two spaces, with a
    newline at the end.
    """
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
