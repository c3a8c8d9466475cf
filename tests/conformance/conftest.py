"""Options, hosts and the report of the conformance suite. See docs/develop/conformance.md."""

import argparse
import contextlib
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import parse_base_url
from tests.conformance import hosts
from tests.conformance.catalogue import Catalogue, Unusable
from tests.conformance.checks import Check, NotConforming
from tests.conformance.client import Client, NoAnswer, asking
from tests.conformance.deployment import (
    CAPABILITIES,
    LEVELS,
    MEMBERS_AREAS,
    PRIVATE,
    Deployment,
)
from tests.conformance.hosts import Host, Workshop
from tests.conformance.running import RunningHosts

SAMPLE_OF_OUTSIDERS = 30
# Items of the dictionary that a report carries, also from one process to another.
PROPERTY = "conformance"
# Stands where a test has no host to be run on.
NO_HOST = "no host"

# A host that needs a program; each landing runs a quarter of its tests.
_TOOLS = [pytest.mark.tools, pytest.mark.rotating]

_check = pytest.StashKey[Check]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of a deployment (tests/conformance)")
    # pytest-base-url has the same option, and means the same by it.
    with contextlib.suppress(argparse.ArgumentError, ValueError):
        group.addoption(
            "--base-url", metavar="URL", dest="base_url",
            help="address of the deployment to test, with its path; without, hosts of our own",
        )  # fmt: skip
    group.addoption(
        "--level", choices=(*LEVELS, PRIVATE),
        help="what the deployment is held against; default: what it seems to be",
    )  # fmt: skip
    group.addoption(
        "--token", metavar="TOKEN",
        help="token to publish with, for --publish-to; with --level private, one to read with",
    )  # fmt: skip
    group.addoption(
        "--publish-to", metavar="OWNER/NAME", help="repo that gets some versions, for ever"
    )
    group.addoption(
        "--rate-limit", metavar="N", type=int, default=0,
        help="reads a minute that must be allowed; uses the limit up, so you wait a minute",
    )  # fmt: skip
    group.addoption(
        "--sample", metavar="N", type=int, default=SAMPLE_OF_OUTSIDERS,
        help="repos, tags and pages of a list to look at; 0 for all (default: %(default)s)",
    )  # fmt: skip
    group.addoption(
        "--lacks", metavar="NAME", action="append", choices=sorted(CAPABILITIES),
        help="what the deployment cannot do, and is not tested for; may be given several times: "
        + "; ".join(f"{name!r}: {meaning}" for name, meaning in CAPABILITIES.items()),
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "level(name): from this level of conformance on")
    config.addinivalue_line("markers", "area(name): what of the contract is tested")
    config.addinivalue_line("markers", "needs(name): a capability that a host may lack")
    url = config.getoption("base_url", None)
    # Without the suite's other options, --base-url belongs to another project's tests: pytest found
    # this suite too late to register its options.
    if url and hasattr(config.option, "publish_to"):
        # The report says each failure once, without our code's way to it.
        config.option.tbstyle = "no"
        config.option.reportchars = ""
        config.stash[_outsider] = _find_outsider(config, url)


class _Outsider(NamedTuple):
    """The deployment that the options name, and what was found out about it."""

    deployment: Deployment
    host: Host
    hub: dict[str, Any]
    repos_count: int
    looked_at: int
    level_reason: str


_outsider = pytest.StashKey[_Outsider]()


