"""Downloads from a vendor's API: requests, answers, and failures."""

import email.utils
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from builder.model.errors import OperatorError
from moving.importers.items import Document
from moving.vendors import api as module_of_api
from moving.vendors.api import PAUSES_SECONDS, PER_SECOND, USER_AGENT, Api, ApiError, ask
from tests.support.fake_api import FakeApi, Request, Said, fake_api

KEY = "sk-a-secret-of-one-test"
ENVIRON = {"EXAMPLE_KEY": f" {KEY}\n", "EXAMPLE_ID": "id"}


def vendor(download: Callable[[Api], Any]) -> ModuleType:
    module = ModuleType("moving.vendors.an_example")
    module.TITLE, module.API_URL, module.KEYS = (
        "Example", "https://example.com", ("EXAMPLE_ID", "EXAMPLE_KEY"),
    )  # fmt: skip
    module.headers = lambda keys: {"Authorization": f"Bearer {keys['EXAMPLE_KEY']}"}
    module.download = download
    return module


class Downloading:
    """Downloads from a fake API; ``paused`` has what would have been waited for."""

    def __init__(self) -> None:
        self.paused: list[float] = []
        self.progress: list[tuple[str, int, int]] = []

    def __call__(
        self, api: FakeApi, download: Callable[[Api], Any], path: str = "", **environ: str
    ) -> list[Any]:
        self.now = 0.0
        found = ask(
            vendor(download), api.url + path, lambda *progress: self.progress.append(progress),
            ENVIRON | environ, pause=self.paused.append, clock=self.tick,
        )  # fmt: skip
        return list(found)

    def tick(self) -> float:
        """An hour passes between any two requests."""
        self.now += 3600
        return self.now


@pytest.fixture
def downloading() -> Downloading:
    return Downloading()


def three(api: Api) -> Iterator[Document]:
    """Download three prompts, by name."""
    listed = api.get("prompts", {"page": 1})["data"]
    for done, name in enumerate(listed):
        api.count(done, len(listed))
        yield Document(name, api.get(f"/prompts/{name}"))


def shop(request: Request) -> Said:
    if request.headers["Authorization"] != f"Bearer {KEY}":
        return Said(401, {"message": f"no such key: {request.headers['Authorization']}"})
    if request.path == "/v1/prompts":
        return Said(200, {"data": ["a", "b", "c"], "page": request.params["page"]})
    return Said(200, {"path": request.path})


def test_what_is_asked_and_what_comes(downloading):
    with fake_api(shop) as api:
        found = downloading(api, three, "/v1/")
    assert [request.path for request in api.requests] == [
        "/v1/prompts", "/v1/prompts/a", "/v1/prompts/b", "/v1/prompts/c",
    ]  # fmt: skip
    assert {request.headers["User-Agent"] for request in api.requests} == {USER_AGENT}
    assert found[1] == Document("b", {"path": "/v1/prompts/b"})
    assert downloading.progress[-1] == ("Downloading prompts", 2, 3)


HOUR = 3600


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7), ("", 1, 1), ("soon", 1, 1), ("-3", 1, 1), ("0", 1, 1),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 1, 1),
    ],
)  # fmt: skip
def test_it_waits_as_the_answer_says(header, low, high, downloading):
    answers = [Said(429, {}, {"Retry-After": header}), Said(200, {"a": 1})]
    with fake_api(lambda _: answers.pop(0)) as api:
        assert downloading(api, lambda api: [api.get("a")]) == [{"a": 1}]
    [paused] = downloading.paused
    assert low <= paused <= high


def test_a_date_to_wait_for_is_understood_and_too_late_a_one_ends_it(downloading):
    header = {"Retry-After": email.utils.formatdate(time.time() + HOUR, usegmt=True)}
    with fake_api(lambda _: Said(503, {}, header)) as api:
        with pytest.raises(ApiError, match=r"HTTP 503\. It asks to wait [\d,]+ seconds\. Run"):
            downloading(api, lambda api: api.get("a"))
        assert len(api.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_what_may_pass_is_tried_a_few_times(status, downloading):
    with fake_api(lambda _: Said(status, {"error": {"message": "busy"}})) as api:
        with pytest.raises(ApiError, match=rf"HTTP {status}: busy\. Tried 6 times\. Run the same"):
            downloading(api, lambda api: api.get("a"))
        assert len(api.requests) == 1 + len(PAUSES_SECONDS)
    assert downloading.paused == list(PAUSES_SECONDS)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (Said(401, {"message": f"wrong: {KEY}"}), "HTTP 401: wrong: …. Check EXAMPLE_ID and EX"),
        (Said(403, b"<html>"), "HTTP 403. Check EXAMPLE_ID and EXAMPLE_KEY."),
        (Said(404, {"error": "no\x1b[2J\nsuch"}), "/a answers HTTP 404: no [2J such."),
        (Said(400, {"error": {"message": "x" * 9999}}), "xxx…."),
        (Said(400, {"error": [1], "detail": {}}), "/a answers HTTP 400."),
        (Said(200, b"<html>"), "/a answers with something that is not JSON. Check the address."),
        (Said(200, b""), "not JSON"),
        (Said(200, b"[" * 100_000), "not JSON"),
        (Said(302, b"", {"Location": "https://elsewhere.example/"}),
         "HTTP 302. It leads to https://elsewhere.example/, which is not followed."),
        (Said(302, b"", {"Location": "/a"}), "HTTP 302. It leads to http://127.0.0.1"),
    ],
)  # fmt: skip
def test_other_faults_end_it_at_once(said, message, downloading):
    with fake_api(lambda _: said) as api, pytest.raises(ApiError) as caught:
        downloading(api, lambda api: api.get("a"))
    assert message in str(caught.value)
    assert caught.value.status == said.status
    assert downloading.paused == []
    assert len(api.requests) <= 4
    assert KEY not in str(caught.value)


