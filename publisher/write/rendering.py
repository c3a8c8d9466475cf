"""The bytes of a record in the content."""

import msgspec
from msgspec import Struct

from builder.model.content_tree import RECORD
from builder.model.errors import Detail, validation_failed
from builder.model.records import VersionFile


def render(record: Struct) -> bytes:
    """Returns a record as JSON that a person can read and diff: indented by two spaces, with a
    newline at the end.
    """
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def render_version(record: VersionFile) -> bytes:
    """As ``render``. Raises RequestError ``validation_failed`` for a record that is too long."""
    raw = render(record)
    if len(raw) > RECORD.bytes_max:
        message = f"the record would have {len(raw):,} bytes, but {RECORD.bytes_max:,} is the limit"
        raise validation_failed(Detail("parameters", message))
    return raw
