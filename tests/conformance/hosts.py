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

from builder.build import build
from builder.settings import Settings
from tests.conformance import caddy, nginx, worker
from tests.conformance.deployment import Deployment
from tests.conformance.sample import write_canaries, write_sample
from tests.servers import add_publisher, file_host, serving

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
        settings = Settings(content, f"{folder}/site", f"{folder}/state", base_url, queries=True)
        build(settings)
        return settings


class Host(NamedTuple):
    """A host under test. ``lacks``: capabilities that it is not tested for, each with the reason.
    ``areas``: only these are tested; None for all.
    """

    level: str
    start: Callable[[Workshop], AbstractContextManager[Deployment]]
    lacks: Mapping[str, str] = {}
    areas: Set[str] | None = None


@contextlib.contextmanager
def embedded(
    workshop: Workshop, base_url: str = BASE_URL, rate_limit: int = 0
) -> Iterator[Deployment]:
    """`hubctl serve` with content of its own, to which one may publish."""
    folder = workshop.folder()
    content = workshop.content(folder)
    settings = Settings(content, f"{folder}/site", f"{folder}/state", base_url)
    token = add_publisher(settings, PUBLISHER)
    with serving(settings, "--base-url", base_url, rate_limit=rate_limit) as server:
        yield Deployment(
            server.url, token=token, publish_to=f"{PUBLISHER}/published",
            rate_limit=rate_limit,
        )  # fmt: skip


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


_UNLIMITED = {"rate limit": "it would shut out the other tests; embedded-limited has one"}

HOSTS = {
    "files": Host("files", files),
    "files-below-path": Host("files", partial(files, base_url=BELOW_PATH)),
    "embedded": Host("full", embedded, _UNLIMITED),
    "embedded-below-path": Host("full", partial(embedded, base_url=BELOW_PATH), _UNLIMITED),
    "embedded-limited": Host("full", partial(embedded, rate_limit=120), areas={"rate limit"}),
    # At the root of its address it is in tests/hosts.
    "caddy": Host("full", partial(caddy.before_upstream, base_url=BELOW_PATH), caddy.LACKS),
    "nginx": Host("full", partial(nginx.nginx_host, base_url=BASE_URL), _UNLIMITED),
    "nginx-limited": Host(
        "full", partial(nginx.nginx_host, base_url=BASE_URL, rate_limit=120), areas={"rate limit"}
    ),
    "worker": Host("full", partial(worker.before_upstream, base_url=BASE_URL), worker.LACKS),
    "worker-alone": Host("queries", partial(worker.alone, base_url=BELOW_PATH), worker.LACKS),
}
