"""Imported prompts get their variables from any convention, and warnings name what stays text."""

import csv
from pathlib import Path

import pytest

from builder.model.answers import Message
from builder.model.records import VARIABLES_MAX, Variable
from moving.importers.placeholding import Counts, turn_prompt
from moving.importers.run import Outcome
from tests.moving.importers.bringing import bring_text, latest


def bring_table(root: str, texts: dict[str, str], **options: str) -> Outcome:
    source = Path(root).parent / "prompts.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([("title", "prompt"), *texts.items()])
    return bring_text(root, source.name, source.read_bytes(), **options)


TABLE = {
    "Interviewer": "Interview me as ${Position:Software Developer} at ${company}.",
    "Travel": "---\nvariables: {city: Where to}\ntitle: ${t}\n---\nTo ${city:Rome} for {{days}}.",
    "Genres": "Write ${genre:crime} or ${genre:romance}.",
    "Server": "Write `${error.message}` and `${port}` to the log.",
    "Page": "Fill in {{#each days}}{{day.name}}{{/each}} of ${place:Rome}.",
    "Story": "Tell a story.",
}


def test_a_table_whose_habit_is_dollar(root):
    outcome = bring_table(root, TABLE)
    assert outcome.placeholders == Counts({"dollar": 4}, 2)
    assert outcome.placeholders.tell() == [
        "Placeholders: ${name} became {{name}} in 4 prompts (dollar); "
        "2 prompts kept placeholders or logic as text"
    ]
    assert outcome.warnings == [
        "row 4: {{genre}} has several defaults in the source. It gets 'crime', not 'romance'.",
        "row 5: These look like placeholders or logic, and stay text: ${error.message}, ${port}.",
        "row 6: These stay text, because prompts have no logic: {{#each days}}, {{day.name}}, "
        "{{/each}}. Write {{name}} for a variable.",
    ]
    record, text = latest(root, "imported/interviewer")
    assert text == "Interview me as {{Position}} at {{company}}."
    assert record.variables == [
        Variable("Position", required=False, default="Software Developer"),
        Variable("company", required=True),
    ]
    record, text = latest(root, "imported/travel")
    assert text == TABLE["Travel"].replace("${city:Rome}", "{{city}}")
    assert record.variables == [
        Variable("city", required=False, default="Where to"), Variable("days", required=True),
    ]  # fmt: skip
    again = bring_table(root, TABLE)
    assert (again.created, again.updated, len(again.unchanged)) == ([], [], len(TABLE))
    assert again.placeholders == outcome.placeholders


def test_a_convention_that_was_asked_for_wins(root):
    outcome = bring_table(root, TABLE, placeholders="none")
    assert outcome.placeholders == Counts({}, 4)
    assert latest(root, "imported/genres")[1] == TABLE["Genres"]
    outcome = bring_text(root, "a.prompty", "{x} {{y}}", placeholders="f-string")
    assert outcome.placeholders == Counts({"f-string": 1}, 0)
    assert latest(root, "imported/a")[1] == "{{x}} {y}"


@pytest.mark.parametrize(
    ("name", "text", "turned"),
    [
        ("a.prompt", "{{{x}}} {{&y}} ${z}", "{{x}} {{y}} ${z}"),
        ("a.prompty", "user:\n{{ x | default('1') }} {{{y}}}", '{{role "user"}}\n{{x}} {{{y}}}'),
        (
            "a.prompty",
            "---\ntemplate: {format: {kind: mustache}}\nmodel: {id: '${env:M:x}'}\n---\n{{{x}}}",
            "---\ntemplate: {format: {kind: mustache}}\nmodel: {id: '${env:M:x}'}\n---\n{{x}}",
        ),
        ("a.prompt.yml", "messages: [{content: '{{{x}}} ${y:z}'}]", "{{x}} ${y:z}"),
        ("a.md", "{{{x}}} ${my y:z}", "{{{x}}} {{my_y}}"),
        ("a.jsonl", '{"title": "a", "prompt": "${x:y}"}', "{{x}}"),
        ("a.jsonl", '{"title": "a", "prompt": [{"content": "${x:y} z"}]}', "{{x}} z"),
    ],
)
def test_each_kind_of_file_has_its_convention(root, name, text, turned):
    bring_text(root, name, text)
    assert latest(root, "imported/a")[1] == turned


def test_what_is_declared_wins():
    declared = [Variable("a", "First"), Variable("b", default="B"), Variable("c", type="integer")]
    text = "${a:1} ${b:2} ${c:3} ${d d:4}"
    placed = turn_prompt(text, {"variables": declared, "title": "T"}, "dollar")
    assert placed.fields == {
        "title": "T",
        "variables": [
            Variable("a", "First", required=False, default="1"),
            Variable("b", default="B"),
            Variable("c", type="integer"),
            Variable("d_d", "d d", required=False, default="4"),
        ],
    }
    optional = [Variable("d_d", required=False)]
    placed = turn_prompt("${d d}", {"variables": optional}, "dollar")
    assert placed.fields["variables"] == [Variable("d_d", "d d", required=False)]
    many = [Variable(f"v{number}") for number in range(VARIABLES_MAX)]
    assert turn_prompt(text, {"variables": many}, "dollar").fields["variables"] == many


def test_messages_of_a_vendor():
    messages = [Message("system", "Be {tone}."), Message("user", "{{a}}")]
    placed = turn_prompt(messages, {}, "f-string")
    assert placed.text == '{{role "system"}}\nBe {{tone}}.\n\n{{role "user"}}\n{a}\n'
    assert (placed.fields, placed.is_turned, placed.is_kept) == ({}, True, False)
    assert not turn_prompt(messages, {}, "mustache").is_turned


@pytest.mark.parametrize(
    ("convention", "text", "turned"),
    [
        ("brackets", "On [TOPIC] for [YOUR READER], not [a](b) or [X] or [REF][1].",
         "On {{TOPIC}} for {{your_reader}}, not [a](b) or [X] or [REF][1]."),
        ("raycast", 'On {argument name="topic" default="fish"}, {clipboard}.',
         "On {{topic}}, {clipboard}."),
        ("arguments", "On $1, for $ARGUMENTS, at $1.50.",
         "On {{arg_1}}, for {{arguments}}, at $1.50."),
    ],
)  # fmt: skip
def test_a_hint_names_the_option_that_reads_a_placeholder(root, convention, text, turned):
    outcome = bring_text(root, "a.md", text)
    (warning,) = [one for one in outcome.warnings if f"--placeholders {convention}`" in one]
    assert warning.startswith("a.md: `hubctl import") and outcome.placeholders.kept == 1
    outcome = bring_text(root, "b.md", text, placeholders=convention)
    assert latest(root, "imported/b")[1] == turned
    assert outcome.placeholders.turned == {convention: 1} and not outcome.placeholders.kept


@pytest.mark.parametrize("text", ["It costs $5.", "`echo $1` and `[TOPIC]`", "- [ ] a\n- [X] b"])
def test_what_is_no_placeholder_gets_no_hint(root, text):
    assert bring_text(root, "a.md", text).warnings == []
