"""A sparkline of a prompt's pulls, with a point for each day. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from markupsafe import Markup

from builder.model.records import DAY_SECONDS

DAYS = 30
WIDTH, HEIGHT = 116, 24


def spark(by_day: Sequence[tuple[int, int]]) -> Markup | str:
    """The sparkline of the 30 days up to the last pull; empty if fewer than two of them have pulls.
    ``by_day``: as in ``PullCounts``.
    """
    counts = dict(by_day)
    last = max(counts, default=0)
    days = [counts.get(day, 0) for day in range(last - DAYS + 1, last + 1)]
    if sum(map(bool, days)) < 2:
        return ""
    most = max(days)
    points = " ".join(
        f"{number * WIDTH // (DAYS - 1)} {HEIGHT - 1 - count * (HEIGHT - 2) // most}"
        for number, count in enumerate(days)
    )
    date = datetime.fromtimestamp(last * DAY_SECONDS, UTC).date()
    title = f"Pulls in the 30 days to {date}: from {min(days):,} to {most:,} a day"
    return Markup(
        '<svg width="{}" height="{}" role="img" aria-label="{}">'
        '<path d="M{}" fill="none" stroke="currentColor"/></svg>'
    ).format(WIDTH, HEIGHT, title, points)
