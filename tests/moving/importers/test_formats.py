"""Files in the formats of others: their metadata, their variables, their messages."""

import json
from pathlib import Path

import pytest

from builder.model.records import Variable
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore
from publisher.write.publish import publish
from tests.builder.text.test_summary import CASES
from tests.moving.importers.bringing import (
    DOTPROMPT,
    MESSAGES,
    PROMPTY,
    bring,
    bring_text,
    latest,
    reasons,
    write_all,
)


# An import reads `title: a: b`, which publishing refuses (test_agents).
@pytest.mark.parametrize(
    ("body", "title", "description"), [one for one in CASES if "a: b" not in one[0]]
)
def test_titles_and_descriptions_of_files(root, body, title, description):
    if not body.strip() or "\0" in body:
        return
    bring_text(root, "lib/weigh-sql.md", body)
    record, _ = latest(root, "imported/weigh-sql")
    heading = "" if title == "IDENTITY and PURPOSE" else title
    assert (record.title, record.description) == (heading or "Weigh SQL", description)


def test_a_title_that_was_written_in_the_hub_stays(root):
    bring_text(root, "lib/weigh-sql.md", "Weigh it.")
    publish(FolderStore(root), "imported", "weigh-sql", make_draft({"content": "Weigh it.",
            "title": "Mine"}), publisher="imported")  # fmt: skip
    assert len(bring_text(root, "lib/weigh-sql.md", "Weigh it.").unchanged) == 1
    assert bring_text(root, "lib/weigh-sql.md", "Weigh all.").updated
    record, _ = latest(root, "imported/weigh-sql")
    assert (record.title, record.description) == ("Mine", "Weigh all.")


ASSISTANT = """---
mode: agent
description: 'Plan ${input:feature:what to build}'
tools: ['codebase', 'search']
model: GPT-x
handoffs: [{label: x}]
---
Plan ${input:feature:what to build} and ${input:kind} in ${workspaceFolder}/src, as in ${selection}.

```sh
echo ${HOME} ${input:kind}
```
"""


def test_files_of_coding_assistants(root):
    folder = write_all(Path(root).parent / "kit", {
        "plan.prompt.md": ASSISTANT,
        "plan.agent.md": "---\nname: Planner\ntools: {bash: true}\n---\nPlan.",
        "plan.instructions.md": "---\napplyTo: '**/*.ts'\n---\nUse `${name}` here.",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == [
        "imported/plan 1.0.0", "imported/plan-instructions 1.0.0", "imported/plan-prompt 1.0.0",
    ]  # fmt: skip
    record, text = latest(root, "imported/plan-prompt")
    assert text.endswith(
        "Plan {{feature}} and {{kind}} in {{workspaceFolder}}/src, as in {{selection}}.\n\n"
        "```sh\necho ${HOME} {{kind}}\n```\n"
    )
    assert record.description == "Plan {{feature}}"
    assert record.parameters == {
        "model": "GPT-x", "mode": "agent", "tools": ["codebase", "search"],
    }  # fmt: skip
    assert record.variables == [
        Variable("feature", "what to build"), Variable("kind"), Variable("workspaceFolder"),
        Variable("selection"),
    ]  # fmt: skip
    assert latest(root, "imported/plan-instructions")[0].parameters == {"applyTo": "**/*.ts"}
    assert latest(root, "imported/plan")[0].title == "Planner"
    assert [one for one in outcome.warnings if "unknown" in one] == [
        "plan.agent.md: Ignored unknown front-matter keys: 'tools'.",
        "plan.prompt.md: Ignored unknown front-matter keys: 'handoffs'.",
    ]


def test_markdown(root):
    text = "---\r\ntitle: The Chef\r\ntags: Food\r\n---\r\nCook."
    bring_text(root, "lib/chef.md", text)
    record, stored = latest(root, "imported/chef")
    assert (stored, record.title, record.tags) == (text, "The Chef", ["food"])
    assert record.description == "Cook."


def test_dotprompt(root):
    bring_text(root, "topic.prompt", DOTPROMPT)
    record, text = latest(root, "imported/topic")
    assert text == DOTPROMPT
    assert record.parameters == {
        "model": "vendor/model-1", "temperature": 0.4, "max_tokens": 100,
    }  # fmt: skip
    assert record.variables == [
        Variable("topic", "what about", default="fish"),
        Variable("count", type="integer", required=False),
        Variable("kind", "of text", enum=["poem", "story"]),
        Variable("rest", "more of it", "array", required=False),
    ]


def test_json_schema(root):
    schema = {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "number", "description": "First"}, "b": {"default": 2}}}  # fmt: skip
    front = json.dumps({"input": {"schema": schema}})
    bring_text(root, "x.prompt", f"---\n{front}\n---\n{{{{a}}}} {{{{b}}}}")
    assert latest(root, "imported/x")[0].variables == [
        Variable("a", "First", "number"), Variable("b", required=False, default="2"),
    ]  # fmt: skip


