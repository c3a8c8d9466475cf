"""Caddy on the configuration that `hubctl hosts caddy` prints."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from builder.hosts.configuration import HostedSite, configuration
from tests.conformance.listening import listening
from tests.support.servers import Process, clean_environment

# The release that the environment of the tests has, not one of the machine.
CADDY = str(Path(sys.executable).with_name("caddy"))


@contextlib.contextmanager
def started_caddy(site: HostedSite, folder: Path) -> Iterator[str]:
    """Caddy in the foreground; gives its URL, with the base path."""
    config = folder / "Caddyfile"
    # Without its interface for operators, whose port is the same for all.
    config.write_text("{\n\tadmin off\n}\n" + configuration("caddy", site), encoding="utf-8")
    process = Process(
        CADDY, "run", "--config", str(config),
        # Caddy stores its last configuration below HOME, whatever a configuration says.
        env=clean_environment(HOME=str(folder), XDG_CONFIG_HOME="", XDG_DATA_HOME=""),
    )  # fmt: skip
    with listening(site, "Error: ", process) as url:
        yield url
