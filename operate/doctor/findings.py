"""What a check has found, and what all checks look at."""

import os
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from builder.model.settings import Settings

Level = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """``what`` is so, and what to ``do``: empty where it is fine, or where ``what`` says it."""

    level: Level
    what: str
    do: str = ""


class Subject(NamedTuple):
    """The hub to look at. ``settings`` has the base URL to ask; ``noted`` are the settings that the
    site was built with, None where there is no site that a build has noted. ``database_url``: as
    of --database, which has a password in it; None: accounts are in the state folder. ``service``:
    the settings of the service that runs on the folders, None where none runs.
    """

    settings: Settings
    noted: Settings | None
    database_url: str | None = None
    service: Settings | None = None

    @property
    def folders(self) -> dict[str, str]:
        """The three folders, by the option that names each."""
        settings = self.settings
        return {"--content": settings.content, "--out": settings.out, "--state": settings.state}

    @property
    def existing(self) -> dict[str, str]:
        """Those of the folders that are there."""
        return {option: path for option, path in self.folders.items() if os.path.isdir(path)}


Check = Callable[[Subject], Iterable[Finding]]


def ok(what: str) -> Finding:
    return Finding("ok", what)


def warning(what: str, do: str = "") -> Finding:
    return Finding("warning", what, do)


def problem(what: str, do: str = "") -> Finding:
    return Finding("problem", what, do)
