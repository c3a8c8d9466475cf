"""Reads the file of the content that a restore leaves if it may lack versions that readers saw.

Readers may have seen versions that the content does not have. Every part and ordinal of a number
given before is below ``floor``. Each later publication has at least one that is not, so its number
was never given before.
"""

import os
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from builder.model import names
from builder.model.content_tree import RESTORED, RESTORING
from builder.model.errors import OperatorError
from builder.model.records import Time
from builder.store.plain_files import read_record_if_there


class Restored(Struct, forbid_unknown_fields=True):
    """``serial``: the start of the serial in hub.json. ``at``: the time of the restore."""

    floor: Annotated[int, Meta(ge=1, le=names.VERSION_PART_MAX)]
    serial: Annotated[int, Meta(ge=0)]
    at: Time


parse_restored = msgspec.json.Decoder(Restored).decode


def read_restored(root: str) -> Restored | None:
    """The restore's record; None if the content has every published version. Raises
    ContentError.
    """
    return read_record_if_there(root, RESTORED.path, parse_restored, RESTORED.bytes_max)


def number_floor(root: str) -> int:
    """The least that one part of a new number must reach; 0: any. Raises ContentError."""
    restored = read_restored(root)
    return restored.floor if restored else 0


def serial_base(root: str) -> int:
    """The number added to the count of publications. Raises ContentError."""
    restored = read_restored(root)
    return restored.serial if restored else 0


def check_not_restoring(root: str) -> None:
    """Raises OperatorError if a restore has not ended."""
    if os.path.lexists(f"{root}/{RESTORING}"):
        raise OperatorError(
            f"A restore into {root} has not ended. If it was killed, move {root} and the state "
            "folder aside, and restore again."
        )
