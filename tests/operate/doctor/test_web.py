"""A hub behind hosts that do not honour what it sends: each spoils one thing."""

import gzip
import http.client
import http.server
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from email.utils import formatdate
from typing import Any, NamedTuple

import pytest
import requests

from builder.model.settings import Settings
from builder.stats.agents import is_bot
from operate.doctor import web
from operate.doctor.examine import ADDRESS, ONLINE, STRANGERS, examine
from operate.doctor.findings import Subject
from operate.doctor.remote_hub import RemoteHub, find_sample
from publisher.outside.fetch import DOCUMENT_BYTES_MAX
from tests.operate.doctor.conftest import faults, only
from tests.support.catalogues import settings_in, write_small_catalogue, write_version
from tests.support.servers import DEADLINE_SECONDS, Server, in_thread, serving, wait_until

Headers = dict[str, str]
TEXT = "/api/v1/repos/ann/review/versions/1.1.0.txt"
FILE = "/api/v1/repos/bob/page/versions/1.0.0/files/a/b.html"
SKIPPED = {"transfer-encoding", "connection", "content-length", "date"}


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes


Pass = Callable[[str, str, Headers], Answer]
Spoil = Callable[[str, str, Headers, Pass], Answer]


def as_it_is(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
    return passed(method, target, headers)


class Front(http.server.ThreadingHTTPServer):
    """A proxy before the hub. ``spoil`` gets each request, and a function that passes it on."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = 0
        self.spoil: Spoil = as_it_is
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def pass_on(self, method: str, target: str, headers: Headers) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, DEADLINE_SECONDS)
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in SKIPPED}
        return Answer(answer.status, {name.title(): value for name, value in kept.items()}, body)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Front

    def do_GET(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name != "Connection"}
        answer = self.server.spoil(self.command, self.path, headers, self.server.pass_on)
        self.send_response_only(answer.status)
        for name, value in ({"Date": formatdate(usegmt=True)} | answer.headers).items():
            self.send_header(name, value)
        if answer.status != 304:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.status != 304:
            self.wfile.write(answer.body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def _front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Front, Settings]]:
    settings = settings_in(tmp_path_factory.mktemp("web"), queries=True)
    write_small_catalogue(settings.content)
    write_version(settings.content, "bob", "page", "1.0.0", "Write.", {"a/b.html": b"<p>"})
    front = Front()
    with in_thread(front), serving(settings, "--base-url", front.url, "--port", "0") as server:
        front.upstream = server.port
        wait_until(
            lambda: requests.get(f"{front.url}/healthz").json()["status"] == "ok", "the first build"
        )
        yield front, settings._replace(base_url=front.url)


@pytest.fixture
def front(_front: tuple[Front, Settings]) -> Iterator[Front]:
    yield _front[0]
    _front[0].spoil = as_it_is


@pytest.fixture
def hub(front: Front, _front: tuple[Front, Settings]) -> Subject:
    return Subject(_front[1], None)


@pytest.fixture
def remote(hub: Subject) -> Iterator[RemoteHub]:
    with closing(RemoteHub(hub)) as remote:
        yield remote


def altered(alter: Callable[[Answer], Answer], path: str = "/") -> Spoil:
    """A host that alters the answers to what begins so."""

    def spoil(method: str, target: str, sent: Headers, passed: Pass) -> Answer:
        answer = passed(method, target, sent)
        return alter(answer) if target.startswith(path) else answer

    return spoil


def without(headers: Headers, names: tuple[str, ...]) -> Headers:
    return {name: value for name, value in headers.items() if name not in names}


def dashed(headers: Headers) -> Headers:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def drop(*names: str) -> Spoil:
    """A host that does not pass these headers of answers on."""
    return altered(lambda answer: answer._replace(headers=without(answer.headers, names)))


def change(path: str, **headers: str) -> Spoil:
    """A host that sends other headers with what is at a path."""
    return altered(lambda one: one._replace(headers=one.headers | dashed(headers)), path)


def forget(*names: str) -> Spoil:
    """A host that does not pass these headers of requests on."""
    return lambda method, target, sent, passed: passed(method, target, without(sent, names))


def answer_itself(path: str, status: int, body: bytes = b"", **headers: str) -> Spoil:
    """A host that answers by itself what begins so."""
    return altered(lambda _: Answer(status, dashed(headers), body), path)


def without_query(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
    return passed(method, target.partition("?")[0], headers)


def other_host(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
    return passed(method, target, headers | {"Host": "backend.internal"})


@altered
def minify(answer: Answer) -> Answer:
    return answer._replace(body=answer.body.strip()) if answer.status == 200 else answer


@altered
def compress(answer: Answer) -> Answer:
    compressed = answer.headers | {"Content-Encoding": "gzip"}
    return answer._replace(body=gzip.compress(answer.body), headers=compressed)


def ready(reasons: list, **parts: dict) -> Spoil:
    body = json.dumps({"reasons": reasons, "parts": parts}).encode()
    return answer_itself("/readyz", 503 if reasons else 200, body)


def test_a_host_that_passes_all_on(hub: Subject) -> None:
    online = [one for name, one in examine(hub) if name in (STRANGERS, ADDRESS, *ONLINE)]
    assert {finding.level for finding in online} == {"ok"}
    assert len(online) == 2 + len(ONLINE)


FAILED = {"failures": 2, "failing_since": "2026-01-01", "last_error": "Denied."}
NOT_JSON = answer_itself("/api/v1/repos/nobody", 404, b"<p>", Content_Type="text/html")


@pytest.mark.parametrize(
    ("check", "spoil", "level", "expected"),
    [
        (web.address, answer_itself("/", 301, Location="https://www.hub.example/"), "problem",
         "HTTP 301, a redirect to https://www.hub.example/"),
        (web.address, answer_itself("/", 200, b"<p>Parked."), "problem", "not the hub.json"),
        (web.address, answer_itself("/", 200, b'{"data":{"base_url":"http://a.example"}}'),
         "problem", "says that its address is http://a.example"),
        (web.address, change("/", Date="Mon, 23 Nov 2020 07:00:00 GMT"), "problem",
         "seconds behind this machine's"),
        (web.service, answer_itself("/readyz", 502), "problem", "/readyz answers HTTP 502"),
        (web.service, ready([{"code": "disk_full", "message": "Disk full: state."}]), "problem",
         "The service is not ready: Disk full: state."),
        (web.service, ready([], deploy=FAILED), "problem",
         "deploy has failed since 2026-01-01: Denied."),
        (web.answers, minify, "problem", f"{TEXT} has other bytes than"),
        (web.answers, answer_itself(TEXT, 403), "problem", f"{TEXT} answers HTTP 403"),
        (web.answers, answer_itself("/api/v1/hub.json", 200, b"{}", Age="86000"), "warning",
         "from a cache that has had it for 86000 seconds"),
        (web.answers, change(TEXT, Content_Type="text/markdown"), "problem",
         "has the type text/markdown and not text/plain"),
        (web.answers, change("/", Cache_Control="max-age=14400"), "warning",
         "has the cache rule 'max-age=14400' and not 'public, max-age=604800, immutable'"),
        (web.answers, drop("Access-Control-Allow-Origin"), "warning", "has no CORS header"),
        (web.answers, drop("Etag"), "warning", "has no ETag"),
        (web.answers, forget("If-None-Match"), "warning", "answers 200 instead of 304"),
        (web.answers, answer_itself("/api/v1/repos/nobody", 200, b"<p>Home"), "problem",
         "which does not exist, answers HTTP 200"),
        (web.answers, NOT_JSON, "problem", "as text/html, and not 404 as JSON"),
        (web.answers, answer_itself(FILE, 404), "problem", f"{FILE} answers HTTP 404"),
        (web.answers, change(FILE, Content_Type="text/html"), "problem",
         "b.html has the type text/html and not text/plain"),
        (web.queries, without_query, "problem", "not with the text of 1.0.0"),
        (web.queries, answer_itself("/api/v1/repos?q=", 503), "problem", "answers HTTP 503"),
        (web.writes, other_host, "problem", "/account answers HTTP 403"),
        (web.writes, answer_itself("/account", 502), "problem", "/account answers HTTP 502"),
        (web.writes, change("/account", Age="12"), "problem", "A cache keeps /account"),
        (web.writes, change("/account", Cache_Control="public, max-age=60"), "problem",
         "A cache keeps /account"),
        (web.writes, compress, "problem", "/account is compressed"),
        (web.writes, answer_itself("/api/v1/repos/nobody", 405), "problem", "answers HTTP 405"),
    ],
)  # fmt: skip
def test_what_a_host_can_spoil(
    front: Front, remote: RemoteHub, check: web.RemoteCheck, spoil: Spoil, level: str, expected: str
) -> None:
    assert faults(check(remote)) == []
    front.spoil = spoil
    found = faults(check(remote))
    assert any(expected in text for one, text in found if one == level), found


def test_a_limit_of_reads_is_waited_for(front: Front, remote: RemoteHub) -> None:
    refused = []

    def limit(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
        if not refused:
            refused.append(target)
            return Answer(429, {"Retry-After": "1"}, b"")
        return passed(method, target, headers)

    front.spoil = limit
    assert faults(web.address(remote)) == []
    assert len(refused) == 1
    front.spoil = answer_itself("/", 429, Retry_After="86400")  # not for so long
    assert "answers HTTP 429" in only(web.address(remote), "problem")


def test_a_flood_is_not_read(front: Front, remote: RemoteHub) -> None:
    front.spoil = answer_itself("/", 200, b" " * (DOCUMENT_BYTES_MAX + 1))
    found = only(web.address(remote), "problem")
    assert "No answer from" in found and "TooLarge" in found


def test_it_counts_as_no_pull(front: Front, remote: RemoteHub) -> None:
    agents = []

    def note(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
        agents.append(headers["User-Agent"])
        return passed(method, target, headers)

    front.spoil = note
    list(web.answers(remote))
    assert agents and all(map(is_bot, agents))


def members_only(cache_control: str) -> Spoil:
    """A hub that only members may read, with this rule for caches."""

    def spoil(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
        if headers.get("Authorization") != "Bearer hub_right":
            return Answer(401, {}, b"{}")
        answer = passed(method, target, headers)
        kept = {name: text for name, text in answer.headers.items() if "Access-Control" not in name}
        return answer._replace(headers=kept | {"Cache-Control": cache_control})

    return spoil


def test_strangers_who_can_read_a_private_hub(front: Front, hub: Subject) -> None:
    front.spoil = members_only("private, max-age=15")
    private = hub._replace(service=hub.settings._replace(private=True))
    with closing(RemoteHub(private)) as remote:
        assert faults(web.strangers(remote)) == []
        for open_path in ("/api/v1/hub.json", "/ann/review.html", "/api/v1/repos?q=a"):
            front.spoil = open_at(open_path)
            assert f"strangers can read {open_path}." in only(web.strangers(remote), "problem")
        front.spoil = as_it_is
        assert "and not 'public" not in str(faults(web.answers(remote)))


def open_at(path: str) -> Spoil:
    """A host before a private hub that answers everyone at one path."""

    def spoil(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
        return Answer(200 if target == path else 401, {}, b"{}")

    return spoil


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (None, "is for members only. Set HUB_TOKEN"),
        ("hub_wrong", "is for members only, and refuses this token."),
        ("hub_right", None),
    ],
)
def test_a_hub_for_members(
    front: Front, remote: RemoteHub, token: str | None, expected: str | None
) -> None:
    front.spoil = members_only("private, max-age=15")
    remote._token = token
    if expected:
        assert expected in only(web.address(remote), "problem")
    else:
        for check in (web.address, web.answers, web.queries):
            assert faults(check(remote)) == []
        front.spoil = members_only("public, max-age=15")
        assert "caches on the way may keep it" in str(faults(web.answers(remote)))


def test_a_token_goes_only_where_it_is_asked_for_and_nobody_listens(
    front: Front, remote: RemoteHub
) -> None:
    sent = []

    def note(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
        sent.append(headers.get("Authorization"))
        return passed(method, target, headers)

    remote._token = "hub_right"
    front.spoil = note
    for check in (web.address, web.answers):
        list(check(remote))
    assert set(sent) == {None}
    remote.base_url = "http://hub.example"
    assert not remote.become_member()


def test_a_name_without_a_host(remote: RemoteHub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    remote.base_url = f"http://127.0.0.1:{port}"
    found = only(web.address(remote), "problem")
    assert f"No answer from http://127.0.0.1:{port}/api/v1/hub.json: ConnectionRefused" in found


def test_a_host_that_stops_answering_half_way(front: Front, hub: Subject) -> None:
    """A check that gets no answer says so, and the other checks continue."""

    def hang_up(method: str, target: str, headers: Headers, passed: Pass) -> Answer:
        if "?version=" in target:
            raise ConnectionAbortedError
        return passed(method, target, headers)

    front.spoil = hang_up
    front.handle_error = lambda *_: None
    found = dict(examine(hub))
    assert found["queries"].what.startswith("No answer: ")
    assert found["writes"].level == "ok"


def test_a_site_of_files_alone(front: Front, remote: RemoteHub) -> None:
    """Checks request nothing that such a host cannot do."""
    remote.hub.queries = False
    front.spoil = answer_itself("/", 404)
    for check in (web.service, web.queries, web.writes):
        assert [one.level for one in check(remote)] == ["ok"]
    front.spoil = NOT_JSON
    assert "and not 404 as JSON" in only(web.answers(remote), "warning")


def test_a_host_without_rules(live: Server, static_url: str) -> None:
    with closing(RemoteHub(Subject(live.settings._replace(base_url=static_url), None))) as remote:
        remote.hub.queries = False
        found = faults(web.answers(remote))
    assert sum("this host has it at the path of its file alone" in text for _, text in found) == 2


def test_without_a_site_there_is_no_sample(tmp_path: Any) -> None:
    assert find_sample(str(tmp_path)) is None
    (tmp_path / "api/v1").mkdir(parents=True)
    (tmp_path / "api/v1/catalogue.jsonl").write_text('{"owner":"ann"}\n[]\nnonsense')
    assert find_sample(str(tmp_path)) is None
