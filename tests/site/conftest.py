"""One browser, and one catalogue on three hosts: the embedded server, with searches; nginx with
the files of another build that knows of no searches, below a path; and nginx with the files of
the embedded server, which says of searches what does not hold there.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser

from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.golden import golden_settings
from tests.site.browser import Visits, chromium
from tests.site.catalogue import write_more
from tests.support.servers import Server, nginx, sample_settings, serving  # fmt: skip

BASE_PATH = "/prompts"

Tabs = Callable[[str], Visits]

# The rule from the README: a URL's file is the URL and an extension.
RULES = """\
root {root};
error_page 404 {base_path}/404.html;
try_files $uri $uri.html $uri.json $uri.txt $uri/index.html =404;
"""


class StaticHosts(NamedTuple):
    """URLs of the sites that nginx serves. ``ignoring``: the live server's files; their pages send
    ``q``.
    """

    url: str
    ignoring: str
    settings: Settings


@pytest.fixture(scope="package")
def browser(installed_tools: None) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The sample catalogue and more, served without a rate limit."""
    settings = sample_settings(tmp_path_factory.mktemp("hub"))
    write_more(settings.content)
    with serving(settings) as server:
        yield server


@pytest.fixture(scope="session")
def hosts(
    hub: Server, tmp_path_factory: pytest.TempPathFactory, installed_tools: None
) -> Iterator[StaticHosts]:
    folder = tmp_path_factory.mktemp("nginx")
    root = f"{folder}/root"
    with nginx(
        folder,
        RULES.format(root=root, base_path=BASE_PATH),
        RULES.format(root=hub.settings.out, base_path=""),
    ) as (address, ignoring):
        url = address + BASE_PATH
        settings = Settings(hub.settings.content, root + BASE_PATH, f"{folder}/state", url)
        build(settings, index=False)
        yield StaticHosts(url, ignoring, settings)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The golden catalogue, built."""
    folder = tmp_path_factory.mktemp("golden")
    settings = golden_settings(f"{folder}/site", f"{folder}/state")
    build(settings, index=False)
    return settings


@pytest.fixture(scope="package")
def tabs(browser: Browser) -> Iterator[Tabs]:
    """The visits to each site; their tabs are open as long as the browser is."""
    known: dict[str, Visits] = {}

    def visits_to(url: str) -> Visits:
        return known.setdefault(url, Visits(browser, url))

    yield visits_to
    for visits in known.values():
        visits.close()


@pytest.fixture
def visits(tabs: Tabs, hub: Server) -> Iterator[Visits]:
    """Visits to the embedded server. A test fails where a page did what it should not."""
    yield from visited(tabs(hub.url))


@pytest.fixture
def static_visits(tabs: Tabs, hosts: StaticHosts) -> Iterator[Visits]:
    """Like ``visits``, on a host of files only, with a site that has no searches."""
    yield from visited(tabs(hosts.url))


@pytest.fixture
def ignoring_visits(tabs: Tabs, hosts: StaticHosts) -> Iterator[Visits]:
    """Like ``visits``, on a host of files only, though the site says that it has searches."""
    yield from visited(tabs(hosts.ignoring))


def visited(visits: Visits) -> Iterator[Visits]:
    yield visits
    assert visits.end() == []
