"""Bodies that come slowly, in pieces or not at all, before an application looks at them."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from builder.model.service_urls import CHECK_URL, COMPARE_URL, TRUSTED_URL
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.web.app import create_app
from server import mount
from server.app import Receive
from server.bodies import in_time, read_ahead
from tests.server.running import reads_of
from tests.support.hubs import FakeRebuilder
from tests.support.servers import DEADLINE_SECONDS

BYTES_MAX = 10
FORM = "application/x-www-form-urlencoded"
# Longer than any test takes.
NEVER_SECONDS = 600


def body(*parts: bytes, is_whole: bool = True) -> list[dict]:
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = not is_whole
    return messages


GONE = {"type": "http.disconnect"}


class Sender:
    """Sends these messages, then nothing."""

    def __init__(self, messages: Sequence[dict]) -> None:
        self.left = list(messages)

    async def receive(self) -> dict:
        if not self.left:
            await asyncio.sleep(NEVER_SECONDS)
        return self.left.pop(0)


def read(
    messages: Sequence[dict], seconds: float = NEVER_SECONDS, length: int | None = None
) -> tuple[bytes, bool, list[dict]]:
    """The bytes read ahead, True if that is all, and the rest at the sender."""
    sender = Sender(messages)
    headers = [] if length is None else [(b"content-length", b"%d" % length)]

    async def run() -> tuple[bytes, bool]:
        receive = await read_ahead({"headers": headers}, sender.receive, BYTES_MAX, seconds)
        message = await receive()
        assert message["type"] == "http.request"
        with pytest.raises(TimeoutError):
            await receive()
        return message["body"], not message["more_body"]

    return *asyncio.run(run()), sender.left


def test_what_comes_in_time_is_whole() -> None:
    assert read(body(b"")) == (b"", True, [])
    assert read(body(b"abc", b"", b"de")) == (b"abcde", True, [])
    assert read(body(b"x" * BYTES_MAX), length=BYTES_MAX) == (b"x" * BYTES_MAX, True, [])


def test_what_does_not_is_cut_off() -> None:
    assert read(body(b"abc", is_whole=False), seconds=0.01) == (b"abc", False, [])
    assert read([], seconds=0.01) == (b"", False, [])
    assert read([*body(b"abc", is_whole=False), GONE]) == (b"abc", False, [])


def test_no_more_is_read_than_is_looked_at() -> None:
    pieces = body(*[b"abcd"] * 9)
    assert read(pieces) == (b"abcd" * 3, False, pieces[3:])
    assert read(pieces, length=BYTES_MAX + 1) == (b"", False, pieces)


def test_a_body_may_take_its_time_and_no_more() -> None:
    async def read_on(receive: Receive) -> None:
        assert (await receive())["body"] == b"abc"
        with pytest.raises(TimeoutError):
            await receive()

    sender = Sender(body(b"abc", is_whole=False))
    asyncio.run(read_on(in_time(sender.receive, 0.01)))


# Through the whole hub


@pytest.fixture
def hub(empty: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[mount.Hub, str]]:
    """A hub that waits for no body, and a token."""
    monkeypatch.setattr(mount, "VISITOR_SECONDS", 0.01)
    monkeypatch.setattr(mount, "PUBLISHER_SECONDS", 0.01)
    Path(empty.content).mkdir(exist_ok=True)
    with Database(empty.state) as database:
        accounts = Accounts(database)
        accounts.add_owner("ann")
        token, _ = accounts.create_token("ann", "ci")
        yield mount.Hub(reads_of(empty), create_app(empty, FakeRebuilder(), database)), token


def post(*request: Any, **headers: str) -> tuple[int, bytes]:
    return asyncio.run(posted(*request, **headers))


async def posted(
    hub: mount.Hub, path: str, media: str, messages: Sequence[dict], **headers: str
) -> tuple[int, bytes]:
    answer = []

    async def send(message: dict) -> None:
        answer.append(message)

    sent = {
        "host": "127.0.0.1",
        "content-type": media,
        **{key.replace("_", "-"): headers[key] for key in headers},
    }
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": b"", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }  # fmt: skip
    await hub(scope, Sender(messages).receive, send)
    return answer[0]["status"], b"".join(message.get("body", b"") for message in answer)


@pytest.mark.parametrize("how", [{"content_length": "100"}, {"transfer_encoding": "chunked"}])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_body_that_is_cut_off_is_refused(
    hub: tuple[mount.Hub, str], how: dict[str, str], is_gone: bool
) -> None:
    app, token = hub
    check_url = CHECK_URL.format(owner="ann", name="story")
    places = [
        (TRUSTED_URL, "application/json", {}),
        (check_url, "application/json", {}),
        ("/api/v1/repos/ann/story/versions", "application/json",
         {"authorization": f"Bearer {token}"}),
    ]  # fmt: skip
    if "content_length" in how:
        places.append(("/account/login", FORM, {}))
    # The received part looks whole.
    messages = body(b'{"content": "One."}', is_whole=False) + [GONE] * is_gone
    for path, media, headers in places:
        status, told = post(app, path, media, messages, **headers, **how)
        assert (status, b"arrived incomplete" in told) == (400, True), told


def test_a_check_takes_a_whole_body_that_is_not_too_large(hub: tuple[mount.Hub, str]) -> None:
    app, _ = hub
    url = CHECK_URL.format(owner="ann", name="story")
    whole = json.dumps({"content": "x" * 100_000}).encode()
    for how in ({"content_length": str(len(whole))}, {"transfer_encoding": "chunked"}):
        status, told = post(app, url, "application/json", body(whole), **how)
        assert (status, b'"version":"1.0.0"' in told) == (200, True), told
    length = str(PUBLICATION_BYTES_MAX + 1)
    assert post(app, url, "application/json", [], content_length=length)[0] == 413


@pytest.mark.parametrize("path", ["/account/login", TRUSTED_URL])
def test_a_body_that_is_too_large_is_refused(hub: tuple[mount.Hub, str], path: str) -> None:
    app, _ = hub
    media = "application/json" if path == TRUSTED_URL else FORM
    status, _ = post(app, path, media, [], content_length="3000000000")
    assert status == 413
    large = body(*[b"x" * 1024] * 65, is_whole=False)
    status, _ = post(app, path, media, large, content_length=str(65 * 1024))
    assert status == 413
    if path == TRUSTED_URL:
        assert post(app, path, media, large, transfer_encoding="chunked")[0] == 413


def test_checks_and_jobs_do_not_wait_for_visitors_and_comparisons(empty: Settings) -> None:
    visits = ["/account/login"] * mount.VISITORS_AT_ONCE
    comparisons = [COMPARE_URL.format(owner="ann", name="story")] * mount.COMPARISONS_AT_ONCE
    paths = [*visits, *comparisons, CHECK_URL.format(owner="ann", name="story"), TRUSTED_URL]
    # No request is answered before all of them are in progress.
    everybody = threading.Barrier(len(paths))

    def meeting(environ: dict, start_response: Callable) -> list[bytes]:
        everybody.wait(DEADLINE_SECONDS)
        start_response("200 OK", [])
        return [environ["PATH_INFO"].encode()]

    async def ask_all(hub: mount.Hub) -> None:
        answers = await asyncio.gather(*[posted(hub, path, FORM, body(b"x")) for path in paths])
        assert answers == [(200, path.encode()) for path in paths]

    asyncio.run(ask_all(mount.Hub(reads_of(empty), meeting)))
