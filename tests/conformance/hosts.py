"""The hosts that we test ourselves: name → level, and how one is started.

To add one, write a context manager that starts it over ``workshop.site()`` and yields a Deployment,
and give it a row in HOSTS. What it cannot do by its nature goes into ``lacks``, with the reason.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from builder.hosts.configuration import HostedSite
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.conformance.caddy import started_caddy
from tests.conformance.deployment import PRIVATE, Deployment
from tests.conformance.nginx import started_nginx
from tests.conformance.sample import write_canaries, write_sample
from tests.support.servers import Server, add_publisher, file_host, free_port, serving

BASE_URL = "https://prompts.example.org"
BELOW_PATH = "https://example.org/some/prompts"
PUBLISHER = "conformance"


class Workshop:
    """Gives hosts folders and sites; what is built is built once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.site = lru_cache(maxsize=None)(self._site)

    def folder(self) -> Path:
        """A new, empty folder."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def content(self, folder: Path) -> str:
        """Write the catalogue below a folder; returns the content folder's path."""
        write_sample(folder / "content")
        write_canaries(folder)
        return str(folder / "content")

    def _site(self, base_url: str = BASE_URL) -> Settings:
        """Content, site and state, built for hosts that only read them, and shared by them."""
        folder = self.folder()
        content = self.content(folder)
        settings = Settings(
            content, f"{folder}/site", f"{folder}/state", base_url, queries=True, langfuse=True
        )
        build(settings)
        return settings


class Host(NamedTuple):
    """A host under test. ``lacks``: capabilities that it is not tested for, each with the reason.
    ``areas``: only these are tested; None for all. ``needs_tools``: programs that
    ``tests/install-tools`` installs. ``is_behind``: a service of ours is behind it.
    """

    level: str
    start: Callable[[Workshop], AbstractContextManager[Deployment]]
    lacks: Mapping[str, str] = {}
    areas: Set[str] | None = None
    needs_tools: bool = False
    is_behind: bool = False


@contextlib.contextmanager
def embedded(
    workshop: Workshop, base_url: str = BASE_URL, rate_limit: int = 0, private: bool = False
) -> Iterator[Deployment]:
    """`hubctl serve` with content of its own, to which one may publish."""
    with _publishing(workshop, base_url, rate_limit=rate_limit, private=private) as (
        server, deployment,
    ):  # fmt: skip
        yield deployment._replace(base_url=server.url, rate_limit=rate_limit)


@contextlib.contextmanager
def before_upstream(
    workshop: Workshop,
    started: Callable[[HostedSite, Path], AbstractContextManager[str]],
    base_url: str = BASE_URL,
    rate_limit: int = 0,
    private: bool = False,
) -> Iterator[Deployment]:
    """The host that ``started`` starts, before a `hubctl serve` with content of its own."""
    with _publishing(workshop, base_url, "--trusted-proxy", "127.0.0.1", private=private) as (
        upstream, deployment,
    ):  # fmt: skip
        site = HostedSite(
            upstream.settings.out, base_url,
            listen=f"127.0.0.1:{free_port()}", upstream=f"127.0.0.1:{upstream.port}",
            reads_per_minute=rate_limit, private=private,
        )  # fmt: skip
        with started(site, workshop.folder()) as url:
            yield deployment._replace(base_url=url, rate_limit=rate_limit, upstream=upstream.url)


@contextlib.contextmanager
def alone(
    workshop: Workshop,
    started: Callable[[HostedSite, Path], AbstractContextManager[str]],
    base_url: str = BASE_URL,
) -> Iterator[Deployment]:
    """The host that ``started`` starts, without a service."""
    settings = workshop.site(base_url)
    site = HostedSite(
        settings.out, base_url, listen=f"127.0.0.1:{free_port()}", upstream="", reads_per_minute=0
    )
    with started(site, workshop.folder()) as url:
        yield Deployment(url)


@contextlib.contextmanager
def files(workshop: Workshop, base_url: str = BASE_URL) -> Iterator[Deployment]:
    """Python's own file server: the least that can serve a site."""
    settings = workshop.site(base_url)
    folder = workshop.folder()
    write_canaries(folder)
    place = Path(f"{folder}/root{settings.base_path}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(settings.out)
    with file_host(f"{folder}/root") as url:
        yield Deployment(url + settings.base_path)


@contextlib.contextmanager
def _publishing(
    workshop: Workshop, base_url: str, *options: str, rate_limit: int = 0, private: bool = False
) -> Iterator[tuple[Server, Deployment]]:
    """`hubctl serve`, and a Deployment that may publish to it, still without an address."""
    folder = workshop.folder()
    content = workshop.content(folder)
    settings = Settings(content, f"{folder}/site", f"{folder}/state", base_url)
    token = add_publisher(settings, PUBLISHER)
    options += ("--base-url", base_url, "--langfuse", "--publish-limit", "0")
    options += ("--private",) if private else ()
    with serving(settings, *options, rate_limit=rate_limit) as server:
        yield (
            server,
            Deployment("", token, f"{PUBLISHER}/published", member=token if private else ""),
        )


_UNLIMITED = {"rate limit": "it would shut out the other tests; embedded-limited has one"}
# What is a file. What the service answers, a web server passes on as it is (test_passed_on).
FILES = {
    "CORS", "HEAD", "Langfuse", "catalogue", "client", "compression", "conditional requests",
    "diffs", "feeds", "files", "headers", "hostile paths", "labels", "lists", "lists by query",
    "pages", "passed on", "raw text", "repos", "service", "skills", "tags", "users",
    "versions", "withdrawn",
}  # fmt: skip
_OF_CADDY = {"gzip": "before 2.9, what it compresses keeps the ETag of the file"}

HOSTS = {
    "files": Host("files", files),
    "nginx-alone": Host("files", partial(alone, started=started_nginx), needs_tools=True),
    "caddy-alone": Host(
        "files", partial(alone, started=started_caddy, base_url=BELOW_PATH), _OF_CADDY,
        needs_tools=True,
    ),
    "embedded": Host("full", embedded, _UNLIMITED),
    "embedded-limited": Host("full", partial(embedded, rate_limit=120), areas={"rate limit"}),
    "caddy": Host(
        "full", partial(before_upstream, started=started_caddy, base_url=BELOW_PATH),
        _OF_CADDY | {"rate limit": "Caddy has one only with a plugin"}, areas=FILES,
        needs_tools=True, is_behind=True,
    ),
    "nginx": Host(
        "full", partial(before_upstream, started=started_nginx), _UNLIMITED, areas=FILES,
        needs_tools=True, is_behind=True,
    ),
    "nginx-limited": Host(
        "full", partial(before_upstream, started=started_nginx, rate_limit=120),
        areas={"rate limit"}, needs_tools=True,
    ),
    "private": Host(PRIVATE, partial(embedded, private=True), _UNLIMITED),
    "private-nginx": Host(
        PRIVATE, partial(before_upstream, started=started_nginx, private=True), _UNLIMITED,
        areas={"private", "passed on"}, needs_tools=True, is_behind=True,
    ),
}  # fmt: skip
