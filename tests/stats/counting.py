"""Counts pulls of a site's repos, and reads what the site shows."""

import itertools
import json
from pathlib import Path

from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.stats.counter import Counter
from builder.stats.pulls import PULLS_FILE

FIRST_DAY = 20_089  # of ``moment(0)``


_clients = itertools.count()


def count(settings: Settings, pulls: dict[str, int], day: int = 0) -> None:
    """So many more pulls of these repos, on a day after ``FIRST_DAY``."""
    with Counter(settings.state, FIRST_DAY + day) as counter:
        for repo_id, number in pulls.items():
            for client in itertools.islice(_clients, number):
                counter.add(FIRST_DAY + day, b"%d" % client, repo_id)


def pulls_path(settings: Settings) -> Path:
    return Path(settings.state, PULLS_FILE)


def remove_pulls(settings: Settings) -> None:
    for path in Path(settings.state).glob(f"{PULLS_FILE}*"):
        path.unlink()


def data(settings: Settings, file: str):
    return json.loads(Path(settings.out, f"api/v1/{file}.json").read_bytes())["data"]


def listed(settings: Settings, sort: str, tag: str | None = None) -> list[str]:
    folder = f"tags/{tag}" if tag else "repos/_"
    return ids(data(settings, f"{folder}/{sort}/1"))


def ids(repos: list[dict]) -> list[str]:
    return [f"{repo['owner']}/{repo['name']}" for repo in repos]


def by_id(repos: list[dict]) -> dict[str, int | None]:
    return dict(zip(ids(repos), (repo["pulls"] for repo in repos), strict=True))


def shown(settings: Settings) -> dict[str, int | None]:
    """Each repo's pulls by its own record; every other place must have the same."""
    records = Path(settings.out, "api/v1/repos").glob("*/*.json")
    own = by_id([json.loads(path.read_bytes())["data"] for path in records])
    for sort in SORTS:
        assert by_id(data(settings, f"repos/_/{sort}/1")) == own
    return own
