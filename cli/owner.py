"""``hubctl owner``: who may have repos here."""

import click
import msgspec

from cli.options import state_option
from cli.table import echo_table
from publisher.accounts import Accounts, format_time
from publisher.database import Database


@click.group()
def owner() -> None:
    """Add and list the owners who publish over HTTP."""


@owner.command()
@state_option
@click.argument("handle")
def add(state: str, handle: str) -> None:
    """Let HANDLE have tokens, to publish to HANDLE/NAME with.

    A handle has 1 to 39 characters: a-z, 0-9 and single hyphens between them.
    """
    with Database(state) as database:
        Accounts(database).add_owner(handle)
    click.echo(
        f"Added {handle}. Make it a token: hubctl token create {handle} --name NAME", err=True
    )


@owner.command("list")
@state_option
@click.option("--json", "is_json", is_flag=True, help="Print an array of JSON objects.")
def list_owners(state: str, is_json: bool) -> None:
    """List the owners, with the number of their active tokens.

    Columns, separated by tabs in a pipe: handle, time of creation, active tokens.
    """
    with Database(state) as database:
        owners = Accounts(database).owners()
    if is_json:
        shown = [each._asdict() | {"created_at": format_time(each.created_at)} for each in owners]
        click.echo(msgspec.json.encode(shown))
        return
    if not owners:
        click.echo("There are no owners; `hubctl owner add HANDLE` adds one.", err=True)
        return
    echo_table(
        ("handle", "created", "active tokens"),
        [(each.handle, format_time(each.created_at), str(each.tokens)) for each in owners],
    )
