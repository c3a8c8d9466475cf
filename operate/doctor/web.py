"""Checks the hub at its base URL, as a reader without a token gets it."""

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests

from builder.model.plural import counted
from builder.model.records import DAY_SECONDS
from builder.model.routes import BY_NAME
from builder.model.service_urls import READY_URL
from builder.stats.agents import DOCTOR
from operate.doctor.findings import Finding, Subject, problem, warning
from publisher.outside.fetch import TIMEOUT_SECONDS, bounded, cause_of

# certbot and Caddy renew a certificate of 90 days when 30 days are left. With fewer than this,
# renewal has failed for two weeks.
CERTIFICATE_DAYS_MIN = 14
_HUB = BY_NAME["hub"].url
_SEARCH = f"{BY_NAME['repos'].url}?q=hub"
_HOSTS = "Write the web server's configuration again: `hubctl hosts`, docs/operate/hosting.md."


def _ask(subject: Subject, path: str) -> requests.Response:
    """The answer at a path below the base URL. Follows no redirect. Raises
    requests.RequestException.
    """
    with bounded(requests.Session()) as session:
        session.headers.update({"User-Agent": DOCTOR, "Accept-Encoding": "identity"})
        return session.get(subject.settings.base_url + path, allow_redirects=False)


def _json_in(answer: requests.Response) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(found := answer.json(), dict):
            return found
    return {}


def _files_of_a_prompt(out: str) -> Iterator[str]:
    """Paths of the first prompt, as pages and as files; none if the site has none."""
    with (
        contextlib.suppress(OSError, ValueError, LookupError),
        open(f"{out}/{BY_NAME['list'].file_for(sort='top', page=1)}", "rb") as file,
    ):
        first = json.load(file)["data"][0]
        for route in (BY_NAME["raw"], BY_NAME["repo_page"]):
            at = {"owner": first["owner"], "name": first["name"]}
            yield from (route.url_for(**at), f"/{route.file_for(**at)}")


def strangers(subject: Subject) -> Iterator[Finding]:
    """Strangers can read the hub only if it is for everyone."""
    if not subject.settings.private:
        return
    found = []
    for url in ("/", _HUB, _SEARCH, *_files_of_a_prompt(subject.settings.out)):
        # Without an answer nobody reads; `address` names the cause.
        with contextlib.suppress(requests.RequestException):
            if _ask(subject, url).status_code < 300:
                found.append(url)
    if found:
        yield problem(
            f"This hub is private, and strangers can read {', '.join(found)}.",
            "Stop the web server. Have it pass all requests on to `hubctl serve` "
            "(docs/operate/private.md), then run this command again.",
        )


def certificate(subject: Subject) -> Iterator[Finding]:
    """The certificate is good, and will be for weeks; or the hub has no TLS."""
    parts = urlsplit(subject.settings.base_url)
    if parts.scheme != "https":
        return
    host, context = parts.hostname or "", ssl.create_default_context()
    try:
        with (
            socket.create_connection((host, parts.port or 443), TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            found = connection.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        yield problem(
            f"Clients refuse the certificate of {host}: {error.verify_message}.",
            "Get one for this name from an issuer that clients know, serve it with its whole chain "
            "(fullchain.pem), and renew it in time.",
        )
    except OSError as error:
        yield problem(f"No TLS at {parts.netloc}: {error}.", "Start the web server with TLS.")
    else:
        end = str(found["notAfter"])
        days = int((ssl.cert_time_to_seconds(end) - time.time()) // DAY_SECONDS)
        if days < CERTIFICATE_DAYS_MIN:
            yield warning(
                f"The certificate of {host} ends in {counted(days, 'day')}, {end}.",
                "Renew it, and reload the web server. Find out why nothing has renewed it.",
            )


def address(subject: Subject) -> Iterator[Finding]:
    """Readers get this site at the base URL, and its service is ready."""
    base, hub = subject.settings.base_url, subject.hub
    start = "Start the service, which is away." if subject.is_away else ""
    try:
        answer = _ask(subject, _HUB)
    except requests.RequestException as error:
        do = "Start the web server, and check the name and the port. --base-url takes another."
        yield problem(f"No answer from {base}{_HUB}: {cause_of(error)}.", start or do)
        return
    status, to = answer.status_code, answer.headers.get("Location")
    found = _json_in(answer).get("data") or {}
    if status != 200 and not (status == 401 and subject.settings.private):
        to = f", a redirect to {to}" if to else ""
        yield problem(f"{base}{_HUB} answers HTTP {status}{to}.", start or _HOSTS)
    elif status == 200 and found.get("base_url") != base:
        yield problem(
            f"{base}{_HUB} says that the address is {found.get('base_url')}, so links lead there.",
            "Give the same --base-url (HUB_BASE_URL) to all commands, and build again.",
        )
    elif status == 200 and hub and found.get("serial") != hub.serial:
        yield warning(
            f"Readers get the site of serial {found.get('serial')}; this one has {hub.serial}.",
            "If it stays so for a minute: run `hubctl deploy`, or purge the cache.",
        )
    if status == 200 and subject.service:
        meta = _json_in(_ask(subject, _SEARCH)).get("meta") or {}
        if meta.get("q") != "hub":
            do = f"Make the query part of the CDN's cache key. {_HOSTS}"
            yield problem(f"The search {_SEARCH} does not reach the service.", do)
    if subject.service:
        answer = _ask(subject, READY_URL)
        ready = {"reasons": None, "parts": {}} | _json_in(answer)
        if ready["reasons"] is None:
            yield problem(f"{READY_URL} (HTTP {answer.status_code}) misses the service.", _HOSTS)
        for one in ready["reasons"] or ():
            yield problem(f"The service is not ready: {one['message']}")
        for name, part in ready["parts"].items():
            if part.get("failures"):
                what = f"{name} has failed since {part['failing_since']}: {part['last_error']}"
                yield problem(what, "Look at the log of `hubctl serve`.")
