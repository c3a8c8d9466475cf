"""The picture of a prompt's history, for any number of versions and labels, at any times."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from builder.model.answers import LabelMove, ListedVersion, Withdrawal
from builder.model.labels import Labels
from builder.render.chart import (
    DATES_APART,
    DAYS_APART,
    HEIGHT,
    LABELS_MAX,
    MOVES_MAX,
    VERSIONS_MAX,
    chart,
    shown_moves,
    spark,
)
from builder.render.chart import (
    DAYS as SPARK_DAYS,
)


def version(number: str, at: str) -> ListedVersion:
    return ListedVersion(
        version=number, previous=None, changelog="", publisher="ann", published_at=at,
        sha256="0" * 64, size=1, raw_url="", diff_url=None, ordinal=1, source=None,
    )  # fmt: skip


def labels(**moves: list[tuple[str | None, str]]) -> Labels:
    history = {
        label: [LabelMove(label, to, None, at, "ann", "") for to, at in reversed(one)]
        for label, one in moves.items()
    }
    current = {label: one[0] for label, one in history.items() if one[0].version}
    return Labels(current, history, 1)


def drawing(entries: list[ListedVersion], of: Labels) -> str:
    return chart(entries, of, len(entries))


def drawn(entries: list[ListedVersion], of: Labels) -> ElementTree.Element:
    return ElementTree.fromstring(drawing(entries, of).splitlines()[1])


def lines(group: ElementTree.Element) -> list[tuple[float, ...]]:
    return [
        tuple(float(one.get(name).rstrip("%")) for name in ("x1", "y1", "x2", "y2"))
        for one in group.iter("line")
    ]


def rows(picture: ElementTree.Element) -> dict[str, tuple[float, float, float]]:
    """Where the line of each version begins, its height, and where it ends."""
    places = {}
    for row in picture.iter("svg"):
        if row is not picture:
            x = float(row.get("x")[:-1])
            end = x + float(row.find("line").get("x2")[:-1])
            places[row.find("text").text] = x, float(row.get("y")), round(end, 1)
    return places


DAYS = [f"2026-01-{day:02}T10:00:00Z" for day in range(1, 31)]


def test_a_rollback_is_a_step_down():
    entries = [version("1.0.0", DAYS[0]), version("1.1.0", DAYS[9])]
    of = labels(production=[("1.0.0", DAYS[1]), ("1.1.0", DAYS[10]), ("1.0.0", DAYS[20])])
    picture = drawn(entries, of)
    line = next(group for group in picture.iter("g") if group.get("class") == "l1")
    way = lines(line)
    steps = [y2 - y1 for x1, y1, x2, y2 in way if x1 == x2]
    assert len(steps) == 2 and steps[0] < 0 < steps[1]
    # It goes on to the right edge, from left to right.
    assert way[-1][2] == 100 and all(x1 <= x2 for x1, _, x2, _ in way)
    assert "production: 1.0.0 from 2 Jan 2026, 1.1.0 from 11 Jan 2026" in picture[0].text


@pytest.mark.parametrize("count", [1, 2, 30, 200])
@pytest.mark.parametrize("times", ["same", "days", "years"])
def test_words_never_cover_each_other(count, times):
    years = [f"{1990 + number:04}-01-01T00:00:00Z" for number in range(count)]
    at = {"same": DAYS[:1] * count, "days": (DAYS * 7)[:count], "years": years}[times]
    entries = [version(f"1.{number}.0", at[number]) for number in range(count)]
    moves = [(entries[0].version, at[0]), (entries[-1].version, at[-1])]
    of = labels(**{f"l{number}": moves for number in range(10)})
    picture = drawn(entries, of)
    texts = [*picture.iter("text")]
    shown = rows(picture)
    assert len(shown) == min(count, VERSIONS_MAX)
    heights = sorted(y for _, y, _ in shown.values())
    assert all(below - above >= 12 for above, below in pairwise(heights))
    assert max(heights) < float(picture.get("height")) < 600
    *dates, now = (one for one in texts if one.get("x"))
    assert now.text == "now" and dates
    apart = DAYS_APART if times == "days" and count > 1 else DATES_APART
    places = [float(one.get("x")[:-1]) for one in dates]
    assert all(right - left >= apart for left, right in pairwise(places))
    written = {"same": r"1 Jan 10:00", "days": r"\d+ Jan( 10:00)?", "years": r"1 Jan (\d{4}|00:00)"}
    assert all(re.fullmatch(written[times], one.text) for one in dates)
    assert len([one for one in picture.iter("g") if one.get("class")]) == LABELS_MAX
    assert all(0 <= x < 100 for x, _, _ in shown.values())


def test_a_withdrawn_version_ends_where_it_was_withdrawn():
    gone = version("1.1.0", DAYS[2])
    gone.withdrawn = Withdrawal(DAYS[20], "error", "")
    of = labels(production=[("1.0.0", DAYS[1]), ("1.1.0", DAYS[3]), (None, DAYS[20])])
    of.current["production"] = of.history["production"][0]
    picture = drawn([version("1.0.0", DAYS[0]), gone, version("1.2.0", DAYS[9])], of)
    versions, label = picture.iter("g")
    ends = {version: end for version, (_, _, end) in rows(picture).items()}
    texts = {one.text: one for one in versions.iter("text")}
    end = ends.pop("1.1.0")
    assert 0 < end < 100 and {*ends.values()} == {100}
    assert [name for name, one in texts.items() if one.get("text-decoration")] == ["1.1.0"]
    # The label names the withdrawn version for as long.
    assert lines(label)[-1][2] == end
    assert "1.1.0 was withdrawn on 21 Jan 2026." in picture[0].text


def test_labels_that_have_not_moved_need_no_picture():
    entries = [version("1.0.0", DAYS[0]), version("1.1.0", DAYS[1])]
    still = labels(a=[("1.0.0", DAYS[1])], b=[("1.1.0", DAYS[2])])
    for of in (labels(), still):
        assert drawing(entries[:1], of) == drawing(entries, of) == ""
    moved = labels(a=[("1.0.0", DAYS[1]), ("1.1.0", DAYS[2])])
    assert "1.0.0" in drawing(entries, moved)
    assert drawing([*entries, version("1.2.0", DAYS[9])][2:], moved) == ""


def test_what_the_picture_leaves_out_is_said():
    def said(*of) -> list[str]:
        return re.findall(r"<span>The picture shows (.*)\.</span></p>", drawing(*of))

    entries = [version(f"1.{number}.0", DAYS[0]) for number in range(VERSIONS_MAX + 1)]
    moves = [("1.9.0", DAYS[0]), ("1.10.0", DAYS[1])]
    of = labels(**{f"l{number}": moves for number in range(LABELS_MAX + 1)})
    assert said(entries, of) == ["the newest 10 of 11 versions and 3 of 4 labels"]
    assert said(entries[1:], labels()) == said(entries[1:], labels(a=moves)) == []
    often = labels(a=[("1.0.0", DAYS[0]), ("1.1.0", DAYS[1])] * MOVES_MAX)
    assert said(entries[:2], often) == ["the newest 60 moves of a label"]
    assert [len(one) for one in shown_moves(entries[:2], often).values()] == [MOVES_MAX]


def test_a_label_without_a_line_in_the_picture_has_no_place_in_its_legend():
    entries = [version(f"1.{number}.0", DAYS[number]) for number in range(VERSIONS_MAX + 1)]
    of = labels(
        production=[("1.0.0", DAYS[20])], canary=[("1.9.0", DAYS[20]), ("1.0.0", DAYS[21])],
        old=[("1.0.0", DAYS[1]), ("1.10.0", DAYS[12])],
    )  # fmt: skip
    assert [*shown_moves(entries, of)] == ["production", "canary", "old"]
    newest = shown_moves(entries[-VERSIONS_MAX:], of)
    assert {name: [move.version for move in moves] for name, moves in newest.items()} == {
        "canary": ["1.9.0", "1.0.0"],
        "old": ["1.0.0", "1.10.0"],
    }
    assert drawing(entries[-1:], labels(production=[("1.0.0", DAYS[0])])) == ""


def test_production_comes_first_then_labels_moved_last_and_removed_ones_are_left_out():
    entries = [version("1.0.0", DAYS[0]), version("2.0.0", DAYS[1])]
    of = labels(
        **{name: [("1.0.0", DAYS[0])] for name in "abc"}, canary=[("2.0.0", DAYS[2])],
        gone=[("1.0.0", DAYS[2]), (None, DAYS[3])],
        production=[("9.0.0", DAYS[2]), ("1.0.0", DAYS[4])],
    )  # fmt: skip
    legend = re.findall(r"</svg> (\w+)</span>", drawing(entries, of))
    assert legend == ["production", "canary", "a"]


def heights(by_day: list[tuple[int, int]]) -> list[int]:
    (points,) = re.findall(r'd="M([^"]+)"', str(spark(by_day)))
    return [int(one) for one in points.split()[1::2]]


def test_each_day_has_a_point_and_the_most_reads_are_on_top():
    found = heights([(20_000, 4), (20_010, 8), (20_029, 2)])
    assert len(found) == SPARK_DAYS
    assert min(found) == found[10] == 1 and found[1] == HEIGHT - 1
    assert found[0] == (found[1] + found[10]) // 2 and found[29] > found[0]
    assert "30 days to 2024-11-02: from 0 to 8 a day" in spark([(20_000, 4), (20_029, 8)])


def test_older_days_are_left_out():
    assert heights([(10, 900), (20_000, 1), (20_001, 1)])[-2:] == [1, 1]


@pytest.mark.parametrize("by_day", [[], [(20_000, 7)], [(10, 900), (20_000, 1)]])
def test_there_is_no_line_without_two_points(by_day):
    assert spark(by_day) == ""
