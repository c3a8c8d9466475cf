"""Runs all checks in order, and reports a check that fails itself."""

import sqlite3
from collections.abc import Iterator

import requests

from builder.model.errors import HubError
from operate.doctor import data, machine, web
from operate.doctor.findings import Check, Finding, Subject, ok, problem
from publisher.outside.fetch import cause_of

OFFLINE: tuple[Check, ...] = (
    *(machine.folders, machine.disks, data.service, data.databases, data.content, data.site),
    data.backups,
)
ALL: tuple[Check, ...] = (web.strangers, *OFFLINE, web.certificate, web.address)


def examine(subject: Subject, *, offline: bool = False) -> Iterator[tuple[str, Finding]]:
    """The findings of each check, with its name, as soon as they are known. The docstring of a
    check says what is so if it finds nothing.
    """
    for check in OFFLINE if offline else ALL:
        finding = None
        for finding in _findings(check, subject):
            yield check.__name__, finding
        if not finding:
            yield check.__name__, ok(" ".join(str(check.__doc__).split()))


def _findings(check: Check, subject: Subject) -> Iterator[Finding]:
    try:
        yield from check(subject)
    except HubError as error:
        yield problem(str(error))
    except requests.RequestException as error:
        yield problem(f"No answer: {cause_of(error)}.", "Look at the web server.")
    except (OSError, sqlite3.Error) as error:
        yield problem(f"Could not be checked: {error}.", "Fix that, then run this command again.")
