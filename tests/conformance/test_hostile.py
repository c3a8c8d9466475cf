"""Paths and queries that mean no good: the answer is never from outside of the site."""

import re
from urllib.parse import quote, unquote, urljoin, urlsplit

import pytest

from tests.conformance.catalogue import Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import LONG_QUERY_CHARS, Answer, Client, NoAnswer
from tests.conformance.marks import area
from tests.conformance.sample import CANARY

pytestmark = pytest.mark.level("files")


# Paths


UP = [
    "/..", "/../", "/../../../../../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/%252e%252e%252f%252e%252e%252fetc%252fpasswd", "/..%5c..%5c..%5cetc%5cpasswd",
    "/..\\..\\..\\etc\\passwd", "/.%2e/.%2e/etc/passwd", "/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "/..%c0%af..%c0%afetc/passwd", "/..%ef%bc%8f..%ef%bc%8fetc/passwd", "/..;/..;/etc/passwd",
    "/;/../../etc/passwd", "/....//....//etc/passwd", "/assets/../../../../etc/passwd",
    "/assets/..%2f..%2f..%2f..%2fetc/passwd", "/assets../etc/passwd", "/assets../canary.txt",
    "/assets/style.css/../../../canary.txt", "/../canary.txt", "/%2e%2e/canary.txt",
    "/..%2fcanary.txt", "/%2e%2e%2fcanary.json", "/..%5ccanary.txt", "/..;/canary.txt",
    "/api/v1/../../../canary.txt", "/api/v1/..%2f..%2f..%2fcanary.json",
    "/api/v1/%2e%2e/%2e%2e/%2e%2e/canary", "/api/v1/repos/..%2f..%2f..%2f..%2fcanary/x",
    "/api/v1/repos/../../../../canary", "/api/v1/users/..%2f..%2f..%2f..%2fcanary",
    "/api/v1/users/%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fcanary.json",
    "/api/v1/tags/..%2f..%2f..%2f..%2fcanary/top/1", "/api/v1/tags/%2e%2e/top/1",
    "/api/v1/repos/_/top/..%2f..%2f..%2f..%2f..%2f..%2fcanary", "/top/..%2f..%2fcanary",
    "/tags/..%2f..%2fcanary", "/api/v1/repos/%2e/%2e", "/cli/..%2f..%2fcanary",
]  # fmt: skip
ODD = [
    "//etc/passwd", "///etc/passwd", "/etc/passwd", "//canary.txt", "/%2fetc/passwd",
    "/%2f%2fetc%2fpasswd", "/.%00/etc/passwd", "/%00", "/index.html%00.txt",
    "/canary.txt%00.html", "/assets/style.css%00", "/api/v1/hub.json%00",
    "/.git/config", "/.git/HEAD", "/.env", "/.htaccess", "/.ssh/id_rsa", "/.DS_Store",
    "/.%67it/config",
    "/%2egit/config", "/content/", "/state/build.sqlite3", "/var/accounts.sqlite3",
    "/accounts.sqlite3", "/../state/accounts.sqlite3", "/..%2fstate%2faccounts.sqlite3",
    "/proc/self/environ", "/file:///etc/passwd", "/C:/Windows/win.ini", "/c:%5cwindows%5cwin.ini",
    "/~root/", "/server-status", "/nginx_status", "/.404.html.tmp", "/404.html~", "/index.html.bak",
    "/%", "/%zz", "/%u002e%u002e/canary.txt", "/%ff%fe%fd", "/%ed%a0%80", "/\x80\xff",
    "/a%0d%0aX-Injected:%20yes", "/%0d%0aX-Injected:%20yes/", "/%0aX-Injected:yes",
    "//evil.example/", "//evil.example/%2e%2e", "/%5cevil.example/", "/\\evil.example/",
    "///evil.example//", "/%2f%2fevil.example%2f", "/.evil.example/", "/@evil.example/",
    "/api/v1/hub.json/", "/api/v1/hub.json/x", "/api/v1/hub.json/..%2f..%2f..%2f..%2fcanary.txt",
    "/" + "a" * 5000, "/" + "a/" * 4000, "/" + "../" * 2000 + "etc/passwd", "/" + "%2e%2e%2f" * 800,
    "/api/v1/repos/" + "a" * 5000 + "/b.json", "/" + "%00" * 1000, "/?" + "a" * 7000,
    "/account/%2e%2e/%2e%2e/canary.txt", "/account/..%2f..%2fcanary.txt", "/account/..;/canary.txt",
    "/account/..%2faccounts.sqlite3", "/account/login/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/account/%0d%0aX-Injected:%20yes", "/account//evil.example/", "/account/%5cevil.example/",
    "/account/%00", "/account/%ff%fe", "/account/openid?next=//evil.example/", "/account/%",
    "/account/openid/callback?code=x&state=x", "/account/" + "../" * 2000,
    "/account/tokens/{7*7}/revoke", "/index.html?/../../canary.txt",
    "/index.html?file=../canary.txt", "/index.html#/../canary.txt",
]  # fmt: skip


