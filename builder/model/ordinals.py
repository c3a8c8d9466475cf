"""The numbers of publication of a repo's versions, from 1. Pure.

A publication stores its number in its record: one more than the highest so far, withdrawn versions
included. Versions that store no number (older or made by hand) are numbered in order of time and
version. Each takes the lowest number that no record stores and no earlier one took. So k of them
fill the k lowest gaps, and the highest number is the count of versions, or the highest stored
number if that is higher.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from builder.model.content_tree import WHOLE, WITHDRAWAL
from builder.model.errors import Fault
from builder.model.names import Version
from builder.model.withdrawn import WithdrawnVersion


class Counted(NamedTuple):
    """A version, withdrawn or not, and the number that it stores, or None. ``file`` stores the
    number; its path is relative to the repo's folder.
    """

    published_at: str
    version: Version
    ordinal: int | None
    file: str


def count_withdrawn(one: WithdrawnVersion, own_files: Iterable[str]) -> Counted:
    """A withdrawn version; ``own_files``: the versions that have a withdrawal of their own."""
    what = str(one.version) if str(one.version) in own_files else WHOLE
    remains = one.remains
    return Counted(
        remains.published_at, one.version, remains.ordinal or None, WITHDRAWAL.file(what)
    )


def number_versions(counted: Iterable[Counted]) -> dict[Version, int]:
    """The number of each version of a repo; ``counted`` are all of them, in any order."""
    counted = [*counted]
    numbers = {one.version: one.ordinal for one in counted if one.ordinal}
    stored = {*numbers.values()}
    free = (number for number in count(1) if number not in stored)
    rest = sorted(one for one in counted if not one.ordinal)
    return numbers | {one.version: next(free) for one in rest}


def next_ordinal(versions_count: int, stored: Iterable[int], floor: int = 0) -> int:
    """The number of the next publication, for a count of versions and the stored numbers; at least
    ``floor``.
    """
    return max(versions_count + 1, max(stored, default=0) + 1, floor)


def find_faults(counted: Iterable[Counted], where: str = "") -> Iterator[Fault]:
    """The faults in the numbers of a repo, in order; paths start with ``where``."""
    first: dict[int, Version] = {}
    for one in sorted(counted, key=lambda one: one.version):
        if one.ordinal and first.setdefault(one.ordinal, one.version) != one.version:
            yield Fault(
                f"{where}{one.file}",
                f"{one.version} has the ordinal {one.ordinal:,}, as {first[one.ordinal]} has; "
                "give one of them another number",
            )
