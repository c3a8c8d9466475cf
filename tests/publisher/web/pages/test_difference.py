"""The difference of two texts on account pages: bounded, honest about what it leaves out, inert."""

from pathlib import Path

import pytest

import publisher.web.pages
from builder.model.records import CONTENT_BYTES_MAX
from builder.render.pages import Pages
from builder.text import hunks, line_diff
from publisher.web.pages.difference import TextDifference, compare
from tests.builder.render.test_changes_table import HEADING, HEADING_ROW, LONGER_HEADING, Table
from tests.builder.text.test_hunks import SLOW_WORDS
from tests.builder.text.test_line_diff import HOSTILE_PAIRS, limited_work, slow_pair
from tests.support.catalogues import settings_in

TEMPLATE = """{% from "difference.html" import difference_of %}{% set marks = Marks() %}
{{ difference_of(difference, marks) }}"""
FULL_TEXT = "".join(f"Line {number} of a prompt.\n" for number in range(10_000))
COARSE, UNMARKED = "too many lines to compare", "Too much text changed to mark"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "shown.html").write_text(TEMPLATE)
    account = Path(publisher.web.pages.__file__).parent / "templates"
    return Pages(settings_in(tmp_path_factory.mktemp("hub")), str(account), str(folder))


def show(pages: Pages, difference: TextDifference) -> str:
    return pages.render("shown.html", difference=difference).decode()


def test_what_changed_is_marked_and_named(pages: Pages) -> None:
    html = show(pages, compare("Be kind.\n", "Be very kind.\n", "1.0.0", "your draft"))
    assert Table(html).rows == [
        ("", ["Old line", "New line", "Change", "Text"], []),
        ("changed", ["1", "1", "±", "Be very kind.\n"], [" very"]),
    ]
    assert 'class="soft"' not in html


def test_a_heading_that_gets_words_is_one_changed_line(pages: Pages) -> None:
    html = show(pages, compare(HEADING, LONGER_HEADING, "1.0.0", "your draft"))
    assert Table(html).rows[3][1:] == HEADING_ROW


@pytest.mark.parametrize("text", ["", "Same.", FULL_TEXT])
def test_equal_texts_are_said_to_be_the_same(pages: Pages, text: str) -> None:
    assert show(pages, compare(text, text, "1.0.0", "1.1.0")).split() == (
        ["<p>The", "text", "is", "the", "same.</p>"]
    )


SLOW = HOSTILE_PAIRS | SLOW_WORDS | {
    "all lines changed": (FULL_TEXT, FULL_TEXT.replace("Line", "Row")),
    "one line of full size": ("<" * CONTENT_BYTES_MAX, ">" * CONTENT_BYTES_MAX),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), SLOW.values(), ids=SLOW)
def test_no_text_makes_it_long(monkeypatch, pages: Pages, old: str, new: str) -> None:
    # With this limit, as in production, counting takes longer than comparing.
    monkeypatch.setattr(line_diff, "STEPS_MAX", 20_000)
    items = old.count("\n") + new.count("\n") + hunks.COMPARED_CHARS_MAX
    with limited_work(line_diff.STEPS_MAX + hunks.WORD_STEPS_MAX, items):
        difference = compare(old, new, "1.0.0", "1.1.0")
    assert len(difference.shown.rows) <= hunks.ROWS_MAX + 1
    # A character takes five bytes at most (&#34;), a row of the table 140.
    assert len(show(pages, difference)) <= 5 * (len(old) + len(new)) + 250 * hunks.ROWS_MAX


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (*slow_pair(200, 90), COARSE),
        ("a" * 20_000 + "\n", "a" * 20_000 + "b\n", UNMARKED),
        (FULL_TEXT, FULL_TEXT.replace("Line", "Row"), UNMARKED),
        ("", FULL_TEXT, ""),
        (FULL_TEXT, FULL_TEXT.replace("Line 77 ", "Line LXXVII "), ""),
    ],
)
def test_it_says_where_it_is_coarse(pages: Pages, old: str, new: str, message: str) -> None:
    html = show(pages, compare(old, new, "1.0.0", "1.1.0"))
    assert [sentence in html for sentence in (COARSE, UNMARKED)] == [
        message == COARSE, message == UNMARKED,
    ]  # fmt: skip


def test_lines_that_are_left_out_are_counted(pages: Pages) -> None:
    html = show(pages, compare("", FULL_TEXT, "1.0.0", "1.1.0"))
    assert "9,000 more lines changed, not shown here" in html


def test_hostile_texts_are_inert(pages: Pages) -> None:
    hostile = "</td></table><script>alert(1)</script>{{ 7 * 7 }}\u202e\n"
    html = show(pages, compare("Be kind.\n", hostile, "<i>1.0.0", '"><b>'))
    assert "<script" not in html and "<i>" not in html and "<b>" not in html
    assert "{{ 7 * 7 }}" in html and 'data-code="U+202E"' in html
    hidden = show(pages, compare("", "\u202ea\u202eb\n" * 900, "1.0.0", "1.1.0"))
    assert "too many hidden characters" in hidden
