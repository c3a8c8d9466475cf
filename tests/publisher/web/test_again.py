"""Requests that are sent again, and what is kept of their answers."""

import time
from pathlib import Path
from typing import Any

import pytest

from builder.model.errors import FIELD_CHARS_MAX
from tests.support.hubs import Hub, MakeHub, code_of, fields_of, without_serial

KEY = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}


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


@pytest.mark.parametrize(
    "other",
    [
        {"body": {"content": "Two."}}, {"body": {"changelog": "Why."}},
        {"path": "/api/v1/repos/ann/poem/versions"}, {"headers": KEY | {"If-Match": '"1.0.0"'}},
    ],
)  # fmt: skip
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
    assert all(
        len(one["field"]) <= FIELD_CHARS_MAX and len(one["message"]) <= 500 for one in details
    )
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


def test_so_many_answers_of_an_owner_are_kept(make_hub: MakeHub):
    hub = make_hub(publications=20)
    kept_max = 20 * (24 * 60 + 1)  # what the limit allows in a day, and a window more
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
