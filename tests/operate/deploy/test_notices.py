"""Notices of deployments: what is told, how it is signed, and that nothing is left untold."""

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


class Told(ThreadingHTTPServer):
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
def told() -> Iterator[Told]:
    server = Told()
    with in_thread(server):
        yield server


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "RETRY_SECONDS_MAX", 0.01)


def telling(told: Told, state: Path) -> Notices:
    return Notices(Receiver(told.url, KEY), str(state), BASE)


def is_quiet(telling: Notices, state: Path) -> bool:
    """Whether nothing is left to tell, also for the next start."""
    return telling.status()["waiting"] == 0 and not list(state.iterdir())


def test_the_signature_is_the_standard_s() -> None:
    # The example of https://github.com/standard-webhooks/standard-webhooks, and the one of Svix.
    key = base64.b64decode("plJ3nmyCDGBKInavdOK15jsl")
    body = b'{"event_type":"ping","data":{"success":true}}'
    signed = signature(key, "msg_loFOjxBNrRLzqYUf", 1731705121, body)
    assert signed == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="
    signed = signature(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_deployment_is_told_by_paths_and_signed(told: Told, tmp_path: Path) -> None:
    with telling(told, tmp_path) as notices:
        notices.begin()
        assert list(tmp_path.iterdir())
        notices.deployed(
            {"ann/x.html": True, "index.html": True, "api/v1/hub.json": True, "bob.html": False}, 7
        )
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    (message,) = told.messages
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


def test_it_is_sent_again_with_the_same_id(told: Told, tmp_path: Path) -> None:
    told.statuses = [500, 307, 404]  # a redirect is not followed
    with telling(told, tmp_path) as notices:
        notices.deployed({"ann.html": True}, 1)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    assert len(told.messages) == 4
    assert len({message.headers["webhook-id"] for message in told.messages}) == 1
    assert len({message.body for message in told.messages}) == 1


def test_what_could_not_be_told_is_told_with_the_next(told: Told, tmp_path: Path) -> None:
    told.statuses = [500] * ATTEMPTS
    with telling(told, tmp_path) as notices:
        notices.deployed({"ann.html": True, "bob.html": True}, 1)
        wait_until(lambda: len(told.messages) == ATTEMPTS, "the last attempt")
        wait_until(lambda: not told.statuses and notices.status()["last_error"], "its answer")
        assert notices.status()["waiting"] == 4
        status = notices.status()
        assert status["failing_since"] and status["last_error"] == "it answers HTTP 500"
        assert len(told.messages) == ATTEMPTS and list(tmp_path.iterdir())
        notices.deployed({"top.html": True, "bob.html": False}, 2)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
        assert notices.status()["last_error"] is None
    data = told.messages[-1].data
    assert data["changed"] == [
        "/prompts/ann", "/prompts/ann.html", "/prompts/top", "/prompts/top.html",
    ]  # fmt: skip
    assert data["deleted"] == ["/prompts/bob", "/prompts/bob.html"] and data["serial"] == 2


def test_after_a_stop_in_between_everything_has_changed(told: Told, tmp_path: Path) -> None:
    with telling(told, tmp_path) as first:
        first.begin()  # and the deployment is cut short
    with telling(told, tmp_path) as second:
        second.begin()
        second.deployed({}, 3)  # what is there is current
        wait_until(lambda: is_quiet(second, tmp_path), "the notice")
    (message,) = told.messages
    assert message.data["everything"] and message.data["changed"] == []
    with telling(told, tmp_path) as third:
        third.begin()
        third.deployed({}, 3)
        assert is_quiet(third, tmp_path)
    assert len(told.messages) == 1


def test_a_failed_deployment_may_have_changed_something(told: Told, tmp_path: Path) -> None:
    with telling(told, tmp_path) as notices:
        notices.begin()
        notices.failed({"ann.html": True})
        assert not told.messages and list(tmp_path.iterdir())
        notices.begin()
        notices.deployed({}, 4)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
        notices.begin()
        notices.failed(None)
        notices.deployed({}, 5)
        wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    first, second = (message.data for message in told.messages)
    assert first["changed"] == ["/prompts/ann", "/prompts/ann.html"] and second["everything"]


def test_many_paths_are_everything(told: Told, tmp_path: Path) -> None:
    with telling(told, tmp_path) as notices:
        for count in (PATHS_MAX // 2, PATHS_MAX // 2 + 1):
            notices.deployed({f"ann/p{number}.html": True for number in range(count)}, 1)
            wait_until(lambda: is_quiet(notices, tmp_path), "the notice")
    few, many = (message.data for message in told.messages)
    assert len(few["changed"]) == PATHS_MAX and not few["everything"]
    assert many["changed"] == [] and many["everything"]


@pytest.mark.parametrize(
    ("url", "secret", "told"),
    [
        ("http://hub.example.org/x", SECRET, "https URL"),
        ("https://user:pass@hub.example.org/x", SECRET, "https URL"),
        ("https://hub.example.org/x", None, "openssl rand"),
        ("https://hub.example.org/x", "whsec_c2hvcnQ=", "24 to 64"),
        ("https://hub.example.org/x", "not base64 at all, but long enough", "base64"),
    ],
)
def test_receivers_that_cannot_be(url: str, secret: str | None, told: str) -> None:
    with pytest.raises(OperatorError, match=told) as raised:
        make_receiver(url, secret)
    assert not secret or secret not in str(raised.value)
    url = "https://hub.example.org/x"
    assert make_receiver(url, SECRET) == Receiver(url, KEY)