def _find_outsider(config: pytest.Config, url: str) -> _Outsider:
    """Raises UsageError where it cannot be tested."""
    level = config.getoption("--level")
    token, publish_to = config.getoption("--token"), config.getoption("--publish-to")
    rate_limit, sample = config.getoption("--rate-limit"), config.getoption("--sample")
    member = ""
    if level == PRIVATE:
        if not token or publish_to:
            raise pytest.UsageError("--level private needs --token, and no --publish-to")
        token, member = "", token
    if bool(token) != bool(publish_to):
        raise pytest.UsageError("--token and --publish-to go together: both, or none of them")
    if publish_to and publish_to.count("/") != 1:
        raise pytest.UsageError("--publish-to is a repo, as OWNER/NAME")
    if rate_limit < 0 or sample < 0:
        raise pytest.UsageError("--rate-limit and --sample are numbers from 0 on")
    is_parallel = config.getoption("numprocesses", None) or hasattr(config, "workerinput")
    if (rate_limit or token) and is_parallel:
        raise pytest.UsageError("--rate-limit and --token disturb other tests: run without -n")
    lacks = dict.fromkeys(config.getoption("--lacks") or (), "--lacks")
    if not token:
        lacks["token"] = "no --token and --publish-to"
    if not rate_limit:
        lacks["rate limit"] = "no --rate-limit"
    reason = "as --level says"
    try:
        deployment = Deployment(
            parse_base_url(url), token or "", publish_to or "", rate_limit, sample,
            may_lack_data=True, member=member,
        )  # fmt: skip
        with asking(deployment, _say(config)) as client:
            catalogue = Catalogue(client)
            looked_at = len(catalogue.repos)
            if not catalogue.has_langfuse:
                lacks["langfuse"] = "not built with --langfuse"
            if not level:
                level, reason = _find_level(client, catalogue)
    except (OperatorError, Unusable, NoAnswer) as error:
        raise pytest.UsageError(f"Cannot test {url}. {error}") from None
    host = Host(level, lambda _: contextlib.nullcontext(deployment), lacks)
    return _Outsider(deployment, host, catalogue.hub, len(catalogue.ids), looked_at, reason)


def _find_level(client: Client, catalogue: Catalogue) -> tuple[str, str]:
    """The level that a deployment seems to have, and by what."""
    if catalogue.hub.get("queries") is True:
        return "full", "as hub.json says that it answers queries"
    answer = client.get("/api/v1/repos?sort=new")
    meta = answer.json.get("meta") if isinstance(answer.json, dict) else None
    if isinstance(meta, dict) and meta.get("sort") == "new":
        return "queries", "as /api/v1/repos?sort=new is answered"
    return "files", "as /api/v1/repos?sort=new is not answered"


def _say(config: pytest.Config) -> Callable[[str], None]:
    def say(text: str) -> None:
        capture = config.pluginmanager.getplugin("capturemanager")
        quiet = capture.global_and_fixture_disabled() if capture else contextlib.nullcontext()
        with quiet:
            print(f"[{text}]", flush=True)

    return say


# Choice of tests for hosts


def _hosts(config: pytest.Config) -> dict[str, Host]:
    outsider = config.stash.get(_outsider, None)
    if not outsider:
        return hosts.HOSTS
    return {outsider.deployment.base_url.partition("://")[2]: outsider.host}


@pytest.hookimpl(trylast=True)  # so that the host's name comes last in a test's
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "host" in metafunc.fixturenames:
        known = _hosts(metafunc.config)
        names = [name for name in known if _is_tested(metafunc.definition, known[name])]
        tried = [
            pytest.param(name, marks=_TOOLS if known[name].needs_tools else []) for name in names
        ]
        metafunc.parametrize("host", tried or [NO_HOST], indirect=True, scope="module")


def _is_tested(test: pytest.Item, host: Host) -> bool:
    level = test.get_closest_marker("level").args[0]
    if PRIVATE in (level, host.level):
        is_level = level == host.level or (
            host.level == PRIVATE and _area_of(test) in MEMBERS_AREAS
        )
    else:
        is_level = LEVELS.index(level) <= LEVELS.index(host.level)
    return (
        is_level
        and (host.areas is None or _area_of(test) in host.areas)
        and not any(marker.args[0] in host.lacks for marker in test.iter_markers("needs"))
    )


