"""Marks for readers keep every character of a text."""

import pytest
from markupsafe import Markup, escape

from builder.text.readable import HEADINGS_MAX, Heading, readable

TEXT = """\
# Title with <b> ##

- one
  12) twelve
* three

## Code
```sql
# no heading
- no item
```
    indented
| a | table |
#no heading
"""


def test_blocks_are_marked():
    shown, headings = readable(escape(TEXT))
    assert headings == [Heading("part-1", "Title with <b>"), Heading("part-2", "Code")]
    assert '<b id="part-1" role="heading" aria-level="3"><span># </span>Title' in shown
    assert shown.count("<i>") == 3 and "<i>  12) twelve\n</i>" in shown
    assert "<code>```sql\n# no heading\n- no item\n```\n</code>" in shown
    assert "<code>    indented\n| a | table |\n</code>" in shown


@pytest.mark.parametrize(
    "text",
    [
        TEXT, "", "\n", "```", "```\nnever closed\n- x", "~~~\n```\n~~~", "# ", "#\n", "- ", "-",
        "````\n```\n````\n# a", "\t\n\t", "1. a\n\n2. b", "# a\r\n- b\r\n", "# 標題\n• 項目\n",
        "|" * 9000, "`" * 9000, "# x\n" * (HEADINGS_MAX + 5), "\u202e# a\n- b",
    ],
)  # fmt: skip
def test_every_character_stays(text):
    shown, headings = readable(escape(text))
    assert Markup(shown).unescape() is not None
    stripped = shown
    for tag in ("b", "i", "code", "span"):
        stripped = stripped.replace(f"</{tag}>", "").replace(f"<{tag}>", "")
    for number in range(1, len(headings) + 1):
        stripped = stripped.replace(f'<b id="part-{number}" role="heading" aria-level="3">', "")
    assert stripped == escape(text)
    assert len(headings) <= HEADINGS_MAX
