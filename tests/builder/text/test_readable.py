"""Marks for readers keep every character of a text."""

import re

import pytest
from markupsafe import Markup, escape

from builder.text.prompts import mark_variables
from builder.text.readable import HEADINGS_MAX, MARKS_MAX, Heading, readable

TEXT = """\
# Title with <b> ##

- one `{{a_b}}`, **{{two}} words** and *three*
  with its second line
  12) twelve
     * three

```sql
# no heading
- no item
```

    indented

| a | table |
|---|---|
> said <i>
> twice
---
#no heading, 2 * 3 * 4, ** no **, a*b*c, **no
end**
"""


def shown_of(text: str) -> tuple[str, list[Heading]]:
    headings: list[Heading] = []
    mark = '<mark class="variable" data-name="{}">{}</mark>'.format
    return readable(Markup(mark_variables(str(escape(text)), mark)), headings), headings


@pytest.mark.parametrize(
    "part",
    [
        '<b id="part-1" role="heading" aria-level="3"><u># </u>Title with &lt;b&gt; ##\n'
        "<small>\n</small></b>",
        '<i><u>- </u>one <kbd>`<mark class="variable" data-name="a_b">{{a_b}}</mark>`</kbd>, ',
        '<strong><u>**</u><mark class="variable" data-name="two">{{two}}</mark> words<u>**</u>'
        "</strong> and <em>*three*</em>\n  with its second line\n</i>",
        '<i class="d1"><u>  12) </u>twelve\n</i><i class="d2"><u>     * </u>three\n</i>',
        "<code><u>```sql\n</u># no heading\n- no item\n<u>```\n</u></code>",
        "<code>    indented\n</code>",
        "<samp><bdi>| a | table |\n</bdi><bdi>|---|---|\n</bdi></samp>",
        "<q>&gt; said &lt;i&gt;\n&gt; twice\n</q><u>---\n</u>#no heading, 2 * 3 * 4, ** no **, "
        "a*b*c, **no\nend**\n",
    ],
)
def test_blocks_and_emphasis_are_marked(part):
    assert part in shown_of(TEXT)[0]


def test_headings_are_those_of_all_texts_of_a_page():
    headings = [Heading("part-1", "Before", 1)]
    readable(escape("## **Bold** & so on ##\n#\n"), headings)
    assert headings[1:] == [Heading("part-2", "Bold & so on", 2)]


def test_indented_lines_after_an_item_are_no_code():
    assert "<code>" not in shown_of("1. one\n\n    of it\n\n    - two\n")[0]
    assert "<code>" in shown_of("1. one\n\nNo item.\n\n    code\n")[0]


@pytest.mark.parametrize("unit", ["- a\n", "| a\n", "*a* ", "**a** ", "`a` ", "# a\n", "> a\n\n"])
def test_a_text_of_marks_alone_grows_little(unit):
    text = unit * (256 * 1024 // len(unit))
    assert len(shown_of(text)[0]) < len(escape(text)) + 50 * MARKS_MAX


@pytest.mark.parametrize(
    "text",
    [
        TEXT, "", "\n", "```", "```\nnever closed\n- x", "~~~\n```\n~~~", "# ", "#\n", "- ", "-",
        "````\n```\n````\n# a", "\t\n\t", "1. a\n\n2. b", "# a\r\n\r\n- b\r\n", "# 標題\n• 項目\n",
        "|" * 9000, "`" * 9000, "*" * 9000, "**a " * 9000, "# x\n" * (HEADINGS_MAX + 5),
        "- a\n" * (MARKS_MAX + 5), "\u202e# a\n- b", "**{{a*b}}** `{{a}}", "- a\n  ```\n  b\n  ```",
        "> a\n>\n>b", "    a\n\n    b", "***a*** *`a*`", "*<b>* `&amp;` **&lt;**", " \n# a\n\n\n",
    ],
)  # fmt: skip
def test_every_character_stays(text):
    shown, headings = shown_of(text)
    tag = r"</?(?:b|i|u|q|bdi|code|kbd|samp|small|strong|em|mark)(?: [a-z-]+=\"[^\"]*\")*>"
    assert re.sub(tag, "", shown) == mark_variables(str(escape(text)), lambda _, place: place)
    assert len(headings) <= HEADINGS_MAX
    open_tags: list[str] = []
    for closing, name in re.findall(r"<(/?)([a-z]+)", shown):
        if not closing:
            open_tags.append(name)
        else:
            assert open_tags.pop() == name
    assert not open_tags
