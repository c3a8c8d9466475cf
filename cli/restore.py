"""``hubctl restore``: a backup back into the folders of a hub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from builder.model.plural import counted
from cli.backup import ON_WAIT
from cli.groups import grouped
from cli.options import Places, Reach, places_options, reach_options
from cli.progress import Progress

if TYPE_CHECKING:
    from operate.backup.restore import Options, Report


def _options(snapshot: str | None, complete: bool, revoke: str, replace: bool) -> Options:
    # Loaded late: other commands import this module to read its options.
    from operate.backup.restore import Options

    return Options(snapshot, complete, revoke == "tokens", replace)


@click.command()
@click.argument("source", metavar="SRC", envvar="HUB_BACKUP")
@places_options
@reach_options
@grouped(
    "options",
    _options,
    click.option("--snapshot", metavar="ID", help="Restore this snapshot. [default: the newest]"),
    click.option(
        "--complete",
        is_flag=True,
        help="Nothing was published or revoked after the snapshot, as in a move to another "
        "machine: keep numbers, sessions and tokens as they are.",
    ),
    click.option(
        "--revoke",
        type=click.Choice(["tokens", "none"]),
        default="tokens",
        show_default=True,
        help="`tokens`: revoke all personal tokens, since some may have been revoked after the "
        "snapshot. Sessions, invitations and tokens of CI jobs always end.",
    ),
    click.option(
        "--replace",
        is_flag=True,
        help="Move the old files in the folders aside, instead of refusing.",
    ),
)
@click.option("--json", "is_json", is_flag=True, help="Print the result as JSON.")
def restore(source: str, places: Places, reach: Reach, options: Options, is_json: bool) -> None:
    """Restore prompts, accounts and pull counts from SRC, a backup.

    Stop the hub first. Restores into empty folders, after every hash is verified. After an
    interruption, run the same command again. Then build the site. By default, SRC is the
    environment variable HUB_BACKUP.

    Restores no PostgreSQL database: for that, run pg_restore. With --database, this command ends
    the sessions in that database and revokes its tokens. To copy what was restored into an empty
    database, run `hubctl store copy --to database`.

    No version number is used twice: new versions get numbers above all that may have been used
    since the snapshot.

    \b
      hubctl restore /mnt/backup/hub
      hubctl restore s3://my-backups/hub
      hubctl restore /mnt/backup/hub --snapshot 20260131T093000Z --replace
    """
    # Loaded late: other commands import this module to read its options.
    from operate.backup.places import open_place
    from operate.backup.restore import restore as restore_hub
    from operate.parallel import Work

    content, _, state, database_url = places
    options = options._replace(accounts=database_url)
    place = open_place(source, endpoint_url=reach.endpoint_url, apart_from=places.folders)
    with Progress() as progress:
        work = Work(reach.jobs, progress)
        report = restore_hub(place, content, state, options, work=work, on_wait=ON_WAIT)
    if is_json:
        ended = report.ended and report.ended._asdict()
        click.echo(json.dumps(report._asdict() | {"ended": ended}))
    else:
        click.echo("\n".join(described(report)))


def described(report: Report) -> list[str]:
    """The result of a restore, in lines."""
    lines = [
        f"Restored snapshot {report.id}: {counted(report.files, 'file')}, "
        f"{counted(report.bytes, 'byte')}; {report.seconds:.2f} seconds"
    ]
    if report.floor:
        lines.append(
            f"New versions get numbers from {report.floor:,} on, so no number is given twice."
        )
    if report.ended:
        lines.append(
            f"Ended {counted(report.ended.sessions, 'session')}, revoked "
            f"{counted(report.ended.tokens, 'token')}."
        )
    lines += [f"The old files are in {path}." for path in report.aside]
    return [*lines, "Next: run `hubctl check`, then `hubctl build` or start the hub."]
