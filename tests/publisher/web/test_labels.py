"""Labels over HTTP: who may move them, what is refused in which order, and what is answered."""

import io
import json
from typing import Any

import pytest
from werkzeug.test import TestResponse

from builder.model.errors import RequestError
from operate.content_check import check
from publisher.accounts.rights import ProtectedLabels
from publisher.write.moves import read_labels
from server.bodies import VISITOR_BYTES_MAX
from tests.support.hubs import Hub, MakeHub, code_of, lines_of

URL = "/api/v1/repos/ann/story/labels/production"
NOTHING: dict[str, str] = {}


@pytest.fixture
def hub(make_hub: MakeHub) -> Hub:
    """The service, with versions 1.0.0 and 1.0.1 of ann/story."""
    made = make_hub()
    publish_two(made)
    return made


def publish_two(hub: Hub) -> None:
    for text in ("One.", "Two."):
        assert hub.post({"content": text}).status_code == 201
    hub.rebuilder.requested.clear()


def put(hub: Hub, body: object = None, path: str = URL, **options: Any) -> TestResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body or {"version": "1.0.0"})
    return send(hub, "PUT", raw, path, **options)


def delete(hub: Hub, body: object = b"", path: str = URL, **options: Any) -> TestResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body)
    headers = NOTHING if raw else {"Content-Type": None}
    return send(hub, "DELETE", raw, path, headers=headers | options.pop("headers", {}), **options)


def send(
    hub: Hub, method: str, raw: object, path: str, token: str | None = "", **options: Any
) -> TestResponse:
    headers = {"Content-Type": "application/json"} | options.pop("headers", {})
    if token is not None:
        headers["Authorization"] = f"Bearer {token or hub.token}"
    headers = {key: value for key, value in headers.items() if value is not None}
    return hub.app.test_client().open(path, method=method, data=raw, headers=headers, **options)


def labels(hub: Hub) -> dict[str, str]:
    assert list(check(hub.settings.content)) == []
    return read_labels(hub.settings.content, "ann", "story").versions()


# Answers


def test_moving_and_not_moving(hub: Hub):
    put(hub)
    moved = put(hub, {"version": "1.0.1"})
    again = put(hub, {"version": "1.0.1", "note": "Again."})
    assert again.json["data"] == moved.json["data"] | {"unchanged": True}
    assert "Location" not in moved.headers and "Location" not in again.headers
    # After the answer the publisher sees the label, even if another request moved it.
    assert hub.rebuilder.requested == ["ann/story"] * 3


# Permissions, body, state


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Bearer {revoked}", "invalid_token"),
        ("Bearer {bobs}", "not_owner"),
        ("Bearer {narrow}", "insufficient_scope"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_who_may_not(hub: Hub, method: str, header: str, code: str):
    tokens = {
        "revoked": hub.make_token("ann", "gone")[0],
        "bobs": hub.make_token("bob")[0],
        "narrow": hub.make_token("ann", "narrow", repos=["poem"])[0],
    }
    hub.accounts.revoke("ann", "gone")
    headers = {"Authorization": header.format(**tokens), "Content-Type": None}
    # Before anything is said of the body, the names, or the repo.
    answers = [
        send(hub, method, b"rubbish", path, token=None, headers=headers)
        for path in (URL, URL.replace("story", "nothing"), f"{URL}-_-", f"{URL}%0a")
    ]
    assert {code_of(answer) for answer in answers} == {code}
    assert len({answer.data for answer in answers}) == 1
    assert labels(hub) == {}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"null", "invalid_json"), ({"version": "1.0.0"}, "validation_failed"),
        ({"expected": None}, "validation_failed"), ({"expected": "1.0.1"}, "label_moved"),
        (b" " * (VISITOR_BYTES_MAX + 1), "content_too_large"),
    ],
)  # fmt: skip
def test_bodies_of_removals_that_are_refused(hub: Hub, body: object, code: str):
    put(hub)
    assert code_of(delete(hub, body)) == code
    assert labels(hub) == {"production": "1.0.0"}


def test_a_note_of_exactly_the_limit(hub: Hub):
    assert put(hub, {"version": "1.0.0", "note": "é" * 512}).status_code == 201
    # Escaped, each character has six bytes.
    escaped = b'{"version": "1.0.1", "note": "%b"}' % (b"\\u0041" * 1024)
    assert put(hub, escaped).status_code == 200
    assert labels(hub) == {"production": "1.0.1"}


