"""The numbers of publication of a repo's versions, from 1. Pure.

A publication stores its number in its record, and takes one more than the highest that there is,
withdrawn versions included. Versions that store none (older ones, or made by hand) are numbered in
order of time and version: each takes the lowest number that no record stores, and none before it
took. So k of them fill the k lowest gaps, and the highest number of all is the count of versions,
or the highest that is stored, if that is higher.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from builder.model.errors import Fault
from builder.model.names import Version
from builder.model.withdrawn import WHOLE, WithdrawnVersion, withdrawn_file


class Counted(NamedTuple):
    """A version, withdrawn or not, and the number that it stores; None: it stores none. ``file``
    says so; it is relative to the repo's folder.
    """

    published_at: str
    version: Version
    ordinal: int | None
    file: str


def count_withdrawn(one: WithdrawnVersion, own_files: Iterable[str]) -> Counted:
    """A withdrawn version; ``own_files``: the versions that have a withdrawal of their own."""
    what = str(one.version) if str(one.version) in own_files else WHOLE
    remains = one.remains
    return Counted(remains.published_at, one.version, remains.ordinal or None, withdrawn_file(what))


def number_versions(counted: Iterable[Counted]) -> dict[Version, int]:
    """The number of each version of a repo; ``counted`` are all of them, in any order."""
    counted = [*counted]
    numbers = {one.version: one.ordinal for one in counted if one.ordinal}
    stored = {*numbers.values()}
    free = (number for number in count(1) if number not in stored)
    rest = sorted(one for one in counted if not one.ordinal)
    return numbers | {one.version: next(free) for one in rest}


def next_ordinal(versions_count: int, stored: Iterable[int], floor: int = 0) -> int:
    """The number of the next publication, where so many versions are, and these numbers stored;
    at least ``floor``.
    """
    return max(versions_count + 1, max(stored, default=0) + 1, floor)


def find_faults(counted: Iterable[Counted], where: str = "") -> Iterator[Fault]:
    """What is wrong with the numbers of a repo, in order; with paths below ``where``."""
    first: dict[int, Version] = {}
    for one in sorted(counted, key=lambda one: one.version):
        if one.ordinal and first.setdefault(one.ordinal, one.version) != one.version:
            yield Fault(
                f"{where}{one.file}",
                f"{one.version} has the ordinal {one.ordinal:,}, as {first[one.ordinal]} has; "
                "give one of them another number",
            )
