"""All checks in order, and what becomes of one that cannot do its work."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import requests

from builder.model.errors import HubError
from operate.doctor import data, file_systems, folders, machine, processes, release, web
from operate.doctor.asked import Asked, reason
from operate.doctor.certificate import certificate
from operate.doctor.findings import Check, Finding, Subject, problem

Named = tuple[str, Finding]

# What each is called in the report.
OFFLINE: dict[str, Check] = {
    "versions": release.versions,
    "libraries": release.libraries,
    "folders": folders.places,
    "owners": folders.owners,
    "privacy": folders.privacy,
    "file system": file_systems.kinds,
    "file features": file_systems.abilities,
    "disk": machine.disk,
    "memory": machine.memory,
    "open files": machine.open_files,
    "clock": machine.clock,
    "processes": processes.holders,
    "databases": data.databases,
    "caches": data.caches,
    "content": data.content,
    "site": release.site,
    "proxy": data.client_addresses,
}
CERTIFICATE = "certificate"
REACH = "address"
ONLINE: dict[str, web.WebCheck] = {
    "https": web.transport,
    "server clock": web.clock,
    "service": web.service,
    "answers": web.files,
    "queries": web.queries,
    "errors": web.errors,
    "compression": web.compression,
    "accounts": web.account,
    "publishing": web.writes,
}


def examine(
    subject: Subject, *, offline: bool = False, token: str | None = None
) -> Iterator[Named]:
    """What each check finds, with its name, as soon as it is known. ``token`` is for a hub that
    only members may read.
    """
    for name, check in OFFLINE.items():
        yield from _findings(name, lambda check=check: check(subject))
    if offline:
        return
    yield from _findings(CERTIFICATE, lambda: certificate(subject))
    with closing(Asked(subject, token)) as asked:
        found = list(_findings(REACH, lambda: web.reach(asked)))
        yield from found
        if any(finding.level == "problem" for _, finding in found):
            return
        for name, ask in ONLINE.items():
            yield from _findings(name, lambda ask=ask: ask(asked))


def _findings(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Named]:
    try:
        for finding in check():
            yield name, finding
    except HubError as error:
        yield name, problem(str(error))
    except requests.RequestException as error:
        do = "Look at the web server, then run this command again."
        yield name, problem(f"No answer: {reason(error)}.", do)
    except (OSError, sqlite3.Error) as error:
        do = "Fix that, then run this command again."
        yield name, problem(f"Could not be checked: {error}.", do)
