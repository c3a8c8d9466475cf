"""Marks for readers keep every character of a text."""

import re

import pytest
from markupsafe import Markup, escape

from builder.text.prompts import mark_variables
from builder.text.readable import HEADINGS_MAX, MARKS_MAX, Heading, isolated, readable

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
        '<b id="part-1" role="heading" aria-level="2"><u># </u>Title with &lt;b&gt; ##\n'
        "<u>\n</u></b>",
        '<i><u>- </u>one <kbd><u>`</u><mark class="variable" data-name="a_b">{{a_b}}</mark>'
        "<u>`</u></kbd>",
        '<strong><u>**</u><mark class="variable" data-name="two">{{two}}</mark> words<u>**</u>'
        "</strong> and <em><u>*</u>three<u>*</u></em>\n<u>  </u>with its second line\n</i>",
        '<i class="d1"><var>  12) </var>twelve\n</i><i class="d2"><u>     * </u>three\n</i>',
        "<code><u>```</u><small>sql\n</small># no heading\n- no item\n<u>```\n</u></code>",
        "<code>    indented\n</code>",
        '<samp tabindex="0">'
        "<bdi><u>| </u><var>a</var><u> | </u><var>table</var><u> |\n</u></bdi>"
        "<u>|---|---|\n</u></samp>",
        "<q><u>&gt; </u>said &lt;i&gt;\n<u>&gt; </u>twice\n</q><cite><u>---\n</u></cite>#no heading"
        ", 2 * 3 * 4, ** no **, a*b*c, **no\nend**\n",
    ],
)
def test_blocks_and_emphasis_are_marked(part):
    assert part in shown_of(TEXT)[0]


@pytest.mark.parametrize(
    "text, shown",
    [
        ("[a `b`](x)", "<u>[</u>a <kbd><u>`</u>b<u>`</u></kbd><u>]</u><small>(x)</small>"),
        ("[not a link] (x) [a\nb](c)", "[not a link] (x) [a\nb](c)"),
        ("~~~ sh\na\n~~~", "<code><u>~~~ </u><small>sh\n</small>a\n<u>~~~</u></code>"),
        ("| a\\|b || c", "| a\\|b || c"),
        ("|a\\|b\n||c\n", '<samp tabindex="0">'
        "<bdi><u>|</u><var>a\\|b\n</var></bdi>"
         "<bdi><u>|</u><var></var><u>|</u><var>c\n</var></bdi></samp>"),
    ],
)  # fmt: skip
def test_signs_are_apart_from_words(text, shown):
    assert shown_of(text)[0] == shown


@pytest.mark.parametrize(
    "text, shown",
    [
        ("في 2026-12-01.", 'في <span dir="ltr">2026-12-01</span>.'),
        ("**עד 1-2**", '<strong><u>**</u>עד <span dir="ltr">1-2</span><u>**</u></strong>'),
        ("Until 2026-12-01.", "Until 2026-12-01."),
        ("في a-1-2 https://x.example/1-2 1-2a 3 -4", "في a-1-2 https://x.example/1-2 1-2a 3 -4"),
    ],
)
def test_a_date_keeps_its_order_in_a_text_from_right_to_left(text, shown):
    assert shown_of(text)[0] == shown


def test_a_description_has_no_other_marks():
    shown = '**في** &lt;<span dir="ltr">2026-12-01</span>&gt;'
    assert isolated("**في** <2026-12-01>") == shown


def test_the_path_of_a_file_is_a_sign_of_its_link():
    text = 'See [the *kinds*](<a href="/o/n/k.md">k.md</a>).'
    link = '<u>[</u><a href="/o/n/k.md">the <em><u>*</u>kinds<u>*</u></em></a><u>](k.md)</u>'
    assert readable(Markup(text), []) == f"See {link}."


@pytest.mark.parametrize(
    "text",
    [
        "```sh ignore what is above\na\n```", "```ignore\n```\n~~~all\n~~~",
        "```忽略以上规则\n```", "[a](ignore-the-rules)", "| a\n| b: -c |",
        "1000. a", "**ignore**", "> ignore", "# ignore #", "===ignore===", "`\u200b`",
    ],
)  # fmt: skip
def test_no_words_are_seen_in_the_source_only(text):
    """A text could hide instructions from its readers otherwise."""
    signs = Markup("".join(re.findall(r"<u>(.*?)</u>", shown_of(text)[0], re.DOTALL))).unescape()
    assert not re.search(r"[^\W\d]|\d{4}|\u200b", signs)


@pytest.mark.parametrize(
    "text",
    ["- a\n{}`", "- a\n{}1.", "| a{}b\n| c\n", "a |{}\\|\n", "```{}!!\n```", "1. {}", "# a{}#b"],
)
def test_spaces_are_read_once(text):
    """A text of spaces alone would take minutes otherwise."""
    before, after = text.split("{}")
    assert " " * 200_000 in readable(before + " " * 200_000 + after, [])


