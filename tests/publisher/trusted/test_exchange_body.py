"""The body of an exchange: messages name its faults, and never contain its token."""

import json

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from builder.model.errors import RequestError
from publisher.web.trusted_exchange import read_exchange
from tests.support.issuer import TestIssuer


def posted(body: bytes, **headers: str) -> Request:
    sent = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return Request(EnvironBuilder(method="POST", data=body, headers=sent).get_environ())


def body_refusal(body: bytes, **headers: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read_exchange(posted(body, **headers))
    return caught.value


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "token"), (b'{"repo": "ann/review"}', "token"), (b'{"token": ""}', "token"),
        (b'{"token": "a"}', "repo"), (b'{"token": "a", "repo": null}', "repo"),
        (b'{"token": "a", "repo": "*/*"}', "repo"), (b'{"token": "a", "repo": "a/b*"}', "repo"),
        (b'{"token": 1}', "token"), (b'{"token": null}', "token"), (b'{"token": ["a"]}', "token"),
        (b'{"token": "a", "repo": 1}', "repo"), (b'{"token": "a", "repo": ""}', "repo"),
        (b'{"token": "a", "repo": "review"}', "repo"), (b'{"token": "a", "repo": "A/b"}', "repo"),
        (b'{"token": "a", "repo": "a/b\\n"}', "repo"), (b'{"token": "a", "repo": "a/b/c"}', "repo"),
        (b'{"token": "a", "repo": "a/"}', "repo"), (b'{"token": "a", "rep": "a/b"}', "rep"),
        (b'{"token": "a", "repo": "' + b"a" * 40 + b'/b"}', "repo"),
        (b'{"token": "a", "repo": "a/' + b"b" * 65 + b'"}', "repo"),
        (b'{"token": "a", "' + b"x" * 500 + b'": 1}', "x" * 100),
    ],
)  # fmt: skip
def test_bodies_with_wrong_fields(body: bytes, field: str):
    error = body_refusal(body)
    assert error.code == "validation_failed"
    assert error.details[0].field == field and error.details[0].message
    if field == "rep":
        assert "is not a known field (did you mean 'repo'?)" in error.details[0].message
        assert "must be OWNER/NAME" in error.details[1].message


def test_no_refusal_of_a_body_quotes_the_token(live: TestIssuer):
    token = live.token()
    for body in (
        {"token": token, "repo": "x"}, {"token": [token]}, {"token": token, "more": 1},
    ):  # fmt: skip
        error = body_refusal(json.dumps(body).encode())
        assert token not in str(error) and token[:30] not in str(error)