def test_a_redirect_to_no_url(downloading):
    with fake_api(lambda _: Said(302, b"", {"Location": "http://[/"})) as api:
        with pytest.raises(ApiError, match=r"did not come \(ValueError: Invalid IPv6 URL\)\.$"):
            downloading(api, lambda api: api.get("a"))
        assert len(api.requests) == 1


def test_redirects_within_the_host_are_followed(downloading):
    def moved(request: Request) -> Said:
        if request.path == "/a":
            return Said(307, b"", {"Location": "/a/?page=2"})
        return Said(200, request.params)

    with fake_api(moved) as api:
        assert downloading(api, lambda api: [api.get("a", {"page": 1})]) == [{"page": "2"}]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_gets_what_is_for_this_machine(host, downloading, monkeypatch):
    with fake_api(shop) as api, fake_api(lambda _: Said(418, {})) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        api.url = api.url.replace("127.0.0.1", host)
        downloading(api, three, "/v1/")
        assert api.requests and not proxy.requests


def test_answers_are_bounded(downloading, monkeypatch):
    monkeypatch.setattr(module_of_api, "ANSWER_BYTES_MAX", 1000)
    monkeypatch.setattr(module_of_api, "REQUESTS_MAX", 5)
    monkeypatch.setattr(module_of_api, "TOTAL_BYTES_MAX", 1900)

    def endless(api: Api) -> None:
        while True:
            api.get("small")

    with fake_api(
        lambda request: Said(200, "x" * (2000 if request.path == "/big" else 900))
    ) as api:
        with pytest.raises(ApiError, match=r"GET .*/big is larger than 1,000 bytes"):
            downloading(api, lambda api: api.get("big"))
        with pytest.raises(ApiError, match="more than 1,900 bytes"):
            downloading(api, endless)
        monkeypatch.setattr(module_of_api, "TOTAL_BYTES_MAX", 10_000)
        with pytest.raises(ApiError, match="asked 5 times"):
            downloading(api, endless)
    assert len(api.requests) == 1 + 3 + 5


def test_no_connection(downloading):
    """A wrong address is reported at once; a lost connection is retried."""
    with fake_api(shop) as api:
        pass
    with pytest.raises(ApiError, match=r"did not come .*refused"):
        downloading(api, lambda api: api.get("a"))
    assert downloading.paused == []

    def answers_once(_: Request) -> Said:
        return Said(200 if len(api.requests) == 1 else 0, {})

    with (
        fake_api(answers_once) as api,
        pytest.raises(ApiError, match=r"did not come .*Tried 6 times"),
    ):
        downloading(api, lambda api: [api.get("a"), api.get("a")])
    assert downloading.paused == list(PAUSES_SECONDS)


def test_requests_keep_their_distance(downloading):
    downloading.tick = lambda: 0.0
    with fake_api(lambda _: Said(200, {})) as api:
        downloading(api, lambda api: [api.get("a"), api.get("a")])
    assert downloading.paused == [1 / PER_SECOND]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"EXAMPLE_KEY": ""}, "needs EXAMPLE_KEY in the environment. Set it,"),
        ({"EXAMPLE_KEY": "", "EXAMPLE_ID": " "}, "needs EXAMPLE_ID and EXAMPLE_KEY in"),
        ({"EXAMPLE_KEY": f"{KEY}\nx"}, "EXAMPLE_KEY has characters that no key has"),
        ({"EXAMPLE_KEY": f"{KEY}é"}, "EXAMPLE_KEY has characters that no key has"),
    ],
)
def test_keys_that_cannot_be_sent(environ, message, downloading):
    with fake_api(shop) as api, pytest.raises(OperatorError) as caught:
        downloading(api, three, **environ)
    assert message in str(caught.value) and KEY not in str(caught.value)
    assert not api.requests


@pytest.mark.parametrize(
    "url",
    ["", "http://elsewhere.example", "https://me:secret@x.example", "https://x.example?a=1", "x"],
)
def test_addresses_that_keys_are_not_sent_to(url, downloading):
    with pytest.raises(OperatorError) as caught:
        list(ask(vendor(three), url, print, ENVIRON))
    assert "https://example.com" in str(caught.value) and "secret" not in str(caught.value)
