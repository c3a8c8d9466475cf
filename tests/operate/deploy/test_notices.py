"""Messages about deployments: their paths, their signature, and that no change is left out."""

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builder.model.errors import OperatorError
from operate.deploy import notices
from operate.deploy.notices import ATTEMPTS, PATHS_MAX, Notices
from operate.deploy.receiver import Receiver, make_receiver, signature
from tests.support.servers import in_thread, wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
BASE = "https://hub.example.org/prompts"


class Message(NamedTuple):
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.body)["data"]


class FakeReceiver(ThreadingHTTPServer):
    """A receiver that answers with the next of ``statuses``, and with 204 when there are none."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[Message] = []
        self.statuses: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        headers = {name.lower(): value for name, value in self.headers.items()}
        # Before the answer: with that, all may be quiet.
        server.messages.append(Message(headers, body))
        status = server.statuses.pop(0) if server.statuses else 204
        self.send_response(status)
        if status == 307:
            self.send_header("Location", server.url)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[FakeReceiver]:
    server = FakeReceiver()
    with in_thread(server):
        yield server


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "RETRY_SECONDS_MAX", 0.01)


def sending(receiver: FakeReceiver, state: Path) -> Notices:
    return Notices(Receiver(receiver.url, KEY), str(state), BASE)


def is_quiet(sending: Notices, state: Path) -> bool:
    """True if nothing is left to send, not even for the next start."""
    return sending.status()["waiting"] == 0 and not list(state.iterdir())


def test_the_signature_is_that_of_the_standard() -> None:
    # The example of https://github.com/standard-webhooks/standard-webhooks, and the one of Svix.
    key = base64.b64decode("plJ3nmyCDGBKInavdOK15jsl")
    body = b'{"event_type":"ping","data":{"success":true}}'
    signed = signature(key, "msg_loFOjxBNrRLzqYUf", 1731705121, body)
    assert signed == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="
    signed = signature(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_has_the_changed_paths_and_a_signature(
    receiver: FakeReceiver, tmp_path: Path
) -> None:
    with sending(receiver, tmp_path) as notices:
        notices.begin()
        assert list(tmp_path.iterdir())
        notices.deployed(
            {"ann/x.html": True, "index.html": True, "api/v1/hub.json": True, "bob.html": False}, 7
        )
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    (message,) = receiver.messages
    assert message.data == {
        "base_url": BASE, "serial": 7, "everything": False,
        "changed": [
            "/prompts/ann/x", "/prompts/ann/x.html", "/prompts/", "/prompts/index.html",
            "/prompts/api/v1/hub.json",
        ],
        "deleted": ["/prompts/bob", "/prompts/bob.html"],
    }  # fmt: skip
    message_id, timestamp = (message.headers[f"webhook-{name}"] for name in ("id", "timestamp"))
    signed = signature(KEY, message_id, int(timestamp), message.body)
    assert message.headers["webhook-signature"] == signed
    assert message.headers["content-type"] == "application/json"


def test_a_message_is_repeated_with_the_same_id(receiver: FakeReceiver, tmp_path: Path) -> None:
    receiver.statuses = [500, 307, 404]  # a redirect is not followed
    with sending(receiver, tmp_path) as notices:
        notices.deployed({"ann.html": True}, 1)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    assert len(receiver.messages) == 4
    assert len({message.headers["webhook-id"] for message in receiver.messages}) == 1
    assert len({message.body for message in receiver.messages}) == 1


def test_undelivered_changes_are_part_of_the_next_message(
    receiver: FakeReceiver, tmp_path: Path
) -> None:
    receiver.statuses = [500] * ATTEMPTS
    with sending(receiver, tmp_path) as notices:
        notices.deployed({"ann.html": True, "bob.html": True}, 1)
        wait_until(lambda: len(receiver.messages) == ATTEMPTS, "the last attempt")
        wait_until(lambda: not receiver.statuses and notices.status()["last_error"], "its answer")
        assert notices.status()["waiting"] == 4
        status = notices.status()
        assert status["failing_since"] and status["last_error"] == "it answers HTTP 500"
        assert len(receiver.messages) == ATTEMPTS and list(tmp_path.iterdir())
        notices.deployed({"top.html": True, "bob.html": False}, 2)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
        assert notices.status()["last_error"] is None
    data = receiver.messages[-1].data
    assert data["changed"] == [
        "/prompts/ann", "/prompts/ann.html", "/prompts/top", "/prompts/top.html",
    ]  # fmt: skip
    assert data["deleted"] == ["/prompts/bob", "/prompts/bob.html"] and data["serial"] == 2


def test_after_a_stop_the_first_message_says_everything(
    receiver: FakeReceiver, tmp_path: Path
) -> None:
    with sending(receiver, tmp_path) as first:
        first.begin()  # and the deployment is cut short
    with sending(receiver, tmp_path) as second:
        second.begin()
        second.deployed({}, 3)  # the destination is current
        wait_until(lambda: is_quiet(second, tmp_path), "the notice")
    (message,) = receiver.messages
    assert message.data["everything"] and message.data["changed"] == []
    with sending(receiver, tmp_path) as third:
        third.begin()
        third.deployed({}, 3)
        assert is_quiet(third, tmp_path)
    assert len(receiver.messages) == 1


def test_a_failed_deployment_may_have_changed_something(
    receiver: FakeReceiver, tmp_path: Path
) -> None:
    with sending(receiver, tmp_path) as notices:
        notices.begin()
        notices.failed({"ann.html": True})
        assert not receiver.messages and list(tmp_path.iterdir())
        notices.begin()
        notices.deployed({}, 4)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
        notices.begin()
        notices.failed(None)
        notices.deployed({}, 5)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    first, second = (message.data for message in receiver.messages)
    assert first["changed"] == ["/prompts/ann", "/prompts/ann.html"] and second["everything"]


def test_many_paths_are_everything(receiver: FakeReceiver, tmp_path: Path) -> None:
    with sending(receiver, tmp_path) as notices:
        for count in (PATHS_MAX // 2, PATHS_MAX // 2 + 1):
            notices.deployed({f"ann/p{number}.html": True for number in range(count)}, 1)
            wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    few, many = (message.data for message in receiver.messages)
    assert len(few["changed"]) == PATHS_MAX and not few["everything"]
    assert many["changed"] == [] and many["everything"]


@pytest.mark.parametrize(
    ("url", "secret", "message"),
    [
        ("http://hub.example.org/x", SECRET, "https URL"),
        ("https://user:pass@hub.example.org/x", SECRET, "https URL"),
        ("https://hub.example.org/x", None, "openssl rand"),
        ("https://hub.example.org/x", "whsec_c2hvcnQ=", "24 to 64"),
        ("https://hub.example.org/x", "not base64 at all, but long enough", "base64"),
    ],
)
def test_invalid_receivers(url: str, secret: str | None, message: str) -> None:
    with pytest.raises(OperatorError, match=message) as raised:
        make_receiver(url, secret)
    assert not secret or secret not in str(raised.value)
    url = "https://hub.example.org/x"
    assert make_receiver(url, SECRET) == Receiver(url, KEY)
