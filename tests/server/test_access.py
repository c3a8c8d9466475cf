"""Hosts and origins that may send requests, in all valid spellings, and forged ones."""

import pytest

from builder.model.errors import OperatorError
from server.access import Access, parse_origin

BASE = "https://hub.example"

# Always allowed: this machine.
LOOPBACK_HOSTS = [
    b"localhost", b"localhost:8000", b"LocalHost:1", b"127.0.0.1", b"127.0.0.1:80", b"[::1]",
    b"[::1]:65535",
]  # fmt: skip
LOOPBACK_ORIGINS = [
    b"http://localhost", b"http://localhost:5173", b"https://127.0.0.1:6274", b"http://[::1]:80",
    b"HTTP://LOCALHOST",
]  # fmt: skip

# Never allowed without "*".
FOREIGN_HOSTS = [
    None, b"", b"evil.example", b"hub.example.evil.example", b"evilhub.example", b"hub.example.",
    b"localhost.", b"localhost.evil.example", b"127.0.0.1.evil.example", b"127.0.0.2",
    b"hub.example@evil.example", b"evil.example#hub.example", b"evil.example/hub.example",
    b"evil.example?hub.example", b"evil.example\\hub.example", b"evil.example:443:443",
    b"hub.example:x", b"hub.example:-1", b"hub.example:99999", b"hub.example:8443", b"[::1",
    b"::1", b"[::2]", b"0.0.0.0", b"\xff", b"h\xc3\xbcb.example", b"hub.example,evil.example",
    b"hub.example evil.example", b"*", b"null", b":443", b"@", b"2130706433", b"0x7f.1",
]  # fmt: skip
FOREIGN_ORIGINS = [
    b"", b"null", b"NULL", b"*", b"https://evil.example", b"https://hub.example.evil.example",
    b"https://evilhub.example", b"https://hub.example.", b"http://hub.example", b"hub.example",
    b"//hub.example", b"https://hub.example:8443", b"https://hub.example@evil.example",
    b"https://evil.example#hub.example", b"https://evil.example/https://hub.example",
    b"https://evil.example?https://hub.example", b"https://hub.example https://evil.example",
    b"https://hub.example, https://evil.example", b"https://hub.example:443:443", b"https://[::1",
    b"https://hub.example:x", b"http://localhost.evil.example", b"http://127.0.0.1.evil.example",
    b"http://localhost.", b"http://127.0.0.2", b"file://", b"file:///", b"data:", b"\xff",
    b"https://h\xc3\xbcb.example", b"https://", b"https:hub.example",
]  # fmt: skip


@pytest.mark.parametrize(
    "host", [*LOOPBACK_HOSTS, b"hub.example", b"hub.example:443", b"HUB.example"]
)
def test_hosts_that_are_served(host: bytes):
    assert Access(BASE).serves(host)


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_hosts_that_are_not(host: bytes | None):
    assert not Access(BASE).serves(host)


@pytest.mark.parametrize(
    "origin", [None, *LOOPBACK_ORIGINS, b"https://hub.example", b"https://HUB.example:443"]
)
def test_origins_that_are_admitted(origin: bytes | None):
    assert Access(BASE).admits(origin)


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_origins_that_are_not(origin: bytes):
    assert not Access(BASE).admits(origin)


@pytest.mark.parametrize(
    "faked",
    [
        b"evil.example@localhost", b"user:password@hub.example", b"@hub.example",
        b"hub.example/evil", b"hub.example?evil", b"hub.example#evil", b"local\thost",
        b"hub.\texample", b" hub.example", b"hub.example:+443", b"hub.example:0",
        b"hub.example:4_43", b"[::1]x", b"hub.example\\evil",
    ],
)  # fmt: skip
def test_what_no_client_sends_is_not_ours(faked: bytes):
    # A proxy and we might read it differently.
    assert not Access(BASE).serves(faked)
    assert not Access(BASE).admits(b"https://" + faked)


