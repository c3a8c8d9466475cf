"""Titles, descriptions and summaries made of a prompt's text, also of JSON and of markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.text.summary import (
    DESCRIPTION_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    first_sentence,
    names_a_part,
    summarize,
    title_of,
)

LONG = "This sentence has some sixty characters, so it tells enough."


def of(body: str) -> str:
    """The summary of a prompt without a description of its own."""
    return summarize(first_sentence(body), body)


# Bodies, the titles that they give, and their descriptions. Publishing and imports are tested with
# them, too (`tests/publisher/write/test_resolve.py`, `tests/moving/importers`).
CASES = [
    ("Review this. Then stop.", "", "Review this."),
    ("Review v1.2 of this. Then", "", "Review v1.2 of this."),
    ("Is it good? Yes.", "", "Is it good?"),
    ("# Code review\n\nYou find faults. Be brief.", "Code review", "You find faults."),
    ("\ufeff\n# **Bold** `code` #\nText.", "Bold code", "Text."),
    ("Old style\r\n=========\r\nText.", "Old style", "Text."),
    ("## Second level\n\nText.", "", "Text."),
    ("Text first.\n\n# Later heading", "", "Text first."),
    ("# Only a heading", "Only a heading", "Only a heading"),
    ("#No heading. Text", "", "#No heading."),
    ("#\nText.", "", "Text."),
    ("<!-- v2 -->\n# Title\n{{! for us }}\nText.", "Title", "Text."),
    ("{{!-- a }} b --}}{# c #}Text.", "", "Text."),
    ("# IDENTITY and PURPOSE\n\nYou weigh claims, e.g. of ads. You", "IDENTITY and PURPOSE",
     "You weigh claims, e.g. of ads."),
    ("YOUR ROLE\n\n**Task:**\n\nContext:\n- Weigh claims.", "", "Weigh claims."),
    ("// Who you are\n\nYou weigh claims.", "", "You weigh claims."),
    ("**Role:** You weigh claims. ROLE: none", "", "You weigh claims."),
    ("ACT AS: a judge of claims.", "", "a judge of claims."),
    ("```md\n# Example\n```\nWeigh claims.", "", "Weigh claims."),
    ("~~~\n# Part\nAll in a fence.\n~~~", "", "All in a fence."),
    ("---\n\n| a | b |\n|---|---|\n\nText.", "", "Text."),
    ("---\ntitle: a: b\n---\n# Title\nText.", "Title", "Text."),
    ("---\nA text between two rules.\n---\nMore.", "", "A text between two rules."),
    ("- [ ] First item\n- Second", "", "First item"),
    ("1. Do this.\n2. Do that.", "", "Do this."),
    ("Do these: 1. One. 2. Two.", "", "Do these: 1. One."),
    ("> A quote. More", "", "A quote."),
    ("See [the guide](https://example.org/a.b) ![x](y.png)first. Then", "", "See the guide first."),
    ("{{question}}\n\nAnswer it.", "", "Answer it."),
    ("{{question}}", "", "{{question}}"),
    ("<role>You weigh claims. Always.</role>", "", "You weigh claims."),
    ("Weigh:\n<claim>\n{{claim}}\n</claim>\nBe fair.", "", "Weigh:"),
    ('{"style": "ink", "task": "Draw a map. Now."}', "", "Draw a map."),
    ('{"style": "ink", "size": 3}', "", "JSON prompt with the fields style, size."),
    ("__Weigh__ {{the__claim}}.", "", "Weigh {{the__claim}}."),
    ("One line\nmore of it\n\nNext paragraph.", "", "One line more of it"),
    ("WRITE A POEM", "", "WRITE A POEM"),
    ("你是一名律师。请回答。", "", "你是一名律师。"),
    ("# 代码审查\n请审查。", "代码审查", "请审查。"),
    ("No end", "", "No end"),
    ("", "", ""),
    (" \n\t ", "", ""),
    ("Zero\x00width\u200b. x", "", "Zerowidth."),
    ('\ufeff{{role "system"}}\n# Part\nBe kind\n{{role "user"}}\nHello.\n', "", "Be kind"),
    ('Be {{role "user"}} kind. Now.\n{{role "user"}}', "", 'Be {{role "user"}} kind.'),
]  # fmt: skip


@pytest.mark.parametrize(("body", "title", "description"), CASES)
def test_titles_and_descriptions(body, title, description):
    assert (title_of(body), first_sentence(body)) == (title, description)


def test_long_ones_are_cut_between_words():
    sentence = first_sentence("word " * 100)
    assert sentence.endswith("word…")
    assert 190 < len(sentence) <= 200
    assert first_sentence("x" * 300) == "x" * 199 + "…"
    assert first_sentence("字" * 300) == "字" * 199 + "…"
    assert first_sentence("x" * 200) == "x" * 200
    assert title_of("# " + "x" * 300) == "x" * 199 + "…"


@pytest.mark.parametrize("heading", ["IDENTITY and PURPOSE", "Your task:", "# System Prompt"])
def test_headings_that_name_a_part(heading):
    assert names_a_part(heading) and not names_a_part(f"{heading} for maps")


@pytest.mark.parametrize(
    "body, expected",
    [
        ("Act as a reviewer. You find faults in code. You say why.",
         "Act as a reviewer. You find faults in code. You say why."),
        ("# Title\n\nFirst line\nof a paragraph.\n\n- An item\n- **Bold** and `code`.\n",
         "First line of a paragraph. An item. Bold and code."),
        ("# Only a heading", "Only a heading."),
        ("Fix this:\n```sql\nSELECT 1\n```\nThen say why.", "Fix this: Then say why."),
        (f"{LONG} {LONG} {LONG}", f"{LONG} {LONG}"),
        (f"{LONG} And then a second one that says a little more. Do these things:\n\n- One.\n",
         f"{LONG} And then a second one that says a little more."),
        ("Short one. " + "many words " * 40,
         "Short one. " + ("many words " * 40)[:165].rstrip() + "…"),
        ("古池や。蛙飛びこむ。水の音", "古池や。蛙飛びこむ。水の音"),
        ('{"task": "Draw a city map.", "style": "ink"}', "JSON prompt: Draw a city map."),
        ('{"a": 1, "b": [], "c": null, "d": {}, "e": 2, "f": 3, "g": 4}',
         "JSON prompt with the fields a, b, c, d, e and 2 more."),
        ('{"prompt": {"goal": "Draw all the maps."}}', "JSON prompt: Draw all the maps."),
        ('[{"a": 1}]', "JSON prompt."),
        ('{"broken": "Draw", "goal": "Draw all the maps.", }', "JSON prompt: Draw all the maps."),
        ("{" + '"a": {' * 10_000, "JSON prompt."),
        ("<!doctype html><head><title>x</title></head><body><p>Draw a map.</p>",
         "HTML prompt: Draw a map."),
        ("<role>You draw maps.</role>", "XML prompt: You draw maps."),
        ("<!-- Version 2 -->\nDraw a map.", "Draw a map."),
        ("<p></p>", "HTML prompt."),
        ("{{what}} is to be drawn.", "{{what}} is to be drawn."),
        ("[{{what}}] is to be drawn.", "[{{what}}] is to be drawn."),
        ("\u202eDraw\x01 it.", "Draw it."),
        ('{{role "system"}}\nDraw maps.\n{{role "user"}}\nDraw {{what}}.\n',
         "Draw maps. Draw {{what}}."),
    ],
)  # fmt: skip
def test_a_text_that_nobody_described(body, expected):
    assert of(body) == expected


def test_a_written_summary_stays():
    assert summarize("Draws maps.", '{"task": "Draw a map."}') == "Draws maps."
    assert summarize(f"{LONG} {LONG} {LONG} {LONG}", "Draw.") == f"{LONG} {LONG}"


def test_there_is_always_something_where_there_is_a_description():
    assert of("---") == first_sentence("---")
    assert summarize("", "Draw a map.") == "Draw a map."


@given(st.text() | st.text('{}[]":,<>!-/ab.\n#*`', max_size=300))
def test_any_text(body):
    summary = of(body)
    for line, chars_max in ((first_sentence(body), DESCRIPTION_CHARS_MAX), (title_of(body), 200)):
        assert len(line) <= chars_max == 200 and line.isprintable()
    assert len(summary) <= SUMMARY_CHARS_MAX + len("JSON prompt: ")
    assert summary.isprintable()
    assert "\n" not in summary


@pytest.mark.parametrize(
    "unit",
    [
        "<a ", "<!--", "<script", '{"a":', "* ", "**", "1. ", "# ", "`", "{{!", "{{!--", "{#",
        "```\n", "---\na:", "[a](", "A:", "a.\n",
    ],
)  # fmt: skip
def test_a_hostile_text_is_read_in_part(unit):
    assert len(of(unit * 80_000)) <= 2 * SUMMARY_CHARS_MAX
    assert len(title_of(unit * 80_000)) <= 200
