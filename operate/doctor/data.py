"""Checks the service, and the data: databases, caches, content, site, backups."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

from builder.model.errors import OperatorError
from builder.model.plural import counted, some_of
from builder.model.records import DAY_SECONDS
from builder.pipeline.build import stamp
from builder.pipeline.heal import find_lost
from builder.search import index
from builder.stats.database import SCHEMA_VERSION as PULLS_VERSION
from builder.stats.database import pulls_file
from builder.store.sqlite import DatabaseFile, open_for_reading
from builder.store.state import State
from builder.store.state.serving import had_service
from operate import content_check
from operate.doctor.findings import Finding, Subject, problem, warning
from publisher.accounts.schema import SCHEMA_VERSION as ACCOUNTS_VERSION
from publisher.accounts.sqlite_engine import MISSING, accounts_file
from publisher.outside.private_way import is_loopback
from publisher.sizes import last_backup_time

BACKUP_DAYS_MAX = 8
_SHOWN_MAX = 3


def service(subject: Subject) -> Iterator[Finding]:
    """The service runs with the settings of the site, or the site needs none."""
    hub, running, out = subject.hub, subject.service, subject.settings.out
    if subject.is_away:
        yield problem(
            f"The service is away: no `hubctl serve` runs on {subject.settings.state}, and the "
            "site needs it for searches and publishing.",
            "Start it (`systemctl start hub`), and read its log (`journalctl -u hub`).",
        )
    if subject.says_public and subject.settings.private:
        what = "The settings (hub.toml, HUB_PRIVATE) say private = false, but this hub is private."
        yield warning(what, "It stays so. Set private = true, or open it: docs/operate/private.md.")
    if hub and running:
        pairs = {
            "base-url": (hub.base_url, running.base_url),
            "site-name": (hub.name, running.site_name),
            "queries": (hub.queries, running.queries),
            "private": (hub.private, running.private),
        }
        apart = [f"{name} {a!r} and {b!r}" for name, (a, b) in pairs.items() if a != b]
        if apart:
            yield problem(
                f"The site in {out} and the service that runs on it differ: {', '.join(apart)}.",
                "Run `hubctl build`, which takes the settings of the service.",
            )


def databases(subject: Subject) -> Iterator[Finding]:
    """The databases are sound, and not of a newer release; the caches, too."""
    settings, state = subject.settings, subject.settings.state
    accounts = accounts_file(state)
    is_missing = subject.has_accounts_file and not os.path.exists(accounts.path)
    if is_missing and had_service(state, settings.out):
        yield problem(MISSING)
    for look in (
        lambda: _check(accounts, ACCOUNTS_VERSION) if subject.has_accounts_file else None,
        lambda: _check(pulls_file(state), PULLS_VERSION),
        lambda: State.find_damage(state),
        lambda: index.find_damage(subject.noted or settings),
    ):
        try:
            # A build under way may change the files between two reads, so a difference counts only
            # twice.
            if (found := look()) and (found := look()):
                do = "Run `hubctl build`, which rebuilds it. Then check the disk."
                yield problem(f"A cache in {state} is damaged: {found}.", do)
        except OperatorError as error:
            yield problem(str(error))


def _check(file: DatabaseFile, newest: int) -> None:
    """Raises OperatorError for a damaged database, or one of a newer release."""
    if os.path.exists(file.path):
        with file.telling(), closing(open_for_reading(file.path)) as db:
            ((version,),) = db.execute("PRAGMA user_version")
            file.check_version(version, newest, is_ours=version > 0)
            file.check_sound(db)


def content(subject: Subject) -> Iterator[Finding]:
    """The content has no faults."""
    folder = subject.settings.content
    found = [*content_check.check(folder)]
    found.sort(key=lambda one: content_check.AHEAD not in one.reason)  # wrong clocks first
    for report, kind in ((problem, "fault"), (warning, "warning")):
        if ones := [one for one in found if one.is_warning == (kind == "warning")]:
            shown = "; ".join(map(str, ones[:_SHOWN_MAX]))
            yield report(
                f"{counted(len(ones), kind)} in {folder}: {shown}.",
                f"List all with `hubctl check --content {folder}`.",
            )


def site(subject: Subject) -> Iterator[Finding]:
    """This release built the site, and it has all of its files."""
    noted, settings, lost = subject.noted, subject.settings, []
    build = "Run `hubctl build`, or restart `hubctl serve`."
    if noted is None:
        yield warning(f"The state folder {settings.state} has no build that can be read.", build)
        return
    with closing(State(settings.state, read_only=True)) as state:
        is_current = state.was_built_by(stamp(noted))
        # As above, only what is lost twice counts.
        for _ in range(2 if is_current else 0):
            lost = [file for _, files in find_lost(state, settings.out) for file in files]
    if not is_current:
        what = f"Another release of hub built {settings.out}, or its last build did not end."
        yield warning(what, build)
    if lost:
        yield problem(
            f"The site in {settings.out} lacks {counted(len(lost), 'file')}: "
            f"{some_of(lost, _SHOWN_MAX)}.",
            f"{build} Then find out what removed them.",
        )


def backups(subject: Subject) -> Iterator[Finding]:
    """The last backup is recent, or this hub is for this machine alone."""
    at = last_backup_time(subject.settings.state)
    days = int((time.time() - at) / DAY_SECONDS)
    do = "Run `hubctl backup` every hour: docs/operate/backups.md#on-a-schedule."
    if at and days > BACKUP_DAYS_MAX:
        yield problem(f"The last backup is {counted(days, 'day')} old.", do)
    elif not at and not is_loopback(urlsplit(subject.settings.base_url).hostname or ""):
        yield warning("`hubctl backup` has never backed up this hub.", do)
