"""Publishing over HTTP: who may, what is refused in which order, and what is answered."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from builder.model.errors import RequestError
from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from operate.content_check import check
from tests.support.calls import watched
from tests.support.catalogues import BASE_URL
from tests.support.hubs import URL, Hub, MakeHub, code_of, fields_of, lines_of

# Answers


def test_a_first_publication(hub: Hub):
    body = {"content": "Tell {{what}}.", "variables": [{"name": "other"}]}
    data = hub.post(body).json["data"]
    assert list(data) == [
        "owner", "name", "version", "previous_version", "changelog", "sha256", "size",
        "publisher", "published_at", "url", "raw_url", "unchanged", "warnings", "serial",
    ]  # fmt: skip
    assert (data["publisher"], data["url"]) == ("ann", f"{BASE_URL}/ann/story/1.0.0")
    assert data["serial"] == 101 and "other" in data["warnings"][0]
    assert hub.rebuilder.requested == ["ann/story"]
    assert list(check(hub.settings.content)) == []


def test_the_base_url_may_carry_a_path(make_hub: MakeHub):
    hub = make_hub("https://example.org/prompts")
    answer = hub.post(environ_overrides={"SCRIPT_NAME": "/prompts"})
    assert answer.headers["Location"] == f"https://example.org/prompts{URL}/1.0.0"
    assert answer.json["data"]["url"] == "https://example.org/prompts/ann/story/1.0.0"


# Permissions


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Bearer  ", "missing_token"), ("{token}", "missing_token"),
        ("Bearer {token}x", "invalid_token"), ("Bearer {token} {token}", "invalid_token"),
        ("Bearer {token}, Bearer {token}", "invalid_token"), ("Bearer {expired}", "token_expired"),
        ("Bearer {revoked}", "invalid_token"), ("Bearer {bobs}", "not_owner"),
        ("Bearer {narrow}", "insufficient_scope"), ("Bearer é", "invalid_token"),
    ],
)  # fmt: skip
def test_who_may_not(hub: Hub, header: str, code: str):
    long_ago = datetime.now(UTC) - timedelta(days=2)
    tokens = {
        "token": hub.token,
        "expired": hub.make_token("ann", "old", expires_days=1, now=long_ago)[0],
        "revoked": hub.make_token("ann", "gone")[0],
        "bobs": hub.make_token("bob")[0],
        "narrow": hub.make_token("ann", "narrow", repos=["poem"])[0],
    }
    hub.accounts.revoke("ann", "gone")
    headers = {"Authorization": header.format(**tokens), "Content-Type": None}
    # Before anything is said of the body, the names, or the repo.
    missing = hub.post(b"rubbish", token=None, headers=headers)
    assert code_of(missing) == code
    if missing.status_code == 401:
        assert missing.headers["WWW-Authenticate"] == "Bearer"
    assert hub.post().status_code == 201
    present = hub.post({"base_version": "9.9.9"}, token=None, headers=headers)
    assert (present.status_code, present.data) == (missing.status_code, missing.data)
    wrong_name = hub.post(path="/api/v1/repos/ann/-_-/versions", token=None, headers=headers)
    assert (wrong_name.status_code, wrong_name.data) == (missing.status_code, missing.data)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_who_may(hub: Hub, scheme: str):
    headers = {"Authorization": f"{scheme} {hub.token}"}
    assert hub.post(token=None, headers=headers).status_code == 201
    (token,) = hub.accounts.tokens("ann")
    assert token.last_used_at is not None


# Body


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("ann/Story", "invalid_name", "'story'"), ("Ann/story", "invalid_name", "'ann'"),
        ("ann/a--b", "invalid_name", "hyphens"), (f"ann/{'x' * 65}", "invalid_name", "64"),
        ("ann/..", "invalid_name", "a-z"), ("ann/a%0ab", "invalid_name", "a-z"),
        ("ann/%ff", "invalid_name", "a-z"),
    ],
)  # fmt: skip
def test_names(hub: Hub, path: str, code: str, message: str):
    answer = hub.post(b"rubbish", f"/api/v1/repos/{path}/versions", headers={"Content-Type": None})
    assert code_of(answer) == code and message in answer.json["error"]["message"]


def test_a_reserved_owner(hub: Hub):
    # Added before the name was reserved.
    hub.database.execute("INSERT INTO owner (handle, look, created_at) VALUES ('api', 'api', 0)")
    token, _ = hub.make_token("api")
    answer = hub.post(path="/api/v1/repos/api/x/versions", token=token)
    assert code_of(answer) == "name_reserved"


def test_media_types(hub: Hub):
    for name, values, status in (
        ("Content-Type", [
            None, "application/x-www-form-urlencoded", "application/merge-patch+json",
            "application/json5", "application/json; charset=latin-1",
            "application/json; charset=utf-16", "application/json, text/plain",
        ], 415),
        ("Content-Encoding", ["gzip", "identity, gzip"], 415),
        ("Content-Type", [
            "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"',
            "application/json; profile=x",
        ], 200),
        ("Content-Encoding", ["identity"], 200),
    ):  # fmt: skip
        assert hub.post().status_code in (200, 201)
        found = {value: hub.post(headers={name: value}).status_code for value in values}
        assert found == dict.fromkeys(values, status)


class Stream:
    """A body that counts what is read of it; ends after ``size`` bytes."""

    def __init__(self, size: int, begin: bytes = b"") -> None:
        self.left = size
        self.taken = 0
        self._begin = begin

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "reads without a limit"
        # In small parts, as from a network.
        part = (self._begin or b" " * 65_536)[: min(size, self.left)]
        self._begin = self._begin[len(part) :]
        self.left -= len(part)
        self.taken += len(part)
        return part


def send_stream(hub: Hub, stream: Stream, **environ: Any) -> TestResponse:
    return hub.app.test_client().post(
        URL,
        headers={"Authorization": f"Bearer {hub.token}", "Content-Type": "application/json"},
        environ_overrides={"wsgi.input": stream} | environ,
    )


def test_too_much_is_refused_unread(hub: Hub):
    stream = Stream(10 * PUBLICATION_BYTES_MAX)
    answer = send_stream(hub, stream, CONTENT_LENGTH=str(PUBLICATION_BYTES_MAX + 1))
    assert code_of(answer) == "content_too_large" and stream.taken == 0


@pytest.mark.parametrize("environ", [{}, {"wsgi.input_terminated": True}])
def test_chunks_have_an_end(hub: Hub, environ: dict[str, Any]):
    environ |= {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    stream = Stream(10 * PUBLICATION_BYTES_MAX)
    answer = send_stream(hub, stream, **environ)
    assert code_of(answer) == "content_too_large" and stream.taken == PUBLICATION_BYTES_MAX + 1
    assert send_stream(hub, Stream(500_000, b'{"content": "One."}'), **environ).status_code == 201


def test_a_body_that_does_not_arrive(hub: Hub):
    answer = send_stream(hub, Stream(10, b'{"content"'), CONTENT_LENGTH="100")
    assert code_of(answer) == "invalid_json"

    class Broken(Stream):
        def read(self, size: int = -1) -> bytes:
            raise ConnectionResetError

    assert code_of(send_stream(hub, Broken(1), CONTENT_LENGTH="1")) == "invalid_json"
    assert code_of(send_stream(hub, Broken(1), CONTENT_LENGTH="")) == "invalid_json"


def test_the_body_is_checked_before_the_state(hub: Hub):
    hub.post()
    for body in ({"content": 1}, {"content": "---\ntags: [a\n---\nBody."}):
        answer = hub.post(body, headers={"If-Match": '"9.9.9"'})
        assert code_of(answer) == "validation_failed"


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("Idempotency-Key", ["", "x" * 256, "schlüssel", "a\tb", "\x7f"]),
        ("If-Match", ["", "*", "1.0.0", 'W/"1.0.0"', '"1.0.0", "1.0.1"', '"1.0"', '"01.0.0"', '""',
                      '"1.0.0']),
    ],
)  # fmt: skip
def test_keys_and_conditions_that_are_none(hub: Hub, header: str, values: list[str]):
    hub.post()
    for value in values:
        name = f"HTTP_{header.upper().replace('-', '_')}"
        answer = hub.post(environ_overrides={name: value})
        assert code_of(answer) == "validation_failed" and fields_of(answer) == [header]


# State


@pytest.mark.parametrize("way", ["header", "field", "both"])
def test_the_base_version(hub: Hub, way: str):
    def put(text: str, base: str) -> TestResponse:
        fields = {} if way == "header" else {"base_version": base}
        headers = {} if way == "field" else {"If-Match": f'"{base}"'}
        return hub.post({"content": text} | fields, headers=headers)

    answer = put("One.", "1.0.0")
    assert code_of(answer) == "base_version_mismatch" and "details" not in answer.json["error"]
    hub.post()
    assert put("Two.", "1.0.0").status_code == 201
    answer = put("Three.", "1.0.0")
    assert code_of(answer) == "base_version_mismatch"
    assert answer.json["error"]["details"] == [{"field": "base_version", "message": "1.0.1"}]
    assert hub.versions() == ["1.0.0", "1.0.1"]


def test_two_base_versions(hub: Hub):
    hub.post()
    answer = hub.post({"base_version": "1.0.1"}, headers={"If-Match": '"1.0.0"'})
    assert code_of(answer) == "validation_failed" and fields_of(answer) == ["If-Match"]


def test_a_full_disk(hub: Hub, log: io.StringIO):
    def fail(call: str, _: tuple) -> None:
        if call == "link":
            raise OSError(28, "No space left on device", hub.settings.content)

    with watched(fail):
        answer = hub.post(headers={"Idempotency-Key": "k"})
    assert code_of(answer) == "storage_unavailable" and answer.headers["Retry-After"]
    assert hub.settings.content not in answer.text
    assert lines_of(log)[-1]["exception"][1]["type"] == "OSError"
    # The key is not used up.
    assert hub.post(headers={"Idempotency-Key": "k"}).status_code == 201
    assert hub.versions() == ["1.0.0"]


def test_what_only_the_operator_can_fix(hub: Hub, log: io.StringIO):
    hub.post()
    Path(hub.settings.content, "ann/story/1.0.0.md").write_text("Edited.")
    answer = hub.post({"content": "Two."})
    assert code_of(answer) == "unavailable"
    assert "1.0.0" not in answer.text and hub.settings.content not in answer.text
    assert lines_of(log)[-1]["exception"][0]["type"] == "ContentError"
    assert "1.0.0.md" in lines_of(log)[-1]["exception"][0]["message"]


def test_a_site_that_is_late(hub: Hub):
    hub.rebuilder.error = RequestError("unavailable", "The site takes long.")
    answer = hub.post()
    assert code_of(answer) == "unavailable"
    message = answer.json["error"]["message"]
    assert "1.0.0 is saved" in message and "again in 5 s" in message and "takes long" in message
    hub.rebuilder.error = None
    again = hub.post()
    assert (again.status_code, again.json["data"]["version"]) == (200, "1.0.0")
