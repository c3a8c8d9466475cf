"""Conversations of other conventions: who says what is the same with our markers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.records import CONTENT_BYTES_MAX
from builder.text.messages import parse_messages
from moving.importers.chats import from_dotprompt, from_list, from_prompty
from tests.moving.importers.bringing import bring_text, latest, reasons


def said(body: str) -> list[tuple[str, str]] | None:
    messages = parse_messages(body)
    return messages and [(one.role, one.content) for one in messages]


def of(*messages: tuple[str, str], key: str = "role") -> list[dict[str, str]]:
    return [{key: role, "content": content} for role, content in messages]


@pytest.mark.parametrize("key", ["role", "type"])
@pytest.mark.parametrize(
    ("given_role", "role"),
    [
        ("system", "system"), ("developer", "system"), ("user", "user"), ("human", "user"),
        ("assistant", "assistant"), ("ai", "assistant"), ("model", "assistant"),
        ("AI", "assistant"), ("tool", "tool"), ("function", "tool"),
    ],
)  # fmt: skip
def test_roles(key, given_role, role):
    body, _ = from_list(of((given_role, "One."), ("user", "Two."), key=key))
    assert said(body) == [(role, "One."), ("user", "Two.")]


def test_a_message_of_the_user_alone_is_a_text():
    assert from_list(of(("user", "Say it.\n"))) == ("Say it.\n", [])
    assert from_list([{"content": "Say it.\n"}]) == ("Say it.\n", [])
    assert said(from_list(of(("system", "Be kind.")))[0]) == [("system", "Be kind.")]


def test_what_reads_as_a_marker_stays_text():
    body, _ = from_list(of(("system", 'Write:\n{{role "user"}}\nHi {{name}}'), ("user", "Go.")))
    assert said(body) == [
        ("system", 'Write:\n\\{{role "user"}}\nHi {{name}}'), ("user", "Go."),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["system", "user", "assistant", "tool"]),
            st.lists(st.sampled_from(["\n", "\r\n", " ", "a", '{{role "tool"}}', "\ufeff"])).map(
                "".join
            ),
        ),
        min_size=2,
    )
)
def test_any_conversation_stays_as_it_is(turns):
    found = said(from_list(of(*turns))[0])
    blank = '\\{{role "tool"}}'
    kept = [(role, text.replace(blank, '{{role "tool"}}')) for role, text in found or []]
    spoken = [(role, text) for role, text in turns if text.strip(" \t\r\n")]
    assert [role for role, _ in kept] == [role for role, _ in spoken]
    for (_, before), (_, after) in zip(spoken, kept, strict=True):
        assert after in before
        assert after.split() == before.split()


def test_what_is_no_text_is_left_out_with_a_warning_for_each_kind():
    image = {"type": "image\x1b_url", "image_url": {}}
    parts = [image, {"type": "text", "text": "a"}, image, {"type": "input_text", "text": "b"}]
    body, warnings = from_list([
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "assistant", "function_call": {"name": "x"}},
    ])  # fmt: skip
    assert said(body) == [("user", "a\nb")]
    assert warnings == [
        "Left out image? url: messages are text here.",
        "Left out tool calls: messages are text here.",
        "Left out function call: messages are text here.",
    ]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (None, "no list of messages"), ([], "no list of messages"), ("Hi", "no list of messages"),
        (["Hi"], "message 1 without a role"), ([{"role": "user"}], "message 1 without content"),
        ([{"role": "user", "content": 5}], "neither text nor a list of parts"),
        ([{"role": "user", "content": ["Hi"]}], "neither text nor a list of parts"),
        ([{"role": "user", "content": [{"type": "text"}]}], "a part whose text is not text"),
        ([{"role": 5, "content": "x"}], "message 1 without a role"),
        (of(("narrator", "x")), "the unknown role 'narrator'. Roles are system, user,"),
        (of(("x" * 9000, "x")), "the unknown role 'xxxx"),
    ],
)  # fmt: skip
def test_what_is_no_conversation_is_reported(messages, says):
    with pytest.raises(ValueError, match=says) as caught:
        from_list(messages)
    assert len(str(caught.value)) < 200


def test_prompty():
    body = (
        "system:\nBe kind.\n\n# User:\nHello {{name}}\nuser: not a role\r\n assistant : \r\nHi.\n"
    )
    assert said(from_prompty(body)) == [
        ("system", "Be kind."), ("user", "Hello {{name}}\nuser: not a role"), ("assistant", "Hi."),
    ]  # fmt: skip
    assert from_prompty("Say user: it.\n") == "Say user: it.\n"


def test_dotprompt():
    body = 'Hello.\n{{role "model"}}\nHi.\n{{ role \'model\' }}\n{{role "system"}}\nBe kind.'
    assert said(from_dotprompt(body)) == [
        ("user", "Hello."), ("assistant", "Hi."), ("system", "Be kind."),
    ]  # fmt: skip
    for same in ('{{role "system"}}\nBe kind.', 'Hello {{role "model"}}\n', "Hello.\n", "", "\n"):
        assert from_dotprompt(same) == same


@pytest.mark.parametrize(
    "piece", ["user:\n", "user :", " ", "#", '{{role "model"}}\n', "{{role ", "\r"]
)
def test_large_bodies_take_no_time(piece):
    body = piece * (CONTENT_BYTES_MAX // len(piece))
    for convert in (from_prompty, from_dotprompt):
        assert convert(f"{body}\nEnd.").endswith("End.")


def test_files_and_lines(root):
    front = "---\nname: Kind\n---\n"
    bring_text(root, "kind.prompty", f"{front}system:\nBe kind.\nuser:\nHi {{{{name}}}}.\n")
    record, text = latest(root, "imported/kind")
    assert (
        text == f'{front}{{{{role "system"}}}}\nBe kind.\n{{{{role "user"}}}}\nHi {{{{name}}}}.\n'
    )
    assert [one.name for one in record.variables] == ["name"]
    assert record.description == "Be kind."
    lines = [
        {"title": "Brief", "messages": of(("system", "Be brief."), ("user", "Hi."))},
        {"title": "None", "messages": [1]},
    ]
    outcome = bring_text(root, "chats.jsonl", "\n".join(map(json.dumps, lines)))
    assert outcome.created == ["imported/brief 1.0.0"]
    assert reasons(outcome) == {"line 2": "has a message 1 without a role"}
    assert said(latest(root, "imported/brief")[1]) == [("system", "Be brief."), ("user", "Hi.")]
