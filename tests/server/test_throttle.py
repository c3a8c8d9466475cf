"""Limits on requests: exact by the clock, and as clients of the live server meet it."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server import throttle
from server.answer_headers import WINDOW_SECONDS
from server.throttle import Throttle, network
from tests.support.clock import Clock, StopClock
from tests.support.servers import Server, serving

RETRY_SECONDS_MAX = WINDOW_SECONDS + 1


@pytest.fixture
def clock(stop_clock: StopClock) -> Clock:
    return stop_clock(throttle)


def test_exactly_the_limit_in_a_window(clock: Clock) -> None:
    reads = Throttle(120)
    assert [reads.hit("a") for _ in range(120)] == [0] * 120
    clock.now += 59.9
    assert reads.hit("a") == 1
    clock.now += 0.2
    assert [reads.hit("a") for _ in range(120)] == [0] * 120
    assert reads.hit("a") > 0


def test_clients_do_not_share_a_limit(clock: Clock) -> None:
    reads = Throttle(2)
    for _ in range(5):
        reads.hit("10.0.0.1")
    for client in ("10.0.0.2", "10.0.0.10", "::1", "", "10.0.0.1/", "10.0.0.1:80"):
        assert [reads.hit(client) > 0 for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("elapsed", [0, 0.001, 1, 29.5, 30, 59, 59.999])
def test_retry_after_is_when_reads_go_on(clock: Clock, elapsed: float) -> None:
    reads = Throttle(1)
    reads.hit("a")
    clock.now += elapsed
    wait_seconds = reads.hit("a")
    assert WINDOW_SECONDS - elapsed <= wait_seconds <= WINDOW_SECONDS - elapsed + 1
    clock.now += wait_seconds
    assert reads.hit("a") == 0


def test_policy_names_the_limit() -> None:
    assert Throttle(120).policy == '"read";q=120;w=60'
    assert Throttle(30, "sign-in", 15).policy == '"sign-in";q=30;w=900'


def test_a_window_of_several_minutes(clock: Clock) -> None:
    sign_ins = Throttle(2, "sign-in", 15)
    assert [sign_ins.hit("a") for _ in range(3)] == [0, 0, 15 * 60]
    clock.now += 15 * 60 - 1
    assert sign_ins.hit("a") == 1
    # The counts of others are swept meanwhile, and not this one.
    assert sign_ins.hit("b") == 0
    assert sign_ins.hit("a") == 1
    clock.now += 1
    assert [sign_ins.hit("a") > 0 for _ in range(3)] == [False, False, True]


def test_a_request_that_is_given_back(clock: Clock) -> None:
    reads = Throttle(3)
    assert [reads.hit("a") > 0 for _ in range(5)] == [False] * 3 + [True] * 2
    reads.give_back("a")
    reads.give_back("b")
    # Only requests that were allowed count, not those refused in between.
    assert [reads.hit("a") > 0 for _ in range(2)] == [False, True]
    assert [reads.hit("b") > 0 for _ in range(4)] == [False] * 3 + [True]


def test_nothing_is_given_back_into_another_window(clock: Clock) -> None:
    reads = Throttle(1)
    reads.hit("a")
    clock.now += WINDOW_SECONDS
    reads.give_back("a")
    assert [reads.hit("a") > 0 for _ in range(2)] == [False, True]


def test_a_client_that_is_forgotten(clock: Clock) -> None:
    reads = Throttle(2)
    for client in "ab" * 3:
        reads.hit(client)
    reads.forget("a")
    reads.forget("unknown")
    assert [reads.hit("a") > 0 for _ in range(3)] == [False, False, True]
    assert reads.hit("b") > 0


_steps = st.lists(
    st.tuples(st.floats(0, 90, allow_nan=False), st.sampled_from("abc")), min_size=1, max_size=120
)


@given(st.integers(1, 6), _steps)
def test_against_the_definition(limit: int, steps: list[tuple[float, str]]) -> None:
    """Never refuses a client at or below the limit in any 60 seconds, never admits more than it
    in the window that a client's read began, and never says to wait longer than a window.
    """
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock()
        patch.setattr(throttle, "time", clock)
        reads = Throttle(limit)
        asked: dict[str, list[float]] = {}
        window: dict[str, tuple[float, int]] = {}
        for pause, client in steps:
            clock.now += pause
            asked.setdefault(client, []).append(clock.now)
            recent = [at for at in asked[client] if at > clock.now - WINDOW_SECONDS]
            began, admitted = window.get(client, (float("-inf"), 0))
            if clock.now >= began + WINDOW_SECONDS:
                began, admitted = clock.now, 0
            wait_seconds = reads.hit(client)
            if len(recent) <= limit:
                assert wait_seconds == 0
            assert (wait_seconds == 0) is (admitted < limit)
            assert wait_seconds <= RETRY_SECONDS_MAX
            window[client] = (began, admitted + (wait_seconds == 0))


def test_clients_are_forgotten(clock: Clock) -> None:
    reads = Throttle(5)
    held = []
    tracemalloc.start()
    for minute in range(20):
        for client in range(200):
            reads.hit(f"{minute}.{client}")
            clock.now += WINDOW_SECONDS / 200
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held[3:]) < 2 * max(held[:3])


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0002:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"), ("::1", "::/64"), ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"), ("::FFFF:c633:6407", "198.51.100.7"), ("", ""),
        ("unknown", "unknown"), ("198.51.100.7:80", "198.51.100.7:80"),
    ],
)  # fmt: skip
def test_what_counts_as_one_client(address: str, client: str) -> None:
    assert network(address) == client


# Over HTTP


@pytest.fixture(scope="module")
def limited(built_sample) -> Iterator[Server]:
    with serving(built_sample, rate_limit=5) as server:
        yield server


@pytest.fixture
def proxied(built_sample, tmp_path: Path) -> Iterator[Server]:
    own = built_sample._replace(out=f"{tmp_path}/site", state=f"{tmp_path}/state")
    with serving(own, "--trusted-proxy", "127.0.0.1", rate_limit=5) as server:
        yield server


def test_pages_and_preflights_do_not_count(limited: Server) -> None:
    for _ in range(10):
        page = limited.get("/")
        assert page.status_code == 200
        assert "RateLimit-Policy" not in page.headers
        assert limited.request("OPTIONS", "/api/v1/tags").status_code == 204


def test_sixth_read_is_refused(limited: Server) -> None:
    for number in range(5):
        # A client gets no further reads by claiming other addresses.
        headers = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=192.0.2.{number}"}
        answer = limited.get("/api/v1/tags", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["RateLimit-Policy"] == '"read";q=5;w=60'
    for method, path in (
        ("GET", "/api/v1/tags"), ("GET", "/api/v1/repos?q=sql"), ("GET", "/api/v1/nothing"),
        ("HEAD", "/api/v1/tags"), ("POST", "/api/v1/tags"),
        ("GET", "/langfuse/api/public/v2/prompts/ann/story"),
    ):  # fmt: skip
        headers = {"X-Forwarded-For": "198.51.100.77"}
        refused = limited.request(method, path, headers=headers)
        assert refused.status_code == 429
        assert refused.headers["Content-Type"] == "application/json"
        assert refused.headers["Cache-Control"] == "no-store"
        assert refused.headers["RateLimit-Policy"] == '"read";q=5;w=60'
        assert refused.headers["Access-Control-Allow-Origin"] == "*"
        assert "Retry-After" in refused.headers["Access-Control-Expose-Headers"]
        assert 1 <= int(refused.headers["Retry-After"]) <= RETRY_SECONDS_MAX
        if method != "HEAD":
            assert refused.json()["error"]["code"] == "rate_limited"
            assert refused.headers["Retry-After"] in refused.json()["error"]["message"]
    assert limited.get("/").status_code == 200
    assert limited.request("OPTIONS", "/api/v1/tags").status_code == 204


def test_trusted_proxy_tells_the_client(proxied: Server) -> None:
    def read(client: str) -> int:
        return proxied.get("/api/v1/tags", headers={"X-Forwarded-For": client}).status_code

    assert [read("198.51.100.1") for _ in range(6)] == [200] * 5 + [429]
    assert read("198.51.100.2") == 200
    # A client with one IPv6 address has all of its /64.
    assert [read(f"2001:db8::{number}") for number in range(6)] == [200] * 5 + [429]
    assert read("2001:db8:0:1::1") == 200
    assert [read(f"::ffff:198.51.100.{number}") for number in (1, 3)] == [429, 200]
    # Only the address that the proxy itself added counts, which is the last one.
    assert read("203.0.113.9, 198.51.100.1") == 429


def test_an_owner_whose_name_begins_with_api_has_pages(limited: Server) -> None:
    for _ in range(8):
        page = limited.get("/api-guild")
        assert page.status_code == 404
        assert page.headers["Content-Type"].startswith("text/html")
        assert "RateLimit-Policy" not in page.headers
