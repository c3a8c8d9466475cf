"""The findings of checks, and the subject that all checks examine."""

import contextlib
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

from builder.model.settings import Settings
from builder.store.privacy import is_marked
from builder.store.site import read_hub

Level = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """``what`` is the case, and what to ``do``. ``do`` is empty if all is well, or if ``what`` says
    it.
    """

    level: Level
    what: str
    do: str = ""


class Subject(NamedTuple):
    """The hub to examine. ``settings`` has the base URL. ``noted``: the settings of the site's last
    build; None if no build has ended. ``service``: those of the service that runs on the folders.
    ``database_url``: as --database; None: accounts are in the state folder. ``token``: for a hub
    that only members read.
    """

    settings: Settings
    noted: Settings | None
    service: Settings | None = None
    database_url: str | None = None
    token: str | None = None

    @property
    def folders(self) -> dict[str, str]:
        """The three folders, by the option that names each."""
        settings = self.settings
        return {"--content": settings.content, "--out": settings.out, "--state": settings.state}

    @property
    def is_private(self) -> bool:
        """True if the content, the site or the service is for members alone."""
        settings, hub = self.settings, read_hub(self.settings.out)
        with contextlib.suppress(OSError):
            if is_marked(settings.content):
                return True
        return any(one and one.private for one in (hub, self.noted, self.service))

    @property
    def existing(self) -> dict[str, str]:
        """The folders that exist."""
        return {option: path for option, path in self.folders.items() if os.path.isdir(path)}


Look = Callable[[Subject], Iterable[Finding]]

ok = partial(Finding, "ok")
warning = partial(Finding, "warning")
problem = partial(Finding, "problem")
