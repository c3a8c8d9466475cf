"""Runs all checks in order, and reports a check that fails itself."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import requests

from builder.model.errors import HubError
from operate.doctor import data, folders, web
from operate.doctor.certificate import certificate
from operate.doctor.findings import Finding, Look, Subject, ok, problem
from operate.doctor.remote_hub import RemoteHub
from publisher.outside.fetch import cause_of

Named = tuple[str, Finding]

# By its name in the report: a check, and the message if it finds nothing.
OFFLINE: dict[str, tuple[Look, str]] = {
    "folders": (folders.folders, "apart, and all in them belongs to one user"),
    "disks": (folders.disks, "outlast a restart, and have space"),
    "databases": (data.databases, "all sound, caches included"),
    "content": (data.content, "no faults"),
    "site": (data.site, ""),
    "accounts": (data.accounts, "no token ends soon, and no proxy hides the addresses of clients"),
    "backups": (data.backups, "a hub on this machine alone"),
}
CERTIFICATE = "certificate"
STRANGERS = "strangers"
ADDRESS = "address"
ONLINE: dict[str, tuple[web.RemoteCheck, str]] = {
    "service": (web.service, "ready"),
    "answers": (web.answers, "bytes, types, caching, ETag, 304 and 404 are right"),
    "queries": (web.queries, "versions and searches are found by query"),
    "writes": (web.writes, "publications and accounts reach the service, and are not cached"),
}


def examine(subject: Subject, *, offline: bool = False) -> Iterator[Named]:
    """The findings of each check, with its name, as soon as they are known."""
    for name, (look, fine) in OFFLINE.items():
        yield from _findings(name, lambda look=look: look(subject), fine)
    if offline:
        return
    yield from _findings(CERTIFICATE, lambda: certificate(subject), "good, or the hub has no TLS")
    with closing(RemoteHub(subject)) as remote:
        yield from _findings(STRANGERS, lambda: web.strangers(remote), "only members can read")
        found = [*_findings(ADDRESS, lambda: web.address(remote), f"{remote.base_url} answers")]
        yield from found
        if any(finding.level == "problem" for _, finding in found):
            return
        for name, (ask, fine) in ONLINE.items():
            yield from _findings(name, lambda ask=ask: ask(remote), fine)


def _findings(name: str, check: Callable[[], Iterable[Finding]], fine: str) -> Iterator[Named]:
    finding = None
    try:
        for finding in check():
            yield name, finding
        if not finding:
            yield name, ok(fine)
    except HubError as error:
        yield name, problem(str(error))
    except requests.RequestException as error:
        do = "Look at the web server, then run this command again."
        yield name, problem(f"No answer: {cause_of(error)}.", do)
    except (OSError, sqlite3.Error) as error:
        do = "Fix that, then run this command again."
        yield name, problem(f"Could not be checked: {error}.", do)
