"""``hubctl team``: manages teams, whose members publish for one owner under their own names."""

import click

from builder.model.errors import HubError
from cli.options import Places, accounts_options, places_options
from cli.site import update_site
from cli.standard_error import say
from cli.stores import open_store
from cli.table import echo_table
from publisher.accounts.database import open_accounts
from publisher.accounts.teams import ROLES, WRITER, Teams
from publisher.accounts.tokens import Accounts, format_time
from publisher.write.profile import mark_team


@click.group()
def team() -> None:
    """Create teams, and add, remove and list their members."""


@team.command()
@places_options
@click.argument("team")
@click.option(
    "--maintainer", metavar="PERSON", required=True, help="First member, who adds the others."
)
def create(places: Places, team: str, maintainer: str) -> None:
    """Create TEAM, an owner without a sign-in, whose members publish for it.

    An owner without a sign-in, such as one that `hubctl owner add` added, becomes a team; its
    prompts and tokens stay. A person cannot become one.

    \b
      hubctl team create support --maintainer ann
    """
    with open_accounts(places.database_url or places.state) as database:
        Teams(database).create(team, maintainer)
        created_at = format_time(Accounts(database).created_at(team))
    say(f"Created the team {team}. Add a member: hubctl team add {team} PERSON")
    try:
        with open_store(places) as store:
            mark_team(store, team, created_at)
    except HubError as error:
        say(f"Warning: its profile does not say yet that it is a team. {error}")
        return
    update_site(places, [(team, None)], "The team is created")


@team.command()
@accounts_options
@click.argument("team")
@click.argument("person")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default=WRITER,
    show_default=True,
    help="A writer writes drafts, publishes, and moves labels that are not protected. A maintainer "
    "may do everything.",
)
def add(accounts: str, team: str, person: str, role: str) -> None:
    """Add PERSON to TEAM, or give a member another role.

    \b
      hubctl team add support bob
      hubctl team add support bob --role maintainer
    """
    with open_accounts(accounts) as database:
        is_new = Teams(database).put(team, person, role)
    say(f"{person} is {'now' if is_new else 'already'} a {role} of {team}.")


@team.command()
@accounts_options
@click.argument("team")
@click.argument("person")
def remove(accounts: str, team: str, person: str) -> None:
    """Remove PERSON from TEAM. Their tokens no longer work there.

    \b
      hubctl team remove support bob
    """
    with open_accounts(accounts) as database:
        Teams(database).remove(team, person)
    say(f"{person} is no longer a member of {team}.")


@team.command("list")
@accounts_options
@click.argument("team", required=False)
def list_teams(accounts: str, team: str | None) -> None:
    """List all teams, or the members of TEAM.

    Columns, separated by tabs in a pipe: team, members, maintainers, creation time; with TEAM:
    person, role, time when it began.

    \b
      hubctl team list
      hubctl team list support
    """
    with open_accounts(accounts) as database:
        teams = Teams(database)
        if team:
            rows = [(*one[:2], format_time(one.since)) for one in teams.members(team)]
        else:
            rows = [(*one[:3], format_time(one[3])) for one in teams.list()]
    columns = ("person", "role", "since") if team else ("team", "members", "maintainers", "created")
    empty = f"No team {team}." if team else "No teams yet. Create one with `hubctl team create`."
    echo_table(columns, [[*map(str, row)] for row in rows], empty)
