"""Serialised LangChain objects are read as data.

The file beside this one has the output of ``langchain_core.load.dumps`` 1.7.2.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.model.answers import Message
from moving.vendors.langchain_manifests import LEVELS_MAX, Template, is_manifest, read_manifest
from tests.moving.vendors.mutations import mutate

MANIFESTS = json.loads(Path(__file__).with_name("langchain_manifests.json").read_text())


def lc(name: str, /, *, kind: str = "constructor", **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": kind, "id": ["langchain", name], "kwargs": kwargs}


def template(text: str, template_format: str = "f-string", **kwargs: Any) -> dict[str, Any]:
    return lc("PromptTemplate", template=text, template_format=template_format, **kwargs)


def human(*templates: dict[str, Any]) -> dict[str, Any]:
    prompt = templates[0] if len(templates) == 1 else list(templates)
    return lc("HumanMessagePromptTemplate", prompt=prompt)


def chat(*messages: Any, **kwargs: Any) -> dict[str, Any]:
    return lc("ChatPromptTemplate", messages=list(messages), **kwargs)


def with_model(**kwargs: Any) -> dict[str, Any]:
    return lc("RunnableSequence", first=chat(human(template("Q"))), last=lc("ChatOpenAI", **kwargs))


def test_a_text_with_a_partial_variable():
    assert read_manifest(MANIFESTS["text"]) == Template(
        'Tell a {kind} joke about {topic}, as {{"joke": …}}.', "f-string",
        [{"name": "kind", "default": "short"}], {}, {}, [],
    )  # fmt: skip


def test_logic_of_jinja_stays_text():
    read = read_manifest(MANIFESTS["jinja2"])
    assert read.prompt == "Hello {{ name }}{% if formal %}, dear{% endif %}."
    assert read.convention == "jinja"


def test_a_chat_with_a_placeholder_and_an_image():
    read = read_manifest(MANIFESTS["chat"])
    assert read.prompt == [
        Message("system", "Be {{tone}}."),
        Message("user", "{{history}}"),
        Message("user", "What is {{question}}?\nLook:"),
    ]
    assert read.convention == "mustache"
    assert read.variables == [
        {"name": "history", "required": False}, {"name": "tone", "default": "kind"},
    ]  # fmt: skip
    assert read.warnings == [
        "The placeholder history became a message of the user with the variable history, which "
        "takes text, not messages.",
        "Left out ImagePromptTemplate: messages are text here.",
    ]


def test_a_literal_message_keeps_its_braces():
    """They are doubled, since those of the templates beside it are."""
    read = read_manifest(MANIFESTS["few_shots"])
    assert read.prompt[0] == Message("system", 'Answer as {{"a": 1}}.')
    assert [one.role for one in read.prompt[1:]] == ["user", "tool", "assistant", "user", "user"]
    assert "Left out image url: messages are text here." in read.warnings
    assert "Left out tool calls: messages are text here." in read.warnings


@pytest.mark.parametrize("template_format", ["mustache", "jinja2"])
def test_what_would_be_a_variable_in_a_literal_message_is_escaped(template_format):
    read = read_manifest(
        chat(lc("AIMessage", content="{{a}} {b} {{{ c }}}"), human(template("Q", template_format)))
    )
    assert read.prompt[0].content == r"\{{a}} {b} {\{{ c }}}"


def test_models_give_their_settings_and_no_secret():
    read = read_manifest(MANIFESTS["sequence"])
    assert read.parameters == {
        "model": "gpt-4o", "temperature": 0.3, "max_tokens": 900, "seed": 3, "stop": ["END"],
        "tool_choice": "auto",
        "tools": MANIFESTS["sequence"]["kwargs"]["last"]["kwargs"]["kwargs"]["tools"],
    }  # fmt: skip
    assert read.warnings == ["Left out settings of ChatOpenAI: default_headers, openai_api_base."]
    for secret in ("password", "secret-header", "API_KEY"):
        assert secret not in str(read)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"openai_api_key": "sk-plain"},
        {"model_kwargs": {"extra_headers": {"Authorization": "sk-plain"}}},
        {"model": lc("OPENAI", kind="secret", value="sk-plain")},
        {"stop": [{"lc": 1, "type": "secret", "id": ["sk-plain"]}]},
    ],
)
def test_what_may_be_a_secret_is_left_out(kwargs):
    read = read_manifest(with_model(temperature=1, **kwargs))
    assert read.parameters == {"temperature": 1}
    assert "sk-plain" not in str(read)


def test_tools_come_without_their_keys():
    tool = {"type": "mcp", "server_url": "u"}
    read = read_manifest(with_model(tools=[tool | {"authorization": "sk-plain"}]))
    assert read.parameters == {"tools": [tool]}
    assert read.warnings == ["Left out authorization and headers of tools, which can have keys."]


def test_a_schema_of_the_answer():
    read = read_manifest(MANIFESTS["structured"])
    assert read.parameters["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "Generate_tweet", "strict": True,
            "schema": MANIFESTS["structured"]["kwargs"]["first"]["kwargs"]["schema_"],
        },
    }  # fmt: skip
    assert read.parameters["model"] == "claude-sonnet-4-5"


def test_a_schema_as_a_function_has_it():
    schema = {"type": "object", "properties": {}}
    function = {"name": "answer it", "description": "", "parameters": schema}
    read = read_manifest(lc("StructuredPrompt", messages=[human(template("Q"))], schema_=function))
    assert read.parameters["response_format"]["json_schema"] == {
        "name": "answer_it", "schema": schema,
    }  # fmt: skip


def test_what_the_playground_saves():
    bound = lc("ChatOpenAI", openai_api_key=lc("KEY", kind="secret"), model_name="gpt-4o")
    last = lc("RunnableBinding", bound=bound, kwargs={"stop": ["x"]})
    read = read_manifest(lc("PromptPlayground", first=chat(human(template("Q"))), last=last))
    assert read.prompt == [Message("user", "Q")]
    assert read.parameters == {"stop": ["x"], "model": "gpt-4o"}
    assert read.warnings == []


def test_a_chat_in_a_chat_and_further_prompts():
    inner = chat(lc("ChatMessagePromptTemplate", role="developer", prompt=template("{a}")))
    read = read_manifest(
        lc("RunnableSequence", first=chat(inner, human(template("{b}"))), last=template("{c}"))
    )
    assert read.prompt == [Message("system", "{a}"), Message("user", "{b}")]
    assert read.warnings == ["Left out all prompts of the sequence but the first."]


def test_mixed_formats_are_reported():
    read = read_manifest(chat(human(template("{a}")), human(template("{{b}}", "mustache"))))
    assert read.convention == "f-string"
    assert read.warnings == [
        "Mixes the template formats f-string, mustache. All placeholders are read as those of "
        "f-string."
    ]


def nest(node: dict[str, Any], levels: int) -> dict[str, Any]:
    for _ in range(levels):
        node = lc("RunnableBinding", bound=node, kwargs={})
    return node


def nest_chats(levels: int) -> dict[str, Any]:
    node = chat(human(template("Q")))
    for _ in range(levels):
        node = chat(node)
    return node


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (MANIFESTS["few_shot_template"], "only FewShotPromptTemplate"),
        (lc("Popen", args=["true"]), "has no prompt template that can be read, only Popen"),
        (lc("OPENAI_API_KEY", kind="secret"), "nothing that LangChain has serialised"),
        (chat(), "has no text"),
        (chat(human(template(" \n"))), "has no text"),
        (chat("text"), "a message 1 that LangChain has not serialised"),
        (chat(lc("ChatMessage", role="critic", content="x")), "unknown role 'critic'"),
        (template("x", "handlebars"), "the template format 'handlebars'"),
        (nest(template("x"), LEVELS_MAX), f"nested deeper than {LEVELS_MAX} levels"),
        (nest_chats(LEVELS_MAX), f"nested deeper than {LEVELS_MAX} levels"),
    ],
)
def test_what_cannot_be_read(manifest, message):
    with pytest.raises(ValueError, match=message):
        read_manifest(manifest)


def test_what_is_nested_as_deep_as_may_be():
    assert read_manifest(nest(template("x"), LEVELS_MAX - 1)).prompt == "x"
    assert read_manifest(nest_chats(LEVELS_MAX - 1)).prompt == [Message("user", "Q")]


@pytest.mark.parametrize("name", sorted(MANIFESTS.keys() - {"few_shot_template"}))
def test_a_wrong_type_anywhere(name):
    """No other exception than the one that says what is wrong."""
    read = 0
    for manifest in mutate(MANIFESTS[name]):
        if is_manifest(manifest):
            try:
                read_manifest(manifest)
                read += 1
            except ValueError as error:
                assert str(error).startswith("has ")
    assert read
