"""The account settings, as far as a stranger gets, and the exchange of tokens for jobs of a CI."""

import base64
import json
import re
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.routes import HTML, JSON
from builder.model.service_urls import ACCOUNT_URL, TRUSTED_URL, is_account_url
from tests.conformance.catalogue import NOBODY
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client, NoAnswer, header_list
from tests.conformance.marks import area
from tests.conformance.test_hostile import check_harmless, meant_path

pytestmark = [pytest.mark.level("full"), pytest.mark.needs("accounts")]

LOGIN = f"{ACCOUNT_URL}/login"
ELSEWHERE = "https://elsewhere.example"
FORM = "application/x-www-form-urlencoded"

# Pages for signed-in users.
INSIDE = ["", "/tokens", "/publishers", "/profile", "/security"]
FORMS = [
    "/login", "/logout", "/invitation", "/tokens", "/publishers", "/publishers/only", "/profile",
    "/password", "/sign-out-everywhere",
]  # fmt: skip
# Forms that may be missing, as on a hub without sign-up.
FORMS_MAYBE = ["/signup", "/tokens/1/revoke", "/publishers/1/remove", "/openid/remove"]


class Visit(NamedTuple):
    """The result of a visit to the sign-in page: cookies to send back, and the form's token."""

    cookies: str
    token: str


def visit(check: Check, client: Client) -> Visit:
    """A visitor's first request."""
    answer = client.ask("GET", LOGIN)
    found = re.search(rb'name="csrf_token"[^>]* value="([^"]+)"', answer.body)
    check.that(answer, found, "a form with a csrf_token")
    cookies = [f"{name}={value.value}" for name, value in cookies_of(answer).items()]
    check.that(answer, cookies, "a cookie that the form's token belongs to")
    return Visit("; ".join(cookies), found[1].decode() if found else "")


def cookies_of(answer: Answer) -> SimpleCookie:
    """The cookies that an answer sets; those that cannot be read are left out."""
    found = SimpleCookie()
    for value in answer.headers.get_all("Set-Cookie", []):
        try:
            found.load(value)
        except CookieError:
            continue
    return found


def check_guarded(check: Check, client: Client, answer: Answer) -> None:
    """Check that no cache keeps an answer, that no other site reads it, and that its cookies are
    safe.
    """
    came = header_list(answer, "Cache-Control")
    check.that(
        answer, CACHE_CONTROL["none"] in came and "public" not in came, "Cache-Control: no-store",
        f"{answer.status}, Cache-Control: {', '.join(sorted(came))}",
    )  # fmt: skip
    check.that(answer, "Age" not in answer.headers, "an answer that no cache has kept",
               f"Age: {answer.headers.get('Age')}")  # fmt: skip
    for name in answer.headers:
        if name.lower().startswith("access-control-"):
            value = answer.headers[name]
            check.that(answer, False, "no Access-Control-Allow-Origin", f"{name}: {value}")
    for line in answer.headers.get_all("Set-Cookie", []):
        attributes = {part.strip().lower() for part in line.split(";")[1:]}
        wanted = {"httponly", "samesite=lax"}
        if client.base_url.startswith("https:"):
            wanted.add("secure")
        shown = ";".join(["…", *line.split(";")[1:]])
        check.that(answer, wanted <= attributes, f"Set-Cookie with {', '.join(sorted(wanted))}",
                   f"{answer.status}, Set-Cookie: {shown}")  # fmt: skip


def check_page(check: Check, client: Client, answer: Answer) -> None:
    """Check that an answer is a page that browsers protect too."""
    check.header(answer, "Content-Type", HTML)
    check.header(answer, "X-Content-Type-Options", "nosniff")
    check.page_headers(answer)
    check_guarded(check, client, answer)


# Pages


@area("account settings")
@pytest.mark.parametrize("origin", ["", ELSEWHERE], ids=["", "from elsewhere"])
def test_the_page_to_sign_in(check: Check, client: Client, origin: str) -> None:
    headers = {"Origin": origin} if origin else {}
    answer = client.ask("GET", LOGIN, headers)
    if check.status(answer, 200):
        check_page(check, client, answer)
    head = client.ask("HEAD", LOGIN, headers)
    check.status(head, 200)
    check.empty_body(head)
    check_guarded(check, client, head)


@area("account settings")
@pytest.mark.needs("gzip")
def test_how_well_a_page_packs_tells_nothing(check: Check, client: Client) -> None:
    # The link has a secret, and perhaps other parameters.
    for encoding in ("gzip", "gzip, deflate, br, zstd"):
        answer = client.ask("GET", LOGIN, {"Accept-Encoding": encoding})
        came = answer.headers.get("Content-Encoding")
        check.that(answer, came in (None, "identity"), "no compression",
                   f"Content-Encoding: {came}")  # fmt: skip


@area("account settings")
def test_no_two_visitors_get_the_same(check: Check, client: Client) -> None:
    seen: set[str] = set()
    for _ in range(3):
        answer = client.ask("GET", LOGIN)
        values = {cookie.value for cookie in cookies_of(answer).values()}
        check.that(answer, not values & seen, "cookies of one's own")
        seen |= values


