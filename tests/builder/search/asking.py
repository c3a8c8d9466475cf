"""Requests for lists, and the repos of the content to compare them with."""

import contextlib
import json
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from builder.model.answers import CatalogueLine
from builder.model.errors import RequestError
from builder.search.entries import entry_of
from builder.search.queries import ListQuery, Queries

WEEK_SECONDS = 7 * 86_400


def load_repos(content: Path) -> list[dict]:
    """The facts of each repo that the tests need."""
    repos = []
    for folder in sorted(path for path in content.glob("*/*") if path.is_dir()):
        stems = sorted(
            (path.stem for path in folder.glob("*.json")),
            key=lambda stem: [int(part) for part in stem.split(".")],
        )
        records = [json.loads((folder / f"{stem}.json").read_text("utf-8")) for stem in stems]
        latest = records[-1]
        published = [record["published_at"] for record in records]
        line = CatalogueLine(
            folder.parent.name, folder.name, latest["title"], latest.get("description", ""),
            latest.get("tags", []), stems[-1], latest["sha256"], "",
        )  # fmt: skip
        repos.append({
            "id": f"{folder.parent.name}/{folder.name}",
            "tags": latest.get("tags", []),
            "created": min(published),
            "updated": latest["published_at"],
            "trend": trend(published),
            "entry": entry_of(line, (folder / f"{stems[-1]}.md").read_text("utf-8"), ""),
        })  # fmt: skip
    return repos


def trend(published: list[str]) -> float:
    """The contract's decayed activity, relative to one fixed day, as a logarithm."""
    days = [to_seconds(time) / WEEK_SECONDS for time in published]
    return max(days) + math.log2(sum(5 * 2 ** (day - max(days)) for day in days))


def to_seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def ask(queries: Queries, **fields) -> tuple[list[str], dict]:
    answer = json.loads(queries.answer(ListQuery(**fields)))
    return [f"{repo['owner']}/{repo['name']}" for repo in answer["data"]], answer["meta"]


# Strings that JSON can carry and that are no names.
NO_NAMES = ["", "Ann", "%", "_", "bulk_", "bulk0/", "bulk0/n1", "bulk0\0", "é", "\ud800", "'", "*"]


@contextlib.contextmanager
def refused(code: str, match: str | None = None) -> Iterator[None]:
    """Expects that the request within is refused with this code of the API."""
    with pytest.raises(RequestError, match=match) as caught:
        yield
    assert caught.value.code == code
