"""The conformance suite notices faults: hosts that do one thing wrong each, and what it says.

All of them are one server with the real read application, and a fault for each port.
"""

import asyncio
import contextlib
import gzip
import json
import random
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import pytest
import uvicorn

from builder.model.routes import API, TRUSTED_URL, is_account_url
from builder.pipeline.build import build
from builder.pipeline.rebuild import Rebuilder
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.log import log_build
from publisher.web.app import create_app
from server.app import ReadApp, Receive, Scope, Send
from server.mount import App, Hub
from tests.conformance import hosts
from tests.conformance.deployment import CAPABILITIES, Deployment
from tests.conformance.hosts import Host
from tests.conformance.sample import CANARY
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.depth import some
from tests.support.servers import (
    DEADLINE_SECONDS,
    PROJECT,
    clean_environment,
    free_port,
    wait_until,
)

SUITE = str(PROJECT / "tests" / "conformance")
SOUND = "sound"
# Of the level full.
FULL_AREAS = {
    "search", "account settings", "account forms", "account paths", "trusted publishing",
}  # fmt: skip
QUIET = ["-p", "no:cacheprovider", "-q"]


class Reply(NamedTuple):
    """An answer on its way. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def with_headers(reply: Reply, **changes: str | None) -> Reply:
    """With other headers; None takes one away."""
    given = {name.replace("_", "-"): value for name, value in changes.items()}
    headers = {name: value for name, value in (reply.headers | given).items() if value is not None}
    return reply._replace(headers=headers)


def with_body(reply: Reply, body: bytes) -> Reply:
    return with_headers(reply._replace(body=body), content_length=str(len(body)))


def with_json(reply: Reply, change: Callable[[Any], Any]) -> Reply:
    """With a change to the data of an answer that has some."""
    if not reply.body.startswith(b'{"data"'):
        return reply
    found = json.loads(reply.body)
    found["data"] = change(found["data"])
    compact = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return with_body(reply, compact.encode())


# The faults: what becomes of an answer to a request


def no_cors(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, access_control_allow_origin=None)


def one_cache_rule_for_all(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, cache_control="public, max-age=60")


def a_page_for_what_is_not_there(scope: Scope, reply: Reply) -> Reply:
    return reply._replace(status=200) if reply.status == 404 else reply


def a_leak(scope: Scope, reply: Reply) -> Reply:
    is_up = b".." in scope["raw_path"] and scope["raw_path"].endswith(b"canary.txt")
    return with_body(reply._replace(status=200), CANARY.encode()) if is_up else reply


def a_404_that_no_sdk_believes(scope: Scope, reply: Reply) -> Reply:
    is_one = reply.status == 404 and scope["path"].startswith("/langfuse/")
    return with_headers(reply, content_type="text/html; charset=utf-8") if is_one else reply


def a_redirect_to_elsewhere(scope: Scope, reply: Reply) -> Reply:
    if scope["raw_path"].startswith(b"//"):
        return with_headers(reply._replace(status=308), location=scope["path"])
    return reply


def raw_text_as_html(scope: Scope, reply: Reply) -> Reply:
    is_text = reply.headers.get("content-type", "").startswith("text/plain")
    return with_headers(reply, content_type="text/html; charset=utf-8") if is_text else reply


def an_etag_that_changes(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, etag=f'"{random.random()}"')


def bare_304(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, cache_control=None) if reply.status == 304 else reply


def head_of_another_length(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, content_length="7") if scope["method"] == "HEAD" else reply


def a_newline_more(scope: Scope, reply: Reply) -> Reply:
    is_raw = scope["path"].endswith((".txt", "/raw")) and reply.status == 200 and reply.body
    return with_body(reply, reply.body + b"\n") if is_raw else reply


def errors_as_html(scope: Scope, reply: Reply) -> Reply:
    if reply.status < 400:
        return reply
    return with_headers(with_body(reply, b"<h1>Sorry</h1>"), content_type="text/html")


def a_failure_for_bad_parameters(scope: Scope, reply: Reply) -> Reply:
    is_bad = reply.status == 400 and b"page=x" in scope["query_string"]
    return reply._replace(status=500) if is_bad else reply


def a_repo_less(scope: Scope, reply: Reply) -> Reply:
    is_list = "/_/new/" in scope["path"]
    return with_json(reply, lambda rows: rows[:-1]) if is_list else reply


def another_order(scope: Scope, reply: Reply) -> Reply:
    return with_json(reply, lambda rows: rows[::-1]) if "/_/top/" in scope["path"] else reply


def another_hash(scope: Scope, reply: Reply) -> Reply:
    if scope["path"].endswith("/review.json"):
        return with_json(reply, lambda repo: repo | {"sha256": "0" * 64})
    return reply


def keys_in_another_order(scope: Scope, reply: Reply) -> Reply:
    if scope["path"].endswith("/review.json"):
        return with_json(reply, lambda repo: dict(sorted(repo.items())))
    return reply


def a_count_too_many(scope: Scope, reply: Reply) -> Reply:
    if scope["path"].endswith("/tags.json"):
        return with_json(reply, lambda tags: [tag | {"count": tag["count"] + 1} for tag in tags])
    return reply


def no_allow(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, allow=None)


def an_echo_of_trace(scope: Scope, reply: Reply) -> Reply:
    if scope["method"] != "TRACE":
        return reply
    lines = [b"%b: %b" % header for header in scope["headers"]]
    return with_body(reply._replace(status=200), b"\r\n".join(lines))


def pages_in_frames(scope: Scope, reply: Reply) -> Reply:
    policy = reply.headers.get("content-security-policy")
    return with_headers(reply, content_security_policy=policy and policy.split("; frame")[0])


def gzip_for_all(scope: Scope, reply: Reply) -> Reply:
    if reply.status != 200 or len(reply.body) < 4096 or "content-encoding" in reply.headers:
        return reply
    return with_headers(with_body(reply, gzip.compress(reply.body)), content_encoding="gzip")


def the_wrong_part(scope: Scope, reply: Reply) -> Reply:
    return with_body(reply, reply.body[::-1] + b"?") if reply.status == 206 else reply


def sniffed(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, x_content_type_options=None)


class CacheOfOneEncoding:
    """Keeps what came first, compressed or not, and gives it to everybody."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Reply] = {}

    def __call__(self, scope: Scope, reply: Reply) -> Reply:
        query = scope["query_string"]
        if scope["method"] != "GET" or reply.status != 200 or b"q=" not in query:
            return reply
        if (b"accept-encoding", b"gzip") in scope["headers"]:
            packed = gzip.compress(reply.body)
            reply = with_headers(with_body(reply, packed), content_encoding="gzip")
        return self._kept.setdefault(query, reply)


