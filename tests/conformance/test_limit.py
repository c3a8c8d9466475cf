"""The rate limit of reads. It shuts the tester out for a minute."""

import time

import pytest

from tests.conformance.catalogue import file_of
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area

pytestmark = pytest.mark.level("full")

WINDOW_SECONDS = 60


@area("rate limit")
@pytest.mark.needs("rate limit")
def test_the_rate_limit(check: Check, client: Client) -> None:
    limit = client.deployment.rate_limit
    # Earlier requests count, too.
    left_seconds = WINDOW_SECONDS + 1 - (time.monotonic() - client.api_asked_at)
    if left_seconds > 0:
        client.say(f"waiting {left_seconds:.0f} s until the rate limit has forgotten us")
        time.sleep(left_seconds)
    path = file_of("hub")
    refused: Answer | None = None
    for number in range(1, 2 * limit + 2):
        answer = client.ask("GET", path, is_patient=False)
        if answer.status == 429:
            refused = answer
            break
        check.that(answer, answer.status == 200, f"read {number} of a minute is answered")
    last = refused or answer
    check.that(last, number > limit, f"{limit} reads a minute", f"429 at read {number}")
    if not check.that(last, refused, "429 above the limit", f"{number} reads without"):
        return
    for method in ("GET", "HEAD"):
        answer = client.ask(method, "/api/v1/repos", is_patient=False)
        check.status(answer, 429)
        check.cors(answer)
        retry = answer.headers.get("Retry-After", "")
        check.that(
            answer, retry.isdigit() and 1 <= int(retry) <= WINDOW_SECONDS,
            "Retry-After from 1 to 60 s", f"429, Retry-After: {retry}",
        )  # fmt: skip
        check.header(answer, "RateLimit-Policy", f'"read";q={limit};w={WINDOW_SECONDS}')
        if method == "GET":
            check.error(answer, 429, "rate_limited")
    for page in ("/", "/tags"):
        check.status(client.ask("GET", page, is_patient=False), 200)
