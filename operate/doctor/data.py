"""Checks the data in the folders: content, databases, caches and site; the accounts; the
backups.
"""

import ipaddress
import os
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import urlsplit

from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.model.records import DAY_SECONDS
from builder.model.settings import Settings
from builder.pipeline.build import stamp
from builder.search import index
from builder.stats.database import SCHEMA_VERSION as PULLS_VERSION
from builder.stats.database import pulls_file
from builder.store import check
from builder.store.site import read_hub
from builder.store.sqlite import DatabaseFile, open_for_reading
from builder.store.state import State
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from publisher.accounts.database import open_postgres
from publisher.accounts.schema import SCHEMA_VERSION as ACCOUNTS_VERSION
from publisher.accounts.sqlite_engine import accounts_file
from publisher.outside.private_way import is_loopback
from publisher.sizes import last_backup_time

BACKUP_DAYS_MAX = 8
TOKEN_DAYS_MIN = 14
_SHOWN_MAX = 3


def databases(subject: Subject) -> Iterator[Finding]:
    """The databases and the caches are sound, and not of a newer release. Reads all of them."""
    state = subject.settings.state
    files = [(pulls_file(state), PULLS_VERSION)]
    if not subject.database_url:
        files.append((accounts_file(state), ACCOUNTS_VERSION))
    else:
        with closing(open_postgres(subject.database_url, may_change=False)) as engine:
            if not engine.version:
                yield warning(
                    f"The {engine.server} has no accounts yet.",
                    "The first start of the hub creates its tables.",
                )
    for file, newest in files:
        try:
            _check(file, newest)
        except OperatorError as error:
            yield problem(str(error))
    for look in (
        lambda: State.find_damage(state),
        lambda: index.find_damage(subject.noted or subject.settings),
    ):
        # A build under way may change the files between two reads, so a difference counts only
        # twice.
        if (found := look()) and (found := look()):
            yield problem(
                f"A cache in {state} is damaged: {found}.",
                "Run `hubctl build`, which rebuilds it. Then check the disk.",
            )


def _check(file: DatabaseFile, newest: int) -> None:
    """Raises OperatorError for a damaged database, or one of a newer release."""
    if os.path.exists(file.path):
        with file.telling(), closing(open_for_reading(file.path)) as db:
            ((version,),) = db.execute("PRAGMA user_version")
            file.check_version(version, newest, is_ours=version > 0)
            file.check_sound(db)


def content(subject: Subject) -> Iterator[Finding]:
    """As `hubctl check`, with the numbers of faults."""
    folder = subject.settings.content
    if not os.path.isdir(folder):
        return
    found = list(check.check(folder))
    faults = [one for one in found if not one.is_warning]
    if found:
        shown = "; ".join(map(str, (faults or found)[:_SHOWN_MAX]))
        what = counted(len(faults), "fault") if faults else counted(len(found), "warning")
        yield (problem if faults else warning)(
            f"{what} in {folder}, among them: {shown}.",
            f"List all with `hubctl check --content {folder}`.",
        )


def site(subject: Subject) -> Iterator[Finding]:
    """This release built the site, for the readers' address, with the settings of the service."""
    noted, settings = subject.noted, subject.settings
    if noted is None:
        yield warning(
            f"No build with the state folder {settings.state} has ended, so the next one writes "
            f"all of {settings.out}.",
            "Run `hubctl build` or `hubctl serve`, or name the folders of your hub with --out and "
            "--state.",
        )
        return
    with closing(State(settings.state, read_only=True)) as state:
        is_of_this_release = state.was_built_by(stamp(noted))
    if not is_of_this_release:
        yield warning(
            f"Another release of hub built {settings.out}, or its last build did not end.",
            "Run `hubctl build`, or start `hubctl serve`: the next build writes the whole site.",
        )
    if noted.base_url != settings.base_url:
        yield problem(
            f"The site in {settings.out} was built for {noted.base_url}, not for "
            f"{settings.base_url}, so its links lead elsewhere.",
            "Give the same --base-url (HUB_BASE_URL) to all commands, and build again.",
        )
    elif apart := _differences(subject, noted):
        yield warning(
            f"The site in {settings.out} and the service that runs on it differ: {apart}.",
            "Run `hubctl build`, which takes the settings of the service.",
        )
    elif is_of_this_release:
        yield ok(f"built by this release for {noted.base_url}")