@pytest.hookimpl(tryfirst=True)  # pytest then puts a host's tests together, in this order
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests without a host; those that change their host come last."""
    wanted = [item for item in items if _host_of(item) != NO_HOST]
    items[:] = sorted(wanted, key=_changes_host)


def _host_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("host") if callspec else None


def _changes_host(item: pytest.Item) -> int:
    """Rank of a test by its effect on others: publishing has some, using up the limit more."""
    needed = {marker.args[0] for marker in item.iter_markers("needs")}
    return 2 * ("rate limit" in needed) + ("token" in needed)


def _area_of(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("area")
    return marker and marker.args[0]


# Fixtures


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(Path(tmp_path_factory.mktemp("hosts")))


@pytest.fixture(scope="session")
def running(workshop: Workshop, pytestconfig: pytest.Config) -> Iterator[RunningHosts]:
    """The hosts that tests have used by now."""
    with contextlib.closing(RunningHosts(workshop, _say(pytestconfig))) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def host(request: pytest.FixtureRequest, running: RunningHosts) -> Iterator[str]:
    """The name of the host under test."""
    name = request.param
    yield name
    # Otherwise the next file of tests would get the changed host.
    if name in running.changed:
        running.stop(name)


@pytest.fixture(scope="module")
def client(host: str, running: RunningHosts, pytestconfig: pytest.Config) -> Client:
    """A client of the deployment under test."""
    client = running.client(host, _hosts(pytestconfig)[host])
    if _outsider in pytestconfig.stash:
        # The contents of the deployment were just requested, which its rate limit has counted.
        client.api_asked_at = time.monotonic()
    return client


@pytest.fixture(scope="module")
def catalogue(client: Client) -> Catalogue:
    """The contents of the deployment."""
    return Catalogue(client)


@pytest.fixture
def check(request: pytest.FixtureRequest, running: RunningHosts) -> Check:
    """Notes what is as it should be and what is not; fails at the end of the test."""
    if _changes_host(request.node):
        running.changed.add(_host_of(request.node))
    made = Check()
    request.node.stash[_check] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A test ends with what was noted in it."""
    result = yield
    check = pyfuncitem.stash.get(_check, None)
    if check:
        check.finish()
        may_lack_data = pyfuncitem.funcargs["client"].deployment.may_lack_data
        assert check.held or may_lack_data, "there was nothing to look at"
    return result


# The report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Iterator[pytest.TestReport]:
    report = yield
    area = _area_of(item)
    if not area or (report.when != "call" and report.passed):
        return report
    check = item.stash.get(_check, None) or Check()
    reason = ""
    if call.excinfo and not isinstance(call.excinfo.value, NotConforming):
        reason = _tell(call.excinfo)
    deviations = [*check.shown(), *filter(None, [reason])]
    if report.failed and deviations:
        report.longrepr = "\n".join([f"{area}, {_host_of(item)}:", *deviations])
    found = {
        "area": area,
        "held": check.held,
        "failed": len(check.deviations) + bool(reason),
        "deviations": deviations,
        "notes": list(check.notes),
    }
    report.user_properties.append((PROPERTY, found))
    return report


def _tell(excinfo: pytest.ExceptionInfo) -> str:
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
    outsider = config.stash.get(_outsider, None)
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
    changed = _change(outsider, _say(config)) if failed and not is_ours else ""
    if changed:
        write(f"note: {changed}")
    if failed:
        write(f"{failed} of {held + failed} checks failed: it does not conform.", red=True)
    else:
        write(f"All {held} checks held: it conforms to the level {host.level}.", green=True)


def _change(outsider: _Outsider, say: Callable[[str], None]) -> str:
    """A message if versions were published since the suite began; otherwise empty."""
    before = outsider.hub.get("serial")
    try:
        with asking(outsider.deployment, say) as client:
            after = Catalogue(client).hub.get("serial")
    except (NoAnswer, Unusable) as error:
        return f"it does not answer any more: {error}"
    if before == after:
        return ""
    return f"somebody has published meanwhile (serial {before}, now {after}): run it again"


def _extent(outsider: _Outsider) -> str:
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
