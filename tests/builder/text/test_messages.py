"""A body taken apart into messages: the cases that all implementations share, and large texts."""

import json
import pathlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from builder.model.records import CONTENT_BYTES_MAX
from builder.text.messages import parse_messages, without_markers
from builder.text.prompts import variable_names

VECTORS = pathlib.Path(__file__).parents[3] / "clients/vectors.json"
CASES = json.loads(VECTORS.read_text())["messages"]
PIECES = ['{{role "user"}}', "{{role 'tool'}}", "\n", "\r\n", " ", "\t", "a", "\\", "\ufeff", "\r"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_shared_cases(case):
    assert to_builtins(parse_messages(case["body"])) == case["messages"]


def _by_lines(body: str):
    """The rules once more, line by line."""
    lines = re.split(r"\r*(?:\n|\Z)", body.removeprefix("\ufeff"))
    breaks = re.findall(r"\r*(?:\n|\Z)", body.removeprefix("\ufeff"))
    found, is_marked = [["system", []]], False
    for line, line_break in zip(lines, breaks, strict=False):
        marker = re.fullmatch(r"""{{role (?:"(user)"|'(tool)')}}""", line.strip(" \t"))
        if marker:
            is_marked = True
            found.append([marker[1] or marker[2], []])
        else:
            found[-1][1].append((line, line_break))
    messages = []
    for role, part in found:
        kept = [at for at, (line, _) in enumerate(part) if line.strip(" \t\r")]
        if kept:
            *lines, (last, _) = part[kept[0] : kept[-1] + 1]
            text = "".join(map("".join, lines)) + last
            messages.append({"role": role, "content": text})
    return messages if is_marked else None


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_taken_apart_by_the_rules(body):
    assert to_builtins(parse_messages(body)) == _by_lines(body)


@given(st.lists(st.sampled_from([*PIECES, "{{name}}"])).map("".join))
def test_messages_and_the_text_without_markers_lose_no_variable(body):
    messages, rest = parse_messages(body), without_markers(body)
    assert parse_messages(rest) is None
    assert variable_names(rest) == variable_names(body)
    assert rest.count("\n") == body.count("\n")
    if messages is None:
        assert rest == body.removeprefix("\ufeff")
        return
    assert all(parse_messages(one.content) is None for one in messages)
    contents = "\n".join(one.content for one in messages)
    assert variable_names(contents) == variable_names(body)


@pytest.mark.parametrize(
    "piece",
    [
        '{{role "user"}}\n', '{{role "user"}}\na\n', "\n", " \n", "\r", " ", "{{", '{{role "',
        "\t{{role ",
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("start", ["", '{{role "user"}}\n', '{{role "user"}}\na'], ids=repr)
def test_largest_bodies_of_one_piece(piece, start):
    body = (start + piece * (CONTENT_BYTES_MAX // len(piece)))[:CONTENT_BYTES_MAX]
    # A parser with quadratic time would never end here.
    assert to_builtins(parse_messages(f"{body}\nend\n")) == _by_lines(f"{body}\nend\n")
