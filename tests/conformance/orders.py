"""The orders of lists, computed from what a deployment publishes and not by the hub's own code."""

import math
from datetime import datetime

from builder.model.answers import RepoSummary
from builder.model.routes import BY_NAME
from tests.conformance.catalogue import rows_of
from tests.conformance.client import Client

HALF_LIFE_SECONDS = 7 * 86_400
PUBLICATION_WEIGHT = 5
# The trend is kept in millionths.
TREND_TOLERANCE = 3e-6


def is_wrong(client: Client, sort: str, one: RepoSummary, other: RepoSummary) -> str:
    """Why two neighbours of a list are not in its order; empty where they are."""
    if sort == "trending":
        return _is_wrong_by_trend(client, one, other)
    if sort == "new":
        keys = [one.created_at, other.created_at]
    else:
        keys = [(row.pulls or 0, row.updated_at) for row in (one, other)]
    is_right = keys[0] > keys[1] or (keys[0] == keys[1] and _id(one) < _id(other))
    return "" if is_right else f"{_id(one)} {keys[0]} before {_id(other)} {keys[1]}"


def _is_wrong_by_trend(client: Client, one: RepoSummary, other: RepoSummary) -> str:
    if one.pulls or other.pulls:
        return ""  # the days of pulls are not public
    trends = [_trend(client, row) for row in (one, other)]
    if abs(trends[0] - trends[1]) <= TREND_TOLERANCE:
        return "" if trends[0] != trends[1] or _id(one) < _id(other) else "a tie not in order"
    return "" if trends[0] > trends[1] else f"{_id(one)} before {_id(other)}, of more activity"


def _trend(client: Client, row: RepoSummary) -> float:
    """The logarithm of a repo's decayed activity."""
    path = "/" + BY_NAME["versions"].file_for(owner=row.owner, name=row.name)
    times = [
        datetime.fromisoformat(version["published_at"]).timestamp()
        for version in rows_of(client.get(path))
    ] or [0.0]
    last = max(times)
    weights = [2.0 ** ((time - last) / HALF_LIFE_SECONDS) for time in times]
    return last / HALF_LIFE_SECONDS + math.log2(PUBLICATION_WEIGHT * math.fsum(weights))


def _id(row: RepoSummary) -> str:
    return f"{row.owner}/{row.name}"
