"""Numbers for what is published after a restore.

What was published since the backup is lost, but its numbers were given. A publication raises one
number by one, and a prompt has at most so many versions. So no lost number has a part, nor an
ordinal, that is larger than the largest of the backup by more than that. The *floor* is above all
of these, and above those that an earlier restore from the same backup has led to: each is noted in
the backup.
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
from builder.store.restored import Restored
from operate.backup.places import Place

FOLDER = "restores"
_NOTE_BYTES_MAX = 16 * 1024
_STEP = 10_000

_record = re.compile(rf"[^/]+/[^/]+/(?:{WITHDRAWN}/)?(?:({names.VERSION_PATTERN})|all)\.json")
_key = re.compile(rf"{FOLDER}/([0-9]{{1,4}})\.json")


class _Numbers(Struct):
    """What a record, or a withdrawal, says of numbers."""

    ordinal: int = 0
    versions: dict[str, "_Numbers"] = {}


_decode_numbers = msgspec.json.Decoder(_Numbers).decode
_decode_note = msgspec.json.Decoder(Restored).decode


def highest_number(path: str, data: bytes) -> int:
    """The highest part of a version, or ordinal, in a file of the content; 0: there is none."""
    found = _record.fullmatch(path)
    if not found:
        return 0
    numbers = list(Version.parse(found[1])) if found[1] else []
    try:
        stored = _decode_numbers(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return max(numbers, default=0)  # a faulty record, of which no build takes an ordinal
    numbers += [stored.ordinal, *(one.ordinal for one in stored.versions.values())]
    for text in filter(names.is_version, stored.versions):
        numbers += Version.parse(text)
    return max(numbers)


def floor_above(base: int) -> int:
    """The least floor above all numbers that publications after ``base`` can have been given.
    Raises OperatorError.
    """
    floor = -(-(base + names.VERSIONS_PER_REPO_MAX + 1) // _STEP) * _STEP
    if floor + names.VERSIONS_PER_REPO_MAX > names.VERSION_PART_MAX:
        raise OperatorError(
            f"The number {base:,} is taken, so there is no room for numbers that nobody has seen. "
            "If nothing was published since, numbers can go on as they are: `hubctl restore "
            "--complete`."
        )
    return floor


def take_floor(place: Place, highest: int, others: Iterable[Restored | None]) -> Restored:
    """A floor above ``highest`` and all that restores before had (noted in the place, or in
    ``others``), noted in the place when this returns. Raises OperatorError.
    """
    notes = {int(found[1]): key for key in place.keys(f"{FOLDER}/")
             if (found := _key.fullmatch(key))}  # fmt: skip
    known = [_read_note(place, key) for key in notes.values()] + [one for one in others if one]
    floor = floor_above(max([highest, *(one.floor for one in known)]))
    now = datetime.now(UTC)
    # Nobody publishes more than once a second for years, so it is above every serial before.
    restored = Restored(floor, int(now.timestamp()), format_time(now))
    try:
        place.put(f"{FOLDER}/{max(notes, default=0) + 1:04}.json", msgspec.json.encode(restored))
        place.sync()
    except OperatorError as error:
        raise OperatorError(
            f"Cannot note in the backup which numbers this restore takes, so another one could "
            f"take the same: {error} Or restore with --complete if nothing was published since."
        ) from error
    return restored


def _read_note(place: Place, key: str) -> Restored:
    try:
        return _decode_note(place.get(key, _NOTE_BYTES_MAX) or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(
            f"{place.name}: {key} is damaged ({error}). It says which numbers an earlier restore "
            "took. Remove that file if no such restore was put to use."
        ) from None
