"""Changes of labels: who may, and with a token what becomes of them."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from builder.model import answers
from builder.model.caching import CACHE_CONTROL
from builder.model.routes import JSON
from builder.model.service_urls import LABEL_URL
from tests.conformance.catalogue import NOBODY, Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client, header_list
from tests.conformance.marks import area
from tests.conformance.publisher import Publisher

pytestmark = pytest.mark.level("full")

token_needed = pytest.mark.needs("token")
METHODS = ["PUT", "DELETE"]


def label_path(owner: str, name: str, label: str) -> str:
    return LABEL_URL.format(owner=owner, name=name, label=label)


# Permissions


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_token"),
        ({"Authorization": "Basic YTpi"}, "missing_token"),
        ({"Authorization": "Bearer hub_" + "A" * 38}, "invalid_token"),
    ],
    ids=["no token", "another scheme", "a wrong token"],
)
@pytest.mark.parametrize(
    ("label", "body"), [("production", b'{"version": "1.0.0"}'), ("A", b"{")],
    ids=["", "and a bad label and body"],
)  # fmt: skip
def test_who_may_not_move_labels(
    check: Check, client: Client, method: str, headers: dict[str, str], code: str, label: str,
    body: bytes,
) -> None:  # fmt: skip
    # Other faults of the request are reported only to permitted clients.
    headers = {"Content-Type": JSON, "Origin": "https://elsewhere.example", **headers}
    answer = client.ask(method, label_path(NOBODY, "nothing", label), headers, body)
    if check.error(answer, 401, code):
        scheme = answer.headers.get("WWW-Authenticate", "")
        check.that(answer, scheme.startswith("Bearer"), "WWW-Authenticate: Bearer",
                   f"401, WWW-Authenticate: {scheme}")  # fmt: skip


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_other_methods_of_a_label(
    check: Check, client: Client, catalogue: Catalogue, method: str
) -> None:
    path = label_path(NOBODY, "nothing", "production")
    answer = client.ask(method, path, {"Content-Type": JSON}, b"{}")
    if check.error(answer, 405, "method_not_allowed"):
        allowed = header_list(answer, "Allow")
        check.that(
            answer, allowed >= {"get", "head", "put", "delete"},
            "Allow with GET, HEAD, PUT and DELETE", f"405, Allow: {sorted(allowed)}",
        )  # fmt: skip


# With a token


class Labeller:
    """Changes one label of the repo that the tester gave, which no other test knows.

    ``old`` and ``new`` are two versions of it; ``texts`` are theirs.
    """

    def __init__(self, client: Client, check: Check) -> None:
        self.publisher = Publisher(client)
        self.label = f"conformance-{secrets.token_hex(6)}"
        self.texts: dict[str, bytes] = {}
        for _ in range(2):
            text = f"Labelled, {secrets.token_hex(8)}: ü"
            answer = self.publisher.post({"content": text})
            record = check.single(answer, answers.Publication, 201)
            self.texts[record.version if record else ""] = text.encode()
        self.old, self.new = [*self.texts] if len(self.texts) == 2 else ["", ""]

    @property
    def path(self) -> str:
        return self.path_of(self.label)

    def path_of(self, label: str) -> str:
        return label_path(self.publisher.owner, self.publisher.name, label)

    def put(self, version: str, **fields: Any) -> Answer:
        return self.publisher.send("PUT", self.path, {"version": version, **fields})

    def delete(self, body: Any = b"") -> Answer:
        return self.publisher.send("DELETE", self.path, body)


@pytest.fixture
def labeller(client: Client, check: Check) -> Iterator[Labeller]:
    made = Labeller(client, check)
    yield made
    # A repo has few labels, and other tests want some.
    made.delete()


def check_reads(check: Check, client: Client, labeller: Labeller, version: str) -> None:
    """Check that every address of the label has the version that it names."""
    at, text = labeller.publisher, labeller.texts[version]
    for path in (
        at.url("label_raw", label=labeller.label), at.file("label_raw", label=labeller.label),
        f"{at.url('raw')}?label={labeller.label}",
        at.url("label_body", label=labeller.label), at.file("label_body", label=labeller.label),
        f"{at.url('body')}?label={labeller.label}",
    ):  # fmt: skip
        raw = client.ask("GET", path)
        check.that(raw, raw.body == text, f"the text of {version}, byte for byte")
    for path in (at.url("label", label=labeller.label), at.file("label", label=labeller.label)):
        record = check.single(client.ask("GET", path), answers.LabelledVersion)
        if record:
            came = (record.version, record.label, record.content.encode())
            check.equal(raw, f"record at {path}", came, (version, labeller.label, text))
    repo = client.ask("GET", at.url("repo"))
    named = repo.json["data"].get("labels", {}).get(labeller.label)
    check.equal(repo, labeller.label, named, version)
    rows = client.ask("GET", at.url("versions"))
    having = [
        row["version"] for row in rows.json["data"] if labeller.label in row.get("labels", ())
    ]
    check.equal(rows, f"{labeller.label} on", having, [version])


@area("publishing")
@token_needed
def test_release_and_roll_back(check: Check, client: Client, labeller: Labeller) -> None:
    note = "Evaluated <b> é"
    first = labeller.put(labeller.old, note=note, expected=None)
    record = check.single(first, answers.ChangedLabel, 201)
    if not record:
        return
    facts = (record.label, record.version, record.previous, record.note, record.unchanged)
    check.equal(first, "the move", facts, (labeller.label, labeller.old, None, note, False))
    check.header(first, "Cache-Control", CACHE_CONTROL["none"])
    check.cors(first)
    location = client.path_of(first.headers.get("Location", ""))
    check.equal(first, "Location", location, labeller.path)
    check_reads(check, client, labeller, labeller.old)

    for version, previous in ((labeller.new, labeller.old), (labeller.old, labeller.new)):
        moved = labeller.put(version, expected=previous)
        record = check.single(moved, answers.ChangedLabel, 200)
        if record:
            came = (record.version, record.previous, record.unchanged)
            check.equal(moved, "the move", came, (version, previous, False))
        check_reads(check, client, labeller, version)
    again = check.single(labeller.put(labeller.old), answers.ChangedLabel, 200)
    check.that(moved, again and again.unchanged, "unchanged: it names this version already")

    history = client.ask("GET", labeller.publisher.url("label_history", label=labeller.label))
    rows = check.rows(history, answers.LabelMove)
    if rows:
        came = [(row.previous, row.version, row.note) for row in rows.data]
        old, new = labeller.old, labeller.new
        check.equal(history, "moves", came, [(new, old, ""), (old, new, ""), (None, old, note)])


@area("publishing")
@token_needed
def test_a_removed_label_is_gone_at_once(check: Check, client: Client, labeller: Labeller) -> None:
    check.error(labeller.delete(), 404, "label_not_found")
    check.status(labeller.put(labeller.new), 201)
    check.error(labeller.delete({"expected": labeller.old}), 412, "label_moved")
    check_reads(check, client, labeller, labeller.new)
    removed = check.single(labeller.delete({"note": "Unused"}), answers.ChangedLabel)
    if removed:
        came = (removed.version, removed.previous, removed.note)
        check.that(first := labeller.delete(), came == (None, labeller.new, "Unused"), "removed")
        check.error(first, 404, "label_not_found")
    at = labeller.publisher
    for path in (
        at.url("label", label=labeller.label), at.url("label_raw", label=labeller.label),
        f"{at.url('raw')}?label={labeller.label}",
        at.url("label_body", label=labeller.label), f"{at.url('body')}?label={labeller.label}",
    ):  # fmt: skip
        check.error(client.ask("GET", path), 404, "label_not_found")
    history = client.ask("GET", at.url("label_history", label=labeller.label))
    rows = check.rows(history, answers.LabelMove)
    if rows:
        came = [(row.previous, row.version) for row in rows.data]
        check.equal(history, "moves", came, [(labeller.new, None), (None, labeller.new)])


@area("publishing")
@token_needed
def test_a_move_over_the_move_of_another_is_refused(check: Check, labeller: Labeller) -> None:
    check.error(labeller.put(labeller.old, expected=labeller.new), 412, "label_moved")
    check.status(labeller.put(labeller.old, expected=None), 201)
    for expected in (None, labeller.new):
        answer = labeller.put(labeller.new, expected=expected)
        if check.error(answer, 412, "label_moved"):
            said = labeller.old.encode() in answer.body
            check.that(answer, said, f"the current version {labeller.old}")


@area("publishing")
@token_needed
def test_an_idempotency_key_of_a_move(check: Check, labeller: Labeller) -> None:
    key = f"conformance-{secrets.token_hex(8)}"

    def send(version: str) -> Answer:
        body = {"version": version, "note": "Once"}
        return labeller.publisher.send("PUT", labeller.path, body, Idempotency_Key=key)

    first = check.single(send(labeller.old), answers.ChangedLabel, 201)
    check.status(labeller.put(labeller.new), 200)
    again = send(labeller.old)
    record = check.single(again, answers.ChangedLabel, again.status)
    if first and record:
        came = (record.version, record.moved_at, record.note)
        wanted = (first.version, first.moved_at, first.note)
        check.equal(again, "the first answer again:", came, wanted)
    at = labeller.publisher
    now = at.client.ask("GET", at.url("label", label=labeller.label))
    check.equal(now, "a move that is not undone:", now.json["data"]["version"], labeller.new)
    check.error(send(labeller.new), 422, "idempotency_key_reused")


@area("publishing")
@token_needed
def test_a_publication_that_moves_labels(check: Check, client: Client, labeller: Labeller) -> None:
    check.status(labeller.put(labeller.old), 201)
    text = f"Released at once, {secrets.token_hex(8)}"
    answer = labeller.publisher.post({"content": text, "labels": [labeller.label]})
    record = check.single(answer, answers.Publication, 201)
    if record:
        check.equal(answer, "labels", record.labels, [labeller.label])
        labeller.texts[record.version] = text.encode()
        check_reads(check, client, labeller, record.version)
    for labels, status, code in (
        (["latest"], 422, "name_reserved"), (["A"], 400, "invalid_label"),
        (["lpt1"], 422, "name_reserved"),
        (["a", "a"], 422, "validation_failed"), ("a", 422, "validation_failed"),
    ):  # fmt: skip
        refused = labeller.publisher.post({"content": f"{text}, {labels}", "labels": labels})
        check.error(refused, status, code)
    raw = client.ask("GET", labeller.publisher.url("raw"))
    check.that(raw, raw.body == text.encode(), "no version of a publication that was refused")


BAD_MOVES = [
    ("no JSON", b"{", {}, 400, "invalid_json"),
    ("no UTF-8", b'{"version": "\xff"}', {}, 400, "invalid_json"),
    ("no object", b"[]", {}, 400, "invalid_json"),
    ("nothing", {}, {}, 422, "validation_failed"),
    ("no version", {"version": "1"}, {}, 422, "validation_failed"),
    ("unknown field", {"version": "1.0.0", "vesion": "1.0.0"}, {}, 422, "validation_failed"),
    ("long note", {"version": "1.0.0", "note": "x" * 1025}, {}, 422, "validation_failed"),
    ("bad expectation", {"version": "1.0.0", "expected": 1}, {}, 422, "validation_failed"),
    ("If-Match", {"version": "1.0.0"}, {"If_Match": '"1.0.0"'}, 422, "validation_failed"),
    ("no media type", {"version": "1.0.0"}, {"Content_Type": "text/plain"}, 415,
     "unsupported_media_type"),
    ("larger than a request", {"version": "1.0.0", "note": "x" * (2 * 1024 * 1024)}, {}, 413,
     "content_too_large"),
    ("unknown version", {"version": "999999999.0.0"}, {}, 404, "version_not_found"),
]  # fmt: skip


@area("publishing")
@token_needed
@pytest.mark.parametrize(
    ("body", "headers", "status", "code"), [case[1:] for case in BAD_MOVES],
    ids=[case[0] for case in BAD_MOVES],
)  # fmt: skip
def test_bad_moves(
    check: Check, client: Client, body: Any, headers: dict[str, str], status: int, code: str
) -> None:
    publisher = Publisher(client)
    path = label_path(publisher.owner, publisher.name, "conformance")
    check.refused(publisher.send("PUT", path, body, **headers), status, code)


@area("publishing")
@token_needed
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("label", "status", "code"),
    [
        ("A", 400, "invalid_label"), ("a" * 37, 400, "invalid_label"),
        ("a%20b", 400, "invalid_label"), ("-a", 400, "invalid_label"),
        ("latest", 422, "name_reserved"), ("1.0.0", 422, "name_reserved"),
        ("7", 422, "name_reserved"), ("a.json", 422, "name_reserved"),
    ],
)  # fmt: skip
def test_bad_labels(
    check: Check, client: Client, method: str, label: str, status: int, code: str
) -> None:
    publisher = Publisher(client)
    path = label_path(publisher.owner, publisher.name, label)
    body = {"version": "1.0.0"} if method == "PUT" else b""
    check.error(publisher.send(method, path, body), status, code)


@area("publishing")
@token_needed
@pytest.mark.parametrize("method", METHODS)
def test_labels_of_strangers_and_secrets(check: Check, client: Client, method: str) -> None:
    publisher = Publisher(client)
    elsewhere = publisher.send(method, label_path(NOBODY, "nothing", "a"), {"version": "1.0.0"})
    check.error(elsewhere, 403, "not_owner", "insufficient_scope")
    secret = client.deployment.token
    body = {"note": f"By {secret}"} | ({"version": "1.0.0"} if method == "PUT" else {})
    path = label_path(publisher.owner, publisher.name, "conformance")
    answer = publisher.send(method, path, body)
    check.error(answer, 422, "secret_detected")
    check.that(answer, secret.encode() not in answer.body, "an answer without the token",
               "the token")  # fmt: skip
