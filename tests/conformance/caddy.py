"""Caddy on the configuration that `hubctl hosts caddy` writes."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from builder.hosts import caddy, caddy_options
from builder.hosts.rules import HostedSite
from tests.conformance.listening import listening
from tests.support.servers import Process, clean_environment


@contextlib.contextmanager
def started_caddy(site: HostedSite, folder: Path) -> Iterator[str]:
    """Caddy in the foreground on the generated configuration; gives its URL, with the base path."""
    assert shutil.which(caddy_options.PROGRAM), (
        "Caddy is not there; install it with: sh tests/install-tools"
    )
    # The same folder as `hubctl hosts` uses.
    os.makedirs(caddy.folder(site), exist_ok=True)
    config = folder / caddy.FILE
    config.write_text(caddy.files(site)[caddy.FILE], encoding="utf-8")
    process = Process(
        caddy_options.PROGRAM, "run", "--config", str(config),
        # Caddy stores its last configuration below HOME, whatever a configuration says.
        env=clean_environment(HOME=str(folder), XDG_CONFIG_HOME="", XDG_DATA_HOME=""),
    )  # fmt: skip
    with listening(site, "Error: ", process) as url:
        yield url
