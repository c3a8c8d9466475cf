"""Changes that forms make to texts and values, and how the editor undoes them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.web.editor.values import (
    read_lines,
    read_value,
    restore_line_ends,
    show_lines,
    show_value,
    with_line_feeds,
)

# No lone surrogates: no form sends them.
texts = st.text(st.characters(exclude_categories=["Cs"]))
ended = st.lists(st.tuples(st.text("ab \t"), st.sampled_from(["\n", "\r\n", "\r"])))


@given(ended, st.text("ab"))
def test_a_text_that_nobody_changes_keeps_its_line_ends(
    lines: list[tuple[str, str]], last: str
) -> None:
    text = "".join(line + end for line, end in lines) + last
    assert restore_line_ends(with_line_feeds(text), text) == text


@pytest.mark.parametrize(
    ("base", "sent", "kept"),
    [
        ("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
        ("a\r\nb\nc", "a\nB\nc\nd\n", "a\r\nB\r\nc\r\nd\r\n"),
        ("a\nb", "x\n", "x\n"), ("a", "x\n", "x\n"),
        ("a\r\nb", "one line", "one line"),
    ],
)  # fmt: skip
def test_a_changed_text_has_the_end_of_the_first_line(base: str, sent: str, kept: str) -> None:
    assert restore_line_ends(sent, base) == kept


@given(texts)
def test_each_text_comes_back_from_its_field(text: str) -> None:
    assert read_value(show_value(text), "string") == text


@given(st.lists(texts, min_size=1))
def test_each_list_of_texts_comes_back_from_its_lines(values: list[str]) -> None:
    shown = show_lines(values)
    if "\r" not in shown:  # a form would make it a line end
        assert read_lines(shown, "string") == values


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("", "string", None), (" ", "string", " "), (" ", "integer", None), ("-7", "integer", -7),
        ("1e3", "number", 1000.0), ("7", "number", 7), ("TRUE", "boolean", True),
        ("[1]", "array", [1]), ('{"a": null}', "object", {"a": None}), ('"', "string", '"'),
        ('"a', "string", '"a'), ('"7"', "string", "7"),
    ],
)  # fmt: skip
def test_values(text: str, kind: str, value: Any) -> None:
    assert read_value(text, kind) == value
    assert type(read_value(text, kind)) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5", "integer"), ("9" * 19, "integer"), ("warm", "number"), ("inf", "number"),
        ("1" * 5000, "number"), ("yes", "boolean"), ("{}", "array"), ("[", "array"),
        ("[" * 100_000, "array"), ("[NaN]", "array"), ("[]", "object"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_reported(text: str, kind: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_value(text, kind)
    assert str(caught.value).endswith(".") and not isinstance(caught.value, json.JSONDecodeError)
