"""``hubctl store``: the database that many nodes share."""

import contextlib
import os
import sqlite3

import click

from builder.model.content_tree import RESTORED_FILE, STORE_FILE
from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.store import sqlite
from builder.store.restored import parse_restored
from builder.store.site import read_hub
from cli.options import Places, database_option, places_options
from cli.standard_error import Progress, say
from cli.stores import open_store
from operate import content_check
from publisher.accounts.database import Database, copy_accounts
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.write.durable import render


@click.group()
def store() -> None:
    """Copy the database that many nodes share, and skip numbers that it has lost."""


@store.command()
@places_options
@click.option(
    "--to",
    "target",
    type=click.Choice(["database", "folder"]),
    required=True,
    help="`database`: from the folders into an empty database. `folder`: from the database into "
    "empty folders.",
)
def copy(places: Places, target: str) -> None:
    """Copy prompts and accounts from a hub's folders into a database, or back.

    Stop the hub and all nodes first. Compares everything by its hash in the end. After an
    interruption, run the same command again. Afterwards, the first node continues with the content
    folder of the copied hub. A folder that was copied back belongs to a hub on one machine.

    \b
      hubctl store copy --to database --content content --state var
      hubctl store copy --to folder --content back/content --state back/var
    """
    content, out, state, url = places
    with Database(_needed(url)) as database, Progress() as progress:
        if target == "database":
            # Loaded late: its library is optional.
            from publisher.nodes.transfer import copy_in

            _check_unused(state)
            _check_sound(content)
            hub = read_hub(out)
            shown_serial = hub.serial or 0 if hub else 0
            _copy_accounts(state, database)
            count = copy_in(content, database, shown_serial, progress)
        else:
            count = _copy_out(places, database, progress)
    say(f"Copied and verified {counted(count, 'change')}.")


def _copy_accounts(state: str, database: Database) -> None:
    if os.path.exists(f"{state}/{ACCOUNTS_FILE}"):
        with Database(state) as old:
            copy_accounts(old, database)


def _check_unused(state: str) -> None:
    """Raises OperatorError if another process has the accounts of the state folder open."""
    path = f"{state}/{ACCOUNTS_FILE}"
    # SQLite removes the write-ahead log only when no other connection is open
    # (https://www.sqlite.org/wal.html).
    try:
        if os.path.exists(path):
            with contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
                db.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:  # otherwise it is damaged, not in use
        if sqlite.primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise OperatorError(
                f"Another process uses {path}. Stop `hubctl serve` and all other commands of this "
                "hub, then try again."
            ) from error


def _check_sound(content: str) -> None:
    """Raises OperatorError."""
    faults = [fault for fault in content_check.check(content) if not fault.is_warning]
    if faults:
        raise OperatorError(
            f"{content} has {counted(len(faults), 'fault')}, as {faults[0]}. Run `hubctl check "
            f"--content {content}`, fix them, and copy again."
        )


def _copy_out(places: Places, database: Database, progress: Progress) -> int:
    from publisher.nodes.transfer import find_differences

    ((count,),) = database.execute("SELECT count(*) FROM change")
    if not count:
        raise OperatorError(f"The {database.engine.server} has no prompts. Check --database.")
    with open_store(places, progress):
        different = next(find_differences(places.content, database, progress), None)
    if different:
        raise OperatorError(
            f"{places.content} does not have what the database has: {different} differs. Stop all "
            "nodes, and copy again, into an empty folder."
        )
    with Database(places.state) as accounts:
        copy_accounts(database, accounts)
    os.unlink(f"{places.content}/{STORE_FILE}")  # from now on, a hub of its own
    return count


@store.command("skip-numbers")
@database_option
@click.option(
    "--above",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Highest number that an earlier run printed, if the database was restored again since.",
)
@click.option(
    "--end-access",
    is_flag=True,
    help="Also end all sessions and revoke all tokens, since some may have ended since.",
)
def skip_numbers(database_url: str | None, above: int, end_access: bool) -> None:
    """Skip all version numbers that may have been used, after the database lost changes.

    Run it after a restore of the database to an earlier moment, or after a standby took over that
    lacked the last changes: readers may have pinned versions that the database does not know. Stop
    all nodes first. A prompt has at most 10,000 versions, so numbers that far above the known ones
    were never used.

    \b
      hubctl store skip-numbers --database postgresql://hub@db.example.org/hub
    """
    # Loaded late: other commands import this module to read its options.
    from operate.backup import restore
    from operate.backup.floor import floor_above, highest_number
    from publisher.nodes.transfer import numbered_records, put_hub_file

    with Database(_needed(database_url)) as database:
        highest = above
        for path, record in numbered_records(database):
            is_floor = path == RESTORED_FILE
            number = parse_restored(record).floor if is_floor else highest_number(path, record)
            highest = max(highest, number)
        restored = floor_above(highest)
        put_hub_file(database, RESTORED_FILE, render(restored))
        if end_access:
            restore.end_access(database, restored.at)
    say(
        f"New versions get numbers from {restored.floor:,} on, so no number is given twice. After "
        f"another restore of the database, run this with --above {restored.floor}."
    )


def _needed(database_url: str | None) -> str:
    if not database_url:
        raise click.UsageError("Name the database, with --database or HUB_DATABASE.")
    return database_url