@area("hostile paths")
@pytest.mark.parametrize("target", UP + ODD, ids=lambda target: ascii(target[:60])[1:-1])
def test_hostile_path(check: Check, client: Client, target: str) -> None:
    try:
        answer = client.raw(target.encode("latin-1"))
    except NoAnswer:
        check.held += 1  # to hang up on what is no HTTP is an answer, too
        return
    check_harmless(check, client, answer)
    if answer.status == 200:
        meant = meant_path(client, target)
        if meant is not None:
            own = [client.get(path).body for path in ("/", meant)]
            check.that(answer, answer.body in own, f"nothing, or what is at / or {meant}")


def meant_path(client: Client, target: str) -> str | None:
    """The path that a lenient host may take a target for; None for one that is not of the site:
    where that is below a path, it leaves to others what is beside it.
    """
    plain = unquote(client.root + target.split("?")[0].split("#")[0]).replace("\\", "/")
    segments: list[str] = []
    for segment in plain.split("\0")[0].split("/"):
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    path = "/" + "/".join(segments)
    if not f"{path}/".startswith(f"{client.root}/"):
        return None
    return quote(path[len(client.root) :]) or "/"


# Queries


VALUES = [
    "../", "..", "../../../../etc/passwd", "%2e%2e/", "%2e%2e%2f%2e%2e%2fcanary", "..%2Fcanary",
    "..%5ccanary", "%00", "1%00", "$", "$uri", "${jndi:x}", "$(id)", "`id`", "%0a", "%0d%0a",
    "%0d%0aX-Injected:%20yes", "1%0d%0aX-Injected:%20yes", "'", "%22", "'%20OR%201=1--",
    "%3Cscript%3E",
    "{{7*7}}", "%ff%fe", "%c0%ae%c0%ae%2f", "%", "%zz", "*", "~", "|", "a;b", "a%26b=c", "a%3db",
    "%F0%9F%8E%89", "-", "_", ".", "/", "//", "\\", "x" * LONG_QUERY_CHARS, "..%2f" * 800,
]  # fmt: skip


@area("hostile queries")
@pytest.mark.level("queries")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value[:50])[1:-1])
def test_hostile_values(check: Check, client: Client, catalogue: Catalogue, value: str) -> None:
    raw = catalogue.fill("{repo}/raw") or "/api/v1/repos/{nobody}/nothing/raw"
    targets = [f"/api/v1/repos?{name}={value}" for name in ("page", "sort", "tag", "q")]
    targets += [f"/api/v1/repos?sort=new&page=1&tag={value}", f"/api/v1/repos?sort={value}&page=1"]
    targets += [f"{raw}?version={value}", f"/api/v1/repos?{value}", f"/api/v1/tags?{value}"]
    targets += [f"/?{value}", f"/api/v1/users/{quote(value, safe='%')}"[:6000]]
    for target in targets:
        try:
            answer = client.raw(target.encode("latin-1"))
        except NoAnswer:
            check.held += 1
            continue
        check_harmless(check, client, answer)
        check.that(
            answer, answer.status in (200, 301, 308, 400, 404, 405, 414, 431),
            "an answer, or an error of the client",
        )  # fmt: skip


@area("hostile queries")
@pytest.mark.level("queries")
@pytest.mark.parametrize("size", [8_000, 60_000, 1_000_000], ids=lambda size: f"{size} bytes")
def test_very_long_queries(check: Check, client: Client, size: int) -> None:
    for start in ("/api/v1/repos?x=", "/api/v1/repos?tag=", "/api/v1/tags?", "/?"):
        try:
            answer = client.raw((start + "y" * size).encode())
        except NoAnswer:
            check.held += 1
            continue
        check_harmless(check, client, answer)
        check.that(
            answer, answer.status in (200, 400, 414, 431), "an answer, or that it is too long"
        )
    check.status(client.ask("GET", "/api/v1/tags"), 200)


# Patterns that no answer may contain


OUTSIDE = {
    "the canary beside the site": re.compile(re.escape(CANARY).encode()),
    "a file of passwords": re.compile(rb"root:[^:\n]*:0:0:"),
    "a git repository": re.compile(rb"repositoryformatversion|^ref: refs/heads/"),
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "a database": re.compile(rb"^SQLite format 3\0"),
    "a Windows configuration": re.compile(rb"^\[fonts\]", re.MULTILINE),
    "a process's environment": re.compile(rb"(^|\0)(PATH|HOME|PWD)=/[^\0]*\0"),
    "a failure's trace": re.compile(rb"Traceback \(most recent call last\)"),
}


def check_harmless(check: Check, client: Client, answer: Answer) -> None:
    """Check that an answer to a hostile request leaks nothing, injects nothing and leads nowhere
    else.
    """
    for what, pattern in OUTSIDE.items():
        check.that(answer, not pattern.search(answer.body), f"nothing from outside, as {what}")
    check.that(answer, answer.status < 500, "no failure of the server")
    check.that(answer, "X-Injected" not in answer.headers, "no header out of the path")
    location = answer.headers.get("Location")
    if 300 <= answer.status < 400 and location is not None:
        target = urljoin(answer.url, location.replace("\\", "/"))
        own = {urlsplit(url).netloc for url in (client.address, client.base_url)}
        check.that(
            answer, urlsplit(target).netloc in own, "no redirect to another site",
            f"{answer.status}, Location: {location}",
        )  # fmt: skip
