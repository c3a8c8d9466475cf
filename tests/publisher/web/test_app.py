"""Publishing over HTTP: who may, what is refused in which order, and what is answered."""

import io
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from builder.model import answer_headers
from builder.model.errors import STATUS, OperatorError, RequestError
from builder.model.routes import BY_NAME, TRUSTED_URL
from builder.model.settings import Settings
from builder.store import content
from builder.store.check import check
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.accounts.tokens import make_token
from publisher.log import configure_logging
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import TrustedPublishers
from publisher.web.app import create_app
from publisher.web.incoming import BODY_BYTES_MAX, bearer_token
from publisher.write import durable, idempotency
from publisher.write.quotas import Quotas
from server import throttle
from server.throttle import Throttle
from tests.server.test_throttle import Clock
from tests.support.catalogues import BASE_URL
from tests.support.issuer import KEYS, TestIssuer, issuer
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    clean_environment,
    free_port,
    wait_until,
)

URL = "/api/v1/repos/ann/story/versions"
SECRET_TEXT = "Whisper MARMALADE to nobody."


class FakeRebuilder:
    """Says at once that everything is visible, or what it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: BaseException | None = None

    def make_visible(self, owner: str, name: str) -> int:
        self.asked.append(f"{owner}/{name}")
        if self.error:
            raise self.error
        return 100 + len(self.asked)

    def health(self) -> dict[str, Any]:
        return {"status": "ok", "serial": 4}

    def fails_publications(self) -> bool:
        return False


class Hub:
    """The service over a folder of its own, with the owners ann and bob, and ann's token."""

    def __init__(self, folder: Path, base_url: str = BASE_URL, **options: Any) -> None:
        self.settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/state", base_url)
        Path(self.settings.content).mkdir(parents=True)
        self.database = Database(self.settings.state)
        self.accounts = Accounts(self.database)
        for owner in ("ann", "bob"):
            self.accounts.add_owner(owner)
        self.token, self.token_id = self.make_token("ann")
        self.rebuilder = FakeRebuilder()
        self.options = options
        self.restart()

    def restart(self) -> None:
        """As after a crash: nothing is remembered but what is on the disk."""
        self.database.close()
        self.database = Database(self.settings.state)
        self.accounts = Accounts(self.database)
        self.app: Flask = create_app(
            self.settings, self.rebuilder, self.accounts, self.database, **self.options
        )

    def make_token(self, owner: str, name: str = "ci", **options: Any) -> tuple[str, str]:
        text, token = self.accounts.create_token(owner, name, **options)
        return text, token.id

    def post(
        self, body: object = None, path: str = URL, token: str | None = "", **options: Any
    ) -> TestResponse:
        """Publish; ``body`` is bytes, or fields beside a content. A token of None: none."""
        raw = body if isinstance(body, bytes) else json.dumps({"content": "One."} | (body or {}))
        headers = {"Content-Type": "application/json"} | options.pop("headers", {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        headers = {key: value for key, value in headers.items() if value is not None}
        return self.app.test_client().post(path, data=raw, headers=headers, **options)

    def versions(self, repo: str = "ann/story") -> list[str]:
        listing = content.list_versions(self.settings.content, *repo.split("/"))
        return [str(version) for version in listing.versions]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)
    yield made
    made.database.close()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the service logs."""
    logger = logging.getLogger("hub")
    for attribute in ("handlers", "propagate", "level"):
        monkeypatch.setattr(logger, attribute, getattr(logger, attribute))
    stream = io.StringIO()
    configure_logging(stream)
    return stream


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def code_of(answer: TestResponse) -> str:
    """The code of an error, which is answered as every error is."""
    error = answer.json["error"]
    assert set(error) - {"details"} == {"code", "message"} and len(error["message"]) > 10
    assert answer.status_code == STATUS[error["code"]]
    assert answer.headers["Content-Type"] == "application/json"
    expected = "public, max-age=10" if answer.status_code == 404 else "no-store"
    assert answer.headers["Cache-Control"] == expected
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ("WWW-Authenticate" in answer.headers) == (answer.status_code == 401)
    assert ("Retry-After" in answer.headers) == (answer.status_code in (429, 503))
    return error["code"]


def fields_of(answer: TestResponse) -> list[str]:
    return [detail["field"] for detail in answer.json["error"]["details"]]


def without_serial(answer: TestResponse) -> dict[str, Any]:
    return {key: value for key, value in answer.json["data"].items() if key != "serial"}


# What is answered


def test_a_first_publication(hub: Hub):
    answer = hub.post({"content": "Tell {{what}}.", "changelog": "New.", "variables": [
        {"name": "other"},
    ]})  # fmt: skip
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{BASE_URL}{URL}/1.0.0"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Type"] == "application/json"
    data = answer.json["data"]
    assert list(data) == [
        "owner", "name", "version", "previous_version", "changelog", "sha256", "size",
        "publisher", "published_at", "url", "raw_url", "unchanged", "warnings", "serial",
    ]  # fmt: skip
    assert data | {"sha256": "", "published_at": "", "warnings": []} == {
        "owner": "ann", "name": "story", "version": "1.0.0", "previous_version": None,
        "changelog": "New.", "sha256": "", "size": 14, "publisher": "ann", "published_at": "",
        "url": f"{BASE_URL}/ann/story/1.0.0", "raw_url": f"{BASE_URL}{URL}/1.0.0.txt",
        "unchanged": False, "warnings": [], "serial": 101,
    }  # fmt: skip
    assert "other" in data["warnings"][0]
    assert hub.rebuilder.asked == ["ann/story"]
    assert list(check(hub.settings.content)) == []


def test_later_publications(hub: Hub):
    hub.post()
    answer = hub.post({"content": "Two.", "bump": "minor"})
    assert answer.status_code == 201
    assert answer.json["data"]["version"] == "1.1.0"
    assert answer.json["data"]["previous_version"] == "1.0.0"


def test_nothing_new(hub: Hub):
    first, again = hub.post(), hub.post()
    assert (first.status_code, again.status_code) == (201, 200)
    assert "Location" not in again.headers
    assert again.json["data"]["unchanged"]
    assert without_serial(again) | {"unchanged": False} == without_serial(first)
    assert hub.versions() == ["1.0.0"]


def test_the_publisher_is_the_tokens_owner(hub: Hub):
    token, _ = hub.make_token("bob")
    answer = hub.post(path="/api/v1/repos/bob/tale/versions", token=token)
    assert answer.json["data"]["publisher"] == "bob"


def test_the_base_url_may_carry_a_path(tmp_path: Path):
    hub = Hub(tmp_path, "https://example.org/prompts")
    answer = hub.post(environ_overrides={"SCRIPT_NAME": "/prompts"})
    assert answer.headers["Location"] == f"https://example.org/prompts{URL}/1.0.0"
    assert answer.json["data"]["url"] == "https://example.org/prompts/ann/story/1.0.0"
    hub.database.close()


# Who


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "missing_token"),
        ("", "missing_token"),
        ("Bearer", "missing_token"),
        ("Bearer  ", "missing_token"),
        ("Basic YW5uOng=", "missing_token"),
        ("{token}", "missing_token"),
        ("Bearer {token}x", "invalid_token"),
        ("Bearer {token} {token}", "invalid_token"),
        ("Bearer {token}, Bearer {token}", "invalid_token"),
        ("Bearer {other}", "invalid_token"),
        ("Bearer {expired}", "token_expired"),
        ("Bearer {revoked}", "invalid_token"),
        ("Bearer {bobs}", "not_owner"),
        ("Bearer {narrow}", "insufficient_scope"),
        ("Bearer é", "invalid_token"),
    ],
)
def test_who_may_not(hub: Hub, header: str | None, code: str):
    long_ago = datetime.now(UTC) - timedelta(days=2)
    tokens = {
        "token": hub.token,
        "other": make_token(),
        "expired": hub.make_token("ann", "old", expires_days=1, now=long_ago)[0],
        "revoked": hub.make_token("ann", "gone")[0],
        "bobs": hub.make_token("bob")[0],
        "narrow": hub.make_token("ann", "narrow", repos=["poem"])[0],
    }
    hub.accounts.revoke("ann", "gone")
    headers = {"Authorization": header and header.format(**tokens), "Content-Type": None}
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


@given(st.text())
def test_bearer_tokens(text: str):
    found = bearer_token(f"Bearer {text}")
    assert found == (text.strip() or None)
    assert bearer_token(text) is None or text.strip().lower().startswith("bearer ")


# Body


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("ann/Story", "invalid_name", "'story'"),
        ("Ann/story", "invalid_name", "'ann'"),
        ("ann/a--b", "invalid_name", "hyphens"),
        (f"ann/{'x' * 65}", "invalid_name", "64"),
        ("ann/..", "invalid_name", "a-z"),
        ("ann/a%0ab", "invalid_name", "a-z"),
        ("ann/%ff", "invalid_name", "a-z"),
    ],
)
def test_names(hub: Hub, path: str, code: str, told: str):
    answer = hub.post(b"rubbish", f"/api/v1/repos/{path}/versions", headers={"Content-Type": None})
    assert code_of(answer) == code and told in answer.json["error"]["message"]


def test_a_reserved_owner(hub: Hub):
    # As one that was added before the name was reserved.
    hub.database.execute("INSERT INTO owner (handle, created_at) VALUES ('api', 0)")
    token, _ = hub.make_token("api")
    answer = hub.post(path="/api/v1/repos/api/x/versions", token=token)
    assert code_of(answer) == "name_reserved"


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": None},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/merge-patch+json"},
        {"Content-Type": "application/json5"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json, text/plain"},
        {"Content-Encoding": "gzip"},
        {"Content-Encoding": "identity, gzip"},
    ],
)
def test_other_media_types(hub: Hub, headers: dict[str, str | None]):
    assert code_of(hub.post(b"rubbish", headers=headers)) == "unsupported_media_type"


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/json; charset=utf-8"},
        {"Content-Type": 'Application/JSON;charset="UTF-8"'},
        {"Content-Type": "application/json; profile=x"},
        {"Content-Encoding": "identity"},
    ],
)
def test_the_media_type(hub: Hub, headers: dict[str, str]):
    assert hub.post(headers=headers).status_code == 201


class Stream:
    """A body that counts what is read of it; ends after ``size`` bytes."""

    def __init__(self, size: int, begin: bytes = b"") -> None:
        self.left = size
        self.taken = 0
        self._begin = begin

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "reads without a limit"
        # In small parts, as a network gives them.
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
    stream = Stream(10 * BODY_BYTES_MAX)
    answer = send_stream(hub, stream, CONTENT_LENGTH=str(BODY_BYTES_MAX + 1))
    assert code_of(answer) == "content_too_large" and stream.taken == 0


@pytest.mark.parametrize("environ", [{}, {"wsgi.input_terminated": True}])
def test_chunks_have_an_end(hub: Hub, environ: dict[str, Any]):
    environ |= {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    stream = Stream(10 * BODY_BYTES_MAX)
    answer = send_stream(hub, stream, **environ)
    assert code_of(answer) == "content_too_large" and stream.taken == BODY_BYTES_MAX + 1
    assert send_stream(hub, Stream(500_000, b'{"content": "One."}'), **environ).status_code == 201


def test_the_largest_request(hub: Hub):
    begin = b'{"content": "One."}'
    answer = send_stream(hub, Stream(BODY_BYTES_MAX, begin), CONTENT_LENGTH=str(BODY_BYTES_MAX))
    assert answer.status_code == 201


def test_a_body_that_does_not_arrive(hub: Hub):
    answer = send_stream(hub, Stream(10, b'{"content"'), CONTENT_LENGTH="100")
    assert code_of(answer) == "invalid_json"

    class Broken(Stream):
        def read(self, size: int = -1) -> bytes:
            raise ConnectionResetError

    assert code_of(send_stream(hub, Broken(1), CONTENT_LENGTH="1")) == "invalid_json"
    assert code_of(send_stream(hub, Broken(1), CONTENT_LENGTH="")) == "invalid_json"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"[]", "invalid_json"),
        (b'{"content": 1}', "validation_failed"),
        (b'{"content": "x", "licence": "MIT"}', "validation_failed"),
        (json.dumps({"content": "x" * 300_000}).encode(), "content_too_large"),
        pytest.param(
            json.dumps({"content": f"Use {make_token()}."}).encode(),
            "secret_detected",
            id="a token",
        ),
        pytest.param(
            json.dumps({"content": f"---\ntitle: {'x' * 16_384}\n---\nBody."}).encode(),
            "validation_failed",
            id="front matter over its limit of bytes",
        ),
        pytest.param(
            json.dumps({"content": f"---\ntags: [{'a,' * 2000}]\n---\nBody."}).encode(),
            "validation_failed",
            id="front matter over its limit of tokens",
        ),
    ],
)
def test_bodies(hub: Hub, body: bytes, code: str):
    hub.post()
    # Before anything is said of the state.
    assert code_of(hub.post(body, headers={"If-Match": '"9.9.9"'})) == code


def test_front_matter_over_a_limit_is_answered_with_what_to_do(hub: Hub):
    answer = hub.post({"content": f"---\ntitle: {'x' * 16_384}\n---\nBody."})
    (detail,) = answer.json["error"]["details"]
    assert detail["field"] == "content"
    assert "16,400 bytes; the limit is 16,384. Correct it" in detail["message"]
    assert content.list_versions(hub.settings.content, "ann", "story").versions == []


def test_every_wrong_field_is_listed(hub: Hub):
    answer = hub.post({"title": "", "licence": "MIT"})
    assert fields_of(answer) == ["title", "licence"]


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel", "a\tb", "\x7f"])
def test_keys_that_are_none(hub: Hub, key: str):
    answer = hub.post(environ_overrides={"HTTP_IDEMPOTENCY_KEY": key})
    assert code_of(answer) == "validation_failed" and fields_of(answer) == ["Idempotency-Key"]


@pytest.mark.parametrize(
    "condition",
    ["", "*", "1.0.0", 'W/"1.0.0"', '"1.0.0", "1.0.1"', '"1.0"', '"01.0.0"', '""', '"1.0.0'],
)
def test_conditions_that_are_none(hub: Hub, condition: str):
    hub.post()
    answer = hub.post(environ_overrides={"HTTP_IF_MATCH": condition})
    assert code_of(answer) == "validation_failed" and fields_of(answer) == ["If-Match"]


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


def test_no_more_versions(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("builder.model.names.VERSIONS_PER_REPO_MAX", 1)
    hub.post()
    assert code_of(hub.post({"content": "Two."})) == "version_conflict"


def test_a_full_disk(hub: Hub, log: io.StringIO, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", hub.settings.content)

    with monkeypatch.context() as broken:
        broken.setattr(durable.os, "link", fail)
        answer = hub.post(headers={"Idempotency-Key": "k"})
    assert code_of(answer) == "storage_unavailable"
    assert hub.settings.content not in answer.text
    assert lines(log)[-1]["exception"][1]["type"] == "OSError"
    # The key is not used up.
    assert hub.post(headers={"Idempotency-Key": "k"}).status_code == 201
    assert hub.versions() == ["1.0.0"]


def test_what_only_the_operator_can_mend(hub: Hub, log: io.StringIO):
    hub.post()
    Path(hub.settings.content, "ann/story/1.0.0.md").write_text("Edited.")
    answer = hub.post({"content": "Two."})
    assert code_of(answer) == "unavailable"
    assert "1.0.0" not in answer.text and hub.settings.content not in answer.text
    assert lines(log)[-1]["exception"][0]["type"] == "ContentError"
    assert "1.0.0.md" in lines(log)[-1]["exception"][0]["message"]


def test_an_accounts_database_that_is_damaged(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OperatorError(f"{hub.settings.state}/accounts is damaged")

    monkeypatch.setattr(Database, "execute", fail)
    answer = hub.post()
    assert code_of(answer) == "unavailable" and hub.settings.state not in answer.text


def test_a_site_that_is_late(hub: Hub):
    hub.rebuilder.error = RequestError("unavailable", "The site takes long.")
    answer = hub.post()
    assert code_of(answer) == "unavailable"
    message = answer.json["error"]["message"]
    assert "1.0.0 is saved" in message and "again in 5 s" in message and "takes long" in message
    hub.rebuilder.error = None
    again = hub.post()
    assert (again.status_code, again.json["data"]["version"]) == (200, "1.0.0")


# Repeated requests


KEY = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}


class Crash(BaseException):
    """The end of the process, for which no handler is prepared."""


def test_a_repeated_request(hub: Hub):
    first = hub.post({"variables": [{"name": "other"}]}, headers=KEY)
    hub.post({"content": "Two."})
    hub.restart()
    again = hub.post({"variables": [{"name": "other"}]}, headers=KEY)
    assert again.status_code == first.status_code == 201
    assert without_serial(again) == without_serial(first)
    assert again.json["data"]["warnings"] != []
    assert again.json["data"]["serial"] > first.json["data"]["serial"]
    assert again.headers["Location"] == first.headers["Location"]
    assert hub.versions() == ["1.0.0", "1.0.1"]


def test_a_repeated_request_that_said_nothing_new(hub: Hub):
    hub.post()
    assert hub.post(headers=KEY).status_code == 200
    hub.post({"content": "Two."})
    again = hub.post(headers=KEY)
    assert again.status_code == 200
    assert again.json["data"]["version"] == "1.0.0"
    assert hub.versions() == ["1.0.0", "1.0.1"]


@pytest.mark.parametrize(
    "other",
    [
        {"body": {"content": "Two."}},
        {"body": {"changelog": "Why."}},
        {"path": "/api/v1/repos/ann/poem/versions"},
        {"headers": KEY | {"If-Match": '"1.0.0"'}},
    ],
)
def test_another_request_with_the_key(hub: Hub, other: dict[str, Any]):
    assert hub.post(headers=KEY).status_code == 201
    assert code_of(hub.post(**{"headers": KEY} | other)) == "idempotency_key_reused"
    assert hub.versions() == ["1.0.0"] and hub.versions("ann/poem") == []
    assert hub.post(headers=KEY).status_code == 201


def test_a_key_is_its_owners(hub: Hub):
    token, _ = hub.make_token("bob")
    hub.post(headers=KEY)
    answer = hub.post(path="/api/v1/repos/bob/tale/versions", token=token, headers=KEY)
    assert answer.status_code == 201
    # Another token of the same owner is as good.
    other, _ = hub.make_token("ann", "laptop")
    assert hub.post(token=other, headers=KEY).status_code == 201
    hub.accounts.revoke("ann", "laptop")
    assert code_of(hub.post(token=other, headers=KEY)) == "invalid_token"


def test_a_refusal_is_not_remembered(hub: Hub):
    condition = KEY | {"If-Match": '"1.0.0"'}
    body = {"content": "Two."}
    assert code_of(hub.post(body, headers=condition)) == "base_version_mismatch"
    hub.post()
    assert hub.post(body, headers=condition).status_code == 201
    assert code_of(hub.post(b"rubbish", headers={"Idempotency-Key": "k"})) == "invalid_json"
    assert hub.post({"content": "Three."}, headers={"Idempotency-Key": "k"}).status_code == 201


def test_a_crash_before_the_commit(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    hub.post()
    body = {"content": "Two.", "base_version": "1.0.0"}

    def crash(*_: object, **__: object) -> None:
        raise Crash

    with monkeypatch.context() as broken:
        broken.setattr(durable, "write_version", crash)
        with pytest.raises(Crash):
            hub.post(body, headers=KEY)
    assert hub.versions() == ["1.0.0"]
    hub.restart()
    answer = hub.post(body, headers=KEY)
    assert (answer.status_code, answer.json["data"]["version"]) == (201, "1.0.1")
    assert without_serial(hub.post(body, headers=KEY)) == without_serial(answer)
    assert hub.versions() == ["1.0.0", "1.0.1"]


def test_the_number_went_to_another_after_a_crash(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    def crash(*_: object, **__: object) -> None:
        raise Crash

    with monkeypatch.context() as broken:
        broken.setattr(durable, "write_version", crash)
        with pytest.raises(Crash):
            hub.post(headers=KEY)
    hub.post({"content": "Somebody else's."})
    answer = hub.post(headers=KEY)
    assert answer.json["data"]["version"] == "1.0.1"
    assert hub.post(headers=KEY).json["data"]["version"] == "1.0.1"
    assert hub.versions() == ["1.0.0", "1.0.1"]


def test_a_crash_before_the_answer(hub: Hub):
    hub.post()
    body = {"content": "Two.", "base_version": "1.0.0"}
    hub.rebuilder.error = Crash()
    with pytest.raises(Crash):
        hub.post(body, headers=KEY)
    hub.rebuilder.error = None
    hub.restart()
    answer = hub.post(body, headers=KEY)
    assert answer.status_code == 201
    assert (answer.json["data"]["version"], answer.json["data"]["unchanged"]) == ("1.0.1", False)
    assert hub.versions() == ["1.0.0", "1.0.1"]


def test_a_key_is_kept_for_a_day(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(idempotency, "time", clock)
    hub.post(headers=KEY)
    hub.post({"content": "Two."})
    clock.now += 86_399
    assert hub.post(headers=KEY).json["data"]["version"] == "1.0.0"
    clock.now += 1
    assert hub.post(headers=KEY).json["data"]["version"] == "1.0.2"
    clock.now += 86_400
    assert hub.post({"content": "Three."}, headers=KEY).json["data"]["version"] == "1.0.3"


def at_once(hub: Hub, send: Callable[[int], TestResponse]) -> list[TestResponse]:
    gate = threading.Barrier(8)

    def work(number: int) -> TestResponse:
        gate.wait()
        return send(number)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, range(8)))


def test_one_request_at_once(hub: Hub):
    found = at_once(hub, lambda _: hub.post(headers=KEY))
    assert {answer.status_code for answer in found} == {201}
    assert all(without_serial(answer) == without_serial(found[0]) for answer in found)
    assert hub.versions() == ["1.0.0"]


def test_publications_at_once(hub: Hub):
    found = at_once(hub, lambda number: hub.post({"content": f"Text {number}."}))
    assert sorted(answer.json["data"]["version"] for answer in found) == hub.versions()
    assert hub.versions() == [f"1.0.{number}" for number in range(8)]


def test_one_key_for_several_repos_at_once(hub: Hub):
    repos = [f"ann/story-{number}" for number in range(8)]
    found = at_once(
        hub,
        lambda number: hub.post(path=f"/api/v1/repos/{repos[number]}/versions", headers=KEY),
    )
    assert sorted(answer.status_code for answer in found) == [201] + [422] * 7
    assert sum(len(hub.versions(repo)) for repo in repos) == 1
    assert len(content.list_repos(hub.settings.content, "ann")) == 1


# Sizes of answers, and of what is kept of them

TAGS_BAD = 300


def bad_tags(content: str = "One.") -> dict[str, str]:
    tags = ", ".join(f"'bad tag {number} {'?' * 20}'" for number in range(TAGS_BAD))
    return {"content": f"---\ntags: [{tags}]\n---\n{content}"}


def test_warnings_are_bounded(hub: Hub):
    created = hub.post(bad_tags(), headers=KEY)
    warnings = created.json["data"]["warnings"]
    assert len(warnings) == 20 and warnings[-1] == f"And {TAGS_BAD - 19} more."
    assert "'bad tag 18" in warnings[-2] and len(created.data) < 10_000
    assert without_serial(hub.post(bad_tags(), headers=KEY)) == without_serial(created)
    long = "x" * 9_000
    hostile = hub.post({"content": f"---\ntags: ['{long}!']\n{long[:900]}: 1\n---\nOne."})
    assert all(len(warning) <= 500 for warning in hostile.json["data"]["warnings"])
    assert "'xxx" in hostile.text
    assert "Ignored tag" in hostile.text and "a tag has only" in hostile.text


def test_details_are_bounded(hub: Hub):
    fields = {f"field-{number}-{'x' * 1000}": 1 for number in range(1000)}
    refused = hub.post(fields)
    assert code_of(refused) == "validation_failed"
    details = refused.json["error"]["details"]
    assert len(details) == 20 and details[-1]["message"] == "And 981 more."
    assert all(len(one["field"]) <= 80 and len(one["message"]) <= 500 for one in details)
    assert len(refused.data) < 20_000
    long = hub.post({"bump": "x", "base_version": "9" * 100_000})
    assert len(long.data) < 3_000 and fields_of(long) == ["bump", "base_version"]


def test_only_what_is_shown_is_compared_with_what_is_known(hub: Hub, compared_names: list[str]):
    hub.post({f"titel-{number}": 1 for number in range(1000)})
    front = "\n".join(f"titel-{number}: 1" for number in range(300))
    hub.post({"content": f"---\n{front}\n---\nOne."})
    assert compared_names.count("title") == 40


def test_what_is_kept_of_an_answer_is_small(hub: Hub):
    fields = bad_tags() | {"changelog": "y" * 8_000}
    hub.post(fields)

    def kept_bytes() -> int:
        hub.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(hub.database.engine.path).stat().st_size

    before = kept_bytes()
    for number in range(25):
        key = f"{number:0255}"
        answer = hub.post(fields, headers={"Idempotency-Key": key})
        assert answer.status_code == 200 and len(answer.data) > 8_000
    assert hub.database.execute("SELECT count(*) FROM answer") == [(25,)]
    (row,) = hub.database.execute("SELECT * FROM answer WHERE key = ?", (key,))
    assert sum(len(value) for value in row if isinstance(value, str | bytes)) < 400
    assert kept_bytes() - before < 25 * 1024


def test_so_many_answers_of_an_owner_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("publisher.web.app.KEPT_SECONDS", 60)
    hub = Hub(tmp_path, publish_limit=20)
    kept_max = 40  # two windows of a minute
    now = int(time.time())
    hub.database.execute(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
        "INSERT INTO answer (owner, key, fingerprint, version, kept_until) "
        "SELECT 'ann', 'old-' || n, x'00', '1.0.0', ? FROM numbers",
        (kept_max - 1, now + 500),
    )
    first = hub.post(headers=KEY)
    assert first.status_code == 201
    refused = hub.post({"content": "Two."}, headers={"Idempotency-Key": "another"})
    assert code_of(refused) == "rate_limited"
    assert 490 < int(refused.headers["Retry-After"]) <= 500
    assert "without the key" in refused.json["error"]["message"]
    # Nothing is forgotten, and without a key nothing is kept.
    assert without_serial(hub.post(headers=KEY)) == without_serial(first)
    assert hub.database.execute("SELECT count(*) FROM answer") == [(kept_max,)]
    assert hub.versions() == ["1.0.0"]
    assert hub.post({"content": "Two."}).status_code == 201
    bobs, _ = hub.make_token("bob")
    path = "/api/v1/repos/bob/tale/versions"
    assert hub.post(path=path, token=bobs, headers=KEY).status_code == 201
    hub.database.execute("UPDATE answer SET kept_until = ? WHERE key = 'old-1'", (now,))
    again = hub.post({"content": "Three."}, headers={"Idempotency-Key": "another"})
    assert again.status_code == 201
    hub.database.close()


# Quotas


def test_quotas_over_http(tmp_path: Path):
    hub = Hub(tmp_path, publish_limit=0, quotas=Quotas(repos=3))
    found = at_once(
        hub,
        lambda number: hub.post(
            path=f"/api/v1/repos/ann/story-{number}/versions",
            headers=KEY | {"Idempotency-Key": f"k{number}"},
        ),
    )
    refused = [answer for answer in found if answer.status_code != 201]
    assert len(refused) == 5
    for answer in refused:
        assert code_of(answer) == "validation_failed" and fields_of(answer) == ["quota_repos"]
        assert "0 of 3 left" in answer.json["error"]["message"]
    hub.restart()
    for number, answer in enumerate(found):
        path = f"/api/v1/repos/ann/story-{number}/versions"
        again = hub.post(path=path, headers={"Idempotency-Key": f"k{number}"})
        assert again.status_code == answer.status_code
    assert len(content.list_repos(hub.settings.content, "ann")) == 3
    hub.database.close()


# Limits


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(throttle, "time", made)
    return made


def test_the_limit_of_an_owner(tmp_path: Path, clock: Clock):
    hub = Hub(tmp_path, publish_limit=3)
    other, _ = hub.make_token("ann", "other")
    trusted, _ = hub.accounts.create_trusted_token("ann", [], "publisher")
    bobs, _ = hub.make_token("bob")
    wrong_body = {"headers": {"Content-Type": None}}
    found = [hub.post(), hub.post(b"rubbish", **wrong_body), hub.post()]
    assert [answer.status_code for answer in found] == [201, 415, 200]
    assert all(answer.headers["RateLimit-Policy"] == '"publish";q=3;w=60' for answer in found)
    clock.now += 20
    refused = hub.post(b"rubbish", **wrong_body)
    assert code_of(refused) == "rate_limited"
    assert refused.headers["RateLimit-Policy"] == '"publish";q=3;w=60'
    assert refused.headers["RateLimit"] == '"publish";r=0;t=40'
    assert refused.headers["Retry-After"] == "40"
    assert "40 s" in refused.json["error"]["message"]
    for token in (other, trusted):
        assert code_of(hub.post(token=token)) == "rate_limited"
    assert hub.post(path="/api/v1/repos/bob/tale/versions", token=bobs).status_code == 201
    forbidden = hub.post(path="/api/v1/repos/bob/tale/versions")
    assert code_of(forbidden) == "not_owner"
    assert forbidden.headers["RateLimit-Policy"] == '"publish";q=3;w=60'
    clock.now += 40
    assert hub.post().status_code == 200
    assert "RateLimit-Policy" not in hub.post(token=None).headers
    hub.database.close()


class SlowBody:
    """A body during which something happens."""

    def __init__(self, raw: bytes, happening: Callable[[], object]) -> None:
        self._raw = io.BytesIO(raw)
        self._happening = happening

    def read(self, size: int = -1) -> bytes:
        if self._raw.tell() == 0:
            self._happening()
        return self._raw.read(size)


def test_no_body_is_read_of_who_is_over_the_limit(tmp_path: Path, clock: Clock):
    hub = Hub(tmp_path, publish_limit=1)
    read: list[bool] = []
    raw = json.dumps({"content": "One."}).encode()
    for status in (201, 429):
        read.clear()
        slow = SlowBody(raw, lambda: read.append(True))
        assert hub.post(raw, environ_overrides={"wsgi.input": slow}).status_code == status
        assert read == [True] * (status == 201)
    hub.database.close()


@pytest.mark.parametrize(
    ("happening", "code"),
    [
        (lambda hub: hub.accounts.revoke("ann", hub.token_id), "invalid_token"),
        (lambda hub: hub.accounts.set_trusted_only("ann", "story", True), "insufficient_scope"),
    ],
)
def test_what_is_revoked_while_the_body_comes_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happening: Callable[[Hub], object], code: str
):
    monkeypatch.setattr("publisher.web.app.STILL_GOOD_SECONDS", 0)
    hub = Hub(tmp_path, publish_limit=2)
    raw = json.dumps({"content": "One."}).encode()
    assert hub.post(raw, environ_overrides={"wsgi.input": SlowBody(raw, int)}).status_code == 201
    hub.rebuilder.asked.clear()
    raw = raw.replace(b"One", b"Two")
    slow = SlowBody(raw, lambda: happening(hub))
    refused = hub.post(raw, environ_overrides={"wsgi.input": slow})
    assert code_of(refused) == code
    assert hub.versions() == ["1.0.0"] and not hub.rebuilder.asked
    hub.database.close()


def test_a_publication_asks_the_accounts_three_things(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Whose the token is, whether its address is known, and whether the prompt takes tokens."""
    assert hub.post({"content": "One."}).status_code == 201
    asked: list[str] = []
    execute = Database.execute

    def noted(self: Database, statement: str, *more: Any) -> list[Any]:
        asked.append(statement)
        return execute(self, statement, *more)

    monkeypatch.setattr(Database, "execute", noted)
    assert hub.post({"content": "Two."}).status_code == 201
    assert len(asked) == 3


def test_a_form_that_is_cut_off(tmp_path: Path):
    hub = Hub(tmp_path)
    answer = hub.app.test_client().post(
        "/account/login", data=b"handle=ann", content_type="application/x-www-form-urlencoded",
        environ_overrides={"CONTENT_LENGTH": "100"},
    )  # fmt: skip
    assert answer.status_code == 400
    assert answer.mimetype == "text/html" and "arrived incomplete" in answer.text
    hub.database.close()


@pytest.mark.parametrize(
    ("base_url", "address", "is_open"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", True),
        ("http://127.0.0.1:8000", "::1", True),
        ("http://127.0.0.1:8000", "::ffff:127.0.0.1", True),
        ("http://localhost:8000", "127.0.0.2", True),
        ("http://127.0.0.1:8000", "192.168.0.7", False),
        ("http://127.0.0.1:8000", "::ffff:192.168.0.7", False),
        ("http://[::1]:8000", "2001:db8::1", False),
        ("http://127.0.0.1:8000", "", False),
        ("http://hub.example", "127.0.0.1", False),
        ("https://hub.example", "192.168.0.7", True),
        ("https://127.0.0.1:8000", "192.168.0.7", True),
    ],
)
def test_no_password_travels_in_clear_text(
    tmp_path: Path, base_url: str, address: str, is_open: bool
):
    hub = Hub(tmp_path, base_url, open_signup=True)
    for path in ("login", "signup", "tokens", "invitation"):
        answer = hub.app.test_client().get(
            f"/account/{path}", environ_overrides={"REMOTE_ADDR": address}
        )
        assert (answer.status_code != 403) == is_open, answer.text
        assert ("clear text" in answer.text) != is_open
    hub.database.close()


def test_no_limit(tmp_path: Path):
    hub = Hub(tmp_path, publish_limit=0, failed_auth_limit=0)
    found = [hub.post(b"{}") for _ in range(40)]
    assert {answer.status_code for answer in found} == {422}
    assert "RateLimit-Policy" not in found[0].headers
    assert {hub.post(token="x").status_code for _ in range(40)} == {401}
    hub.database.close()


def test_the_limit_on_wrong_tokens(tmp_path: Path, clock: Clock):
    hub = Hub(tmp_path, failed_auth_limit=3)

    def try_token(token: str | None, address: str = "198.51.100.1") -> TestResponse:
        return hub.post(token=token, environ_overrides={"REMOTE_ADDR": address})

    found = [code_of(try_token(token)) for token in (None, "x", make_token())]
    assert found == ["missing_token", "invalid_token", "invalid_token"]
    refused = try_token("x")
    assert code_of(refused) == "rate_limited" and refused.headers["Retry-After"] == "60"
    # Who has a right token does not suffer from a neighbour, nor do other addresses.
    assert try_token("").status_code == 201
    assert code_of(try_token("x", "198.51.100.2")) == "invalid_token"
    clock.now += 60
    assert code_of(try_token("x")) == "invalid_token"
    hub.database.close()


def test_a_network_of_ipv6_counts_as_one(tmp_path: Path):
    hub = Hub(tmp_path, failed_auth_limit=1)

    def try_from(address: str) -> str:
        return code_of(hub.post(token="x", environ_overrides={"REMOTE_ADDR": address}))

    assert try_from("2001:db8::1") == "invalid_token"
    assert try_from("2001:db8::beef") == "rate_limited"
    assert try_from("2001:db8:0:1::1") == "invalid_token"
    hub.database.close()


@pytest.fixture
def live() -> Iterator[TestIssuer]:
    with issuer() as running:
        yield running


def exchange(hub: Hub, id_token: str) -> TestResponse:
    return hub.app.test_client().post(TRUSTED_URL, json={"token": id_token, "repo": "ann/story"})


def test_who_has_failed_too_often_makes_no_issuer_be_asked(tmp_path: Path, live: TestIssuer):
    github = Issuer("github", live.url)
    hub = Hub(tmp_path, failed_auth_limit=1, issuers=[github])
    added = TrustedPublishers(hub.database).add(
        "ann", "story", github, "octo/prompts", "publish.yml"
    )
    assert code_of(hub.post(token="x")) == "invalid_token"
    refused = exchange(hub, live.token())
    assert code_of(refused) == "rate_limited" and refused.headers["Retry-After"]
    assert not live.asked
    # What succeeds is no failure, also where it has made the issuer be asked.
    hub.restart()
    assert exchange(hub, live.token()).status_code == 200
    assert live.asked[KEYS] == 1
    assert code_of(hub.post(token="x")) == "invalid_token"
    # What fails counts once.
    hub.options["failed_auth_limit"] = 2
    hub.restart()
    TrustedPublishers(hub.database).remove("ann", added.id)
    assert code_of(exchange(hub, live.token())) == "insufficient_scope"
    assert code_of(exchange(hub, live.token())) == "insufficient_scope"
    assert code_of(exchange(hub, live.token())) == "rate_limited"
    hub.database.close()


def test_an_issuer_that_is_away_is_not_asked_for_ever(tmp_path: Path, live: TestIssuer):
    live.fail(503)
    hub = Hub(tmp_path, failed_auth_limit=2, issuers=[Issuer("github", live.url)])
    for _ in range(2):
        refused = exchange(hub, live.token())
        assert code_of(refused) == "unavailable" and refused.headers["Retry-After"]
    assert code_of(exchange(hub, live.token())) == "rate_limited"
    hub.database.close()


def test_a_limit_holds_between_threads():
    limited = Throttle(500, "publish")
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _: limited.hit("a"), range(1000)))
    assert waits.count(0) == 500


