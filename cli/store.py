"""``hubctl store``: the content folder of a node, which is a copy of the database of all nodes."""

import os
import shutil

import click

from builder.model.errors import OperatorError
from builder.store.content import STORE_FILE
from cli.options import content_option


@click.group()
def store() -> None:
    """Look after a node's copy of a database that many nodes share."""


@store.command()
@content_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def renew(content: str, yes: bool) -> None:
    """Remove a node's content folder, so that the node reads everything from the database again.

    Only a folder that is a copy is removed. Stop the node first. Do this if it says that the
    database has another history: the database was restored to an earlier moment, or a standby took
    over that lacked the last changes. The folder may be the only place that still has them: look at
    it before.

    \b
      hubctl store renew --content content
    """
    # Late, since other commands load this module to know its options.
    from publisher.nodes.copy import lock_folder

    if not os.path.lexists(f"{content}/{STORE_FILE}"):
        raise OperatorError(
            f"{content} is no copy of a database, so it is not removed. Pass the content folder of "
            "the node with --content."
        )
    if not yes:
        click.confirm(f"Remove {content} with all prompts in it?", abort=True, err=True)
    held = lock_folder(content)  # of a node that still runs, it is not removed
    try:
        for name in os.listdir(content):
            path = f"{content}/{name}"
            # What says that this is a copy goes last.
            if name != STORE_FILE:
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        os.unlink(f"{content}/{STORE_FILE}")
    finally:
        os.close(held)
    click.echo(f"Removed what {content} had. The node reads it again when it starts.", err=True)
