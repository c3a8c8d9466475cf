"""The picture of a prompt's history: its versions as rows, and labels that move along them. Pure.

Horizontal positions are in percent, vertical ones in pixels. The picture is as wide as its page,
and its words keep their size.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup, escape

from builder.model.answers import LabelMove, ListedVersion
from builder.model.labels import Labels

VERSIONS_MAX = 30
LABELS_MAX = 3
# The dashes of the labels' lines: the first one has none.
DASHES = ("none", "5 3", "1 3")
# The title describes the picture to screen readers. It names only the newest moves of a label.
MOVES_NAMED_MAX = 20
PRODUCTION = "production"

LEFT, RIGHT = 14.0, 97.0
HEAD, FOOT = 44, 28
# The legend: its position, the width of a label in percent, and the most characters of one.
LEGEND_Y, LEGEND_WIDTH, LEGEND_CHARS = 10, 33, 16
ROW_MIN, ROW_MAX, ROWS_HEIGHT = 15, 40, 420
DATES_APART = 24.0


class Picture(NamedTuple):
    """The layout: ``place`` has the position of each time in percent, ``rows`` that of each version
    in pixels.
    """

    place: dict[str, float]
    rows: dict[str, int]
    height: int


def chart(entries: list[ListedVersion], labels: Labels) -> Markup:
    """The picture of a prompt's newest readable versions, with the moves of up to LABELS_MAX
    labels. ``entries`` are oldest first.
    """
    shown = [one for one in entries if not one.withdrawn][-VERSIONS_MAX:]
    moves = shown_moves(labels)
    picture = _arrange(shown, moves)
    parts = [_versions(shown, picture)]
    parts += [_line(number, *one, picture) for number, one in enumerate(moves.items(), 1)]
    parts.append(_axis(picture))
    return Markup(
        '<svg class="chart" width="100%" height="{}" text-anchor="middle" '
        'role="img" aria-labelledby="chart">'
        '<title id="chart">{}</title>{}</svg>'
    ).format(picture.height, _in_words(shown, moves), Markup("").join(parts))


def shown_moves(labels: Labels) -> dict[str, list[LabelMove]]:
    """The moves of up to LABELS_MAX labels, ``production`` first. Each label's moves are oldest
    first.
    """
    names = sorted(labels.current, key=lambda label: label != PRODUCTION)[:LABELS_MAX]
    return {name: labels.history[name][::-1] for name in names}


def _arrange(shown: list[ListedVersion], moves: dict[str, list[LabelMove]]) -> Picture:
    times = sorted(
        {one.published_at for one in shown}
        | {move.moved_at for one in moves.values() for move in one}
    )
    seconds = [datetime.fromisoformat(time).timestamp() for time in times]
    span = max(seconds[-1] - seconds[0], 1)
    # Distances are proportional to the time between events, with a minimum to avoid overlaps.
    least = 0.5 / len(times)
    at, places = 0.0, [0.0]
    for before, after in pairwise(seconds):
        at += max((after - before) / span, least)
        places.append(at)
    # Leaves room after the last event for the current state.
    scale = (RIGHT - LEFT) / (at + 2 * least)
    row = max(ROW_MIN, min(ROW_MAX, ROWS_HEIGHT // len(shown)))
    rows = {one.version: HEAD + row * number for number, one in enumerate(reversed(shown))}
    height = HEAD + row * (len(shown) - 1) + FOOT
    place = {time: LEFT + scale * one for time, one in zip(times, places, strict=True)}
    return Picture(place, rows, height)


# The parts of numbers, versions and dates need no escaping, and `Markup.format` costs ten times as
# much as an f-string.
def _straight(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}%" y1="{y1}" x2="{x2:.1f}%" y2="{y2}"/>'


def _versions(shown: list[ListedVersion], picture: Picture) -> Markup:
    lines, points = [], []
    for one in shown:
        x, y = picture.place[one.published_at], picture.rows[one.version]
        lines.append(_straight(x, y, 100, y))
        points.append(
            f'<circle cx="{x:.1f}%" cy="{y}" r="4"/>'
            f'<text x="{x:.1f}%" y="{y}" dx="-9" dy="4">{one.version}</text>'
        )
    return Markup(f'<g text-anchor="end">{"".join((*lines, *points))}</g>')


def _line(number: int, label: str, moves: list[LabelMove], picture: Picture) -> Markup:
    """The line of a label, with gaps while it names no version in the picture."""
    # Labels that name the same version run beside each other.
    shift = -5 * (number - 1)
    left = LEGEND_WIDTH * (number - 1)
    parts = [
        _straight(left, LEGEND_Y, left + 4, LEGEND_Y),
        f'<text x="{left + 5}%" y="{LEGEND_Y}" dy="4">{escape(label[:LEGEND_CHARS])}</text>',
    ]
    ends = [picture.place[move.moved_at] for move in moves[1:]] + [100.0]
    before: int | None = None
    for move, end in zip(moves, ends, strict=True):
        x, y = picture.place[move.moved_at], picture.rows.get(move.version or "")
        if y is not None:
            y += shift
            if before is not None:
                parts.append(_straight(x, before, x, y))
            parts.append(_straight(x, y, end, y))
        before = y
    group = f'<g class="l{number}" text-anchor="start" stroke-dasharray="{DASHES[number - 1]}">'
    return Markup(f"{group}{''.join(parts)}</g>")


def _axis(picture: Picture) -> Markup:
    parts, last = [], -DATES_APART
    for time, x in sorted(picture.place.items()):
        if x - last >= DATES_APART:
            parts.append(f'<text x="{x:.1f}%" y="{picture.height - 4}">{time[:10]}</text>')
            last = x
    return Markup("".join(parts))


def _in_words(shown: Iterable[ListedVersion], moves: dict[str, list[LabelMove]]) -> str:
    """The picture in words."""
    sentences = [f"Versions {', '.join(one.version for one in shown)}."]
    for label, one in moves.items():
        ways = [f"{move.version or 'removed'} from {move.moved_at[:10]}" for move in one]
        sentences.append(f"{label}: {', '.join(ways[-MOVES_NAMED_MAX:])}.")
    return " ".join(sentences)
