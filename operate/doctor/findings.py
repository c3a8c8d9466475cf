"""What a check has found, and what all checks look at."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

from builder.model.settings import Settings

Level = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """``what`` is so, and what to ``do``: empty where it is fine, or where ``what`` says it."""

    level: Level
    what: str
    do: str = ""


class Subject(NamedTuple):
    """The hub to look at. ``settings`` has the base URL to ask. ``noted``: the settings that the
    site was built with; None if no build has ended. ``service``: those of the service that runs on
    the folders. ``database_url``: as of --database; None: accounts are in the state folder.
    ``backup`` and ``endpoint_url``: where `hubctl backup` stores snapshots. ``token``: for a hub
    that only members read.
    """

    settings: Settings
    noted: Settings | None
    service: Settings | None = None
    database_url: str | None = None
    backup: str | None = None
    endpoint_url: str | None = None
    token: str | None = None

    @property
    def folders(self) -> dict[str, str]:
        """The three folders, by the option that names each."""
        settings = self.settings
        return {"--content": settings.content, "--out": settings.out, "--state": settings.state}

    @property
    def existing(self) -> dict[str, str]:
        """The folders that exist."""
        return {option: path for option, path in self.folders.items() if os.path.isdir(path)}


Look = Callable[[Subject], Iterable[Finding]]

ok = partial(Finding, "ok")
warning = partial(Finding, "warning")
problem = partial(Finding, "problem")
