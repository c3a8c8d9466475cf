"""``hubctl owner``: manages the owners who publish over HTTP."""

import os
from datetime import UTC, datetime

import click

from builder.model.errors import OperatorError
from builder.model.records import DAY_SECONDS
from builder.store.state import last_base_url
from cli.options import accounts_options, base_url_option, database_option, state_option
from cli.standard_error import say
from cli.table import echo_table
from cli.token import parse_expiry
from publisher.accounts.database import Database, open_accounts
from publisher.accounts.events import Events
from publisher.accounts.owners import Owner, ways_to_sign_in
from publisher.accounts.people import locks
from publisher.accounts.people.invitations import INVITATION_DAYS_MAX, Invitations, invitation_link
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.postgres_url import is_postgres_url
from publisher.accounts.tokens import Accounts, format_time
from publisher.outside.private_way import is_private_way


@click.group()
def owner() -> None:
    """Add, invite, lock and list the owners who publish over HTTP."""


@owner.command()
@accounts_options
@click.argument("handle")
def add(accounts: str, handle: str) -> None:
    """Add the owner HANDLE, who can then have tokens.

    A handle has 1 to 39 characters: a-z, 0-9 and single hyphens between them. To let a person
    sign in as well, use `hubctl owner invite` instead.

    \b
      hubctl owner add ann
    """
    with _accounts_in(accounts) as database, database.transaction():
        Accounts(database).add_owner(handle)
        Events(database).note(handle, "signed_up")
    say(f"Added {handle}. Create a token: hubctl token create {handle} --name NAME")


@owner.command()
@state_option
@database_option
@base_url_option("that of the hub that runs with this state folder")
@click.argument("handles", metavar="HANDLE...", nargs=-1, required=True)
@click.option(
    "--expires",
    "days",
    metavar="TIME",
    default="1d",
    show_default=True,
    callback=parse_expiry,
    help=f"Time for which the link works: days or weeks (1d, 2w); at most {INVITATION_DAYS_MAX} "
    "days.",
)
def invite(
    state: str, database_url: str | None, base_url: str | None, handles: tuple[str, ...], days: int
) -> None:
    """Create a link with which HANDLE sets a password and signs in; one for each HANDLE.

    Adds the owner if HANDLE is new. Also resets a lost password. The link works once; a new link
    replaces the previous one.

    Prints only the link on standard output; for several people, a line for each with the handle
    before it, separated by a tab. Links are shown once: the hub stores only their hashes.

    \b
      hubctl owner invite ann
      hubctl owner invite ann bob carl --expires 7d --base-url https://prompts.example.org
    """
    if not 1 <= days <= INVITATION_DAYS_MAX:
        raise OperatorError(
            f"A link works for 1 to {INVITATION_DAYS_MAX} days, not {days:,}. Choose a shorter "
            "time."
        )
    link_base = base_url or _address_of_hub(state)
    if not is_private_way(link_base):
        raise OperatorError(
            f"Nobody can sign in at {link_base}: without https, passwords would be sent "
            "unencrypted. Serve the hub over https, and pass that address with --base-url."
        )
    now = datetime.now(UTC)
    seconds, links = days * DAY_SECONDS, []
    with _accounts_in(database_url or state) as database, database.transaction():
        for handle in dict.fromkeys(handles):
            code = Invitations(database).invite(handle, now, seconds=seconds)
            links.append((handle, invitation_link(link_base, code)))
        has_password = Passwords(database).has(handle)
    _show_links(links, format_time(int(now.timestamp()) + seconds), has_password)