# Of the account settings, and of the exchange of tokens


def at_account(change: Callable[[Scope, Reply], Reply]) -> Callable[[Scope, Reply], Reply]:
    """A fault there alone."""

    def changed(scope: Scope, reply: Reply) -> Reply:
        return change(scope, reply) if is_account_url(scope["path"]) else reply

    return changed


def an_account_without_a_service(scope: Scope, reply: Reply) -> Reply:
    page = with_headers(reply, set_cookie=None, cache_control="public, max-age=10")
    return with_body(page._replace(status=404), b"<h1>Not found</h1>")


def an_account_for_all_origins(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, access_control_allow_origin="*")


def cookies_for_scripts(scope: Scope, reply: Reply) -> Reply:
    cookie = reply.headers.get("set-cookie")
    return with_headers(reply, set_cookie=cookie and cookie.replace("HttpOnly; ", ""))


def a_packed_page(scope: Scope, reply: Reply) -> Reply:
    if (b"accept-encoding", b"gzip") not in scope["headers"]:
        return reply
    return with_headers(with_body(reply, gzip.compress(reply.body)), content_encoding="gzip")


def a_redirect_to_the_service_itself(scope: Scope, reply: Reply) -> Reply:
    location = reply.headers.get("location")
    return with_headers(reply, location=location and f"http://127.0.0.1:8000{location}")


def a_host_s_own_error_page(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, cache_control="public, max-age=10") if reply.status > 403 else reply


def forms_without_tokens(scope: Scope, reply: Reply) -> Reply:
    return reply._replace(status=303) if reply.status == 400 else reply


def a_leak_below_account(scope: Scope, reply: Reply) -> Reply:
    return with_body(reply._replace(status=200), CANARY.encode()) if reply.status == 404 else reply


def a_failure_below_account(scope: Scope, reply: Reply) -> Reply:
    return reply._replace(status=500) if len(scope["raw_path"]) > 4000 else reply


def a_query_in_the_page(scope: Scope, reply: Reply) -> Reply:
    return with_body(reply, reply.body + unquote_to_bytes(scope["query_string"]))


class CacheOfPages:
    """Gives everybody what the first visitor got, with the cookie."""

    def __init__(self) -> None:
        self._kept: dict[str, Reply] = {}

    def __call__(self, scope: Scope, reply: Reply) -> Reply:
        return self._kept.setdefault(scope["path"], reply) if scope["method"] == "GET" else reply


