"""The hub at its base URL: whether what stands in front of it honours what the hub sends."""

import time
from collections.abc import Callable, Iterable, Iterator
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import requests

from builder.model.plural import counted
from builder.model.routes import ACCOUNT_URL, API, BY_NAME, CACHE_CONTROL, HEALTH_URL, Route
from operate.doctor.asked import Asked, is_same_media, media_of, reason, value_in
from operate.doctor.findings import Finding, ok, problem, warning
from operate.doctor.machine import how_far_apart
from publisher.outside.fetch import DOCUMENT_BYTES_MAX
from publisher.outside.private_way import is_loopback, is_private_way

CLOCK_SECONDS_MAX = 30

_AS_CONFIGURED = "Compare your proxy or CDN with docs/operate/hosting.md#behind-a-cdn."
_WRITE_AGAIN = "Write its configuration again with `hubctl hosts`, or name the file for it."
_PATHS = "Clients know these paths. For links without extension, choose a host that tries .html."
_DOWN = "Start `hubctl serve`, and look at its log."
# A prompt that nobody has.
_NOBODYS = {"owner": "nobody-has-this-name", "name": "nothing"}
_NOBODY = BY_NAME["repo"].url_for(**_NOBODYS)

WebCheck = Callable[[Asked], Iterable[Finding]]


def reach(asked: Asked) -> Iterator[Finding]:
    """The hub answers, with its own address. Without that, nothing else can be asked."""
    path = BY_NAME["hub"].url
    url = asked.base_url + path
    try:
        answer = asked.get(path)
        if answer.status_code == 401 and asked.become_member():
            answer = asked.get(path)
    except requests.RequestException as error:
        yield problem(
            f"No answer from {url}: {reason(error)}.",
            "Start the web server, and check the name, the port and the certificate. Or pass the "
            "address that readers use with --base-url; --offline leaves out these checks.",
        )
        return
    if answer.status_code == 401:
        yield problem(
            f"{url} is for members only{', and refuses this token' if asked.is_private else ''}.",
            "Set HUB_TOKEN to a token of this hub: hubctl token create OWNER --name doctor",
        )
        return
    if answer.status_code != 200:
        told = answer.headers.get("Location")
        yield problem(
            f"{url} answers HTTP {answer.status_code}{f', a redirect to {told}' if told else ''}.",
            "Pass the address of the hub that readers use with --base-url.",
        )
        return
    found = value_in(answer, "data", "base_url")
    if found is None:
        yield problem(f"{url} is not the hub.json of a hub.", "Pass the hub's --base-url.")
    elif found != asked.base_url:
        yield problem(
            f"The hub at {asked.base_url} says that its address is {found}, so its links lead "
            "there.",
            "Give the same --base-url (HUB_BASE_URL) to all commands, and build again.",
        )
    else:
        yield ok(f"{asked.base_url} answers")


def clock(asked: Asked) -> Iterator[Finding]:
    """The server's clock and this machine's agree."""
    before = time.time()
    # Of an error, so that no cache answers with an old date.
    answer = asked.get(f"{API}/doctor-{time.time_ns()}")
    try:
        date = parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (KeyError, ValueError):
        yield warning("Answers have no Date, by which clocks could be compared.")
        return
    apart = how_far_apart(date, before, time.time())
    if abs(apart) > CLOCK_SECONDS_MAX:
        yield problem(
            f"The clock of {asked.base_url} is {abs(apart):.0f} seconds "
            f"{'ahead of' if apart > 0 else 'behind'} this machine's.",
            "Set both with NTP: CI jobs are refused whose tokens are not good yet or any more.",
        )
    else:
        yield ok("agrees with this machine's")


def service(asked: Asked) -> Iterator[Finding]:
    """`hubctl serve` answers behind the base URL, and its builds are well."""
    if not _has_service(asked):
        yield ok("the site says that it has no service: files alone")
        return
    answer = asked.get(HEALTH_URL)
    status = value_in(answer, "status")
    if status is None:
        yield problem(
            f"{HEALTH_URL} answers HTTP {answer.status_code}, not as `hubctl serve` does.",
            f"{_DOWN} Have the proxy pass {HEALTH_URL} on to it.",
        )
    elif status == "failing":
        yield problem(f"The last build failed: {value_in(answer, 'last_error', 'message') or ''}")
    elif status != "ok":
        yield warning(
            f"The service is {status}: its lists are {value_in(answer, 'lag_seconds') or 0:.0f} "
            "seconds behind.",
            "Look again in a minute. If it does not end, look at the log of `hubctl serve`.",
        )
    else:
        yield ok(
            f"well, with {counted(value_in(answer, 'serial') or 0, 'publication')} in the lists"
        )


