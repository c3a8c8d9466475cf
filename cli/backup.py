"""``hubctl backup`` and ``hubctl restore``: a hub as one stream, and back."""

import sys

import click

from cli.groups import SettingArgument
from cli.options import Places, content_option, places_options, state_option


@click.command()
@click.argument(
    "destination",
    cls=SettingArgument,
    metavar="FILE",
    envvar="HUB_BACKUP",
    help="Where `hubctl backup` writes: a file, or a folder of dated ones.",
)
@places_options
def backup(destination: str, places: Places) -> None:
    """Back up prompts, accounts and pull counts to FILE, into a folder, or to standard output (-).

    Writes one tar stream, as of one moment, while others publish. A file is whole or does not
    exist. Into a folder that exists, or whose name ends with a slash, writes a dated file, and
    removes old ones: the newest of the last 24 hours, 30 days and 12 months stay. A backup is
    private: it has hashes of passwords and tokens. With --database, stores this node's copy of the
    prompts, and the accounts of the database. By default, FILE is the environment variable
    HUB_BACKUP, or `destination` in the table [backup] of hub.toml.

    \b
      hubctl backup /mnt/backup/hub/
      hubctl backup hub.tar
      hubctl backup - | ssh backup.example.org 'cat >hub.tar'
    """
    # Loaded late: other commands import this module to read its options.
    from operate.backup.take import STREAM, back_up

    if destination == STREAM and sys.stdout.isatty():
        raise click.UsageError("A backup is no text for a terminal. Pass FILE, or pipe it.")
    done = back_up(
        places.content,
        places.state,
        destination,
        apart_from=places.folders,
        database_url=places.database_url,
    )
    click.echo(done, err=destination == STREAM)


@click.command()
@click.argument("source", metavar="FILE")
@content_option
@state_option
@click.option(
    "--complete",
    is_flag=True,
    help="Nothing was published or revoked after the backup, as in a move to another machine: "
    "keep numbers, sessions and tokens as they are.",
)
@click.option(
    "--above",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Number that an earlier restore of this hub printed, if it told you to keep it.",
)
def restore(source: str, content: str, state: str, complete: bool, above: int) -> None:
    """Restore prompts, accounts and pull counts from FILE, a backup, or standard input (-).

    Stop the hub first. Restores into empty folders, once the whole backup is verified. From a
    folder, restores the newest backup. Then build the site. To copy what was restored into an empty
    PostgreSQL database, run `hubctl store copy --to database`.

    No version number is used twice: new versions get numbers above all that may have been used
    since the backup. All sessions and tokens end, since some may have ended since the backup.

    \b
      hubctl restore /mnt/backup/hub
      ssh backup.example.org cat hub.tar | hubctl restore -
    """
    # Loaded late: other commands import this module to read its options.
    from operate.backup.restore import restore as restore_hub

    lines = restore_hub(source, content, state, complete=complete, above=above)
    click.echo(
        "\n".join([*lines, "Next: run `hubctl check`, then `hubctl build` or start the hub."])
    )