# Every answer


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


def test_head_has_no_body(hub: Hub):
    answer = hub.app.test_client().head(URL)
    assert (answer.status_code, answer.data) == (405, b"")


def test_a_failure_nobody_thought_of(hub: Hub, log: io.StringIO, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET_TEXT)

    monkeypatch.setattr(durable, "write_version", fail)
    answer = hub.post({"content": SECRET_TEXT})
    assert code_of(answer) == "internal_error"
    assert "ZeroDivision" not in answer.text and "MARMALADE" not in answer.text
    (line,) = lines(log)
    assert (line["status"], line["code"]) == (500, "internal_error")
    assert line["level"] == "error"
    (exception,) = line["exception"]
    assert exception["type"] == "ZeroDivisionError" and "message" not in exception
    assert any("publish.py" in place for place in exception["stack"])
    assert "MARMALADE" not in log.getvalue()


def test_health(hub: Hub, log: io.StringIO):
    answer = hub.app.test_client().get("/healthz")
    assert (answer.status_code, answer.json) == (200, {"status": "ok", "serial": 4})
    assert answer.headers["Cache-Control"] == "no-store"
    assert lines(log) == []


def test_health_before_the_first_site(hub: Hub, log: io.StringIO, monkeypatch: pytest.MonkeyPatch):
    health = {"status": "building", "serial": None}
    monkeypatch.setattr(hub.rebuilder, "health", lambda: health)
    answer = hub.app.test_client().get("/healthz")
    assert (answer.status_code, answer.json) == (503, health)
    assert answer.headers["Retry-After"] == "5"
    assert lines(log) == []


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


