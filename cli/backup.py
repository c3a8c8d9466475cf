"""``hubctl backup``: content and databases to another place; lists and verifies backups."""

import contextlib
import json
import os
from functools import partial

import click

from builder.model.plural import counted, some_of
from cli.options import Places, Reach, places_options, reach_options
from cli.progress import Progress
from cli.standard_error import say, say_waiting
from cli.table import echo_list
from operate.backup import snapshots
from operate.backup.places import Place, open_place
from operate.backup.take import Report, back_up
from operate.folders import lock
from operate.parallel import Work

SKIPPED_SHOWN = 5
ON_WAIT = partial(say_waiting, "backup or restore")


@click.command()
@click.argument("destination", metavar="DEST", envvar="HUB_BACKUP")
@places_options
@reach_options
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    envvar="HUB_BACKUP_KEEP",
    show_envvar=True,
    help="Snapshots to keep; older ones are removed.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Back up nothing; read everything in DEST and compare it with its hashes.",
)
@click.option("--list", "is_list", is_flag=True, help="Back up nothing; list the snapshots.")
@click.option("--json", "is_json", is_flag=True, help="Print the result as JSON.")
def backup(
    destination: str,
    places: Places,
    reach: Reach,
    keep: int,
    verify: bool,
    is_list: bool,
    is_json: bool,
) -> None:
    """Back up prompts, accounts and pull counts to DEST: a folder, or s3://BUCKET/PREFIX.

    Others may publish meanwhile. Stores only what changed, and then writes the snapshot, so a
    snapshot is whole or does not exist. After an interruption, run the command again. With
    --database, stores this node's copy of the prompts; run pg_dump for the accounts. DEST is for
    this hub alone, and private: it has hashes of passwords and tokens. By default, DEST is the
    environment variable HUB_BACKUP.

    \b
      hubctl backup /mnt/backup/hub
      hubctl backup s3://my-backups/hub --keep 90
      hubctl backup --verify /mnt/backup/hub
    """
    if verify and is_list:
        raise click.UsageError("--verify and --list exclude each other. Pass one of them.")
    content, _, state, database_url = places
    place = open_place(destination, endpoint_url=reach.endpoint_url, apart_from=places.folders)
    with Progress() as progress:
        work = Work(reach.jobs, progress)
        if is_list:
            _list([snapshots.load(place, one) for one in snapshots.find_ids(place)], is_json)
            return
        if verify:
            checked = _verify(place, state, work)
            progress.close()
            _show_verified(checked, is_json)
            return
        report = back_up(
            content,
            state,
            place,
            keep=keep,
            work=work,
            on_wait=ON_WAIT,
            has_accounts=not database_url,
        )
    click.echo(json.dumps(report._asdict()) if is_json else describe(report))
    _show_skipped(report.skipped)
    if database_url:
        say("Not backed up: the accounts in PostgreSQL. Run pg_dump.")


def _verify(place: Place, state: str, work: Work) -> snapshots.Verified:
    # A backup on this machine could remove files that are being verified, so wait for it. On
    # another machine there is no state folder to lock.
    is_here = os.path.isdir(state)
    with lock(f"{state}/backup", ON_WAIT) if is_here else contextlib.nullcontext():
        return snapshots.verify(place, work)


def describe(report: Report) -> str:
    """The result of a backup, on one line."""
    parts = [
        f"Snapshot {report.id}: {counted(report.files, 'file')}, {counted(report.bytes, 'byte')}",
        f"{counted(report.stored, 'new object')} with {counted(report.stored_bytes, 'byte')}",
        f"{counted(report.snapshots, 'snapshot')} kept",
    ]
    if report.dropped or report.removed:
        parts.append(
            f"{counted(report.dropped, 'old snapshot')} and "
            f"{counted(report.removed, 'object')} removed"
        )
    return f"{'; '.join(parts)}; {report.seconds:.2f} seconds"


def _show_skipped(skipped: list[str]) -> None:
    if skipped:
        shown = some_of([*map(repr, skipped)], SKIPPED_SHOWN)
        say(f"Not backed up, because they are no plain files with a name in UTF-8: {shown}.")


def _list(found: list[snapshots.Snapshot], is_json: bool) -> None:
    keys = ("id", "at", "files", "bytes", "release")
    echo_list(
        ("snapshot", "at", "files", "bytes"),
        found,
        lambda one: (one.id, one.at, f"{one.files:,}", f"{one.bytes:,}"),
        is_json=is_json,
        as_json=lambda one: {key: getattr(one, key) for key in keys},
    )


def _show_verified(checked: snapshots.Verified, is_json: bool) -> None:
    """Raises click.exceptions.Exit if there are faults."""
    if is_json:
        click.echo(json.dumps(checked._asdict()))
    else:
        for fault in checked.faults:
            click.echo(fault)
        read = f"{counted(checked.objects, 'object')} with {counted(checked.bytes, 'byte')}"
        faults = counted(len(checked.faults), "fault") if checked.faults else "No faults"
        click.echo(f"{faults} in {counted(len(checked.snapshots), 'snapshot')}: {read}")
    if checked.faults:
        raise click.exceptions.Exit(1)
