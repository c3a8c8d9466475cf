"""Differences that the browser finds: the server's, true to the texts, and bounded."""

import random
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from builder.model.records import CONTENT_BYTES_MAX
from builder.render.hunks import ROWS_MAX, Row, hunks
from builder.text.line_diff import LineDiff
from tests.site.comparing import COMPARE, expect_compared

SAME_AS_THE_SERVER = [
    ("", ""), ("", "a\n"), ("a\n", ""), ("a", "a\n"), ("a\n", "a"), ("a\r\n", "a\n"),
    ("one two three\n", "one 2 three\n"), ("one two\nthree\n", "one\ntwo three\n"),
    ("a  b c d\n", "a b c d\n"), ("Say it.\n", "Say it now.\n"), ("don't stop\n", "do stop\n"),
    ("会議の議事録を整理する\n", "会議の記録を整理する\n"), ("ok 🙂 yes\n", "ok 🙃 yes\n"),
    ("nothing alike here\n", "Wholly different words\n"), ("\n\n\n", "\n"),
    ("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50) if n != 25)),
    ("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50)) + "end"),
    ("".join(f"{n}\n" for n in range(9)), "x\n" + "".join(f"{n}\n" for n in range(9)) + "y\n"),
    ("a\n" * 3_000, "b\n" * 3_000),
]  # fmt: skip


def compared(page: Page, old: str, new: str) -> dict[str, Any]:
    return page.evaluate(
        """async ([path, old, now]) => {
          const { compareTexts } = await import(path);
          return compareTexts(old, now);
        }""",
        [f"/{'/'.join(page.url.split('/')[3:-3])}/assets/changes.js".replace("//", "/"), old, new],
    )


def as_row(row: dict[str, Any]) -> Row:
    segments = row.get("segments")
    return Row(
        row["kind"], row.get("oldNumber"), row.get("newNumber"),
        segments and [(text, sign) for text, sign in segments],
        bool(row.get("isUnended")), row.get("leftOut", 0),
    )  # fmt: skip


def as_listed(row: Row) -> Row:
    return row._replace(segments=row.segments and list(row.segments))


def test_rows_are_those_of_the_pages_of_versions(visits):
    page = visits.open(COMPARE)
    for old, new in SAME_AS_THE_SERVER:
        found = compared(page, old, new)
        expected = [as_listed(row) for row in hunks(LineDiff(old, new))]
        assert [as_row(row) for row in found["rows"]] == expected, (old, new)
        assert found["isAligned"]


def test_rows_are_true_to_the_texts(visits):
    page = visits.open(COMPARE)
    draw = random.Random(7)
    for _ in range(60):
        lines = [draw.choice(["a\n", "b c\n", "\n", "d\u200b e\n"]) for _ in range(40)]
        old = "".join(draw.sample(lines, draw.randrange(40)))
        new = "".join(draw.sample(lines, draw.randrange(40))) + draw.choice(["", "end"])
        check_rows(old, new, [as_row(row) for row in compared(page, old, new)["rows"]])


def check_rows(old: str, new: str, rows: list[Row]) -> None:
    old_lines, new_lines = LineDiff(old, new).old, LineDiff(old, new).new
    if not rows:
        assert old == new
        return
    gaps = sum(row.left_out for row in rows)
    for lines, number, other in (old_lines, "old_number", "+"), (new_lines, "new_number", "-"):
        shown = [row for row in rows if getattr(row, number)]
        assert len(shown) + gaps == len(lines)
        for row in shown:
            text = "".join(text for text, sign in row.segments if sign != other)
            assert row.kind == "changed" or text == "".join(text for text, _ in row.segments)
            assert lines[getattr(row, number) - 1] == text


def hostile_pair(unit_of: Any) -> tuple[str, str]:
    draw = random.Random(3)
    sides = []
    for _ in range(2):
        text = "".join(unit_of(draw) for _ in range(CONTENT_BYTES_MAX // 2))
        sides.append(text[:CONTENT_BYTES_MAX])
    return sides[0], sides[1]


HOSTILE_UNITS = {
    "lines of two kinds": lambda draw: draw.choice("ab") + "\n",
    "empty lines and others": lambda draw: draw.choice(["\n", "\n", "x\n"]),
    "words of two kinds": lambda draw: draw.choice("ab") + " ",
    "long lines of words": lambda draw: draw.choice("ab") + draw.choice([" "] * 400 + ["\n"]),
    "hidden characters": lambda draw: draw.choice("\x01\x02") + draw.choice("\x01\n"),
}


@pytest.mark.parametrize("kind", HOSTILE_UNITS)
def test_the_work_for_texts_made_to_be_slow_is_bounded(visits, kind):
    old, new = hostile_pair(HOSTILE_UNITS[kind])
    page = visits.open(COMPARE)
    # The diff reads the clock once for each number of changes that it tries.
    page.evaluate(
        """() => {
          const { now } = Date;
          window.reads = 0;
          Date.now = () => { window.reads += 1; return now.call(Date); };
        }"""
    )
    found = compared(page, old, new)
    assert 0 < len(found["rows"]) <= ROWS_MAX + 1
    # The clock is read for the lines, and for the words in each replaced part, until these take too
    # long.
    assert page.evaluate("window.reads") <= 5_000 + 2 * ROWS_MAX
    if kind == "lines of two kinds":
        assert not found["isAligned"]


def fulfil(answer: dict[str, Any], route: Route) -> None:
    route.fulfill(**answer)


def test_texts_that_are_too_different_are_shown_and_it_says_so(visits):
    page = visits.open("/tags")
    old, new = hostile_pair(HOSTILE_UNITS["lines of two kinds"])
    for version, text in (("1.0.0", old), ("1.1.0", new)):
        record = {
            "content": text,
            "body": text,
            "messages": None,
            "variables": [],
            "parameters": {},
        }
        answer = {"json": {"data": record}}
        page.route(f"**/versions/{version}.json", partial(fulfil, answer))
    page.goto(f"{visits.url}{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    expect(page.locator("#shown")).to_contain_text("differ too much to match their lines")
    expect(page.locator(".changes .gap").last).to_contain_text("more lines changed")
    for version in ("1.0.0", "1.1.0"):
        page.unroute(f"**/versions/{version}.json")
