"""The Worker that `hubctl hosts cloudflare` writes, in Cloudflare's own runtime: workerd, by way of
miniflare, which simulates the bucket, static assets, the cache at the edge and the rate limit.
"""

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

from builder.hosts import cloudflare
from builder.hosts.rules import HostedSite
from builder.model.settings import Settings
from tests.conformance.deployment import Deployment
from tests.node import PROGRAMS
from tests.support.servers import PROJECT, Process, clean_environment, serving

SCRIPT = PROJECT / "tests" / "hosts" / "miniflare.mjs"

LACKS = {
    "gzip": "the Worker answers plainly; Cloudflare compresses on the way to the client",
    "token": "what is published is on the site after the next `hubctl deploy`",
    "rate limit": "it would shut out the other tests; test_cloudflare has one",
}


@contextlib.contextmanager
def started_worker(site: HostedSite, folder: Path, **options: object) -> Iterator[str]:
    """The generated Worker; gives its URL, with the base path.

    ``options`` are those of miniflare.mjs: ``files`` is where the site's files are, "r2" or
    "assets"; without it the Worker has none.
    """
    worker = folder / "worker.js"
    worker.write_text(cloudflare.files(site)["worker.js"], encoding="utf-8")
    with running_miniflare(worker, site=site.out, **options) as url:
        yield url + Settings(base_url=site.base_url).base_path


@contextlib.contextmanager
def running_miniflare(worker: Path, **options: object) -> Iterator[str]:
    """A Worker's URL, without a slash at its end."""
    node = PROGRAMS / "node"
    assert node.exists() and (PROGRAMS / "workerd").exists(), (
        "Node and workerd are not there; install them with: sh tests/install-tools"
    )
    config = json.dumps({"worker": str(worker), **options})
    process = Process(
        str(node), str(SCRIPT), config, env=clean_environment(TMPDIR=str(worker.parent))
    )
    try:
        line = process.wait_for_line("Worker at ")
        yield line.partition("Worker at ")[2].rstrip("/")
    finally:
        status = process.stop()
    assert status == 128 + signal.SIGTERM, f"exit status {status}\n{process.text}"


@contextlib.contextmanager
def before_upstream(workshop, base_url: str) -> Iterator[Deployment]:
    """The files in a bucket, and `hubctl serve` behind it for the rest."""
    settings = workshop.site(base_url)
    site = HostedSite(settings.out, settings.state, base_url)
    with serving(settings, "--base-url", base_url, "--trusted-proxy", "127.0.0.1") as upstream:
        variables = {"UPSTREAM": upstream.origin}
        with started_worker(site, workshop.folder(), files="r2", variables=variables) as url:
            yield Deployment(url)


@contextlib.contextmanager
def alone(workshop, base_url: str) -> Iterator[Deployment]:
    """The files as static assets, and nothing behind them."""
    settings = workshop.site(base_url)
    site = HostedSite(settings.out, settings.state, base_url)
    with started_worker(site, workshop.folder(), files="assets") as url:
        yield Deployment(url)
