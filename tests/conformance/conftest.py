"""Options, hosts and fixtures of the conformance suite. See docs/develop/conformance.md."""

import argparse
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import hosts
from tests.conformance.catalogue import Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Client
from tests.conformance.deployment import CAPABILITIES, LEVELS, MEMBERS_AREAS, PRIVATE
from tests.conformance.hosts import Host, Workshop
from tests.conformance.outsider import OUTSIDER, find_outsider, say
from tests.conformance.report import (  # noqa: F401
    CHECK,
    area_of,
    host_of,
    pytest_runtest_makereport,
)
from tests.conformance.running import RunningHosts

SAMPLE_OF_OUTSIDERS = 30
# Stands where a test has no host to be run on.
NO_HOST = "no host"

# A host that needs a program; each landing runs a quarter of its tests.
_TOOLS = [pytest.mark.tools, pytest.mark.rotating]


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
        help="what the deployment is held against; default: full or files, as hub.json says",
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
    config.addinivalue_line("markers", "behind: compares a web server with the service behind it")
    config.addinivalue_line("markers", "needs(name): a capability that a host may lack")
    url = config.getoption("base_url", None)
    # Without the suite's other options, --base-url belongs to another project's tests: pytest found
    # this suite too late to register its options.
    if url and hasattr(config.option, "publish_to"):
        config.option.reportchars = ""  # or each failure would be said twice
        config.stash[OUTSIDER] = find_outsider(config, url)


def pytest_report_header(config: pytest.Config) -> list[str]:
    outsider = config.stash.get(OUTSIDER, None)
    if not outsider:
        return []
    host = outsider.host
    lines = [f"{outsider.deployment.base_url}: level {host.level}"]
    return lines + [f"not tested: {name} ({reason})" for name, reason in host.lacks.items()]


# Choice of tests for hosts


def _hosts(config: pytest.Config) -> dict[str, Host]:
    outsider = config.stash.get(OUTSIDER, None)
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
        is_level = level == host.level or (host.level == PRIVATE and area_of(test) in MEMBERS_AREAS)
    else:
        is_level = LEVELS.index(level) <= LEVELS.index(host.level)
    return (
        is_level
        and (host.areas is None or area_of(test) in host.areas)
        and (host.is_behind or not test.get_closest_marker("behind"))
        and not any(marker.args[0] in host.lacks for marker in test.iter_markers("needs"))
    )


@pytest.hookimpl(tryfirst=True)  # pytest then puts a host's tests together, in this order
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests without a host; those that change their host come last."""
    wanted = [item for item in items if host_of(item) != NO_HOST]
    items[:] = sorted(wanted, key=_changes_host)


def _changes_host(item: pytest.Item) -> int:
    """Rank of a test by its effect on others: publishing has some, using up the limit more."""
    needed = {marker.args[0] for marker in item.iter_markers("needs")}
    return 2 * ("rate limit" in needed) + ("token" in needed)


# Fixtures


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(Path(tmp_path_factory.mktemp("hosts")))


@pytest.fixture(scope="session")
def running(workshop: Workshop, pytestconfig: pytest.Config) -> Iterator[RunningHosts]:
    """The hosts that tests have used by now."""
    with contextlib.closing(RunningHosts(workshop, say(pytestconfig))) as hosts:
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
    if OUTSIDER in pytestconfig.stash:
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
        running.changed.add(host_of(request.node))
    made = Check()
    request.node.stash[CHECK] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A test ends with what was noted in it."""
    result = yield
    check = pyfuncitem.stash.get(CHECK, None)
    if check:
        check.finish()
        may_lack_data = pyfuncitem.funcargs["client"].deployment.may_lack_data
        assert check.held or may_lack_data, "there was nothing to look at"
    return result