@pytest.mark.parametrize("headers", [{"Content-Type": None}, {"Content-Encoding": "gzip"}])
def test_other_media_types(hub: Hub, headers: dict[str, str | None]):
    assert code_of(put(hub, headers=headers)) == "unsupported_media_type"
    headers = {"Content-Type": "application/json"} | headers
    assert code_of(delete(hub, b"{}", headers=headers)) == "unsupported_media_type"


# Again, limits, log


def test_sent_again_with_its_key(hub: Hub):
    headers = {"Idempotency-Key": "k"}
    first = put(hub, headers=headers)
    put(hub, {"version": "1.0.1"})
    hub.restart()
    again = put(hub, headers=headers)
    assert (again.status_code, again.json) == (201, first.json)
    # Another body, label or method is another request.
    for answer in (
        put(hub, {"version": "1.0.1"}, headers=headers),
        put(hub, path=URL.replace("production", "canary"), headers=headers),
        delete(hub, headers=headers),
    ):
        assert code_of(answer) == "idempotency_key_reused"
    assert code_of(put(hub, headers={"Idempotency-Key": "x" * 256})) == "validation_failed"


def test_changes_count_in_the_rate_limit(make_hub: MakeHub):
    hub = make_hub(publications=4)
    publish_two(hub)
    first = put(hub)
    assert first.headers["RateLimit-Policy"] == '"publish";q=4;w=60'
    assert delete(hub).status_code == 200
    refused = put(hub)
    assert code_of(refused) == "rate_limited" and "RateLimit" in refused.headers
    assert code_of(hub.post({"content": "Three."})) == "rate_limited"


def test_what_is_logged(hub: Hub, log: io.StringIO):
    put(hub, {"version": "1.0.0", "note": "MARMALADE"})
    put(hub)
    delete(hub)
    put(hub, path=URL.replace("production", "Production"))
    moved, same, gone, wrong = lines_of(log)
    assert {line["event"] for line in (moved, same, gone, wrong)} == {"label"}
    keys = ("owner", "repo", "label", "version", "unchanged", "token", "status")
    assert [moved[key] for key in keys] == [
        "ann", "story", "production", "1.0.0", False, hub.token_id, 201,
    ]  # fmt: skip
    assert same["unchanged"] and gone["version"] is None
    assert "label" not in wrong and wrong["code"] == "invalid_label"
    assert "MARMALADE" not in log.getvalue() and hub.token not in log.getvalue()


def test_a_build_that_fails(hub: Hub):
    hub.rebuilder.error = RequestError("unavailable", "It is not on the site yet: x.")
    answer = put(hub)
    assert code_of(answer) == "unavailable"
    assert "The label production of ann/story is saved" in answer.json["error"]["message"]
    hub.rebuilder.error = None
    assert put(hub).json["data"]["unchanged"]


# Rights


def test_a_token_that_only_publishes(hub: Hub):
    token, _ = hub.make_token("ann", "publishes", rights=["publish"])
    assert code_of(put(hub, token=token)) == "insufficient_scope"
    assert code_of(delete(hub, token=token)) == "insufficient_scope"
    answer = hub.post({"content": "Three.", "labels": ["production"]}, token=token)
    assert code_of(answer) == "insufficient_scope"
    assert "right `label`" in answer.json["error"]["message"]
    assert hub.versions() == ["1.0.0", "1.0.1"] and labels(hub) == {}
    assert hub.post({"content": "Three."}, token=token).status_code == 201


def test_a_token_that_only_moves_labels(hub: Hub):
    token, _ = hub.make_token("ann", "moves", rights=["label"], labels=["production"])
    assert code_of(hub.post({"content": "Three."}, token=token)) == "insufficient_scope"
    assert put(hub, token=token).status_code == 201
    canary = URL.replace("production", "canary")
    assert code_of(put(hub, path=canary, token=token)) == "insufficient_scope"
    assert delete(hub, token=token).status_code == 200


def test_a_protected_label(hub: Hub):
    ProtectedLabels(hub.database).set("ann", "", "production", True)
    named, _ = hub.make_token("ann", "named", labels=["production"])
    for refused in (
        put(hub), delete(hub), hub.post({"content": "Three.", "labels": ["production"]}),
        hub.post({"content": "Two.", "labels": ["canary", "production"]}),
    ):  # fmt: skip
        assert code_of(refused) == "insufficient_scope"
        assert "label production is protected" in refused.json["error"]["message"]
    assert labels(hub) == {} and hub.versions() == ["1.0.0", "1.0.1"]
    assert put(hub, path=URL.replace("production", "canary")).status_code == 201
    assert put(hub, token=named).status_code == 201
    answer = hub.post({"content": "Three.", "labels": ["production"]}, token=named)
    assert answer.status_code == 201
