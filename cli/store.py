"""``hubctl store``: from a content folder to a store that many nodes share, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from builder.model.errors import OperatorError
from builder.model.plural import counted
from cli.progress import Progress

if TYPE_CHECKING:
    from publisher.nodes.copying import Checked, Copied

_json_option = click.option("--json", "is_json", is_flag=True, help="Print the result as JSON.")


@click.group()
def store() -> None:
    """Copy prompts to a store that many nodes share, or back, and check it.

    A store is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or, for trials,
    file:///FOLDER. Credentials come from the environment.
    """


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("destination", metavar="TO")
@_json_option
def copy(source: str, destination: str, is_json: bool) -> None:
    """Copy a content folder to a store, or a store to a content folder.

    Nobody may publish meanwhile. What is there already is compared and not copied, so after an
    interruption, run the command again. In the end, both are compared.

    \b
      hubctl store copy content s3://my-hub/prompts
      hubctl store copy s3://my-hub/prompts content
    """
    # Late, since its library is optional.
    from publisher.nodes.copying import copy_from_store, copy_to_store

    is_to_store, is_from_store = "://" in destination, "://" in source
    if is_to_store == is_from_store:
        raise click.UsageError("Pass a folder and a store, in one order or the other.")
    with Progress() as progress:
        work = copy_to_store if is_to_store else copy_from_store
        done = work(source, destination, progress)
    _tell(done, is_json, f"{destination} has", f"{counted(done.new, 'change')} copied now")


@store.command()
@click.argument("address", metavar="STORE")
@_json_option
def check(address: str, is_json: bool) -> None:
    """Read everything in STORE, and compare it with its hashes.

    Exit status 1 where something is missing or damaged.
    """
    from publisher.nodes.copying import check_store

    with Progress() as progress:
        found = check_store(address, progress)
    for fault in found.faults if not is_json else ():
        click.echo(fault)
    more = f"{found.entries:,} {'entry' if found.entries == 1 else 'entries'} in its log, "
    more += f"{counted(found.unused, 'unused text')}"
    _tell(found, is_json, f"{address} has", more)
    if found.faults:
        raise OperatorError(
            f"{counted(len(found.faults), 'fault')} in {address}. Restore what is missing or "
            "damaged from the bucket's older versions, or copy a node's content folder to a new "
            "prefix."
        )


def _tell(done: Copied | Checked, is_json: bool, what: str, more: str) -> None:
    if is_json:
        click.echo(json.dumps(done._asdict()))
    else:
        files = counted(done.files, "other file")
        click.echo(f"{what} {counted(done.versions, 'version')} and {files}; {more}")