def test_headings_are_those_of_all_texts_of_a_page():
    headings = [Heading("part-1", "Before")]
    readable(escape("## **Bold** & so on ##\n#\n"), headings)
    assert headings[1:] == [Heading("part-2", "Bold & so on")]


def test_indented_lines_after_an_item_are_no_code():
    assert "<code>" not in shown_of("1. one\n\n    of it\n\n    - two\n")[0]
    assert "<code>" in shown_of("1. one\n\nNo item.\n\n    code\n")[0]


@pytest.mark.parametrize("line", ["    return a", "\treturn a", "        return a", "    - a"])
def test_a_removed_line_of_a_difference_keeps_its_minus_in_sight(line):
    text = f"@@ -1,2 +1,2 @@\n-{line}\n+{line}\n"
    assert shown_of(text)[0] == text


@pytest.mark.parametrize("marker", ["-   ", "*    ", "•\t", "1.    ", "10) "])
def test_a_few_spaces_are_between_a_sign_and_its_item(marker):
    assert "<i>" in shown_of(f"{marker}item\n")[0]


@pytest.mark.parametrize("before", ["", "\n", "\r\n", "\n\n", "a\n\n", "a\r\n\r\n"])
def test_indented_lines_after_an_empty_line_are_code(before):
    assert shown_of(f"{before}    code\n")[0] == f"{before}<code>    code\n</code>"


@pytest.mark.parametrize(
    "data",
    [
        '{"a": 1}', '["a", {"b": 2}],', '[{"role": "user"}]\n', "{'a': '{{two}}'}",
        '{"a": 1,\r\n "b": {}}', '{\n  "a": [\n\n    **1**\n  ]\n}\n', '[\n"a",\n"b"\n]',
    ],
)  # fmt: skip
def test_data_is_code(data):
    shown, _ = shown_of(f"Answer:\n{data}")
    assert shown.startswith("Answer:\n<code>")
    assert shown.endswith("</code>") and "<strong>" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "[Name]", '["A note" by **Ann**', "{", "{\n- a\n- b\n}", '{{"a"}}', "{{#if a}}\nb\n{{/if}}",
        '{"a": 1, and so on\n\nb}',
    ],
)  # fmt: skip
def test_brackets_of_prose_are_no_code(text):
    assert "<code>" not in shown_of(text)[0]


@pytest.mark.parametrize(
    "unit",
    ["- a\n", "| a\n", "*a* ", "**a** ", "`a` ", "# a\n", "> a\n\n", "> a\n", "|a\n", "ء 1-2 "],
)
def test_a_text_of_marks_alone_grows_little(unit):
    text = unit * (256 * 1024 // len(unit))
    assert len(shown_of(text)[0]) < len(escape(text)) + 50 * MARKS_MAX


@pytest.mark.parametrize(
    "text",
    [
        TEXT, "", "\n", "```", "```\nnever closed\n- x", "~~~\n```\n~~~", "# ", "#\n", "- ", "-",
        "````\n```\n````\n# a", "\t\n\t", "1. a\n\n2. b", "# a\r\n\r\n- b\r\n", "# 標題\n• 項目\n",
        "|" * 9000, "|a" * 9000 + "\n|a|\n" * 9, "|a|b\n" * MARKS_MAX, "> a\n" * (MARKS_MAX + 5),
        "# ء 1-2\n- 3-4 {{d}} [5-6](7-8)\n", "[a](b) [c]({{d}}) ![e](f)", "|a\\|b|{{c}}\r\n|-|\r\n",
        "`" * 9000, "*" * 9000, "**a " * 9000, "# x\n" * (HEADINGS_MAX + 5),
        "- a\n" * (MARKS_MAX + 5), "\u202e# a\n- b", "**{{a*b}}** `{{a}}", "- a\n  ```\n  b\n  ```",
        "> a\n>\n>b", "    a\n\n    b",  "***a*** *`a*`", "*<b>* `&amp;` **&lt;**", " \n# a\n\n\n",
    ],
)  # fmt: skip
def test_every_character_stays(text):
    shown, headings = shown_of(text)
    names = "b|i|u|q|bdi|code|kbd|samp|small|span|strong|em|mark|var|cite"
    tag = rf"</?(?:{names})(?: [a-z-]+=\"[^\"]*\")*>"
    assert re.sub(tag, "", shown) == mark_variables(str(escape(text)), lambda _, place: place)
    assert len(headings) <= HEADINGS_MAX
    open_tags: list[str] = []
    for closing, name in re.findall(r"<(/?)([a-z]+)", shown):
        if not closing:
            open_tags.append(name)
        else:
            assert open_tags.pop() == name
    assert not open_tags
