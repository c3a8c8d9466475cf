"""The numbers of versions that are published after a restore.

A restore loses publications since the backup, but their numbers were given. Each publication raises
one number by one, and the number of versions of a prompt is limited. So no lost number has a part,
nor an ordinal, that exceeds the largest in the backup by more than that limit. The *floor* is above
all of these numbers. It must also be above the numbers that followed earlier restores of the same
backup: their floors are noted beside the backup and in the content that is replaced, and each day
has a floor of its own in case both are lost.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from builder.model import names
from builder.model.content_tree import RECORD, WITHDRAWAL, in_repo
from builder.model.errors import OperatorError
from builder.model.names import Version
from builder.model.records import format_time
from builder.store.restored import Restored

_STEP = 10_000
# More than what a prompt can be given in a day, from one step to the next but one.
_STEPS_PER_DAY = 2
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class _Numbers(Struct):
    """The numbers in a record or in a withdrawal."""

    ordinal: int = 0
    versions: dict[str, "_Numbers"] = {}


_decode_numbers = msgspec.json.Decoder(_Numbers).decode


def highest_number(path: str, data: bytes) -> int:
    """The highest part of a version, or ordinal, in a file of the content; 0 if it has none."""
    kind, version = in_repo(path.split("/", 2)[-1]) or (None, "")
    if kind not in (RECORD, WITHDRAWAL):
        return 0
    try:
        stored = _decode_numbers(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        stored = _Numbers()  # a faulty record, whose ordinal no build uses
    versions = filter(names.is_version, [version, *stored.versions])
    numbers = [part for text in versions for part in Version.parse(text)]
    return max([*numbers, stored.ordinal, *(one.ordinal for one in stored.versions.values())])


def floor_above(highest: int, earlier: Iterable[Restored | None] = ()) -> Restored:
    """A floor above all numbers that can have been given after ``highest`` and after earlier
    restores, as of now. Raises OperatorError.
    """
    base = max([highest, *(one.floor for one in earlier if one)])
    now = datetime.now(UTC)
    steps_by_now = _STEPS_PER_DAY * (now - _FIRST_DAY).days
    steps = max(-(-(base + names.VERSIONS_PER_REPO_MAX + 1) // _STEP), steps_by_now)
    floor = _STEP * steps
    if floor + names.VERSIONS_PER_REPO_MAX > names.VERSION_PART_MAX:
        raise OperatorError(
            f"The number {base:,} is taken, so no higher number is certainly unused. If nothing "
            "was published since, continue with the next numbers: `hubctl restore --complete`."
        )
    # Seconds since 1970 exceed every earlier serial: no hub averages more than one publication a
    # second over years.
    return Restored(floor, int(now.timestamp()), format_time(now))