def _show_links(links: list[tuple[str, str]], until: str, has_password: bool) -> None:
    """Print links by handle. ``has_password``: whether the last handle has one."""
    for handle, link in links:
        click.echo(link if len(links) == 1 else f"{handle}\t{link}")
    if len(links) > 1:
        say(
            f"Each link works once, until {until}, and is shown only once. Anyone who has it can "
            "sign in as its person: send it only to them."
        )
        return
    password = "a new password (the old one works until then)" if has_password else "a password"
    say(
        f"With this link, {handle} can set {password}. It works once, until {until}.\n"
        f"Anyone who has the link can sign in as {handle}: send it only to them. It is shown only "
        "once."
    )


def _accounts_in(where: str) -> Database:
    """The accounts of a hub. Warns if there were none, since the folder may be the wrong one."""
    if not is_postgres_url(where) and not os.path.isdir(where):
        say(
            f"Created the state folder {os.path.abspath(where)}. If your hub has another one, pass "
            "it with --state."
        )
    return Database(where)


def _address_of_hub(state: str) -> str:
    """The base URL of the hub with this state folder. Raises OperatorError if it is unknown."""
    base_url = last_base_url(state)
    if base_url is None:
        raise OperatorError(
            f"The address of the hub is unknown: no site was built with the state folder {state}. "
            "Start `hubctl serve` first, name the hub's own folder with --state, or pass the "
            "address with --base-url, for example --base-url https://prompts.example.org."
        )
    return base_url


@owner.command()
@accounts_options
@click.argument("handle")
def lock(accounts: str, handle: str) -> None:
    """Lock HANDLE at once: no one can sign in or publish as this owner.

    Ends sessions and open invitations; rejects tokens and CI jobs. Published prompts stay.
    `hubctl owner unlock` reverses it: password and tokens work again.

    \b
      hubctl owner lock ann
    """
    with open_accounts(accounts) as database:
        is_new = locks.lock(database, handle)
    was = "is locked" if is_new else "was already locked"
    say(f"{handle} {was}. To unlock: hubctl owner unlock {handle}")


@owner.command()
@accounts_options
@click.argument("handle")
def unlock(accounts: str, handle: str) -> None:
    """Unlock HANDLE: password and tokens work again.

    If someone else may know them, first revoke the tokens (`hubctl token revoke`) and send a new
    invitation (`hubctl owner invite`), which sets a new password.

    \b
      hubctl owner unlock ann
    """
    with open_accounts(accounts) as database:
        is_new = locks.unlock(database, handle)
    say(f"{handle} {'is unlocked' if is_new else 'was not locked'}.")


@owner.command()
@accounts_options
@click.argument("handle")
@click.option("--remove", is_flag=True, help="Make HANDLE no operator any more.")
def operator(accounts: str, handle: str, remove: bool) -> None:
    """Let HANDLE manage the accounts in the browser, on the page People.

    Operators invite people, lock them, and end what they can do. They get no right to the prompts
    of others.

    \b
      hubctl owner operator ann
    """
    with open_accounts(accounts) as database:
        Accounts(database).set_operator(handle, not remove)
    say(f"{handle} is {'no longer an' if remove else 'an'} operator of this hub.")


@owner.command("list")
@accounts_options
def list_owners(accounts: str) -> None:
    """List the owners, their number of active tokens, and how they sign in.

    Columns, separated by tabs in a pipe: handle, creation time, active tokens, ways to sign in
    (password, openid, invited, none), "team" or "locked", and "operator" for one.

    \b
      hubctl owner list
    """
    with open_accounts(accounts) as database:
        owners = Accounts(database).owners()
        ways = ways_to_sign_in(database)

    def cells(owner: Owner) -> tuple[str, ...]:
        none = ["team" if owner.kind == "team" else "none"]
        way = ["locked"] if owner.locked_at else ways.get(owner.handle, none)
        way = [*way, "operator"] if owner.is_operator else way
        return owner.handle, format_time(owner.created_at), str(owner.tokens), ", ".join(way)

    echo_table(
        ("handle", "created", "active tokens", "signs in with"),
        [*map(cells, owners)],
        "No owners yet. Invite one with `hubctl owner invite HANDLE`.",
    )