def test_a_secret_of_prompty_is_not_published(root):
    with_key = PROMPTY.replace("${env:KEY}", "sk-1234")
    reason = reasons(bring_text(root, "basic.prompty", with_key))["basic.prompty"]
    assert "model.configuration.api_key" in reason and "sk-1234" not in reason


def test_json_schema_of_objects_and_of_wrong_types(root):
    inner = {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}
    for name, required, is_required in (("a", ["a"], True), ("b", 5, False), ("c", [], False)):
        schema = {"required": required, "properties": {name: inner}}
        front = json.dumps({"input": {"schema": schema}})
        bring_text(root, f"{name}.prompt", f"---\n{front}\n---\nHi.")
        assert latest(root, f"imported/{name}")[0].variables == [
            Variable(name, type="object", required=is_required)
        ]


def test_prompty(root):
    outcome = bring_text(root, "basic.prompty", PROMPTY)
    published = "The front matter is published, with model.configuration.azure_endpoint."
    assert outcome.warnings == [f"basic.prompty: {published}"]
    record, text = latest(root, "imported/basic")
    assert text == PROMPTY.replace("system:", '{{role "system"}}')
    assert (record.title, record.description, record.tags) == (
        "Basic Prompt", "Answers.", ["getting-started"],
    )  # fmt: skip
    # The key of an account is left out.
    assert record.parameters == {"model": "gpt-x", "max_tokens": 10}
    assert record.variables == [
        Variable("question", "What is asked", example="Why?"), Variable("first", example="Jane"),
    ]  # fmt: skip


def test_messages(root):
    bring_text(root, "summary.prompt.yml", MESSAGES)
    record, text = latest(root, "imported/summary")
    assert text == ('{{role "system"}}\nBe brief.\n\n{{role "user"}}\nSum up {{input}}.\n')
    assert record.parameters == {"model": "vendor/model-2", "top_p": 0.5}
    assert (record.title, record.description) == ("Summary", "Sums up.")


@pytest.mark.parametrize(
    "block", [f"title: {'x' * 16_384}", f"input: [{'a,' * 2000}]"], ids=["bytes", "tokens"]
)
@pytest.mark.parametrize("name", ["a.md", "a.prompt", "a.prompty", "a/SKILL.md", "a.jsonl"])
def test_front_matter_over_a_limit_is_kept_as_text(root, name, block):
    text = f"---\n{block}\n---\nBody."
    line = json.dumps({"title": "a", "prompt": text})
    outcome = bring_text(root, name, line if name.endswith("l") else text)
    assert outcome.created == ["imported/a 1.0.0"]
    assert [warning.split(": ", 2)[1] for warning in outcome.warnings] == [
        "The front matter is invalid and was kept as text"
    ]
    record, stored = latest(root, "imported/a")
    assert (stored, record.front_matter_bytes, record.description) == (text, 0, "Body.")


def test_messages_of_too_many_tokens(root, yaml_work):
    # A text of more than 16 KiB in them is none of their tokens.
    bring_text(root, "long.prompt.yml", MESSAGES.replace("Be brief", "Be brief" * 5_000))
    events = yaml_work.events
    outcome = bring_text(root, "many.prompt.yml", f"{MESSAGES}\nmore: [{'1,' * 100_000}]\n")
    assert reasons(outcome) == {
        "many.prompt.yml": "invalid YAML in line 15, column 99948: it has more than 50,000 values"
    }
    assert yaml_work.events < events + 50_100
