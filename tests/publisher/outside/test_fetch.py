"""Asking other servers: how long, and for how much."""

import gzip
import itertools
from pathlib import Path

import pytest

from publisher.outside.fetch import DOCUMENT_BYTES_MAX, TIMEOUT_SECONDS, FetchError, fetch_json
from tests.support.certificates import make_certificate
from tests.support.issuer import DISCOVERY, issuer
from tests.support.servers import DEADLINE_SECONDS, free_port
from tests.support.slow_servers import answering, trickling


def reason(url: str) -> str:
    with pytest.raises(FetchError) as caught:
        fetch_json(url)
    return str(caught.value)


SLOW = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("begin", SLOW)
def test_a_byte_now_and_then_is_no_answer(begin: bytes) -> None:
    with trickling(begin) as url:
        assert "no answer in" in reason(url)


def test_all_parts_of_a_body_have_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class LateClock:
        monotonic = itertools.count(0, TIMEOUT_SECONDS + 1).__next__

    monkeypatch.setattr("publisher.outside.fetch.time", LateClock)
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as url:
        assert "no answer in" in reason(url)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("begin", [b"", *SLOW])
def test_a_server_that_falls_silent_is_not_waited_for(begin: bytes) -> None:
    with answering(begin, b"x") as url, pytest.MonkeyPatch.context() as slow:
        slow.setattr("tests.support.slow_servers.DROP_SECONDS", DEADLINE_SECONDS)
        assert "no answer in" in reason(url)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """One for 127.0.0.1, which is trusted here."""
    made = make_certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", made[0])
    return made


@pytest.mark.usefixtures("installed_tools")
def test_the_same_over_tls(
    certificate: tuple[str, str], request: pytest.FixtureRequest
) -> None:  # fmt: skip
    with answering(
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", b'{"a": 1}', certificate
    ) as url:
        assert fetch_json(url) == {"a": 1}
    with trickling(SLOW[0], certificate) as url:
        request.getfixturevalue("impatient")
        assert "no answer in" in reason(url)


def test_an_answer_in_pieces_is_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(head, b'4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n') as url:
        assert fetch_json(url) == {"a": 1}


def test_an_answer_that_ends_too_soon_is_none() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}") as url:
        assert "no connection" in reason(url)


@pytest.mark.parametrize("is_packed", [False, True])
def test_no_more_is_read_than_a_document_may_have(is_packed: bool) -> None:
    body, encoding = b" " * (DOCUMENT_BYTES_MAX + 1), b"identity"
    if is_packed:
        body, encoding = gzip.compress(body * 20), b"gzip"
        assert len(body) < DOCUMENT_BYTES_MAX
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    with answering(head % (encoding, len(body)) + body) as url:
        assert f"larger than {DOCUMENT_BYTES_MAX:,} bytes" in reason(url)


@pytest.mark.parametrize(
    ("status", "header", "body", "message"),
    [
        ("200 OK", "", b"<html>", "is not JSON"), ("200 OK", "", b"\xff", "is not JSON"),
        ("200 OK", "", b"[" * 100_000, "is not JSON"), ("200 OK", "", b"[]", "not a JSON object"),
        ("503 Away", "", b"{}", "answers HTTP 503"),
        ("302 Found", "Location: http://127.0.0.1:1/", b"{}", "answers HTTP 302"),
        ("302 Found", "Location: http://[/", b"", "no connection"),
    ],
)  # fmt: skip
def test_answers_that_are_no_document(status: str, header: str, body: bytes, message: str) -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n\r\n"
    with answering(head.replace("\r\n\r\n\r\n", "\r\n\r\n").encode() + body) as url:
        assert message in reason(url)


def test_nobody_listens() -> None:
    assert "no connection" in reason(f"http://127.0.0.1:{free_port()}")


def test_no_credentials_of_this_machine_are_sent(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with issuer() as live:
        sent, answer = [], live.answer
        live.answer = lambda target, authorization: (
            sent.append(authorization), answer(target, authorization)
        )[1]  # fmt: skip
        fetch_json(live.url + DISCOVERY)
    assert sent == [None]
