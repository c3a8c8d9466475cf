"""The picture of a prompt's history: its versions as rows, and labels that move along them. Pure.

Horizontal positions are in percent, vertical ones in pixels. The picture is as wide as its page,
and its words keep their size. A sparkline shows a prompt's pulls, with a point for each day.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup, escape
from msgspec import structs

from builder.model.answers import LabelMove, ListedVersion
from builder.model.labels import Labels
from builder.model.plural import counted, day
from builder.model.records import DAY_SECONDS

VERSIONS_MAX = 10
LABELS_MAX = 3
# Of each label; older ones are left out.
MOVES_MAX = 60
# The dashes of the lines of labels other than production, whose line is thick and whole, as the
# edges of labels are.
DASHES = ("9 3", "4 3", "1 3")
MAIN = 'class="l1" stroke-width="3.5"'
OTHERS = 'class="soft" stroke="currentColor" stroke-width="1.5"'
# The title describes the picture to screen readers. It names only the newest moves of a label.
MOVES_NAMED_MAX = 20
PRODUCTION = "production"

# The style sheet leaves room for the numbers of versions before the left edge.
RIGHT = 97.0
HEAD, FOOT = 12, 26
ROW_MAX, ROWS_HEIGHT = 28, 160
# Days that need no year are shorter than dates and hours.
DATES_APART, DAYS_APART = 36.0, 20.0
# Dates further to the right would overlap "now" on a phone.
DATE_RIGHT = 74


class Picture(NamedTuple):
    """The layout: ``place`` has the position of each time in percent, ``rows`` that of each version
    in pixels.
    """

    place: dict[str, float]
    rows: dict[str, int]
    height: int


def chart(entries: Sequence[ListedVersion], labels: Labels, count: int) -> Markup:
    """The picture of a prompt's newest versions, with the moves of up to LABELS_MAX labels since
    the first of them, below its legend. ``entries`` are the newest of ``count`` versions, oldest
    first. Empty if none of the labels has moved from one version to another: then the list of
    versions says as much.
    """
    shown = entries[-VERSIONS_MAX:]
    moves = shown_moves(shown, labels)
    if not any(len(each) > 1 for each in moves.values()):
        return Markup("")
    picture = _arrange(shown, moves)
    looks = dict(zip(moves, map(_look, moves, DASHES), strict=False))
    parts = [_versions(shown, picture)]
    parts += [
        _line(number, looks[label], each, picture)
        for number, (label, each) in enumerate(moves.items())
    ]
    return Markup(
        '<p class="meta">{}</p>\n'
        '<svg class="chart" width="100%" height="{}" overflow="visible" text-anchor="middle" '
        'role="img" aria-labelledby="chart"><title id="chart">{}</title>{}{}</svg>\n'
    ).format(
        _legend(looks, len(shown), count, labels),
        picture.height,
        _in_words(shown, moves),
        Markup("").join(parts),
        _axis(picture),
    )


def _look(label: str, dashes: str) -> str:
    """The attributes of the lines of a label."""
    return MAIN if label == PRODUCTION else f'{OTHERS} stroke-dasharray="{dashes}"'


def shown_moves(shown: Sequence[ListedVersion], labels: Labels) -> dict[str, list[LabelMove]]:
    """The newest moves of up to LABELS_MAX labels that named one of these versions: ``production``,
    ``staging``, then those that moved last. Each label's moves are oldest first, since the first
    version; before them is the last one until then, as if it were at that time.
    """
    numbers = {one.version for one in shown}
    start = shown[0].published_at
    found: dict[str, list[LabelMove]] = {}
    for name in by_weight(labels.current):
        newest = labels.history[name][:MOVES_MAX][::-1]
        before = [move for move in newest if move.moved_at < start][-1:]
        moves = [structs.replace(move, moved_at=start) for move in before]
        moves += [move for move in newest if move.moved_at >= start]
        if len(found) < LABELS_MAX and numbers.intersection(move.version for move in moves):
            found[name] = moves
    return found


def _legend(looks: Mapping[str, str], shown: int, total: int, labels: Labels) -> Markup:
    """The lines of labels, and a note on versions, labels and moves that the picture leaves out."""
    parts = [
        f'<span><svg {look} width="30" height="8"><line x2="30" y1="4" y2="4"/></svg> '
        f"{escape(label)}</span>"
        for label, look in looks.items()
    ]
    left_out = []
    if shown < total:
        left_out.append(f"the newest {shown} of {total:,} versions")
    if len(looks) < len(labels.current):
        left_out.append(f"{len(looks)} of {counted(len(labels.current), 'label')}")
    if any(len(labels.history[label]) > MOVES_MAX for label in looks):
        left_out.append(f"the newest {MOVES_MAX} moves of a label")
    if left_out:
        parts.append(f"<span>The picture shows {' and '.join(left_out)}.</span>")
    return Markup("".join(parts))


def by_weight(moves: Mapping[str, LabelMove]) -> dict[str, LabelMove]:
    """Sorts the last move of each label, by label: ``production``, ``staging``, then those that
    moved last.
    """
    moved_last = sorted(moves, key=lambda label: moves[label].moved_at, reverse=True)
    return {label: moves[label] for label in sorted(moved_last, key=rank)}


def rank(label: str) -> tuple[bool, bool]:
    """Sorts ``production`` first, then ``staging``."""
    return label != PRODUCTION, label != "staging"


def _arrange(shown: Sequence[ListedVersion], moves: dict[str, list[LabelMove]]) -> Picture:
    times = sorted(
        {one.published_at for one in shown}
        | {one.withdrawn.at for one in shown if one.withdrawn}
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
    scale = RIGHT / (at + 2 * least)
    row = min(ROW_MAX, ROWS_HEIGHT // len(shown))
    rows = {one.version: HEAD + row * at for at, one in enumerate(reversed(shown))}
    place = {time: scale * one for time, one in zip(times, places, strict=True)}
    return Picture(place, rows, HEAD + row * (len(shown) - 1) + FOOT)


# The parts of numbers, versions and dates need no escaping, and `Markup.format` costs ten times as
# much as an f-string.
def _straight(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}%" y1="{y1}" x2="{x2:.1f}%" y2="{y2}"/>'


def _versions(shown: Sequence[ListedVersion], picture: Picture) -> Markup:
    rows = []
    for one in shown:
        x, y = round(picture.place[one.published_at], 1), picture.rows[one.version]
        end = picture.place[one.withdrawn.at] if one.withdrawn else 100
        gone = ' text-decoration="line-through"' if one.withdrawn else ""
        rows.append(
            f'<svg x="{x}%" y="{y}" overflow="visible"><line x2="{end - x:.1f}%"/>'
            f'<circle r="4"/><text dx="-9" dy="4"{gone}>{one.version}</text></svg>'
        )
    return Markup(f'<g text-anchor="end">{"".join(rows)}</g>')


def _line(number: int, look: str, moves: list[LabelMove], picture: Picture) -> Markup:
    """The line of a label, with gaps while it names no version in the picture."""
    parts = []
    ends = [picture.place[move.moved_at] for move in moves[1:]] + [100.0]
    before: int | None = None
    for move, end in zip(moves, ends, strict=True):
        x, y = picture.place[move.moved_at], picture.rows.get(move.version or "")
        if y is not None:
            # Labels that name the same version run beside each other.
            y -= 3 * number
            if before is not None:
                parts.append(_straight(x, before, x, y))
            parts.append(_straight(x, y, end, y))
        before = y
    return Markup(f"<g {look}>{''.join(parts)}</g>")


def _axis(picture: Picture) -> Markup:
    parts, before, last, y = [], "", -DATES_APART, picture.height - 4
    times = [datetime.fromisoformat(time) for time in sorted(picture.place)]
    is_of_hours = (times[-1] - times[0]).total_seconds() < DAY_SECONDS
    has_years = not is_of_hours and times[0].year != times[-1].year
    apart = DATES_APART if is_of_hours or has_years else DAYS_APART
    for time, x in sorted(picture.place.items()):
        shown = day(time) if has_years else day(time)[:-5]
        shown += f" {time[11:16]}" if is_of_hours else ""
        if x - last >= apart and x <= DATE_RIGHT and shown != before:
            parts.append(f'<text x="{x:.1f}%" y="{y}">{shown}</text>')
            before, last = shown, x
    parts.append(f'<text x="100%" y="{y}" text-anchor="end">now</text>')
    return Markup("".join(parts))


def _in_words(shown: Sequence[ListedVersion], moves: dict[str, list[LabelMove]]) -> str:
    """The picture in words."""
    sentences = [f"Versions {', '.join(one.version for one in shown)}."]
    sentences += [
        f"{one.version} was withdrawn on {day(one.withdrawn.at)}." for one in shown if one.withdrawn
    ]
    for label, one in moves.items():
        ways = [f"{move.version or 'removed'} from {day(move.moved_at)}" for move in one]
        sentences.append(f"{label}: {', '.join(ways[-MOVES_NAMED_MAX:])}.")
    return " ".join(sentences)


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
