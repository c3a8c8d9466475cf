"""Headers of every answer, and the log of requests."""

import io
import json
import re

import pytest

from tests.support.calls import watched
from tests.support.hubs import URL, Hub, code_of, lines_of

SECRET_TEXT = "Whisper MARMALADE to nobody."


@pytest.mark.parametrize(
    ("method", "path", "code", "allow"),
    [
        ("GET", URL, "method_not_allowed", "OPTIONS, POST"),
        ("PUT", URL, "method_not_allowed", "OPTIONS, POST"),
        ("POST", "/healthz", "method_not_allowed", "GET, HEAD, OPTIONS"),
        ("GET", "/", "not_found", None),
        ("POST", f"{URL}/", "not_found", None),
        ("POST", URL.replace("/repos", "//repos"), "not_found", None),
        ("POST", "/api/v1/repos", "not_found", None),
        ("GET", "/api/%ff%00", "not_found", None),
    ],
)
def test_other_addresses(hub: Hub, method: str, path: str, code: str, allow: str | None):
    answer = hub.app.test_client().open(path, method=method)
    assert code_of(answer) == code
    assert answer.headers.get("Allow") == allow


def test_a_failure_nobody_thought_of(hub: Hub, log: io.StringIO):
    def fail(call: str, _: tuple) -> None:
        if call == "link":
            raise ZeroDivisionError(SECRET_TEXT)

    with watched(fail):
        answer = hub.post({"content": SECRET_TEXT})
    assert code_of(answer) == "internal_error"
    assert "ZeroDivision" not in answer.text and "MARMALADE" not in answer.text
    (line,) = lines_of(log)
    assert (line["status"], line["code"]) == (500, "internal_error")
    assert line["level"] == "error"
    (exception,) = line["exception"]
    assert exception["type"] == "ZeroDivisionError" and "message" not in exception
    assert any("publish.py" in place for place in exception["stack"])
    assert "MARMALADE" not in log.getvalue()


def test_health_and_before_the_first_site(hub: Hub, log: io.StringIO):
    well, building = {"status": "ok", "serial": 4}, {"status": "building", "serial": None}
    for status, health in ((200, well), (503, building)):
        hub.rebuilder.state = health
        answer = hub.app.test_client().get("/healthz")
        assert (answer.status_code, answer.json) == (status, health)
        assert answer.headers.get("Retry-After") == (None if status == 200 else "5")
        assert answer.headers["Cache-Control"] == "no-store"
    assert lines_of(log) == []


ORIGIN = {"Origin": "https://editor.example"}


def test_other_origins(hub: Hub):
    exposed = {"ETag", "Location", "Retry-After", "RateLimit", "RateLimit-Policy"}
    created = hub.post(headers=ORIGIN)
    refused = hub.post(token=None, headers=ORIGIN)
    unknown = hub.app.test_client().get("/api/v1/nothing", headers=ORIGIN)
    for answer in (created, refused, unknown):
        assert answer.headers.getlist("Access-Control-Allow-Origin") == ["*"]
        assert set(answer.headers["Access-Control-Expose-Headers"].split(", ")) == exposed
    assert "Access-Control-Allow-Origin" not in hub.app.test_client().get("/healthz").headers


@pytest.mark.parametrize("given_id", ["a", "A-b_c.9", "x" * 64])
def test_a_request_id_that_is_given(hub: Hub, log: io.StringIO, given_id: str):
    answer = hub.post(headers={"X-Request-Id": given_id})
    assert answer.headers["X-Request-Id"] == given_id == lines_of(log)[0]["request_id"]


@pytest.mark.parametrize("given_id", ["", "x" * 65, "a b", "a\\n", "é", None])
def test_a_request_id_that_is_made(hub: Hub, given_id: str | None):
    first, second = (hub.post(headers={"X-Request-Id": given_id}) for _ in range(2))
    assert re.fullmatch("[0-9a-f]{32}", first.headers["X-Request-Id"])
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]


# The log


def test_a_line_for_each_request(hub: Hub, log: io.StringIO):
    body = json.dumps({"content": SECRET_TEXT}).encode()
    hub.post(body, headers={"X-Request-Id": "r1"})
    hub.post(body, token="hub_wrong")
    hub.post(b"[]")
    hub.app.test_client().get("/nothing")
    created, wrong, invalid, unknown = lines_of(log)
    assert created.pop("milliseconds") > 0
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", created.pop("time"))
    assert created == {
        "level": "info", "event": "publish", "request_id": "r1", "method": "POST",
        "path": "/api/v1/repos/ann/story/versions",
        "route": "/api/v1/repos/<owner>/<name>/versions", "status": 201,
        "owner": "ann", "repo": "story", "token": hub.token_id, "bytes": len(body),
        "version": "1.0.0", "unchanged": False, "by": "ann", "how": "with token ci",
            "address": "127.0.0.1",
    }  # fmt: skip
    assert (wrong["status"], wrong["code"]) == (401, "invalid_token") and "token" not in wrong
    assert (invalid["status"], invalid["code"]) == (400, "invalid_json")
    assert (unknown["event"], unknown["status"]) == ("request", 404)
    assert (unknown["path"], unknown["route"]) == ("/nothing", None)
    for secret in ("MARMALADE", hub.token, "hub_wrong"):
        assert secret not in log.getvalue()


def test_secrets_are_not_logged_wherever_they_are_sent(hub: Hub, log: io.StringIO):
    secret = hub.token
    hub.post(path=f"/api/v1/repos/ann/{secret}/versions")
    hub.post(path=f"/api/v1/repos/{secret}/x/versions?token={secret}")
    hub.post({secret: SECRET_TEXT}, headers={"Idempotency-Key": secret, "If-Match": secret})
    hub.post({"content": f"{SECRET_TEXT} {secret}"}, headers={"User-Agent": secret})
    hub.app.test_client().get(f"/{secret}")
    assert len(lines_of(log)) == 5
    assert secret not in log.getvalue() and "MARMALADE" not in log.getvalue()
