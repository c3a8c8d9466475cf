"""A publish body is read whole: every wrong field is named, and nothing wrong gets through."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from builder.model import names
from builder.model.errors import RequestError
from builder.model.records import CHANGELOG_BYTES_MAX, CONTENT_BYTES_MAX, Variable
from builder.model.request_bodies import Draft, LabelDraft, LabelRemoval, WithdrawalDraft
from publisher.accounts.token import find_token, is_token, make_token
from publisher.write.drafts import make_change, make_draft, parse_draft
from tests.publisher.write import acts


def refusal(fields: object) -> RequestError:
    raw = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return acts.refusal(parse_draft, raw)


def wrong_fields(fields: dict[str, object]) -> list[str]:
    error = refusal({"content": "x"} | fields)
    assert error.code == "validation_failed"
    return [detail.field for detail in error.details]


def test_least_draft():
    draft = parse_draft(b'{"content": "Hello"}')
    assert (draft.content, draft.changelog, draft.bump) == ("Hello", "", "patch")
    assert draft.title is UNSET and draft.license is UNSET and draft.base_version is UNSET


def test_full_draft():
    draft = make_draft({
        "content": "Hi {{who}}", "changelog": "New.", "bump": "major", "title": "Hi",
        "description": "Greets.", "tags": ["a", "b"], "license": None,
        "variables": [{"name": "who", "default": "you"}], "parameters": {"model": "m"},
        "base_version": "1.2.3",
    })  # fmt: skip
    assert draft.variables == [Variable("who", required=False, default="you")]
    assert draft.license is None and draft.base_version == "1.2.3"
    assert msgspec.json.decode(msgspec.json.encode(draft), type=Draft) == draft


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"[]", b'"x"', b"null", b'{"content": NaN}', b"[" * 100_000,
            b'{"content": "x", "parameters": {"seed": 1e999}}', b"\xef\xbb\xbf{}",
            b'{"content": "x", "content": "x"}', b'{"content": "x", "parameters": {"n":1, "n":1}}'],
)  # fmt: skip
def test_not_a_json_object(raw: bytes):
    assert refusal(raw).code == "invalid_json"


def test_every_wrong_field_is_named():
    error = refusal({
        "bump": "huge", "tags": ["ok", "Not Ok"], "title": "two\nlines", "changelog": 5,
        "variables": [{"name": "9"}], "base_version": "1.0", "licence": "MIT",
    })  # fmt: skip
    assert [detail.field for detail in error.details] == [
        "bump", "tags[1]", "title", "changelog", "variables[0].name", "base_version", "licence",
        "content",
    ]  # fmt: skip
    assert "did you mean 'license'?" in str(error)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"title": ""}, "title"), ({"title": "x" * 201}, "title"), ({"title": None}, "title"),
        ({"title": "a\u202eb"}, "title"), ({"description": "x" * 2001}, "description"),
        ({"tags": ["a", "a"]}, "tags"), ({"tags": [f"t{number}" for number in range(11)]}, "tags"),
        ({"tags": ["x" * 49]}, "tags[0]"), ({"tags": ["a\n"]}, "tags[0]"),
        ({"variables": {"a": None}}, "variables"),
        ({"variables": [{"name": "a"}, {"name": "a"}]}, "variables"),
        ({"variables": [{"name": "a", "typ": "string"}]}, "variables[0]"),
        ({"parameters": []}, "parameters"), ({"parameters": {"a": "\ud800"}}, "parameters"),
        ({"changelog": "é" * 4097}, "changelog"), ({"changelog": "\udfff"}, "changelog"),
        ({"changelog": "a\x1b[2J"}, "changelog"), ({"changelog": "a\rb"}, "changelog"),
        ({"content": " \n\t"}, "content"), ({"content": "a\0b"}, "content"),
        ({"content": "\ud83d"}, "content"), ({"content": ["x"]}, "content"),
        ({"bump": ["major"]}, "bump"), ({"base_version": 1}, "base_version"),
        ({"base_version": "01.0.0"}, "base_version"), ({"\ud800": 1}, "?"),
    ],
)  # fmt: skip
def test_limits(fields: dict[str, object], place: str):
    assert wrong_fields(fields) == [place]


def test_errors_can_be_answered_in_json():
    error = refusal({"content": "\ud800", "\ud800" * 500: 1, "tags": ["\ud800"]})
    json.dumps([str(error), error.details], ensure_ascii=False).encode()


def test_nesting_has_an_end():
    for levels in (100, 900):
        raw = b'{"content": "x", "parameters": {"a": %s}}' % (b"[" * levels + b"]" * levels)
        assert [detail.field for detail in refusal(raw).details] == ["parameters"]


def test_sizes_are_bytes():
    assert make_draft({"content": "é" * (CONTENT_BYTES_MAX // 2)})
    assert refusal({"content": "é" * (CONTENT_BYTES_MAX // 2) + "x"}).code == "content_too_large"
    assert make_draft({"content": "x", "changelog": "é" * (CHANGELOG_BYTES_MAX // 2)})


@given(st.text(min_size=1).filter(str.strip), st.sampled_from(names.BUMPS))
def test_what_is_right_is_kept(text: str, bump: str):
    text = text.replace("\0", "0")
    draft = parse_draft(json.dumps({"content": text, "bump": bump}).encode())
    assert (draft.content, draft.bump) == (text, bump)


def test_the_same_characters_are_refused_in_every_text():
    spoilt = [*map(chr, (0, 7, 8, 11, 27, 127, 0x9B, 0xFDD0, 0xFFFE, 0x1FFFF))]
    for make in (
        lambda text: make_draft({"content": "x", "changelog": text}),
        lambda text: make_draft({"content": "x", "description": text}),
        lambda text: make_draft({"content": "x", "license": text}),
        lambda text: make_draft({"content": "x", "parameters": {"a": [{"b": text}]}}),
        lambda text: make_draft({"content": "x", "variables": [{"name": "a", "enum": [text]}]}),
        lambda text: make_change(LabelDraft, {"version": "1.0.0", "note": text}),
        lambda text: make_change(LabelRemoval, {"note": text}),
        lambda text: make_change(WithdrawalDraft, {"reason": "error", "note": text}),
    ):
        make("Zo\u200dë 😀")
        for char in spoilt:
            details = acts.refusal(make, f"a{char}b").details
            assert f"U+{ord(char):04X}" in details[0].message
    lines = "One.\r\n\tTwo.\n"
    draft = make_draft({"content": "x", "changelog": lines, "parameters": {"stop": [lines]}})
    assert (draft.changelog, draft.parameters) == (lines, {"stop": [lines]})


def test_a_token_is_a_secret():
    token = make_token()
    assert refusal({"content": f'Use "{token}" here.'}).code == "secret_detected"
    assert refusal({"content": "x", "changelog": token}).code == "secret_detected"
    assert make_draft({"content": token[:-1]})


def test_token_format():
    # The check of a known token must never change: tokens outlive versions of this code.
    assert is_token("hub_" + "0" * 32 + "2XhiBt")
    token = make_token()
    assert is_token(token) and len(token) == 42 and token != make_token()
    assert find_token(f"hub_{token}9") == token
    assert find_token("hub_" + "a" * 38) is None
    wrong = "a" if token[10] != "a" else "b"
    assert not is_token(token[:10] + wrong + token[11:])
    assert not is_token(token + "\n")


def test_a_pointer_of_git_lfs_is_refused_with_its_path():
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    files = [
        {"path": "a/model.bin", "content": pointer},
        {"path": "b.md", "content": "x" + pointer},
    ]
    error = refusal({"content": "x", "files": files})
    assert error.code == "validation_failed"
    assert [one.field for one in error.details] == ["files[a/model.bin]"]
    assert "git lfs pull" in str(error)
    assert [one.field for one in refusal({"content": pointer}).details] == ["content"]
