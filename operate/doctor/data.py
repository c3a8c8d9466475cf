"""What the folders hold: content, databases, and the caches that follow from them."""

import ipaddress
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

from builder.model.errors import Fault, HubError, OperatorError
from builder.model.plural import counted
from builder.search import index
from builder.stats.database import SCHEMA_VERSION as PULLS_VERSION
from builder.stats.database import pulls_file
from builder.store import check
from builder.store.content import list_owners, list_repos
from builder.store.sqlite import DatabaseFile, open_for_reading
from builder.store.state import State
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from publisher.accounts.database import open_postgres
from publisher.accounts.schema import SCHEMA_VERSION as ACCOUNTS_VERSION
from publisher.accounts.sqlite_engine import accounts_file
from publisher.outside.private_way import is_loopback

_SHOWN_MAX = 3


def content(subject: Subject) -> Iterator[Finding]:
    """As `hubctl check`, in numbers."""
    folder = subject.settings.content
    if not os.path.isdir(folder):
        return  # `folders.places` has told
    faults, warnings = _look(folder)
    if faults:
        faults, warnings = _look(folder)  # a publication under way looks like a fault for a moment
    if faults:
        yield problem(
            f"{counted(len(faults), 'fault')} in {folder}, among them: {_shown(faults)}.",
            f"List all with `hubctl check --content {folder}`, and fix or remove these files.",
        )
        return
    if warnings:
        yield warning(
            f"{counted(len(warnings), 'warning')} about {folder}, among them: {_shown(warnings)}.",
            f"List all with `hubctl check --content {folder}`.",
        )
    owners = list_owners(folder)
    repos = sum(len(list_repos(folder, owner)) for owner in owners)
    yield ok(f"{counted(repos, 'prompt')}, {counted(len(owners), 'owner')}, no faults")


def _shown(faults: list[Fault]) -> str:
    return "; ".join(map(str, faults[:_SHOWN_MAX]))


def _look(folder: str) -> tuple[list[Fault], list[Fault]]:
    """The faults of a content folder, and the warnings."""
    found = list(check.check(folder))
    return [one for one in found if not one.is_warning], [one for one in found if one.is_warning]


def databases(subject: Subject) -> Iterator[Finding]:
    """Those that are no caches are sound, and not of a newer release. Reads all of them."""
    files = [(pulls_file(subject.settings.state), PULLS_VERSION)]
    if subject.database_url:
        yield _server(subject.database_url)
    else:
        files.insert(0, (accounts_file(subject.settings.state), ACCOUNTS_VERSION))
    for file, newest in files:
        if not os.path.exists(file.path):
            continue
        try:
            version = _check(file, newest)
        except OperatorError as error:
            yield problem(str(error))
            continue
        yield ok(f"{file.path} is sound{_told_if_old(version, newest)}")


def _server(url: str) -> Finding:
    try:
        with closing(open_postgres(url, may_change=False)) as engine:
            if not engine.version:
                told = f"The {engine.server} has no accounts yet."
                return warning(told, "The first start of the hub makes its tables.")
            old = _told_if_old(engine.version, ACCOUNTS_VERSION)
            return ok(f"the {engine.server} answers{old}")
    except OperatorError as error:
        return problem(str(error))


def _told_if_old(version: int, newest: int) -> str:
    return "" if version == newest else f", format {version}: the next start upgrades it"


def _check(file: DatabaseFile, newest: int) -> int:
    """The version of a database. Raises OperatorError for one that is damaged, or not for us."""
    with (
        file.telling(),
        closing(open_for_reading(file.path)) as db,
    ):
        ((version,),) = db.execute("PRAGMA user_version")
        file.check_version(version, newest, is_ours=version > 0)
        file.check_sound(db)
        return version


def caches(subject: Subject) -> Iterator[Finding]:
    """The state of builds and the search index. Reads all of them."""
    settings = subject.noted or subject.settings
    state, folder = State.path_in(settings.state), index.index_folder(settings)
    fine = []
    for path, look in (
        (state, lambda: State.find_damage(settings.state)),
        (folder, lambda: index.find_damage(settings)),
    ):
        # A build under way may change the files between two looks of one.
        if (found := look()) and (found := look()):
            yield problem(
                f"{path} is damaged: {found}.",
                "It is a cache: run `hubctl build`, which makes it again. Then look at the disk.",
            )
        elif os.path.exists(path):
            fine.append(path)
    if fine:
        yield ok(f"{', '.join(fine)}: sound")


def client_addresses(subject: Subject) -> Iterator[Finding]:
    """Whether the proxy's X-Forwarded-For arrives: from outside nobody can tell, but the addresses
    at which people have signed in are in the accounts.
    """
    host = urlsplit(subject.settings.base_url).hostname or ""
    if is_loopback(host):
        return
    try:
        found = _addresses(subject)
    except (sqlite3.Error, HubError):
        return  # `databases` has told
    if found is None:
        return
    # Where nginx listens on [::], it tells of IPv4 clients as ::ffff:192.0.2.7.
    addresses = sorted({address.removeprefix("::ffff:") for (address,) in found})
    if not addresses:
        yield ok("nobody has used an account yet, so no client address is known")
    elif len(addresses) == 1 and _is_inside(addresses[0]):
        yield warning(
            f"All that people did with their accounts came from {addresses[0]}. If that is your "
            "proxy, all visitors share its limits.",
            "If only you have used accounts, at that address, do nothing. Otherwise start `hubctl "
            f"serve` with --trusted-proxy {addresses[0]}, and have the proxy set X-Forwarded-For "
            "to the client's address.",
        )
    else:
        yield ok(
            f"people use their accounts from {counted(len(addresses), 'address', 'addresses')}"
        )


def _addresses(subject: Subject) -> list[tuple] | None:
    """None where there are no accounts yet. Raises sqlite3.Error, HubError."""
    statement = "SELECT DISTINCT address FROM event WHERE address != ''"
    if subject.database_url:
        with closing(open_postgres(subject.database_url, may_change=False)) as engine:
            return engine.execute(statement) if engine.version else None
    file = accounts_file(subject.settings.state)
    if not os.path.exists(file.path):
        return None
    with closing(open_for_reading(file.path)) as db:
        return db.execute(statement).fetchall()


def _is_inside(address: str) -> bool:
    """Whether it is an address that a proxy beside the hub can have."""
    try:
        return ipaddress.ip_address(address).is_private
    except ValueError:
        return False
