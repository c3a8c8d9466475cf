"""``hubctl label``: moves the labels of a prompt, and protects them."""

import click

from builder.model.names import check_owner
from builder.model.request_bodies import LabelDraft, LabelRemoval
from cli.activity import note_change
from cli.options import Places, accounts_options, places_options, split_repo
from cli.site import update_site
from cli.standard_error import say
from cli.stores import open_store
from publisher.accounts.database import open_accounts
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.tokens import Accounts
from publisher.write.drafts import make_change
from publisher.write.labels import change_label

_repo_argument = click.argument("repo", metavar="OWNER/NAME")
_note_option = click.option("-m", "--note", metavar="TEXT", default="", help="Why it moves.")
_by_option = click.option(
    "--by", metavar="HANDLE", help="Name to record as who moved it. [default: OWNER]"
)
_expected_option = click.option(
    "--expected",
    metavar="X.Y.Z",
    help="Change the label only if it names this version now, so that no move is overwritten.",
)


@click.group()
def label() -> None:
    """Move and protect the labels of a prompt's versions."""


@label.command("set")
@places_options
@_repo_argument
@click.argument("label")
@click.argument("version")
@_note_option
@_expected_option
@_by_option
def set_label(
    places: Places, repo: str, label: str, version: str, by: str | None, **fields: str | None
) -> None:
    """Let LABEL of OWNER/NAME name VERSION.

    Creates the label, or moves it. To roll back, name the older version.

    \b
      hubctl label set ann/story production 1.2.0 -m "Passed the review"
    """
    _change(places, repo, label, make_change(LabelDraft, {"version": version} | _given(fields)), by)


@label.command()
@places_options
@_repo_argument
@click.argument("label")
@_note_option
@_expected_option
@_by_option
def remove(places: Places, repo: str, label: str, by: str | None, **fields: str | None) -> None:
    """Remove LABEL from OWNER/NAME. Its history stays.

    \b
      hubctl label remove ann/story canary
    """
    _change(places, repo, label, make_change(LabelRemoval, _given(fields)), by)


def _change(
    places: Places, repo: str, label: str, draft: LabelDraft | LabelRemoval, by: str | None
) -> None:
    owner, name = split_repo(repo)
    with open_store(places) as store:
        done = change_label(store, owner, name, label, draft, by=by or owner)
    now = f"names {done.version}" if done.version else "is removed"
    click.echo(f"{owner}/{name} {label} {now}{' already' if done.unchanged else ''}")
    if not done.unchanged:
        note_change(places, "label_moved", owner, done.what)
        update_site(places, [(owner, name)], "The label is changed")


@label.command()
@accounts_options
@click.argument("where", metavar="OWNER[/NAME]")
@click.argument("label")
def protect(accounts: str, where: str, label: str) -> None:
    """Protect LABEL of one prompt, or of all prompts of OWNER.

    Over HTTP, a protected label moves only with a token that names it: see `hubctl token create
    --label`. `hubctl label set` moves it as before.

    \b
      hubctl label protect ann production
    """
    _set_protected(accounts, where, label, is_on=True)


@label.command()
@accounts_options
@click.argument("where", metavar="OWNER[/NAME]")
@click.argument("label")
def unprotect(accounts: str, where: str, label: str) -> None:
    """Let every token that may move labels move LABEL again.

    \b
      hubctl label unprotect ann production
    """
    _set_protected(accounts, where, label, is_on=False)


def _set_protected(place: str, where: str, label: str, *, is_on: bool) -> None:
    owner, _, name = where.partition("/")
    check_owner(owner)
    with open_accounts(place) as database:
        Accounts(database).check_known(owner)
        is_new = ProtectedLabels(database).set(owner, name, label, is_on)
    state = "protected" if is_on else "not protected"
    was = "is" if is_new else "was already"
    say(f"The label {label} of {owner}/{name or '*'} {was} {state}.")


def _given(fields: dict[str, str | None]) -> dict[str, str]:
    return {field: value for field, value in fields.items() if value is not None}
