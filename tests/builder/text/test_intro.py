"""The operator's words on the home page: taken apart, and nothing in them runs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.content_tree import HOME
from builder.text.intro import Intro, intro


@pytest.mark.parametrize(
    "text, parts",
    [
        ("", ("", "", "", "")),
        ("Only a lead.", ("", "Only a lead.", "", "Only a lead.")),
        ("# Ours", ("Ours", "", "", "")),
        ("# A *b*\n\nWith `code`\nand [us](/top).\n\n# More\n\n## Deep\n\nEnd.\n", (
            "A <em>b</em>", 'With <code>code</code>\nand <a href="/top">us</a>.',
            "<h2>More</h2>\n<h2>Deep</h2>\n<p>End.</p>", "With code and us.",
        )),
        ("- a list\n", ("", "", "<ul>\n<li>a list</li>\n</ul>", "")),
    ],
)  # fmt: skip
def test_the_first_heading_and_paragraph_are_apart(text, parts):
    assert intro(text) == Intro(*parts)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "x <img src=x onerror=alert(1)>", "[x](javascript:alert(1))",
        "[x](<java\nscript:alert(1)>)", "[x](data:text/html,<script>)", "![x](https://e.example/x)",
        "<javascript:alert(1)>", '[x](/a "\\" onclick=alert(1) \\"")', "```<script>\n</code>\n```",
        "[x]: javascript:alert(1)\n\n[x]", "# <svg onload=alert(1)>", "&lt;script&gt;",
    ],
)  # fmt: skip
def test_nothing_in_it_runs(text):
    html = "".join(intro(f"# Head\n\nLead\n\n{text}\n")[:3]) + "".join(intro(text)[:3])
    assert not re.search(r"<(script|img|svg)|<[^>]*\s(on\w+|src)=[^>]*>", _without_values(html))
    assert not re.search(r'href="(?!https?:|/)', html)


@given(st.text("<>[]()!\"'&:\\/# \n`*_-javscriptondlm=x", max_size=80))
def test_no_element_but_markdown_s(text):
    html = _without_values("".join(intro(text)[:3]))
    allowed = "h[1-6]|p|em|strong|code|pre|ul|ol|li|blockquote|hr|br|a( href)?( title)?|code class"
    assert all(re.fullmatch(rf"</?({allowed})>", tag) for tag in re.findall("<[^>]*>", html)), html


def _without_values(html: str) -> str:
    return re.sub(r'="[^"]*"', "", html)


@pytest.mark.parametrize("unit", ["> ", "- ", "[", "*a ", "`", "![", "a](", "_*", "&#"])
def test_a_hostile_one_is_no_larger_than_it_may_be(unit):
    text = unit * (HOME.bytes_max // len(unit))
    assert len("".join(intro(text)[:3])) < 20 * HOME.bytes_max
