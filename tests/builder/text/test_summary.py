"""What cards say of a prompt: whole sentences, also of JSON and of markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.text.prompts import first_sentence
from builder.text.summary import SUMMARY_CHARS_MAX, summarize

LONG = "This sentence has some sixty characters, so it tells enough."


def of(body: str) -> str:
    """The summary of a prompt that nobody described."""
    return summarize(first_sentence(body), body)


@pytest.mark.parametrize(
    "body, told",
    [
        ("Act as a reviewer. You find faults in code. You say why.",
         "Act as a reviewer. You find faults in code. You say why."),
        ("# Title\n\nFirst line\nof a paragraph.\n\n- An item\n- **Bold** and `code`.\n",
         "First line of a paragraph. An item. Bold and code."),
        ("# Only a heading", "Only a heading."),
        ("Fix this:\n```sql\nSELECT 1\n```\nThen say why.", "Fix this: SELECT 1 Then say why."),
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
def test_a_text_that_nobody_described(body: str, told: str) -> None:
    assert of(body) == told


def test_what_somebody_wrote_stays() -> None:
    assert summarize("Draws maps.", '{"task": "Draw a map."}') == "Draws maps."
    assert summarize(f"{LONG} {LONG} {LONG} {LONG}", "Draw.") == f"{LONG} {LONG}"


def test_there_is_always_something_where_there_is_a_description() -> None:
    assert of("---") == first_sentence("---")
    assert summarize("", "Draw a map.") == "Draw a map."


@given(st.text() | st.text('{}[]":,<>!-/ab.\n#*`', max_size=300))
def test_any_text(body: str) -> None:
    told = of(body)
    assert len(told) <= SUMMARY_CHARS_MAX + len("JSON prompt: ")
    assert told.isprintable()
    assert "\n" not in told


@pytest.mark.parametrize("unit", ["<a ", "<!--", "<script", '{"a":', "* ", "**", "1. ", "# ", "`"])
def test_a_hostile_text_is_read_in_part(unit: str) -> None:
    assert len(of(unit * 80_000)) <= 2 * SUMMARY_CHARS_MAX