def _differences(subject: Subject, noted: Settings) -> str:
    """The settings of the site that differ from the service's; empty if no service runs."""
    if not subject.service:
        return ""
    shown = noted._asdict()
    if hub := read_hub(subject.settings.out):  # another state folder may have built it
        shown |= {
            "site_name": hub.name,
            "base_url": hub.base_url,
            "queries": hub.queries,
            "search": hub.search,
            "private": hub.private,
        }
    return ", ".join(
        f"{field.replace('_', '-')} {shown[field]!r} and {value!r}"
        for field, value in subject.service._asdict().items()
        if shown[field] != value
    )


def accounts(subject: Subject) -> Iterator[Finding]:
    """Tokens that expire soon. And a proxy that does not send X-Forwarded-For, which shows only in
    the addresses from which people used their accounts.
    """
    now = int(time.time())
    for owner, name, end in _ask(
        subject,
        "SELECT owner, name, expires_at FROM token WHERE revoked_at IS NULL "
        "AND trusted_publisher IS NULL AND expires_at > ? AND expires_at < ? ORDER BY expires_at",
        (now, now + TOKEN_DAYS_MIN * DAY_SECONDS),
    ):
        yield warning(
            f"The token {name!r} of {owner} ends on {datetime.fromtimestamp(end, UTC):%Y-%m-%d}.",
            f"Create a new one with `hubctl token create {owner}`, and put it where this one is.",
        )
    found = _ask(subject, "SELECT DISTINCT address FROM event WHERE address != ''")
    # If nginx listens on [::], IPv4 clients are ::ffff:192.0.2.7.
    addresses = {address.removeprefix("::ffff:") for (address,) in found}
    is_public = not is_loopback(urlsplit(subject.settings.base_url).hostname or "")
    if is_public and len(addresses) == 1 and _is_inside(*addresses):
        (address,) = addresses
        yield warning(
            f"All that people did with their accounts came from {address}. If that is your "
            "proxy, all visitors share its limits.",
            "If only you have used accounts, at that address, do nothing. Otherwise start `hubctl "
            f"serve` with --trusted-proxy {address}, and have the proxy set X-Forwarded-For to "
            "the client's address.",
        )


def _ask(subject: Subject, statement: str, values: tuple = ()) -> list[tuple]:
    """Rows of the accounts; none if there are no accounts. Raises sqlite3.Error, HubError."""
    if subject.database_url:
        with closing(open_postgres(subject.database_url, may_change=False)) as engine:
            return engine.execute(statement, values) if engine.version else []
    file = accounts_file(subject.settings.state)
    if not os.path.exists(file.path):
        return []
    with closing(open_for_reading(file.path)) as db:
        return db.execute(statement, values).fetchall()


def _is_inside(address: str) -> bool:
    """True for an address that a proxy near the hub can have."""
    try:
        return ipaddress.ip_address(address).is_private
    except ValueError:
        return False


def backups(subject: Subject) -> Iterator[Finding]:
    """The last backup is not old."""
    at = last_backup_time(subject.settings.state)
    do = "Run `hubctl backup` every hour: docs/operate/backups.md#on-a-schedule."
    if not at:
        if not is_loopback(urlsplit(subject.settings.base_url).hostname or ""):
            yield warning("`hubctl backup` has never backed up this hub.", do)
        return
    days = int((time.time() - at) / DAY_SECONDS)
    if days > BACKUP_DAYS_MAX:
        yield problem(f"The last backup is {counted(days, 'day')} old.", do)
    else:
        yield ok(f"the last one is of {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC")
