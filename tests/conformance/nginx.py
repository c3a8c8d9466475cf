"""nginx on the configuration that `hubctl hosts nginx` writes, before a live `hubctl serve`."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from builder.hosts import nginx
from builder.hosts.rules import HostedSite
from builder.settings import Settings
from tests.conformance.deployment import Deployment
from tests.servers import Process, add_publisher, free_port, serving, wait_until


@contextlib.contextmanager
def started_nginx(site: HostedSite, folder: Path, *options: str) -> Iterator[str]:
    """nginx in the foreground on the generated configuration; gives its URL, with the base path.

    ``options`` are directives for nginx itself.
    """
    state = Path(nginx.folder(site))
    state.mkdir(parents=True, exist_ok=True)
    config = folder / nginx.FILE
    config.write_text(nginx.files(site)[nginx.FILE], encoding="utf-8")
    as_root = ["user root;"] if os.geteuid() == 0 else []
    told = " ".join(["daemon off;", *as_root, *options])
    process = Process("nginx", "-c", str(config), "-e", "stderr", "-g", told)
    try:
        wait_until(lambda: listens(site.listen), "nginx")
        scheme = "https" if site.certificate else "http"
        yield f"{scheme}://{site.listen}{Settings(base_url=site.base_url).base_path}"
    finally:
        process.stop()


def listens(address: str) -> bool:
    """Whether something takes connections there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return False
    return True


@contextlib.contextmanager
def nginx_host(workshop, base_url: str, rate_limit: int = 0) -> Iterator[Deployment]:
    """Both, on content of its own, to which one may publish."""
    folder = workshop.folder()
    content = workshop.content(folder)
    settings = Settings(content, f"{folder}/site", f"{folder}/state", base_url)
    token = add_publisher(settings, "conformance")
    with serving(settings, "--base-url", base_url, "--trusted-proxy", "127.0.0.1") as upstream:
        site = HostedSite(
            settings.out,
            settings.state,
            base_url,
            listen=f"127.0.0.1:{free_port()}",
            upstream=f"127.0.0.1:{upstream.port}",
            reads_per_minute=rate_limit,
        )
        with started_nginx(site, folder) as url:
            yield Deployment(
                url, token=token, publish_to="conformance/published", rate_limit=rate_limit
            )
