"""Settings of a deployment. Commands load this module to know their options."""

from typing import NamedTuple


class Options(NamedTuple):
    """``jobs``: the number of uploads at once. ``everything``: upload current objects, too.
    ``no_delete``: keep objects that the site no longer has. ``files_only``: no keys for URLs.
    ``dry_run``: change nothing. ``guarded``: the destination keeps strangers out of a private hub.
    """

    jobs: int = 16
    everything: bool = False
    no_delete: bool = False
    files_only: bool = False
    dry_run: bool = False
    guarded: bool = False


class Job(NamedTuple):
    """The deployments of a service: the site, the destination, and the options."""

    out: str
    state: str
    destination: str
    endpoint_url: str | None
    options: Options
