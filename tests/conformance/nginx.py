"""nginx on the configuration that `hubctl hosts nginx` writes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from builder.hosts import nginx
from builder.hosts.rules import HostedSite
from tests.conformance.listening import listening
from tests.support.servers import Process


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
    directives = " ".join(["daemon off;", *as_root, *options])
    process = Process("nginx", "-c", str(config), "-e", "stderr", "-g", directives)
    with listening(site, "[emerg]", process) as url:
        yield url
