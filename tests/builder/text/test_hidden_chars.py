"""Characters that one cannot see are shown, stay what they are, and bring in no HTML."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.text.hidden_chars import MARKS_MAX, Marks, visible

SPAN = re.compile(
    r'<span class="invisible" dir="ltr" title="(U\+[0-9A-F]{4,6}(?: ×[0-9,]+)?)" data-code="\1">'
    r"([^<]*)</span>"
)
# None of HTML's: only their codes are shown.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
odd = st.text(
    st.sampled_from('a<&"\r\n\u200b\u200d\u202e\u2066\ufe0f\ufeff\U000e0041👩字\u0301\x1b')
)


@given(st.text() | odd)
def test_what_is_copied_is_the_text(text):
    for is_return_shown, expected in ((False, text), (True, text.replace("\r", ""))):
        html = str(visible(text, None, is_return_shown))
        plain = SPAN.sub(lambda found: found[2], html)
        assert "<" not in plain
        assert unescape(plain) == CONTROL.sub("", expected)


@pytest.mark.parametrize(
    "character",
    [
        *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)),
        "\u200b", "\u200e", "\u200f", "\u061c", "\u2060", "\ufeff", "\xad", "\u3164", "\u2028",
        "\x00", "\x08", "\x0b", "\x1b", "\x7f", "\x85", "\U000e0041", "\U000e007f",
    ],
)  # fmt: skip
def test_is_shown_with_its_code(character):
    code = f"U+{ord(character):04X}"
    assert visible(f"a{character}<b>") == (
        f'a<span class="invisible" dir="ltr" title="{code}" data-code="{code}">'
        f"{CONTROL.sub('', character)}</span>&lt;b&gt;"
    )


@pytest.mark.parametrize(
    "text",
    [
        "plain text,\twith a tab\nand a line", "a\r\nb", "zażółć",
        "字", "\ufffd", "שלום", "👩\u200d💻", "❤\ufe0f",
        "👩\u200d❤\ufe0f\u200d👩", "می\u200cخواهم", "क्\u200dष", "葛\U000e0100", "1\ufe0f\u20e3",
    ],
)  # fmt: skip
def test_how_people_write_is_left_alone(text):
    assert "invisible" not in visible(text)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("a\u200db", ["U+200D"]), ("\u200c", ["U+200C"]), ("👩\u200d\u200d💻", ["U+200D ×2"]),
        ("👩\u200d\u200c💻", ["U+200D", "U+200C"]), ("a\ufe0f\ufe0f\ufe0f\ufe0f", ["U+FE0F ×3"]),
        ("\x01" * 262_000, ["U+0001 ×262,000"]),
        ("\u200b" * 3 + "\u200c" * 2 + "\u200b", ["U+200B ×3", "U+200C ×2", "U+200B"]),
        ("a\ufe0f\ufe01\U000e0101", ["U+FE01", "U+E0101"]), ("\ufeffStart", ["U+FEFF"]),
    ],
)  # fmt: skip
def test_is_shown_where_it_means_nothing(text, codes):
    assert [found[1] for found in SPAN.finditer(visible(text))] == codes


def test_carriage_returns_are_shown_where_they_are_what_changed():
    assert len(SPAN.findall(visible("a\rb\r\n", None, True))) == 2
    assert visible("a\rb\r\n") == "a\rb\r\n"


@pytest.mark.parametrize("unit", ["\x01\x02", "a\x01", "\u200b\u200c", "<\x01", "\u202e{{x}}"])
def test_a_page_has_so_many_marks_and_then_its_texts_are_cut(unit):
    text = unit * 10_000
    marks = Marks()
    html = visible(text, marks)
    assert len(SPAN.findall(html)) == MARKS_MAX
    assert (marks.left, marks.is_cut) == (0, True)
    shown, cut = html.split("<em>… ")
    count = int(re.fullmatch(r"([0-9,]+) more characters not shown</em>", cut)[1].replace(",", ""))
    # The shown part and the hidden part together are the text.
    assert CONTROL.sub("", text[: len(text) - count]) == unescape(SPAN.sub(r"\2", shown))
    # Other texts of the page have none left, and are whole where they need none.
    assert visible("a\x01b", marks) == "a<em>… 2 more characters not shown</em>"
    assert visible("a\x01", marks) == "a<em>… 1 more character not shown</em>"
    assert visible("<b>", marks) == "&lt;b&gt;"


def test_as_many_marks_as_there_are_cut_nothing():
    marks = Marks()
    html = visible("a\x01" * MARKS_MAX + "end", marks)
    assert html.endswith("end") and "<em>" not in html
    assert (marks.left, marks.is_cut) == (0, False)
