"""The numbers of publication: what is stored stays, what is not fills the gaps."""

from hypothesis import given
from hypothesis import strategies as st

from builder.model.names import Version
from builder.model.ordinals import (
    Counted,
    count_withdrawn,
    find_faults,
    next_ordinal,
    number_versions,
)
from builder.model.records import Remains, WithdrawalFile
from builder.model.withdrawn import WithdrawnVersion
from tests.support.catalogues import moment


def counted(version: str, hour: int, ordinal: int | None = None) -> Counted:
    return Counted(moment(hour), Version.parse(version), ordinal, f"{version}.json")


def numbers(*some: Counted) -> dict[str, int]:
    return {str(version): number for version, number in number_versions(some).items()}


def test_no_version_has_no_number():
    assert numbers() == {}
    assert next_ordinal(0, []) == 1


def test_what_stores_none_is_numbered_by_time_then_version():
    some = [counted("1.10.0", 5), counted("2.0.0", 1), counted("1.9.0", 5), counted("1.0.0", 9)]
    assert numbers(*some) == {"2.0.0": 1, "1.9.0": 2, "1.10.0": 3, "1.0.0": 4}


def test_what_stores_none_takes_the_lowest_numbers_that_nothing_stores():
    some = [
        counted("1.0.0", 1, 2), counted("1.1.0", 2), counted("1.2.0", 3), counted("1.3.0", 4, 7),
        counted("1.4.0", 5, 1), counted("1.5.0", 6),
    ]  # fmt: skip
    expected = {"1.0.0": 2, "1.1.0": 3, "1.2.0": 4, "1.3.0": 7, "1.4.0": 1, "1.5.0": 5}
    assert numbers(*some) == expected


versions = st.dictionaries(
    st.integers(0, 20), st.tuples(st.integers(0, 5), st.none() | st.integers(1, 30)), max_size=15
)


@st.composite
def repos(draw):
    """Draws the versions of a repo; no two store the same ordinal."""
    found, taken = [], set()
    for patch, (hour, ordinal) in draw(versions).items():
        stored = ordinal if ordinal not in taken else None
        taken.add(stored)
        found.append(counted(f"1.0.{patch}", hour, stored))
    return found


@given(repos(), st.randoms())
def test_numbers_are_distinct_whatever_the_order_and_the_next_is_one_more_than_the_highest(
    some, random
):
    expected = number_versions(some)
    assert len({*expected.values()}) == len(some)
    assert all(expected[one.version] == one.ordinal for one in some if one.ordinal)
    shuffled = [*some]
    random.shuffle(shuffled)
    assert number_versions(shuffled) == expected
    next_one = next_ordinal(len(some), [one.ordinal for one in some if one.ordinal])
    assert next_one == max(expected.values(), default=0) + 1


@given(repos(), st.integers(1, 5))
def test_publications_renumber_nothing(some, count):
    before = number_versions(some)
    after = [*some]
    for patch in range(count):
        number = next_ordinal(len(after), [one.ordinal for one in after if one.ordinal])
        after.append(counted(f"2.0.{patch}", 0, number))
    assert before.items() <= number_versions(after).items()


def test_a_number_that_is_stored_twice_is_a_fault_of_the_higher_version():
    some = [counted("1.1.0", 1, 3), counted("1.0.0", 2, 3), counted("1.2.0", 3, 4)]
    (fault,) = find_faults(some, "ann/x/")
    assert fault.path == "ann/x/1.1.0.json"
    assert fault.reason == "1.1.0 has the ordinal 3, as 1.0.0 has; give one of them another number"
    assert not fault.is_warning
    assert not [*find_faults([counted("1.0.0", 1), counted("1.1.0", 1), counted("1.2.0", 1, 1)])]


def test_a_withdrawn_version_is_counted_by_the_file_that_withdraws_it():
    withdrawal = WithdrawalFile(moment(9), "ann", "error")
    remains = Remains("ann", moment(1), "0" * 64, 5, ordinal=4)
    one = WithdrawnVersion(Version(1, 0, 0), remains, withdrawal)
    assert count_withdrawn(one, {"1.0.0"}) == (
        moment(1), Version(1, 0, 0), 4, "withdrawn/1.0.0.json",
    )  # fmt: skip
    without = one._replace(remains=Remains("ann", moment(1), "0" * 64, 5))
    assert count_withdrawn(without, ()) == (
        moment(1), Version(1, 0, 0), None, "withdrawn/all.json",
    )  # fmt: skip