def test_preflight(hub: Hub):
    asked = ["Authorization", "Content-Type", "Idempotency-Key", "If-Match"]
    answer = hub.app.test_client().options(
        URL,
        headers=ORIGIN
        | {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ", ".join(asked),
        },
    )
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in answer.headers["Access-Control-Allow-Methods"].split(", ")
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {name.lower() for name in asked} <= set(allowed)
    assert answer.headers["Access-Control-Max-Age"] == dict(answer_headers.PREFLIGHT)[
        b"access-control-max-age"
    ].decode()  # fmt: skip


@pytest.mark.parametrize("given_id", ["a", "A-b_c.9", "x" * 64])
def test_a_request_id_that_is_given(hub: Hub, log: io.StringIO, given_id: str):
    answer = hub.post(headers={"X-Request-Id": given_id})
    assert answer.headers["X-Request-Id"] == given_id == lines(log)[0]["request_id"]


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
    created, wrong, invalid, unknown = lines(log)
    assert created.pop("milliseconds") > 0
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", created.pop("time"))
    assert created == {
        "level": "info", "event": "publish", "request_id": "r1", "method": "POST", "status": 201,
        "owner": "ann", "repo": "story", "token": hub.token_id, "bytes": len(body),
        "version": "1.0.0", "unchanged": False, "address": "127.0.0.1",
    }  # fmt: skip
    assert (wrong["status"], wrong["code"]) == (401, "invalid_token") and "token" not in wrong
    assert (invalid["status"], invalid["code"]) == (400, "invalid_json")
    assert (unknown["event"], unknown["status"]) == ("request", 404)
    for secret in ("MARMALADE", hub.token, "hub_wrong"):
        assert secret not in log.getvalue()


