"""nginx on the configuration that `hubctl hosts nginx` prints, beside no other site."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from builder.hosts.configuration import HostedSite, configuration
from tests.conformance.listening import listening
from tests.support.servers import Process

# Folders below which nginx writes, if it is not told otherwise, belong to root.
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextlib.contextmanager
def started_nginx(site: HostedSite, folder: Path, user: str = "root") -> Iterator[str]:
    """nginx in the foreground; gives its URL, with the base path. ``user``: that of its workers,
    where this process is root.
    """
    text = configuration("nginx", site._replace(log=f"{folder}/access.log"))
    temporary = "".join(f"{name}_temp_path {folder}/{name};\n" for name in _TEMPORARY)
    config = folder / "nginx.conf"
    config.write_text(f"events {{}}\nhttp {{\n{temporary}{text}}}\n", encoding="utf-8")
    as_root = [f"user {user};"] if os.geteuid() == 0 else []
    directives = " ".join(["daemon off;", f"pid {folder}/pid;", *as_root])
    process = Process("nginx", "-c", str(config), "-e", "stderr", "-g", directives)
    with listening(site, "[emerg]", process) as url:
        yield url
