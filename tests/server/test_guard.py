"""The guard of a private hub: few look-ups, little memory, and no access when look-ups fail."""

import asyncio
import threading
from typing import Any

import pytest

from builder.model.errors import RequestError
from server.guard import KNOWN_MAX, KNOWN_SECONDS, LOOKUPS_AT_ONCE, PAGE_CHARS_MAX, Guard
from server.throttle import client_of

GOOD, BAD = "Bearer good", "Bearer bad"


class Members:
    """Stands in for the accounts: knows one token, and notes what it was asked."""

    def __init__(self) -> None:
        self.good = {GOOD}
        self.asked: list[tuple[str, str]] = []
        self.trouble: Exception | None = None
        self.now = 1000.0

    def check(self, cookie: str, authorization: str) -> str:
        self.asked.append((cookie, authorization))
        if self.trouble:
            raise self.trouble
        if authorization not in self.good:
            raise RequestError("invalid_token", "No.")
        return authorization.lower()

    def guard(self, root: str = "") -> Guard:
        return Guard(self.check, root, clock=lambda: self.now)


async def page(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An application that only members may read."""
    headers = [
        (b"Access-Control-Allow-Origin", b"*"), (b"cache-control", b"public, max-age=60"),
        (b"etag", b'"x"'),
    ]  # fmt: skip
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"secret"})


async def ask(
    guard: Guard, authorization: str = "", path: str = "/feed.xml", method: str = "GET",
    query: bytes = b"", cookie: str = "", app: Any = None,
) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
    sent = {b"authorization": authorization, b"cookie": cookie}
    headers = [(name, value.encode()) for name, value in sent.items() if value]
    scope = {"method": method, "path": path, "query_string": query, "headers": headers}
    scope["client"] = ("192.0.2.1", 1)
    events: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    await guard.pass_on(app or page, scope, None, send)
    told = {name.decode(): value.decode() for name, value in events[0]["headers"]}
    return events[0]["status"], told, b"".join(event.get("body", b"") for event in events[1:])


def run(guard: Guard, *args: Any, **options: Any) -> tuple[int, dict[str, str], bytes]:
    return asyncio.run(ask(guard, *args, **options))


def test_a_member_gets_the_answer_for_no_other_cache_and_origin():
    status, headers, body = run(Members().guard(), GOOD)
    assert (status, body, headers["etag"]) == (200, b"secret", '"x"')
    assert headers["cache-control"] == "private, max-age=60"
    assert headers["vary"] == "Authorization, Cookie"
    assert not [name for name in headers if name.startswith("access-control-")]


def test_members_are_counted_by_what_they_read_with():
    counted: list[str] = []

    async def counting(scope: dict[str, Any], receive: Any, send: Any) -> None:
        counted.append(client_of(scope))
        await page(scope, receive, send)

    async def read() -> None:
        members = Members()
        members.good.add("Bearer other")
        guard = members.guard()
        for authorization in (GOOD, "Bearer other", GOOD):
            await ask(guard, authorization, cookie=f"x={len(counted)}", app=counting)

    asyncio.run(read())
    assert counted == [GOOD.lower(), "bearer other", GOOD.lower()]


def test_an_end_of_membership_counts_within_seconds():
    members = Members()
    guard = members.guard()
    assert run(guard, GOOD)[0] == run(guard, GOOD)[0] == 200 and len(members.asked) == 1
    members.good.clear()
    members.now += KNOWN_SECONDS - 0.1
    assert run(guard, GOOD)[0] == 200 and len(members.asked) == 1
    members.now += 0.1
    assert run(guard, GOOD)[0] == 401
    # A refusal is remembered as long, and no longer.
    members.good.add(GOOD)
    assert run(guard, GOOD)[0] == 401 and len(members.asked) == 2
    members.now += KNOWN_SECONDS
    assert run(guard, GOOD)[0] == 200


def test_nobody_reads_where_nobody_can_tell():
    members = Members()
    guard = members.guard()
    for trouble, status in (
        (RequestError("storage_unavailable", "The disk is full."), 503),
        (RuntimeError("a fault"), 500),
    ):
        members.trouble = trouble
        for path in ("/feed.xml", "/"):
            came = run(guard, GOOD, path=path)
            assert came[0] == status and b"secret" not in came[2] and b"a fault" not in came[2]
    members.trouble = None
    assert run(guard, GOOD)[0] == 200, "what was no answer is not remembered"


def test_many_who_ask_at_once_ask_once():
    members, let_go = Members(), threading.Event()
    check = members.check

    def slow(cookie: str, authorization: str) -> str:
        assert let_go.wait(300)
        return check(cookie, authorization)

    async def crowd() -> list[tuple[int, dict[str, str], bytes]]:
        guard = Guard(slow, "")
        asking = [asyncio.create_task(ask(guard, GOOD)) for _ in range(50)]
        gone = asyncio.create_task(ask(guard, GOOD))
        await asyncio.sleep(0)
        gone.cancel()  # must not take the answer from the others
        let_go.set()
        return await asyncio.gather(*asking)

    assert {status for status, _, _ in asyncio.run(crowd())} == {200}
    assert len(members.asked) == 1


def test_what_strangers_send_is_forgotten():
    members = Members()
    guard = members.guard()

    async def strangers() -> None:
        for number in (*range(KNOWN_MAX + 1), 0, KNOWN_MAX):
            assert (await ask(guard, f"Bearer {number}"))[0] == 401

    asyncio.run(strangers())
    # The first reader is looked up again, the last is still remembered.
    assert len(members.asked) == KNOWN_MAX + 2 and members.asked[-1] == ("", "Bearer 0")
    looking = [one for one in threading.enumerate() if one.name.startswith("members")]
    assert len(looking) <= LOOKUPS_AT_ONCE
    guard.close()


@pytest.mark.parametrize("path", ["/feed.xml", "/api/v1/repos", "/x/y.json", "/mcp", "/langfuse/x"])
def test_programs_get_an_error(path: str):
    status, headers, body = run(Members().guard(), path=path)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert headers["cache-control"] == "no-store" and b'"invalid_token"' in body


def test_people_are_sent_to_sign_in():
    members = Members()
    guard = members.guard("/hub")
    told = run(guard, path="/hub/ada/x", query=b"a=1&b=%2F")
    assert told[0] == 303 and told[1]["location"] == "/hub/account/login?page=/hub/ada/x?a=1&b=%2F"
    told = run(guard, path="/hub/é\r\nx: y", method="HEAD")
    assert told[1]["location"] == "/hub/account/login?page=/hub/%C3%A9%0D%0Ax%3A%20y"
    told = run(guard, path="/hub/search", query=b"q=" + b"x" * PAGE_CHARS_MAX)
    assert told[1]["location"] == "/hub/account/login"
    assert run(guard, path="/hub/ada/x", method="POST")[0] == 401


@pytest.mark.parametrize(
    ("path", "is_open"),
    [
        ("/assets/style.css", True), ("/assets/style.css.gz", True), ("/robots.txt", True),
        ("/cli/hub", True), ("/clients/hub.js", True), ("/assets/", False), ("/cli", False),
        ("/assets/../feed.xml", False), ("/assets/x.css", False), ("/cli/hub/", False),
        ("/robots.txt/x", False), ("/feed.xml", False), ("/", False), ("", False),
        ("/.well-known/oauth-protected-resource", True), ("/.well-known", False),
        ("/ada/.well-known/agent-skills/index.json", False),
    ],
)  # fmt: skip
def test_what_is_open(path: str, is_open: bool):
    assert Members().guard("/hub").is_open(f"/hub{path}") is is_open


def test_metadata_is_asked_for_at_the_root_of_the_host():
    assert Members().guard("/hub").is_open("/.well-known/oauth-protected-resource/hub/mcp")