def test_secrets_are_not_logged_wherever_they_are_sent(hub: Hub, log: io.StringIO):
    secret = hub.token
    hub.post(path=f"/api/v1/repos/ann/{secret}/versions")
    hub.post(path=f"/api/v1/repos/{secret}/x/versions?token={secret}")
    hub.post({secret: SECRET_TEXT}, headers={"Idempotency-Key": secret, "If-Match": secret})
    hub.post({"content": f"{SECRET_TEXT} {secret}"}, headers={"User-Agent": secret})
    hub.app.test_client().get(f"/{secret}")
    assert len(lines(log)) == 5
    assert secret not in log.getvalue() and "MARMALADE" not in log.getvalue()


# The service on its own


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[Process, str, str, str]]:
    """A gunicorn process with settings in a file, the base URL of its service, a token of ann's,
    and the address of its metrics.
    """
    base_url = f"http://127.0.0.1:{free_port()}/prompts"
    metrics = f"127.0.0.1:{free_port()}"
    (tmp_path / "content").mkdir()
    with Database(f"{tmp_path}/state") as database:
        accounts = Accounts(database)
        accounts.add_owner("ann")
        token, _ = accounts.create_token("ann", "ci")
    config = tmp_path / "settings/hub.toml"
    config.parent.mkdir()
    config.write_text(
        'content = "../content"\nout = "../site"\nstate = "../state"\npublish-limit = 1\n'
        f'base-url = "{base_url}"\n[publish-service]\ntrusted-proxies = 1\n'
    )
    process = Process(
        sys.executable, "-m", "gunicorn", "--threads", "4", "--no-control-socket",
        # No worker is killed by time: one that does not stop fails the test.
        "--graceful-timeout", str(2 * DEADLINE_SECONDS),
        "--bind", base_url.split("/")[2], "cli.wsgi:app",
        env=clean_environment(
            HUB_CONFIG=str(config), HUB_PUBLISH_LIMIT="2", HUB_METRICS=metrics
        ),
    )  # fmt: skip
    yield process, base_url, token, metrics
    process.stop()


