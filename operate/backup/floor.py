"""The numbers of versions that are published after a restore.

A restore loses publications since the backup, but their numbers were given. Each publication raises
one number by one, and the number of versions of a prompt is limited. So no lost number has a part,
nor an ordinal, that exceeds the largest in the backup by more than that limit. The *floor* is above
all of these numbers. It is also above those that followed earlier restores from the same backup:
the backup notes each floor.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from builder.model import names
from builder.model.errors import OperatorError
from builder.model.names import Version
from builder.model.records import format_time
from builder.model.withdrawn import FOLDER as WITHDRAWN
from builder.store.restored import Restored, parse_restored
from operate.backup.places import Place

FOLDER = "restores/"
_NOTE_BYTES_MAX = 16 * 1024
_STEP = 10_000

_record = re.compile(rf"[^/]+/[^/]+/(?:{WITHDRAWN}/)?(?:({names.VERSION_PATTERN})|all)\.json")
_key = re.compile(rf"{FOLDER}([0-9]{{1,4}})\.json")


class _Numbers(Struct):
    """The numbers in a record or in a withdrawal."""

    ordinal: int = 0
    versions: dict[str, "_Numbers"] = {}


_decode_numbers = msgspec.json.Decoder(_Numbers).decode


def highest_number(path: str, data: bytes) -> int:
    """The highest part of a version, or ordinal, in a file of the content; 0 if it has none."""
    found = _record.fullmatch(path)
    if not found:
        return 0
    try:
        stored = _decode_numbers(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        stored = _Numbers()  # a faulty record, whose ordinal no build uses
    versions = [found[1], *filter(names.is_version, stored.versions)]
    numbers = [part for text in versions if text for part in Version.parse(text)]
    return max([*numbers, stored.ordinal, *(one.ordinal for one in stored.versions.values())])


def floor_above(base: int) -> int:
    """The lowest floor above all numbers that publications after ``base`` can have been given.
    Raises OperatorError.
    """
    floor = -(-(base + names.VERSIONS_PER_REPO_MAX + 1) // _STEP) * _STEP
    if floor + names.VERSIONS_PER_REPO_MAX > names.VERSION_PART_MAX:
        raise OperatorError(
            f"The number {base:,} is taken, so no higher number is certainly unused. If nothing "
            "was published since, continue with the next numbers: `hubctl restore --complete`."
        )
    return floor


def take_floor(place: Place, highest: int, others: Iterable[Restored | None]) -> Restored:
    """A floor above ``highest`` and above the floors of all earlier restores, which are noted in
    the place or in ``others``. The place has noted it when this returns. Raises OperatorError.
    """
    notes = {int(found[1]): key for key in place.keys(FOLDER) if (found := _key.fullmatch(key))}
    known = [_read_note(place, key).floor for key in notes.values()]
    floor = floor_above(max([highest, *known, *(one.floor for one in others if one)]))
    now = datetime.now(UTC)
    # Seconds since 1970 exceed every earlier serial: no hub averages more than one publication a
    # second over years.
    restored = Restored(floor, int(now.timestamp()), format_time(now))
    try:
        place.put(f"{FOLDER}{max(notes, default=0) + 1:04}.json", msgspec.json.encode(restored))
    except OperatorError as error:
        raise OperatorError(
            f"Cannot note in the backup which numbers this restore takes, so another one could "
            f"take the same: {error} Or restore with --complete if nothing was published since."
        ) from error
    return restored


def _read_note(place: Place, key: str) -> Restored:
    try:
        return parse_restored(place.get(key, _NOTE_BYTES_MAX) or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(
            f"{place.name}: {key} is damaged ({error}). It says which numbers an earlier restore "
            "took. Remove that file if that restored hub was never used."
        ) from None