@pytest.mark.parametrize(
    ("base", "hosts", "others"),
    [
        ("https://hub.example/prompts", [b"hub.example", b"hub.example:443"], [b"hub.example:80"]),
        ("http://hub.example", [b"hub.example", b"hub.example:80"], [b"hub.example:443"]),
        ("http://hub.example:8080", [b"hub.example:8080"], [b"hub.example", b"hub.example:80"]),
        ("https://hub.example:443", [b"hub.example"], [b"hub.example:444"]),
        ("http://[2001:db8::1]:90", [b"[2001:db8::1]:90", b"[2001:DB8::1]:90"], [b"[2001:db8::1]"]),
        ("http://192.0.2.7", [b"192.0.2.7"], [b"192.0.2.70", b"192.0.2.7:81"]),
        ("http://127.0.0.1:8000", [b"127.0.0.1:8000", b"localhost"], [b"hub.example"]),
    ],
)  # fmt: skip
def test_base_urls(base: str, hosts: list[bytes], others: list[bytes]):
    access = Access(base)
    scheme = base.partition(":")[0].encode()
    for host in hosts:
        assert access.serves(host)
        assert access.admits(scheme + b"://" + host)
    for host in others:
        assert not access.serves(host)
        assert not access.admits(scheme + b"://" + host)


def test_more_origins():
    access = Access(BASE, ("https://app.example.org", "http://[2001:db8::2]:5173"))
    assert access.admits(b"https://app.example.org")
    assert access.admits(b"http://[2001:db8::2]:5173")
    # Requests for another address of this hub name that address.
    assert access.serves(b"app.example.org")
    assert access.serves(b"[2001:db8::2]:5173")
    assert access.admits(b"https://hub.example") and access.serves(b"hub.example")
    assert not access.admits(b"http://app.example.org")
    assert not access.admits(b"https://app.example.org:8443")
    assert not access.serves(b"[2001:db8::2]")
    assert not access.admits(b"https://other.example.org")


def test_any():
    access = Access(BASE, ("https://app.example.org", "*"))
    for host in (*FOREIGN_HOSTS, *LOOPBACK_HOSTS):
        assert access.serves(host)
    for origin in (*FOREIGN_ORIGINS, *LOOPBACK_ORIGINS, None):
        assert access.admits(origin)


def test_an_answer_does_not_depend_on_who_asked_before():
    access = Access(BASE)
    for number in range(3000):
        assert not access.serves(b"%d.example" % number)
        assert access.serves(b"hub.example")
        assert not access.admits(b"https://%d.example" % number)
        assert access.admits(b"https://hub.example")


@pytest.mark.parametrize(
    "text",
    [
        "*", "https://app.example.org", "http://localhost:5173", "http://[2001:db8::1]:1",
        "https://192.0.2.1", "https://xn--mnchen-3ya.example", "https://App.Example.org",
    ],
)  # fmt: skip
def test_an_origin_of_an_operator(text: str):
    assert parse_origin(text) == text
    access = Access(BASE, (text,))
    assert access.admits(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "", "app.example.org", "https://app.example.org/", "https://app.example.org/x",
        "https://app.example.org?x", "https://app.example.org#x", "ftp://app.example.org", "null",
        "https://", "https://:443", "https://user@app.example.org", "https://app.example.org:0",
        "https://app.example.org:x", "https://app.example.org:99999", "https://[::1", "**",
        "https://*.example.org", "https://app.example.org:*", "https://a b", "https://a,b",
        "https://münchen.example", " https://app.example.org", "https://app.example.org\n",
        "//app.example.org", "javascript://x", "file:///x", "https:app.example.org",
    ],
)  # fmt: skip
def test_what_is_no_origin(text: str):
    with pytest.raises(OperatorError, match="Invalid origin") as refused:
        parse_origin(text)
    assert "https://app.example.org, or *" in str(refused.value)
