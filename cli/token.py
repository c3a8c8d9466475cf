"""``hubctl token``: manages the tokens that publish over HTTP in an owner's name."""

import re
import socket

import click

from cli.options import accounts_options
from cli.standard_error import say
from cli.table import echo_table
from publisher.accounts.database import open_accounts
from publisher.accounts.token import ALL_RIGHTS, RIGHTS, Grant, Token
from publisher.accounts.tokens import EXPIRES_DAYS_DEFAULT, Accounts, format_time

_UNIT_DAYS = {"d": 1, "w": 7, "y": 365}


def parse_expiry(context: click.Context, option: click.Parameter, text: str) -> int:
    """The days of ``90d``, ``12w`` or ``1y``."""
    found = re.fullmatch(r"([0-9]{1,6})([dwy])", text)
    if not found:
        raise click.BadParameter(
            f"{text!r} is not a time. Give days, weeks or a year, like 90d, 12w or 1y."
        )
    return int(found[1]) * _UNIT_DAYS[found[2]]


@click.group()
def token() -> None:
    """Create, list and revoke the tokens that publish over HTTP."""


@token.command()
@accounts_options
@click.argument("owner")
@click.option(
    "--name",
    metavar="NAME",
    default=lambda: socket.gethostname() or "token",
    help="Name of the token, like `laptop` or `ci`, to recognize it by. [default: the name of this "
    "machine]",
)
@click.option(
    "--repo",
    "repos",
    metavar="NAME",
    multiple=True,
    help="Limit the token to this prompt, which may be new. Can be repeated. [default: all prompts "
    "of OWNER]",
)
@click.option(
    "--expires",
    "expires_days",
    metavar="TIME",
    default=f"{EXPIRES_DAYS_DEFAULT}d",
    show_default=True,
    callback=parse_expiry,
    help="Time until it expires: days, weeks or a year (90d, 12w, 1y); at most 365 days.",
)
@click.option(
    "--right",
    "rights",
    type=click.Choice(ALL_RIGHTS),
    multiple=True,
    help="What the token may do: publish, move labels, or only read (each token reads a private "
    "hub). Can be repeated. [default: publish and label]",
)
@click.option(
    "--label",
    "labels",
    metavar="LABEL",
    multiple=True,
    help="Limit the token to moving this label; moves it even if it is protected. Can be repeated. "
    "[default: all labels that are not protected]",
)
def create(
    accounts: str,
    owner: str,
    name: str,
    repos: tuple[str, ...],
    expires_days: int,
    rights: tuple[str, ...],
    labels: tuple[str, ...],
) -> None:
    """Create a token that publishes, moves labels and reads as OWNER.

    Prints only the token on standard output. It is shown once: the hub stores only its hash.

    \b
      HUB_TOKEN=$(hubctl token create ann --name ci --repo story --expires 30d)
      hubctl token create ann --name release --right label --label production
      hubctl token create ann --name app --right read
    """
    with open_accounts(accounts) as database:
        text, made = Accounts(database).create_token(
            owner, name, Grant(repos, rights or RIGHTS, labels), expires_days
        )
    click.echo(text)
    does = "reads" if made.only_reads else f"{made.abilities()} in {made.scope()}"
    say(
        f"Token {made.id} ({made.name}) {does} "
        f"until {format_time(made.expires_at)}.\n"
        "It is shown only once. Keep it secret, and out of git.\n"
        'Put it in HUB_TOKEN for hub, or send it: curl -H "Authorization: Bearer $HUB_TOKEN" …'
    )


@token.command("list")
@accounts_options
@click.argument("owner", required=False)
def list_tokens(accounts: str, owner: str | None) -> None:
    """List all tokens, or those of OWNER.

    Includes tokens that expired or were revoked, the newest 1,000 of an owner. Columns,
    separated by tabs in a pipe: id, owner, name, state (active, expired, revoked), prompts, expiry,
    last use (to the minute), what it may do.

    \b
      hubctl token list ann
    """
    with open_accounts(accounts) as database:
        tokens = Accounts(database).tokens(owner)
    echo_table(
        ("id", "owner", "name", "state", "prompts", "expires", "last use", "may"),
        [*map(_cells, tokens)],
        f"No tokens. Create one with `hubctl token create {owner or 'OWNER'} --name NAME`.",
    )


@token.command()
@accounts_options
@click.argument("owner")
@click.argument("name_or_id", metavar="NAME-OR-ID")
def revoke(accounts: str, owner: str, name_or_id: str) -> None:
    """Revoke a token of OWNER, at once and permanently.

    Its name can then be used for a new token. You can safely revoke a token twice.

    \b
      hubctl token revoke ann ci
    """
    with open_accounts(accounts) as database:
        gone, is_new = Accounts(database).revoke(owner, name_or_id)
    was = "is revoked" if is_new else f"was already revoked at {format_time(gone.revoked_at)}"
    say(f"Token {gone.id} ({gone.name}) of {owner} {was}.")


def _cells(token: Token) -> tuple[str, ...]:
    used = "never" if token.last_used_at is None else format_time(token.last_used_at)
    who = token.id, token.owner, token.name, token.state()
    return *who, token.scope(), format_time(token.expires_at), used, token.abilities()
