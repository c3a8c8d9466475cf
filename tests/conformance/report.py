"""The report of the conformance suite: the deviations of each test, and the result by area."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.catalogue import Catalogue, Unusable
from tests.conformance.checks import Check, NotConforming
from tests.conformance.client import NoAnswer, asking
from tests.conformance.outsider import OUTSIDER, Outsider, say

# Items of the dictionary that a report carries, also from one process to another.
PROPERTY = "conformance"
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
    area = area_of(item)
    if not area or (report.when != "call" and report.passed):
        return report
    check = item.stash.get(CHECK, None) or Check()
    reason = ""
    if call.excinfo and not isinstance(call.excinfo.value, NotConforming):
        reason = _unexpected(call.excinfo)
    deviations = [*check.shown(), *filter(None, [reason])]
    if report.failed and deviations:
        report.longrepr = "\n".join([f"{area}, {host_of(item)}:", *deviations])
    found = {
        "area": area,
        "held": check.held,
        "failed": len(check.deviations) + bool(reason),
        "deviations": deviations,
        "notes": list(check.notes),
    }
    report.user_properties.append((PROPERTY, found))
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


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Report the results of a deployment by area."""
    outsider = config.stash.get(OUTSIDER, None)
    found = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY
    ]
    if not outsider or not found:
        return
    write = terminalreporter.write_line
    deployment, host = outsider.deployment, outsider.host
    terminalreporter.section(f"conformance of {deployment.base_url}")
    write(f"{outsider.hub.get('name')}: {outsider.repos_count} repos, {_extent(outsider)}")
    write(f"level: {host.level}, {outsider.level_reason}")
    for name, reason in host.lacks.items():
        write(f"not tested: {name} ({reason})")
    _write_areas(write, found)
    for note, count in Counter(note for one in found for note in one["notes"]).items():
        write(f"note: {note}" + (f" ({count} times)" if count > 1 else ""))
    for one in found:
        for text in one["deviations"]:
            write("")
            write(f"FAILED {one['area']}: {text}", red=True)
    write("")
    failed = sum(one["failed"] for one in found)
    held = sum(one["held"] for one in found)
    is_ours = deployment.token or deployment.rate_limit
    changed = _change(outsider, say(config)) if failed and not is_ours else ""
    if changed:
        write(f"note: {changed}")
    if failed:
        write(f"{failed} of {held + failed} checks failed: it does not conform.", red=True)
    else:
        write(f"All {held} checks held: it conforms to the level {host.level}.", green=True)


def _change(outsider: Outsider, say: Callable[[str], None]) -> str:
    """A message if versions were published since the suite began; otherwise empty."""
    before = outsider.hub.get("serial")
    try:
        with asking(outsider.deployment, say) as client:
            after = Catalogue(client).hub.get("serial")
    except (NoAnswer, Unusable) as error:
        return f"it does not answer any more: {error}"
    if before == after:
        return ""
    return f"versions were published meanwhile (serial {before}, now {after}): run it again"


def _extent(outsider: Outsider) -> str:
    if outsider.looked_at == outsider.repos_count:
        return "all of them looked at"
    return f"{outsider.looked_at} of them looked at (--sample 0 looks at all)"


def _write_areas(write: Any, found: list[dict[str, Any]]) -> None:
    areas = list(dict.fromkeys(one["area"] for one in found))
    for area in sorted(areas):
        held = sum(one["held"] for one in found if one["area"] == area)
        failed = sum(one["failed"] for one in found if one["area"] == area)
        result = f"{failed} of {held + failed} failed" if failed else f"{held} held"
        if not held + failed:
            result = "nothing there to look at"
        write(f"  {area:<22} {result}", red=bool(failed))
