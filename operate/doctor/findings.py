"""The findings of checks, and the subject that all checks examine."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

from builder.model.answers import Hub
from builder.model.settings import Settings


class Finding(NamedTuple):
    """``what`` is the case, and what to ``do``. ``do`` is empty if all is well, or if ``what`` says
    it.
    """

    level: Literal["ok", "warning", "problem"]
    what: str
    do: str = ""


class Subject(NamedTuple):
    """The hub to examine. ``settings``: the folders, the base URL, and True for ``private`` if only
    members may read. ``hub``: the site's hub.json, and ``noted`` the settings of its last build;
    None without one. ``service``: the settings of the service that runs on the folders.
    ``has_accounts_file``: the accounts are in the state folder. ``says_public``: hub.toml or the
    environment says so to `hubctl serve`.
    """

    settings: Settings
    hub: Hub | None
    noted: Settings | None
    service: Settings | None = None
    has_accounts_file: bool = True
    says_public: bool = False

    @property
    def is_away(self) -> bool:
        """True if the site needs a service, and none runs on these folders."""
        return bool(self.hub and self.hub.queries and not self.service)


Check = Callable[[Subject], Iterable[Finding]]

ok = partial(Finding, "ok")
warning = partial(Finding, "warning")
problem = partial(Finding, "problem")