def test_the_service_on_its_own(alone: tuple[Process, str, str, str], tmp_path: Path):
    process, base_url, token, metrics = alone
    process.wait_for_line("Booting worker")

    def health() -> dict[str, Any] | None:
        try:
            return requests.get(f"{base_url}/healthz", timeout=DEADLINE_SECONDS).json()
        except requests.ConnectionError:
            return None

    wait_until(lambda: (health() or {}).get("serial") == 0, f"the first build:\n{process.text}")
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/json",
        "X-Forwarded-For": "203.0.113.9, 198.51.100.7",
    }  # fmt: skip
    chunks = (part for part in (b'{"content": ', b'"One."}'))
    created = requests.post(base_url + URL, data=chunks, headers=headers, timeout=DEADLINE_SECONDS)
    assert created.status_code == 201
    assert created.headers["Location"] == f"{base_url}{URL}/1.0.0"
    assert created.json()["data"]["serial"] == 1
    file = tmp_path / "site" / BY_NAME["version_raw"].file_for(
        owner="ann", name="story", version="1.0.0"
    )  # fmt: skip
    assert file.read_text() == "One."
    page = requests.get(f"http://{metrics}/metrics", timeout=DEADLINE_SECONDS).text
    assert 'hub_publications_total{kind="version",result="done"} 1.0' in page
    line = json.loads(process.wait_for_line('"event": "publish"'))
    assert (line["status"], line["address"]) == (201, "198.51.100.7")
    # A proxy may have taken the path of the base URL off.
    stripped = base_url.removesuffix("/prompts") + URL
    without_path = requests.post(stripped, b"{}", headers=headers, timeout=DEADLINE_SECONDS)
    assert without_path.status_code == 422
    limited = requests.post(base_url + URL, b"{}", headers=headers, timeout=DEADLINE_SECONDS)
    assert limited.status_code == 429 and int(limited.headers["Retry-After"]) > 0
    assert process.stop() == 0
    assert token not in process.text


def test_chunks_that_are_none(alone: tuple[Process, str, str, str]):
    process, base_url, token, _ = alone
    process.wait_for_line("Booting worker")
    host, _, port = base_url.split("/")[2].partition(":")

    def connect() -> socket.socket | None:
        try:
            return socket.create_connection((host, int(port)), 20)
        except ConnectionRefusedError:
            return None

    with wait_until(connect, "the port") as connection:
        connection.sendall(
            f"POST /prompts{URL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            "rubbish\r\n".encode()
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    line = json.loads(process.wait_for_line('"event": "publish"'))
    assert line["code"] == "invalid_json"
