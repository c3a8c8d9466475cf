"""Caddy on the configuration that `hubctl hosts caddy` writes, before a live `hubctl serve`."""

import contextlib
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from builder.hosts import caddy
from builder.hosts.rules import HostedSite
from builder.settings import Settings
from tests.conformance.deployment import Deployment
from tests.servers import Process, add_publisher, clean_environment, free_port, serving, wait_until

PROGRAM = "caddy"

LACKS = {"rate limit": "Caddy has one only with a plugin"}


@contextlib.contextmanager
def started_caddy(site: HostedSite, folder: Path) -> Iterator[str]:
    """Caddy in the foreground on the generated configuration; gives its URL, with the base path."""
    assert shutil.which(PROGRAM), "Caddy is not there; install it with: sh tests/install-tools"
    config = folder / caddy.FILE
    config.write_text(caddy.files(site)[caddy.FILE], encoding="utf-8")
    process = Process(
        PROGRAM, "run", "--config", str(config),
        # Where Caddy remembers what it ran last, whatever a configuration says.
        env=clean_environment(HOME=str(folder), XDG_CONFIG_HOME="", XDG_DATA_HOME=""),
    )  # fmt: skip
    try:
        wait_until(lambda: _listens(site.listen, process), "Caddy")
        scheme = "https" if site.certificate else "http"
        yield f"{scheme}://{site.listen}{Settings(base_url=site.base_url).base_path}"
    finally:
        status = process.stop()
    assert status == 0, f"exit status {status}\n{process.text}"


def _listens(address: str, process: Process) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port))).close()
    except ConnectionRefusedError:
        assert "Error: " not in process.text, process.text
        return False
    return True


@contextlib.contextmanager
def before_upstream(workshop, base_url: str) -> Iterator[Deployment]:
    """Both, on content of its own, to which one may publish."""
    folder = workshop.folder()
    content = workshop.content(folder)
    settings = Settings(content, f"{folder}/site", f"{folder}/state", base_url)
    token = add_publisher(settings, "conformance")
    with serving(settings, "--base-url", base_url, "--trusted-proxy", "127.0.0.1") as upstream:
        site = HostedSite(
            settings.out, settings.state, base_url, listen=f"127.0.0.1:{free_port()}",
            upstream=f"127.0.0.1:{upstream.port}",
        )  # fmt: skip
        with started_caddy(site, folder) as url:
            yield Deployment(url, token=token, publish_to="conformance/published")
