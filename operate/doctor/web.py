"""Checks the hub at its base URL: the proxy or CDN in front of it must keep what the hub sends."""

import time
from collections.abc import Callable, Iterable, Iterator
from email.utils import parsedate_to_datetime

import requests

from builder.model.caching import CACHE_CONTROL
from builder.model.routes import API, BY_NAME, Route
from builder.model.service_urls import ACCOUNT_URL, READY_URL
from operate.doctor.findings import Finding, ok, problem, warning
from operate.doctor.remote_hub import RemoteHub, value_in
from publisher.outside.fetch import DOCUMENT_BYTES_MAX, cause_of
from publisher.outside.private_way import is_private_way

CLOCK_SECONDS_MAX = 30

_AS_CONFIGURED = "Compare your proxy or CDN with docs/operate/hosting.md#behind-a-cdn."
_WRITE_AGAIN = "Write its configuration again with `hubctl hosts`, or name the file for it."
_PATHS = "Clients know these paths. For links without extension, choose a host that tries .html."
_DOWN = "Start `hubctl serve`, and look at its log."
_NO_PROMPT = {"owner": "nobody-has-this-name", "name": "nothing"}
_MISSING = BY_NAME["repo"].url_for(**_NO_PROMPT)

RemoteCheck = Callable[[RemoteHub], Iterable[Finding]]


def strangers(remote: RemoteHub) -> Iterator[Finding]:
    """A private hub refuses requests without a token: for pages, files and queries."""
    if not remote.is_private:
        yield ok("everyone may read this hub")
        return
    urls = ["/", BY_NAME["hub"].url, BY_NAME["repos"].url, f"{BY_NAME['repos'].url}?q=a"]
    if sample := remote.sample:
        prompt = {"owner": sample.owner, "name": sample.name}
        urls += [BY_NAME[name].url_for(**prompt) for name in ("raw", "repo_page")]
        urls += [f"/{BY_NAME[name].file_for(**prompt)}" for name in ("raw", "repo_page")]
    answers = ((url, remote.ask("GET", url).status_code) for url in urls)
    if open_to := [url for url, status in answers if status < 300]:
        yield problem(
            f"This hub is private, and strangers can read {', '.join(open_to)}.",
            "Stop the web server. Have it pass all requests on to `hubctl serve` "
            "(docs/operate/private.md), then run this command again.",
        )


def address(remote: RemoteHub) -> Iterator[Finding]:
    """The hub answers, and with its own address. If not, nothing else can be checked."""
    path = BY_NAME["hub"].url
    url = remote.base_url + path
    try:
        answer = remote.get(path)
        if answer.status_code == 401 and remote.become_member():
            answer = remote.get(path)
    except requests.RequestException as error:
        yield problem(
            f"No answer from {url}: {cause_of(error)}.",
            "Start the web server, and check the name, the port and the certificate. Or pass the "
            "address that readers use with --base-url; --offline leaves out these checks.",
        )
        return
    found = value_in(answer, "data", "base_url")
    if answer.status_code == 401:
        yield problem(
            f"{url} is for members only{', and refuses this token' if remote.is_member else ''}.",
            "Set HUB_TOKEN to a token of this hub: hubctl token create OWNER --name doctor",
        )
    elif answer.status_code != 200:
        to = answer.headers.get("Location")
        yield problem(
            f"{url} answers HTTP {answer.status_code}{f', a redirect to {to}' if to else ''}.",
            "Pass the address of the hub that readers use with --base-url.",
        )
    elif found is None:
        yield problem(f"{url} is not the hub.json of a hub.", "Pass the hub's --base-url.")
    elif found != remote.base_url:
        yield problem(
            f"The hub at {remote.base_url} says that its address is {found}, so its links lead "
            "there.",
            "Give the same --base-url (HUB_BASE_URL) to all commands, and build again.",
        )
    else:
        yield from _clock(remote, answer)


def _clock(remote: RemoteHub, answer: requests.Response) -> Iterator[Finding]:
    """The server's clock and this machine's agree. An answer from a cache has an old date."""
    try:
        date = parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (KeyError, ValueError):
        return
    apart = date - time.time()
    if abs(apart) > CLOCK_SECONDS_MAX and "Age" not in answer.headers:
        yield problem(
            f"The clock of {remote.base_url} is {abs(apart):.0f} seconds "
            f"{'ahead of' if apart > 0 else 'behind'} this machine's.",
            "Set both with NTP: CI jobs are refused if their tokens have ended or begin later.",
        )