@area("account settings")
@pytest.mark.parametrize("path", INSIDE, ids=lambda path: f"GET {ACCOUNT_URL}{path}")
def test_who_is_not_signed_in_is_sent_to_sign_in(check: Check, client: Client, path: str) -> None:
    for cookie in ("", f"hub-account={'A' * 43}", f"__Secure-hub-account={'A' * 43}.x"):
        answer = client.ask("GET", ACCOUNT_URL + path, {"Cookie": cookie} if cookie else {})
        if check.status(answer, 303):
            location = answer.headers.get("Location", "")
            target = client.path_of(location, ACCOUNT_URL + path)
            check.that(
                answer, target and is_account_url(target.partition("?")[0]),
                "a Location among the account settings", f"303, Location: {location}",
            )  # fmt: skip
        check_guarded(check, client, answer)


@area("account settings")
def test_a_page_that_is_not_there(check: Check, client: Client) -> None:
    for path in ("/nothing", "/nothing/at/all", "/login/", "/tokens.json", "/index.html"):
        answer = client.ask("GET", ACCOUNT_URL + path, {"Origin": ELSEWHERE})
        if check.status(answer, 404):
            check_page(check, client, answer)


# Forms


@area("account forms")
@pytest.mark.parametrize("path", FORMS + FORMS_MAYBE, ids=lambda path: f"POST {path}")
def test_a_form_without_its_token_is_refused(check: Check, client: Client, path: str) -> None:
    wanted = (400, 404) if path in FORMS_MAYBE else (400,)
    cookies = visit(check, client).cookies
    field = {"handle": NOBODY, "password": "conformance", "name": "conformance"}
    for headers, sent in (
        ({"Content-Type": FORM}, field),
        ({"Content-Type": FORM, "Cookie": cookies}, field),
        ({"Content-Type": FORM, "Cookie": cookies}, {**field, "csrf_token": "x"}),
        ({"Content-Type": FORM, "Cookie": cookies}, {**field, "csrf_token": ""}),
        ({"Content-Type": "text/plain", "Cookie": cookies}, {}),
    ):
        body = urlencode(sent).encode()
        answer = client.ask("POST", ACCOUNT_URL + path, {**headers, "Origin": ELSEWHERE}, body)
        if check.status(answer, *wanted):
            check_page(check, client, answer)


@area("account forms")
def test_a_forms_token_is_for_its_own_visitor(check: Check, client: Client) -> None:
    mine, others = visit(check, client), visit(check, client)
    form = {"csrf_token": mine.token, "handle": NOBODY, "password": "conformance é+&"}
    for cookies in (others.cookies, "", mine.cookies):
        answer = client.ask(
            "POST", LOGIN, {"Content-Type": FORM, "Cookie": cookies}, urlencode(form).encode()
        )
        if answer.status == 429:
            check.note("too many sign-ins from here: whether forms get there was not tested")
            continue
        # The password is only checked if the token, the cookie and the body arrive unchanged.
        wanted = (401, 422) if cookies == mine.cookies else (400,)
        if check.status(answer, *wanted):
            check_page(check, client, answer)
            check.that(answer, "conformance é+".encode() not in answer.body, "no password")


@area("account forms")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_no_other_site_may_ask(check: Check, client: Client, method: str) -> None:
    headers = {
        "Origin": ELSEWHERE, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }  # fmt: skip
    answer = client.ask(method, LOGIN, headers)
    check.that(answer, answer.status < 500, "no failure of the server")
    if method != "OPTIONS":
        check.status(answer, 405)
    check_guarded(check, client, answer)


# Hostile paths


HOSTILE = [
    "/%2e%2e", "/%2e%2e/%2e%2e/canary.txt", "/..%2f..%2fcanary.txt", "/../../canary.txt", "/..",
    "/..%2faccounts.sqlite3", "/%2e%2e/%2e%2e/state/accounts.sqlite3", "/../../../../etc/passwd",
    "/login/..%2f..%2f..%2f..%2fetc%2fpasswd", "/%252e%252e/canary.txt", "/..%5c..%5ccanary.txt",
    "/..;/canary.txt", "//login", "//", "///etc/passwd", "/login//", "/%2flogin", "/%2e/login",
    "//evil.example/", "/%2f%2fevil.example/", "/%5cevil.example/", "/login%00", "/%00", "/%00/x",
    "/%0d%0aX-Injected:%20yes", "/login%0aX-Injected:yes", "/login?next=//evil.example/",
    "/login?next=%2F%2Fevil.example&x=%0d%0aX-Injected:%20yes", "/tokens?next=https://evil.example",
    "/tokens/%2e%2e/login", "/tokens/..%2flogin", "/%ff%fe", "/%ed%a0%80", "/%", "/%zz", "/\x80",
    "/%F0%9F%8E%89", "/" + "a" * 5000, "/" + "a/" * 4000, "/" + "%00" * 1000, "/" + "../" * 2000,
    "/login?" + "a" * 7000, "/invitation?code=" + "x" * 7000, "/openid/callback?code=x&state=x",
    "/openid/callback", "/openid?next=//evil.example/", "/login.html", "/templates/login.html",
    "/tokens/999999999999999999999999/revoke", "/tokens/-1/revoke",
    "/tokens/{7*7}/revoke", "/login?handle=%3Cscript%3Ealert(1)%3C/script%3E",
]  # fmt: skip


