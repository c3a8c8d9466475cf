"""What no file answers, a web server passes on to the service, whose answer is the answer."""

import re

import pytest
import requests

from tests.conformance.checks import Check
from tests.conformance.client import Client
from tests.conformance.marks import area
from tests.support.servers import DEADLINE_SECONDS

pytestmark = [pytest.mark.level("full"), area("passed on"), pytest.mark.behind]

# Headers of one connection or one moment.
OF_A_HOP = {
    "connection", "content-length", "date", "keep-alive", "retry-after", "server", "set-cookie",
    "transfer-encoding", "via", "alt-svc", "ratelimit", "x-request-id",
}  # fmt: skip
JSON = {"Content-Type": "application/json"}
REQUESTS = [
    ("GET", "/api/v1/repos?q=review", {}, b""),
    ("GET", "/api/v1/repos?q=review&explain=true&owner=ann", {}, b""),
    ("GET", "/api/v1/repos?tag=sql,review", {}, b""),
    ("GET", "/api/v1/repos?page=0", {}, b""),
    ("GET", "/api/v1/repos?page=9999", {}, b""),
    ("GET", "/api/v1/repos?sort=best", {}, b""),
    ("GET", "/api/v1/repos?sort=new&sort=top", {}, b""),
    ("GET", "/api/v1/repos/Ann/x", {}, b""),
    ("GET", "/api/v1/repos/nobody/x/raw?version=1.0.0&label=latest", {}, b""),
    ("GET", "/api/v1/repos/nobody/x/raw?version=1", {}, b""),
    ("GET", "/api/v1/nothing", {}, b""),
    ("GET", "/nobody/nothing", {}, b""),
    ("GET", "/account/login", {}, b""),
    ("POST", "/account/login", {}, b"handle=a&password=b"),
    ("GET", "/healthz", {}, b""),
    ("DELETE", "/api/v1/repos", {}, b""),
    ("OPTIONS", "/api/v1/repos", {"Origin": "https://a.example"}, b""),
    ("POST", "/api/v1/repos/ann/x/versions", JSON, b"{}"),
    ("POST", "/api/v1/repos/ann/x/check", JSON, b'{"content": "Hi.", "bump": "auto"}'),
    ("POST", "/api/v1/repos/ann/x/versions", JSON, b"x" * 3_000_000),
    ("POST", "/mcp", JSON | {"Accept": "application/json"},
     b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
]  # fmt: skip


@pytest.mark.parametrize(
    "request_", REQUESTS, ids=lambda one: f"{one[0]} {one[1]} {len(one[3])}"[:60]
)
def test_what_the_service_answers(
    check: Check, client: Client, request_: tuple[str, str, dict[str, str], bytes]
) -> None:
    method, path, headers, body = request_
    deployment = client.deployment
    if deployment.member:
        headers = headers | {"Authorization": f"Bearer {deployment.member}"}
    here, there = (
        requests.request(
            method, base + path, headers=headers, data=body, timeout=DEADLINE_SECONDS,
            allow_redirects=False,
        )
        for base in (deployment.base_url, deployment.upstream)
    )  # fmt: skip
    assert here.status_code == there.status_code
    assert _without_token(here.text) == _without_token(there.text)
    assert _kept(here) == _kept(there)
    check.held += 1


def _without_token(page: str) -> str:
    """A page without what each visitor gets anew."""
    return re.sub(r'(name="csrf_token"[^>]*value=)"[^"]*"', r"\1", page)


def _kept(answer: requests.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()
            if name.lower() not in OF_A_HOP}  # fmt: skip