def service(remote: RemoteHub) -> Iterator[Finding]:
    """`hubctl serve` answers behind the base URL, and it and the followers of its builds
    are well.
    """
    if not remote.has_service:
        yield ok("the site is served as files alone, without a service")
        return
    answer = remote.get(READY_URL)
    reasons, parts = value_in(answer, "reasons"), value_in(answer, "parts")
    if not isinstance(reasons, list) or not isinstance(parts, dict):
        yield problem(
            f"{READY_URL} answers HTTP {answer.status_code}, not as `hubctl serve` does.",
            f"{_DOWN} Have the proxy pass {READY_URL} on to it.",
        )
        return
    for one in reasons:
        yield problem(f"The service is not ready: {one['message']}")
    for name, part in parts.items():
        if part.get("failures"):
            yield problem(
                f"{name} has failed since {part['failing_since']}: {part['last_error']}",
                "Look at the log of `hubctl serve`.",
            )


def answers(remote: RemoteHub) -> Iterator[Finding]:
    """Readers get the site's files, with the hub's headers."""
    wanted: list[tuple[str, dict[str, str]]] = [("hub", {})]
    if sample := remote.sample:
        prompt = {"owner": sample.owner, "name": sample.name}
        wanted += [("repo", prompt), ("repo_page", prompt)]
        if sample.versions:
            wanted.append(("version_raw", prompt | {"version": sample.versions[0]}))
        if sample.file:
            wanted.append((sample.file.route.name, sample.file.params))
    for name, params in wanted:
        yield from _file(remote, BY_NAME[name], params)
    answer = remote.get(_MISSING)
    if answer.status_code != 404 or value_in(answer, "error", "code") is None:
        is_problem = remote.has_service or answer.status_code != 404
        yield (problem if is_problem else warning)(
            f"{_MISSING}, which does not exist, answers HTTP {answer.status_code} as "
            f"{_media_of(answer)}, and not 404 as JSON.",
            f"Let the host's own 404 through. {_AS_CONFIGURED}",
        )


def _file(remote: RemoteHub, route: Route, params: dict[str, str]) -> Iterator[Finding]:
    """Findings about the answer to one URL."""
    url = route.url_for(**params)
    try:
        expected = remote.file(route.name, **params)
    except OSError:
        return  # no site here to compare with, or it has just changed
    if len(expected) > DOCUMENT_BYTES_MAX:
        return  # longer than the limit of an answer
    answer = remote.get(url)
    if answer.status_code != 200:
        what = f"{url} answers HTTP {answer.status_code}"
        if not remote.has_service and remote.get(f"/{route.file_for(**params)}").ok:
            yield warning(f"{what}: this host has it at the path of its file alone.", _PATHS)
        else:
            yield problem(f"{what}.", _WRITE_AGAIN)
        return
    if answer.content != expected and answer.content != remote.file(route.name, **params):
        yield _other_bytes(remote, url, answer, route)
    if _spelled(_media_of(answer)) != _spelled(route.media):
        yield problem(
            f"{url} has the type {_media_of(answer)} and not {route.media}.", _WRITE_AGAIN
        )
    yield from _headers(remote, url, answer, route)


def _other_bytes(remote: RemoteHub, url: str, answer: requests.Response, route: Route) -> Finding:
    if route.cache == "immutable":
        return problem(
            f"{url} has other bytes than {remote.out}: something on the way changes texts.",
            "Turn off what rewrites or minifies answers (Cache-Control: no-transform).",
        )
    age = answer.headers.get("Age")
    return warning(
        f"{url} is not as in {remote.out}"
        f"{f', from a cache that has had it for {age} seconds' if age else ''}.",
        "If it stays so for minutes: run `hubctl deploy`, purge the cache, or serve the folder "
        "that `hubctl serve` writes.",
    )


