"""Faults of hosts: what each does wrong, and what the conformance suite has to say of it."""

import gzip
import json
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from server.app import Scope
from tests.conformance.sample import CANARY


class Reply(NamedTuple):
    """An answer on its way. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


Change = Callable[[Scope, Reply], Reply]
When = Callable[[Scope, Reply], bool]


class Fault(NamedTuple):
    """A fault that ``area`` of the suite has to report, with ``message`` in its report.

    The host changes a ``request`` before it is answered, and the answer if ``when`` is true for it.
    """

    area: str
    message: str
    change: Change = lambda _, reply: reply
    when: When = lambda _, reply: True
    request: Callable[[Scope], Scope] = lambda scope: scope


# Changes of an answer


def headers(**changes: str | None) -> Change:
    """Other headers; None takes one away."""
    given = {name.replace("_", "-"): value for name, value in changes.items()}

    def change(_: Scope, reply: Reply) -> Reply:
        kept = {name: value for name, value in (reply.headers | given).items() if value is not None}
        return reply._replace(headers=kept)

    return change


def status(code: int) -> Change:
    return lambda _, reply: reply._replace(status=code)


def body(make: Callable[[Reply], bytes]) -> Change:
    def change(scope: Scope, reply: Reply) -> Reply:
        data = make(reply)
        return headers(content_length=str(len(data)))(scope, reply._replace(body=data))

    return change


def data(make: Callable[[Any], Any]) -> Change:
    """Another ``data`` in an answer that has some."""

    def changed(reply: Reply) -> bytes:
        found = json.loads(reply.body)
        found["data"] = make(found["data"])
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()

    def change(scope: Scope, reply: Reply) -> Reply:
        has_data = reply.body.startswith(b'{"data"')
        return body(changed)(scope, reply) if has_data else reply

    return change


def all_of(*changes: Change) -> Change:
    def change(scope: Scope, reply: Reply) -> Reply:
        for one in changes:
            reply = one(scope, reply)
        return reply

    return change


def edited(name: str, edit: Callable[[str], str]) -> Change:
    """Changes the value of a header, if the answer has one."""

    def change(scope: Scope, reply: Reply) -> Reply:
        found = reply.headers.get(name)
        return headers(**{name: edit(found)})(scope, reply) if found else reply

    return change


PACKED = all_of(body(lambda reply: gzip.compress(reply.body)), headers(content_encoding="gzip"))
HTML = headers(content_type="text/html; charset=utf-8")
SORRY = all_of(body(lambda _: b"<h1>Sorry</h1>"), headers(content_type="text/html"))
LEAKED = all_of(status(200), body(lambda _: CANARY.encode()))
NO_CORS = headers(access_control_allow_origin=None)
FRAMED = edited("content-security-policy", lambda policy: policy.split("; frame")[0])


def echo_of_headers(scope: Scope, reply: Reply) -> Reply:
    lines = [b"%b: %b" % header for header in scope["headers"]]
    return all_of(status(200), body(lambda _: b"\r\n".join(lines)))(scope, reply)


def redirect_to_its_path(scope: Scope, reply: Reply) -> Reply:
    return all_of(status(308), headers(location=scope["path"]))(scope, reply)


# Conditions of a change


def answered(*statuses: int) -> When:
    return lambda _, reply: reply.status in statuses


def refused(_: Scope, reply: Reply) -> bool:
    return reply.status >= 400


def asked_by(method: str) -> When:
    return lambda scope, _: scope["method"] == method


def path(pattern: str) -> When:
    return lambda scope, _: bool(re.search(pattern, scope["path"]))


def raw_path(pattern: bytes) -> When:
    return lambda scope, _: bool(re.search(pattern, scope["raw_path"]))


def query(pattern: bytes) -> When:
    return lambda scope, _: bool(re.search(pattern, scope["query_string"]))


def media(start: str) -> When:
    return lambda _, reply: reply.headers.get("content-type", "").startswith(start)


def both(*whens: When) -> When:
    return lambda scope, reply: all(when(scope, reply) for when in whens)


# Changes of a request


def without_query(scope: Scope) -> Scope:
    return {**scope, "query_string": b""}


def for_one_word(scope: Scope) -> Scope:
    return {**scope, "query_string": re.sub(rb"q=[^&]*", b"q=e", scope["query_string"])}


READS = {
    "no-cors": Fault("headers", "expected Access-Control-Allow-Origin: *", NO_CORS),
    "soft-404": Fault("not there", "expected status 404", status(200), answered(404)),
    "langfuse-html": Fault(
        "Langfuse", "expected Content-Type: application/json", HTML,
        both(answered(404), path("^/langfuse/")),
    ),
    "leak": Fault("hostile paths", "expected nothing from outside", LEAKED,
                  raw_path(rb"\.\..*canary\.txt$")),
    "open-redirect": Fault("hostile paths", "Location: //evil.example/", redirect_to_its_path,
                           raw_path(b"^//")),
    "raw-as-html": Fault("raw text", "expected Content-Type: text/plain", HTML,
                         media("text/plain")),
    "restless-etag": Fault(
        "conditional requests", "expected ETag: ",
        lambda scope, reply: headers(etag=f'"{random.random()}"')(scope, reply),
    ),
    "head-length": Fault("HEAD", "came     Content-Length: 7", headers(content_length="7"),
                         asked_by("HEAD")),
    "newline": Fault(
        "raw text", "bytes of the record's content",
        body(lambda reply: reply.body + b"\n" if reply.body else b""),
        both(answered(200), path(r"(\.txt|/raw)$")),
    ),
    "html-errors": Fault("errors", "in the error envelope", SORRY, refused),
    "failure": Fault("parameters", "expected 400 invalid_parameter", status(500),
                     both(answered(400), query(b"page=x"))),
    "wrong-order": Fault("lists", "expected the order of sort=top", data(lambda rows: rows[::-1]),
                         path("/_/top/")),
    "wrong-hash": Fault("repos", "that of content", data(lambda repo: repo | {"sha256": "0" * 64}),
                        path("/review.json$")),
    "wrong-count": Fault(
        "tags", "the tags of catalogue.jsonl",
        data(lambda tags: [tag | {"count": tag["count"] + 1} for tag in tags]),
        path("/tags.json$"),
    ),
    "trace": Fault("methods", "expected nothing of the request's headers", echo_of_headers,
                   asked_by("TRACE")),
    "framed": Fault("headers", "frame-ancestors 'none'", FRAMED),
    "gzip-for-all": Fault(
        "compression", "expected no Content-Encoding", PACKED,
        lambda _, reply: reply.status == 200 and len(reply.body) >= 4096
        and "content-encoding" not in reply.headers,
    ),
    "no-queries": Fault("lists by query", "expected the same bytes as /api/v1/repos/_/new/1.json",
                        request=without_query),
}  # fmt: skip

# Those of a host that is more than files.
SERVICE = {
    "no-words": Fault("search", "came     meta ListMeta", request=for_one_word),
}  # fmt: skip

FAULTS = READS | SERVICE
