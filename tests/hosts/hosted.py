"""Sites before a service that is down, and reads of them."""

from pathlib import Path

import requests

from builder.hosts.rules import HostedSite
from builder.model.settings import Settings
from tests.support.servers import DEADLINE_SECONDS, free_port


def hosted(settings: Settings, folder: Path, **changes) -> HostedSite:
    """A site whose upstream is down, without a limit; the host's own files are in ``folder``."""
    given = {
        "listen": f"127.0.0.1:{free_port()}", "upstream": f"127.0.0.1:{free_port()}",
        "reads_per_minute": 0, "base_url": settings.base_url,
    }  # fmt: skip
    return HostedSite(settings.out, str(folder), **(given | changes))


def get(url: str, **options) -> requests.Response:
    return requests.get(url, timeout=DEADLINE_SECONDS, allow_redirects=False, **options)