def _headers(
    remote: RemoteHub, url: str, answer: requests.Response, route: Route
) -> Iterator[Finding]:
    """Caches keep what they should, and other sites may read what they should, and no more."""
    found, rule = answer.headers.get("Cache-Control", "none"), CACHE_CONTROL[route.cache]
    if remote.is_private:
        if not {"private", "no-store"} & {part.strip() for part in found.split(",")}:
            yield problem(
                f"{url} is for members, but caches on the way may keep it: {found!r}.",
                _AS_CONFIGURED,
            )
    elif found != rule:
        yield warning(f"{url} has the cache rule {found!r} and not {rule!r}.", _AS_CONFIGURED)
    elif route.is_api and answer.headers.get("Access-Control-Allow-Origin") != "*":
        yield warning(
            f"{url} has no CORS header, so web pages elsewhere cannot read it.", _WRITE_AGAIN
        )
    etag = answer.headers.get("ETag", "")
    again = remote.get(url, If_None_Match=etag)
    # The file may have changed in between.
    if again.status_code != 304 and again.headers.get("ETag", "") == etag:
        yield warning(
            f"{url} has no ETag, or answers {again.status_code} instead of 304 to a client that "
            "has it, so clients fetch it whole each time.",
            _AS_CONFIGURED,
        )


def queries(remote: RemoteHub) -> Iterator[Finding]:
    """The host and caches take a query as part of the URL."""
    sample = remote.sample
    if not remote.has_service or not sample or len(sample.versions) < 2:
        yield ok("this host answers no queries, or no prompt has two versions to try them with")
        return
    prompt = {"owner": sample.owner, "name": sample.name}
    url = BY_NAME["raw"].url_for(**prompt)
    for version in (sample.versions[-1], sample.versions[0]):
        answer = remote.get(f"{url}?version={version}")
        try:
            expected = remote.file("version_raw", **prompt, version=version)
        except OSError:
            return  # withdrawn meanwhile
        if answer.status_code != 200 or answer.content != expected:
            yield problem(
                f"{url}?version={version} answers HTTP {answer.status_code}, not with the text of "
                f"{version}.",
                "Make the query part of the CDN's cache key, and pass it on.",
            )
            return
    answer = remote.get(f"{BY_NAME['repos'].url}?q={sample.name}")
    if value_in(answer, "meta", "q") != sample.name:
        yield problem(
            f"The search {answer.url} answers HTTP {answer.status_code}, but not for this query.",
            f"{_DOWN} Have the proxy pass searches on to it, with their query.",
        )


def writes(remote: RemoteHub) -> Iterator[Finding]:
    """Publications and account pages reach the service, and no cache keeps them."""
    if not remote.has_service:
        yield ok("the site is served as files alone, without a service")
        return
    url = BY_NAME["versions"].url_for(**_NO_PROMPT)
    answer = remote.ask("POST", url)
    if answer.status_code != 401 or value_in(answer, "error", "code") != "missing_token":
        yield problem(
            f"POST {url} answers HTTP {answer.status_code}, where the service asks for a token.",
            f"{_DOWN} Have the proxy pass POST, PUT and DELETE below {API} on to it.",
        )
    if not is_private_way(remote.base_url):
        return  # account pages are closed without TLS, and the service says so when it starts
    answer = remote.get(ACCOUNT_URL, Accept_Encoding="gzip")
    if answer.status_code in (403, 404) or answer.status_code >= 500:
        yield problem(
            f"{ACCOUNT_URL} answers HTTP {answer.status_code}.",
            f"{_DOWN} Have the proxy pass {ACCOUNT_URL} and all below it on to it, with the Host "
            "header as it is (docs/operate/accounts.md).",
        )
    elif "no-store" not in answer.headers.get("Cache-Control", "") or "Age" in answer.headers:
        yield problem(
            f"A cache keeps {ACCOUNT_URL}, so people could see each other's pages.",
            f"Pass {ACCOUNT_URL} and all below it through the CDN without cache.",
        )
    elif "Content-Encoding" in answer.headers:
        yield problem(
            f"{ACCOUNT_URL} is compressed, which lets attackers guess what is secret in it.",
            f"Turn compression off for {ACCOUNT_URL} and all below it.",
        )


def _media_of(answer: requests.Response) -> str:
    return answer.headers.get("Content-Type", "none")


def _spelled(media: str) -> str:
    return media.replace(" ", "").lower()
