"""How the conformance suite reports a failure: the deviations of a test, without our code."""

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.catalogue import Unusable
from tests.conformance.checks import Check, NotConforming
from tests.conformance.client import NoAnswer

CHECK = pytest.StashKey[Check]()


def host_of(item: pytest.Item) -> str | None:
    """The name of the host that a test runs on; None for tests of no host."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("host") if callspec else None


def area_of(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("area")
    return marker and marker.args[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Iterator[pytest.TestReport]:
    report = yield
    if report.failed and (area := area_of(item)):
        check = item.stash.get(CHECK, None) or Check()
        is_expected = isinstance(call.excinfo.value, NotConforming)
        deviations = [*check.shown(), *([] if is_expected else [_unexpected(call.excinfo)])]
        report.longrepr = "\n".join([f"{area}, {host_of(item)}:", *deviations])
    return report


def _unexpected(excinfo: pytest.ExceptionInfo) -> str:
    """The reason why a test stopped, in a few lines."""
    error = excinfo.value
    if isinstance(error, NoAnswer | Unusable):
        return str(error)
    frames = traceback.extract_tb(excinfo.tb)
    ours = [frame for frame in frames if "/tests/conformance/" in frame.filename]
    place = (ours or frames)[-1]
    return (
        "The suite did not expect this and stopped here:\n"
        f"    {type(error).__name__}: {error}\n"
        f"    {Path(place.filename).name}:{place.lineno}: {place.line}"
    )
