"""What a service is to deploy."""

from typing import NamedTuple

from operate.deploy.options import Options


class Job(NamedTuple):
    """Where to deploy which site, and how."""

    out: str
    state: str
    destination: str
    endpoint_url: str | None
    options: Options