def files(asked: Asked) -> Iterator[Finding]:
    """What readers get is what the site has, with the headers that the hub means."""
    wanted: list[tuple[str, dict[str, str]]] = [("hub", {})]
    if sample := asked.sample:
        prompt = {"owner": sample.owner, "name": sample.name}
        wanted += [("repo", prompt), ("repo_page", prompt)]
        if sample.versions:
            wanted.append(("version_raw", prompt | {"version": sample.versions[0]}))
    found = [finding for name, params in wanted for finding in _file(asked, name, params)]
    yield from found
    if not found:
        yield ok(f"{counted(len(wanted), 'answer')}: bytes, types, caching, ETag and 304 are right")


def _file(asked: Asked, name: str, params: dict[str, str]) -> Iterator[Finding]:
    """What is wrong with the answer to one URL."""
    route = BY_NAME[name]
    url = route.url_for(**params)
    try:
        expected = asked.file(name, **params)
    except OSError:
        return  # no site here to compare with, or it has just changed
    if len(expected) > DOCUMENT_BYTES_MAX:
        return  # more than is read of any answer
    answer = asked.get(url)
    if answer.status_code != 200:
        told = f"{url} answers HTTP {answer.status_code}"
        if not _has_service(asked) and asked.get(f"/{route.file_for(**params)}").ok:
            yield warning(f"{told}: this host has it at the path of its file alone.", _PATHS)
        else:
            yield problem(f"{told}.", _WRITE_AGAIN)
        return
    if answer.content != expected and answer.content != asked.file(name, **params):
        if route.cache == "immutable":
            yield problem(
                f"{url} has other bytes than {asked.out}: something on the way changes texts.",
                "Turn off what rewrites or minifies answers (Cache-Control: no-transform).",
            )
        else:
            age = answer.headers.get("Age")
            yield warning(
                f"{url} is not as in {asked.out}"
                f"{f', from a cache that has had it for {age} seconds' if age else ''}.",
                "If it stays so for minutes: run `hubctl deploy`, purge the cache, or serve the "
                "folder that `hubctl serve` writes.",
            )
    if not is_same_media(answer, route):
        yield problem(
            f"{url} has the type {media_of(answer) or 'none'} and not {route.media}.", _WRITE_AGAIN
        )
    yield from _sharing(asked, url, answer, route)
    yield from _condition(asked, url, answer)


def _sharing(asked: Asked, url: str, answer: requests.Response, route: Route) -> Iterator[Finding]:
    """Whether caches and other sites get what they may have of an answer, and no more."""
    found, rule = answer.headers.get("Cache-Control", "none"), CACHE_CONTROL[route.cache]
    if asked.is_private:
        if not {"private", "no-store"} & {part.strip() for part in found.split(",")}:
            yield problem(
                f"{url} is for members, but caches on the way may keep it: {found!r}.",
                _AS_CONFIGURED,
            )
        return
    if found != rule:
        yield warning(f"{url} has the cache rule {found!r} and not {rule!r}.", _AS_CONFIGURED)
    if route.is_api and answer.headers.get("Access-Control-Allow-Origin") != "*":
        yield warning(
            f"{url} has no CORS header, so web pages elsewhere cannot read it.", _WRITE_AGAIN
        )


def _condition(asked: Asked, url: str, answer: requests.Response) -> Iterator[Finding]:
    """Whether one who has an answer is told that it is still right."""
    etag = answer.headers.get("ETag")
    if not etag:
        yield warning(f"{url} has no ETag, so clients fetch it whole each time.", _AS_CONFIGURED)
        return
    again = asked.get(url, If_None_Match=etag)
    # It may have changed between.
    if again.status_code != 304 and again.headers.get("ETag") == etag:
        yield warning(
            f"{url} answers {again.status_code} instead of 304 to a client that has it.",
            _AS_CONFIGURED,
        )


def queries(asked: Asked) -> Iterator[Finding]:
    """A query is part of what is asked: for whoever answers it, and for caches."""
    sample = asked.sample
    if not asked.hub or not asked.hub.queries:
        yield ok("the site says that its host answers no queries")
        return
    if not sample or len(sample.versions) < 2:
        yield ok("no prompt has two versions to try it with")
        return
    prompt = {"owner": sample.owner, "name": sample.name}
    url = BY_NAME["raw"].url_for(**prompt)
    for version in (sample.versions[-1], sample.versions[0]):
        answer = asked.get(f"{url}?version={version}")
        try:
            expected = asked.file("version_raw", **prompt, version=version)
        except OSError:
            return  # withdrawn meanwhile
        if answer.status_code != 200 or answer.content != expected:
            yield problem(
                f"{url}?version={version} answers HTTP {answer.status_code}, not with the text of "
                f"{version}.",
                "Make the query part of the CDN's cache key, and pass it on.",
            )
            return
    answer = asked.get(f"{BY_NAME['repos'].url}?q={sample.name}")
    if value_in(answer, "meta", "q") != sample.name:
        yield problem(
            f"The search {answer.url} answers HTTP {answer.status_code}, and not what was asked.",
            f"{_DOWN} Have the proxy pass searches on to it, with their query.",
        )
    else:
        yield ok("versions and searches are found by query")