def at_exchange(change: Callable[[Scope, Reply], Reply]) -> Callable[[Scope, Reply], Reply]:
    """A fault there alone."""

    def changed(scope: Scope, reply: Reply) -> Reply:
        return change(scope, reply) if scope["path"] == TRUSTED_URL else reply

    return changed


def a_token_for_everybody(scope: Scope, reply: Reply) -> Reply:
    if reply.status != 401:
        return reply
    return with_body(reply._replace(status=200), b'{"data":{"token":"hub_x"}}')


def an_exchange_that_can_be_read(scope: Scope, reply: Reply) -> Reply:
    return with_headers(reply, allow="GET, HEAD, POST, OPTIONS")


# What becomes of a request, before it is answered


def cookies_kept_back(scope: Scope) -> Scope:
    return {**scope, "headers": [one for one in scope["headers"] if one[0] != b"cookie"]}


def forms_as_links(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope["method"] == "POST" else scope


def queries_ignored(scope: Scope) -> Scope:
    return {**scope, "query_string": b""}


def words_ignored(scope: Scope) -> Scope:
    return {**scope, "query_string": re.sub(rb"q=[^&]*", b"q=e", scope["query_string"])}


class Fault(NamedTuple):
    """``areas`` of the suite have to notice it, and one of its messages to have ``told``."""

    areas: set[str]
    told: str
    reply: Callable[[Scope, Reply], Reply] = lambda _, reply: reply
    request: Callable[[Scope], Scope] = lambda scope: scope


FAULTS = {
    "no-cors": Fault({"headers"}, "expected Access-Control-Allow-Origin: *", no_cors),
    "one-cache-rule": Fault(
        {"headers"}, "expected Cache-Control: public, max-age=604800, immutable",
        one_cache_rule_for_all,
    ),
    "soft-404": Fault({"not there"}, "expected status 404", a_page_for_what_is_not_there),
    "langfuse-html": Fault(
        {"Langfuse"}, "expected Content-Type: application/json", a_404_that_no_sdk_believes
    ),
    "leak": Fault({"hostile paths"}, "expected nothing from outside", a_leak),
    "open-redirect": Fault(
        {"hostile paths"}, "Location: //evil.example/", a_redirect_to_elsewhere
    ),
    "raw-as-html": Fault({"raw text"}, "expected Content-Type: text/plain", raw_text_as_html),
    "restless-etag": Fault({"conditional requests"}, "expected ETag: ", an_etag_that_changes),
    "bare-304": Fault({"conditional requests"}, "expected Cache-Control as in the 200", bare_304),
    "head-length": Fault({"HEAD"}, "came     Content-Length: 7", head_of_another_length),
    "newline": Fault({"raw text"}, "bytes of the record's content", a_newline_more),
    "html-errors": Fault({"errors"}, "in the error envelope", errors_as_html),
    "failure": Fault({"parameters"}, "expected 400 invalid_parameter",
                     a_failure_for_bad_parameters),
    "lost-repo": Fault({"lists"}, "just the repos of catalogue.jsonl", a_repo_less),
    "wrong-order": Fault({"lists"}, "expected the order of sort=top", another_order),
    "wrong-hash": Fault({"repos"}, "that of content", another_hash),
    "shuffled-keys": Fault({"repos"}, "keys in the contract's order", keys_in_another_order),
    "wrong-count": Fault({"tags"}, "the tags of catalogue.jsonl", a_count_too_many),
    "no-allow": Fault({"methods"}, "expected Allow with GET and HEAD", no_allow),
    "trace": Fault(
        {"methods"}, "expected nothing of the request's headers", an_echo_of_trace
    ),
    "framed": Fault({"headers"}, "frame-ancestors 'none'", pages_in_frames),
    "gzip-for-all": Fault({"compression"}, "expected no Content-Encoding", gzip_for_all),
    "wrong-part": Fault({"ranges"}, "expected bytes 0 to 0", the_wrong_part),
    "sniffed": Fault({"raw text"}, "expected X-Content-Type-Options: nosniff", sniffed),
    "no-queries": Fault({"lists by query"}, "expected the same bytes as /api/v1/repos/_/new/1.json",
                        request=queries_ignored),
    "one-encoding": Fault({"search"}, "expected no Content-Encoding", CacheOfOneEncoding()),
    "no-words": Fault({"search"}, "came     meta ListMeta", request=words_ignored),
    "no-account": Fault(
        {"account settings"}, "expected status 200", at_account(an_account_without_a_service)
    ),
    "account-cors": Fault(
        {"account settings"}, "expected no Access-Control-Allow-Origin",
        at_account(an_account_for_all_origins),
    ),
    "account-framed": Fault({"account settings"}, "frame-ancestors 'none'",
                            at_account(pages_in_frames)),
    "account-sniffed": Fault({"account settings"}, "expected X-Content-Type-Options: nosniff",
                             at_account(sniffed)),
    "account-script": Fault(
        {"account settings"}, "expected Set-Cookie with httponly, samesite=lax, secure",
        at_account(cookies_for_scripts),
    ),
    "account-packed": Fault({"account settings"}, "expected no compression",
                            at_account(a_packed_page)),
    "account-shared": Fault({"account settings"}, "expected cookies of one's own",
                            at_account(CacheOfPages())),
    "account-moved": Fault({"account settings"}, "Location: http://127.0.0.1:8000/account/login",
                           at_account(a_redirect_to_the_service_itself)),
    "account-errors": Fault({"account settings"}, "expected Cache-Control: no-store",
                            at_account(a_host_s_own_error_page)),
    "account-forms": Fault({"account forms"}, "expected status 400",
                           at_account(forms_without_tokens)),
    "account-links": Fault({"account forms"}, "expected status 400", request=forms_as_links),
    "account-cookies": Fault(
        {"account forms"}, "expected status 401 or 422", request=cookies_kept_back
    ),
    "account-leak": Fault({"account paths"}, "expected nothing from outside",
                          at_account(a_leak_below_account)),
    "account-failure": Fault({"account paths"}, "expected no failure of the server",
                             at_account(a_failure_below_account)),
    "account-echo": Fault({"account paths"}, "expected nothing of the query as markup",
                          at_account(a_query_in_the_page)),
    "exchange-for-all": Fault({"trusted publishing"}, "expected 401 invalid_token",
                              at_exchange(a_token_for_everybody)),
    "exchange-cached": Fault({"trusted publishing"}, "expected Cache-Control: no-store",
                             at_exchange(one_cache_rule_for_all)),
    "exchange-html": Fault({"trusted publishing"}, "in the error envelope",
                           at_exchange(errors_as_html)),
    "exchange-read": Fault({"trusted publishing"}, "expected Allow with POST alone",
                           at_exchange(an_exchange_that_can_be_read)),
    "exchange-cors": Fault({"trusted publishing"}, "expected Access-Control-Allow-Origin: *",
                           at_exchange(no_cors)),
}  # fmt: skip


class FaultyServer:
    """The real application on many ports, each with its fault; ASGI."""

    def __init__(self, app: App, faults: dict[int, Fault]) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        fault = self._faults.get(scope["server"][1])
        sent: list[dict[str, Any]] = []

        async def keep(event: dict[str, Any]) -> None:
            sent.append(event)

        await self._app(fault.request(scope) if fault else scope, receive, keep)
        start, *parts = sent
        headers = {key.decode().lower(): value.decode() for key, value in start["headers"]}
        body = b"".join(part.get("body", b"") for part in parts)
        reply = Reply(start["status"], headers, body)
        if fault:
            reply = fault.reply(scope, reply)
        pairs = [(key.encode(), value.encode()) for key, value in reply.headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": pairs})
        # A length that is wrong goes out as it is.
        data = b"" if scope["method"] == "HEAD" else reply.body
        await send({"type": "http.response.body", "body": data})


TRIED = dict(some(FAULTS.items()))


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of each faulty host, and of one without a fault."""
    settings = settings_in(tmp_path_factory.mktemp("faulty"), queries=True, langfuse=True)
    write_small_catalogue(settings.content)
    build(settings)
    listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in (SOUND, *FAULTS)}
    for listener in listeners.values():
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
    with Database(settings.state) as database, Rebuilder(settings, log_build) as rebuilder:
        # All hosts are one address.
        service = create_app(settings, rebuilder, Accounts(database), database, failed_auth_limit=0)
        with contextlib.closing(ReadApp(settings)) as reads:
            app = Hub(reads, service)
            faulty = FaultyServer(app, {ports[name]: fault for name, fault in FAULTS.items()})
            config = uvicorn.Config(
                faulty, http="httptools", lifespan="off", log_config=None, access_log=False
            )
            server = uvicorn.Server(config)
            sockets = list(listeners.values())
            thread = threading.Thread(target=partial(asyncio.run, server.serve(sockets=sockets)))
            thread.start()
            try:
                wait_until(lambda: server.started, "the faulty server")
                yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
            finally:
                server.should_exit = True
                thread.join()


class Told:
    """A plugin that keeps what a run of the suite says, by host."""

    def __init__(self) -> None:
        self.failures: dict[str, list[str]] = {}
        self.passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            host = report.nodeid.rpartition("[")[2].rstrip("]")
            # After the name of what is tested, in which there may be hyphens, too.
            names = [name for name in (SOUND, *FAULTS) if f"-{host}".endswith(f"-{name}")]
            name = max(names, key=len)
            self.failures.setdefault(name, []).append(str(report.longrepr))
        elif report.when == "call":
            self.passed += 1


@pytest.fixture(scope="module")
def told(urls: dict[str, str]) -> Told:
    """What the suite says of every host, in one run inside this process."""
    lacks = dict.fromkeys(("mcp", "token", "rate limit"), "they have tests of their own")
    rows = {SOUND: Host("full", partial(at, urls[SOUND]), lacks)}
    for name, fault in TRIED.items():
        level = "full" if fault.areas & FULL_AREAS else "queries"
        rows[name] = Host(level, partial(at, urls[name]), areas=fault.areas)
    found = Told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosts, "HOSTS", rows)
        options = [*QUIET, "--tb=no", "-r", "N"]
        assert pytest.main([SUITE, *options], plugins=[found]) == pytest.ExitCode.TESTS_FAILED
    return found


def at(url: str, workshop: object) -> contextlib.AbstractContextManager[Deployment]:
    """A host that runs already."""
    return contextlib.nullcontext(Deployment(url, may_lack_data=True))


def test_a_sound_host_passes(told: Told) -> None:
    assert told.failures.get(SOUND, []) == []
    assert told.passed > 500


@pytest.mark.parametrize("name", TRIED)
def test_a_fault_is_noticed_and_named(told: Told, name: str) -> None:
    failures = told.failures.get(name, [])
    text = "\n".join(failures)
    assert FAULTS[name].told in text, text[:3000] or "nothing was noticed"
    assert "did not expect this" not in text, text
    # Whoever reads it can ask again.
    assert "curl -sgi --path-as-is" in text


# As somebody runs it


def test_the_report(urls: dict[str, str]) -> None:
    url = urls["wrong-count"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", SUITE, *QUIET, "--base-url", url, "--level", "files",
         "-k", "not hostile"],
        capture_output=True, text=True, cwd=PROJECT, timeout=DEADLINE_SECONDS,
        env=clean_environment(),
    )  # fmt: skip
    text = done.stdout
    assert done.returncode == 1 and not done.stderr
    assert f"conformance of {url}" in text
    assert "level: files, as --level says" in text
    assert re.search(r"^  tags +1 of \d+ failed$", text, re.MULTILINE)
    assert re.search(r"^  versions +\d+ held$", text, re.MULTILINE)
    assert (
        f"FAILED tags: GET {API}/tags.json\n"
        "    expected the tags of catalogue.jsonl, most used first, then by name\n"
        "    came     ('code', 3) and not ('code', 2)\n"
        f"    curl -sgi --path-as-is {url}{API}/tags.json\n"
    ) in text
    assert re.search(r"^1 of \d+ checks failed: it does not conform.$", text, re.MULTILINE)
    assert "Traceback" not in text and "assert " not in text


def test_an_address_without_a_hub_is_one_error(capfd: pytest.CaptureFixture[str]) -> None:
    for address, said in (
        (f"http://127.0.0.1:{free_port()}", "Connection refused"),
        ("prompts", "Invalid base URL"),
    ):
        status = pytest.main([SUITE, *QUIET, "--base-url", address])
        text = "".join(capfd.readouterr())
        assert status == pytest.ExitCode.USAGE_ERROR
        assert f"ERROR: Cannot test {address}. " in text and said in text
        assert len(text.strip().splitlines()) == 1


class OtherPlugin:
    """As pytest-base-url, which has the same option."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        parser.addoption("--base-url", metavar="url", help="the application under test")


def test_beside_a_plugin_with_the_same_option(
    urls: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    options = [*QUIET, "--base-url", urls[SOUND], "-k", "hub_json"]
    assert pytest.main([SUITE, *options], plugins=[OtherPlugin()]) == 0
    assert "it conforms to the level full" in capfd.readouterr().out


def test_every_option_is_in_the_guide() -> None:
    source = (PROJECT / "tests/conformance/conftest.py").read_text()
    guide = (PROJECT / "docs/develop/conformance.md").read_text()
    options = set(re.findall(r'addoption\(\s*"(--[a-z-]+)"', source))
    assert len(options) >= 7
    assert [option for option in options if f"`{option}" not in guide] == []
    assert [name for name in CAPABILITIES if f"`{name}`" not in guide] == []
    assert CANARY in guide
