"""A content folder with its site, and a rebuilder that runs on it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builder.model.settings import Settings
from builder.pipeline.rebuild import Outcome, Rebuilder
from tests.support.catalogues import freshly_built, read_tree, write_version
from tests.support.servers import wait_until


class Hub:
    """A hub with a rebuilder. ``outcomes``: the results of its builds, in order."""

    def __init__(self, settings: Settings, outcomes: list[Outcome] | None = None) -> None:
        self.settings = settings
        self.outcomes: list[Outcome] = [] if outcomes is None else outcomes
        self.rebuilder: Rebuilder

    def write(self, repo: str, version: str = "1.0.0") -> Path:
        """Write a version to the content, and request no build. Returns the record's path."""
        owner, name = repo.split("/")
        return write_version(self.settings.content, owner, name, version, f"{name}, {version}.\n")

    def show(self, repo: str) -> int:
        """Wait until the repo is visible; returns the serial."""
        return self.rebuilder.make_visible(*repo.split("/"))

    def publish(self, repo: str, version: str = "1.0.0") -> int:
        self.write(repo, version)
        return self.show(repo)

    def ask_for(self, *repos: str) -> None:
        """Have repos built, without waiting."""
        self.rebuilder.request([tuple(repo.split("/")) for repo in repos])

    def read(self, file: str) -> Any:
        """The data of an answer of the API, as the site has it."""
        return json.loads(Path(self.settings.out, f"api/v1/{file}").read_bytes())["data"]

    def latest(self, repo: str) -> str:
        """The version that readers see."""
        return self.read(f"repos/{repo}.json")["latest_version"]

    def has(self, repo: str) -> bool:
        """True if readers see a page of it."""
        return Path(self.settings.out, f"{repo}.html").exists()

    @property
    def serial(self) -> int:
        """The serial that the lists show."""
        return self.read("hub.json")["serial"]

    @property
    def health(self) -> dict:
        return self.rebuilder.health()

    def wait_until_settled(self) -> None:
        wait_until(lambda: self.health["status"] == "ok", "all lists")

    def check_site(self) -> None:
        """It is what a full build makes of the content."""
        assert read_tree(self.settings.out) == freshly_built(self.settings)


@contextmanager
def rebuilding(
    settings: Settings, *, outcomes: list[Outcome] | None = None, **options: Any
) -> Iterator[Hub]:
    """Run a rebuilder, and let it end in order."""
    hub = Hub(settings, outcomes)
    with Rebuilder(settings, hub.outcomes.append, **options) as hub.rebuilder:
        yield hub