def errors(asked: Asked) -> Iterator[Finding]:
    """Programs get errors as JSON."""
    answer = asked.get(_NOBODY)
    if answer.status_code != 404:
        yield problem(
            f"{_NOBODY}, which is not there, answers HTTP {answer.status_code}.", _WRITE_AGAIN
        )
    elif value_in(answer, "error", "code") is None:
        finding = problem if _has_service(asked) else warning
        yield finding(
            f"{_NOBODY} answers {media_of(answer) or 'nothing'}, where the API has JSON.",
            f"Let the host's own 404 through. {_AS_CONFIGURED}",
        )
    else:
        yield ok("404 comes as JSON")


def compression(asked: Asked) -> Iterator[Finding]:
    """Large answers are compressed, and caches tell both forms apart."""
    url = BY_NAME["api_page"].url
    answer = asked.get(url, Accept_Encoding="gzip")
    if answer.status_code != 200:
        yield problem(f"{url} answers HTTP {answer.status_code}.", _WRITE_AGAIN)
    elif "Content-Encoding" not in answer.headers:
        yield warning(f"{url} is not compressed for clients that ask for it.", _AS_CONFIGURED)
    elif "accept-encoding" not in answer.headers.get("Vary", "").lower():
        yield warning(
            f"{url} is compressed without `Vary: Accept-Encoding`, so a cache can send it to "
            "clients that cannot read it.",
            _AS_CONFIGURED,
        )
    else:
        yield ok("large answers are compressed")


def account(asked: Asked) -> Iterator[Finding]:
    """The account pages reach the service, and no cache keeps them."""
    if not is_private_way(asked.base_url):
        return  # closed without TLS, as `https` tells
    if not _has_service(asked):
        return
    answer = asked.get(ACCOUNT_URL, Accept_Encoding="gzip")
    headers = answer.headers
    if answer.status_code == 403:
        yield problem(
            f"{ACCOUNT_URL} is refused with HTTP 403.",
            "Have the proxy pass on the Host header as it is (docs/operate/accounts.md).",
        )
    elif answer.status_code == 404 or answer.status_code >= 500:
        yield problem(
            f"{ACCOUNT_URL} answers HTTP {answer.status_code}.",
            f"{_DOWN} Have the proxy pass {ACCOUNT_URL} and all below it on to it.",
        )
    elif "no-store" not in headers.get("Cache-Control", "") or "Age" in headers:
        yield problem(
            f"A cache keeps {ACCOUNT_URL}, so people could see each other's pages.",
            f"Pass {ACCOUNT_URL} and all below it through the CDN without cache.",
        )
    elif "Content-Encoding" in headers:
        yield problem(
            f"{ACCOUNT_URL} is compressed, which lets attackers guess what is secret in it.",
            f"Turn compression off for {ACCOUNT_URL} and all below it.",
        )
    else:
        yield ok(f"{ACCOUNT_URL} is passed on, and not cached")


def writes(asked: Asked) -> Iterator[Finding]:
    """Publications reach the service: one without a token is refused by it."""
    if not _has_service(asked):
        return
    url = BY_NAME["versions"].url_for(**_NOBODYS)
    answer = asked.ask("POST", url)
    if answer.status_code == 401 and value_in(answer, "error", "code") == "missing_token":
        yield ok("publications reach the service")
    else:
        yield problem(
            f"POST {url} answers HTTP {answer.status_code}, where the service asks for a token.",
            f"{_DOWN} Have the proxy pass POST, PUT and DELETE below {API} on to it.",
        )


def transport(asked: Asked) -> Iterator[Finding]:
    """Readers come over https, and stay there."""
    parts = urlsplit(asked.base_url)
    if parts.scheme == "http":
        if is_private_way(asked.base_url):
            yield ok("http, on this machine alone")
        else:
            yield warning(
                f"{asked.base_url} has no TLS, so nobody can sign in, and tokens travel in the "
                "clear.",
                "Get a certificate (docs/operate/hosting.md#tls), and use https in the base URL.",
            )
        return
    if "Strict-Transport-Security" not in asked.get("/").headers:
        yield warning(
            "Answers have no Strict-Transport-Security.",
            "Have the web server send `Strict-Transport-Security: max-age=31536000` once all works "
            "over https.",
        )
    if parts.port in (None, 443) and not is_loopback(parts.hostname or ""):
        plain = f"http://{parts.hostname}"
        told = ""
        try:
            answer = asked.get(f"{plain}{parts.path or '/'}")
            if not answer.headers.get("Location", "").startswith("https://"):
                told = f"answers HTTP {answer.status_code} instead of a redirect to https"
        except requests.RequestException:
            told = "does not answer, so who types the name without https finds nothing"
        if told:
            yield warning(f"{plain} {told}.", "Redirect http to https.")
            return
    yield ok("https")


def _has_service(asked: Asked) -> bool:
    return bool(asked.hub and asked.hub.queries)