@area("account paths")
@pytest.mark.parametrize("target", HOSTILE, ids=lambda target: ascii(target[:60])[1:-1])
def test_hostile_path(check: Check, client: Client, target: str) -> None:
    target = ACCOUNT_URL + target
    try:
        answer = client.raw(target.encode("latin-1"))
    except NoAnswer:
        check.held += 1  # to hang up on what is no HTTP is an answer, too
        return
    check_harmless(check, client, answer)
    check.that(answer, b"<script>alert" not in answer.body, "nothing of the query as markup")
    if answer.status == 200 and not answer.headers.get_all("Set-Cookie"):
        # A lenient host may resolve it outside the account settings, to a public page.
        meant = meant_path(client, target)
        own = [client.get(path).body for path in ("/", meant) if path is not None]
        is_form = b'name="csrf_token"' in answer.body
        check.that(answer, is_form or answer.body in own, f"a page, or what is at {meant}")


# The exchange of tokens


def unsigned(**claims: object) -> str:
    """A JWT without a signature, with "alg": "none" (RFC 7519, 6)."""
    parts = [{"alg": "none", "typ": "JWT"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*encoded, b""]).decode()


GITHUB = "https://token.actions.githubusercontent.com"
EXCHANGES = {
    "no JSON": (b"{", JSON, 400, "invalid_json"),
    "no UTF-8": (b'{"token": "\xff"}', JSON, 400, "invalid_json"),
    "nothing": (b"", JSON, 400, "invalid_json"),
    "no object": (b"[]", JSON, 400, "invalid_json"),
    "another media type": (b'{"token": "x"}', "text/plain", 415, "unsupported_media_type"),
    "a form": (b"token=x", FORM, 415, "unsupported_media_type"),
    "no token": (b"{}", JSON, 422, "validation_failed"),
    "no text": (b'{"token": 7}', JSON, 422, "validation_failed"),
    "unknown field": (b'{"token": "x", "repos": "a/b"}', JSON, 422, "validation_failed"),
    "no repo": (b'{"token": "x"}', JSON, 422, "validation_failed"),
    "another's word for a repo": (
        b'{"token": "x", "repo": "a/b/c"}', JSON, 422, "validation_failed",
    ),
    "a word": (b'{"token": "x", "repo": "a/*"}', JSON, 401, "invalid_token"),
    "unsigned": (
        json.dumps({"token": unsigned(iss=GITHUB), "repo": f"{NOBODY}/*"}).encode(),
        JSON, 401, "invalid_token",
    ),
    "an issuer of one's own": (
        json.dumps({"token": unsigned(iss=ELSEWHERE, sub="x"), "repo": f"{NOBODY}/x"}).encode(),
        JSON, 401, "invalid_token",
    ),
    "large": (json.dumps({"token": "x" * (1 << 17)}).encode(), JSON, 413, "content_too_large"),
}  # fmt: skip


@area("trusted publishing")
@pytest.mark.parametrize("name", EXCHANGES)
def test_what_is_no_identity_gets_no_token(check: Check, client: Client, name: str) -> None:
    body, media, status, code = EXCHANGES[name]
    headers = {"Content-Type": media, "Origin": ELSEWHERE}
    answer = client.ask("POST", TRUSTED_URL, headers, body)
    if check.error(answer, status, code):
        scheme = answer.headers.get("WWW-Authenticate", "Bearer")
        check.that(answer, scheme.startswith("Bearer"), "WWW-Authenticate: Bearer, or none",
                   f"{status}, WWW-Authenticate: {scheme}")  # fmt: skip
        check.that(answer, b"hub_" not in answer.body, "no token")


@area("trusted publishing")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_other_methods_where_tokens_are_exchanged(
    check: Check, client: Client, method: str
) -> None:
    answer = client.ask(method, TRUSTED_URL)
    if method == "HEAD":
        check.status(answer, 405)
        check.empty_body(answer)
    else:
        check.error(answer, 405, "method_not_allowed")
    allowed = header_list(answer, "Allow")
    check.that(answer, "post" in allowed and not allowed & {"get", "head"}, "Allow with POST alone",
               f"{answer.status}, Allow: {sorted(allowed)}")  # fmt: skip


@area("trusted publishing")
def test_a_browser_may_ask_for_an_exchange(check: Check, client: Client) -> None:
    headers = {
        "Origin": ELSEWHERE, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }  # fmt: skip
    answer = client.ask("OPTIONS", TRUSTED_URL, headers)
    check.status(answer, 200, 204)
    check.header(answer, "Access-Control-Allow-Origin", "*")
    methods = header_list(answer, "Access-Control-Allow-Methods")
    check.that(answer, "post" in methods, "Access-Control-Allow-Methods with POST")
    names = header_list(answer, "Access-Control-Allow-Headers")
    check.that(answer, "content-type" in names, "Access-Control-Allow-Headers with Content-Type")
