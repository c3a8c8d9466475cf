"""``hubctl label``: moves the labels of a prompt, and protects them."""

from operator import attrgetter

import click

from builder.model.errors import OperatorError
from builder.model.labels import Labels
from builder.model.names import check_label, check_owner, check_repo
from builder.model.records import NOTE_BYTES_MAX
from builder.model.request_bodies import LabelDraft, LabelRemoval
from builder.store.content import check_folder
from builder.store.labels import read_labels
from builder.text.one_line import one_line
from cli.activity import note_change
from cli.options import Places, accounts_options, content_option, places_options, split_repo
from cli.site import update_site
from cli.standard_error import say
from cli.stores import open_store
from cli.table import echo_list
from publisher.accounts.database import open_accounts
from publisher.accounts.protected import ProtectedLabels
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
_json_option = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


class _Labels(click.Group):
    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name == "move":
            context.fail("No such command 'move'. `hubctl label set` creates and moves labels.")
        return super().get_command(context, name)


@click.group(cls=_Labels)
def label() -> None:
    """Move, list and protect the labels of a prompt's versions."""


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


@label.command("list")
@content_option
@_repo_argument
@_json_option
def list_labels(content: str, repo: str, is_json: bool) -> None:
    """List the labels of OWNER/NAME.

    Columns, separated by tabs in a pipe: label, version, time of the last move, who moved it, note.

    \b
      hubctl label list ann/story
    """
    echo_list(
        ("label", "version", "moved", "by", "note"),
        [*_read(content, repo).current.values()],
        lambda one: (one.label, str(one.version), one.moved_at, one.moved_by, _line(one.note)),
        is_json=is_json,
        empty=f"No labels. Set one with `hubctl label set {repo} LABEL VERSION`.",
    )


@label.command()
@content_option
@_repo_argument
@click.argument("label")
@_json_option
def history(content: str, repo: str, label: str, is_json: bool) -> None:
    """List all moves of LABEL of OWNER/NAME, the newest first.

    Columns, separated by tabs in a pipe: time, from, to, who moved it, note. A dash stands for no
    version.

    \b
      hubctl label history ann/story production
    """
    moves = _read(content, repo).history.get(check_label(label), [])
    if not moves:
        raise OperatorError(
            f"{repo} never had a label {label}. Run `hubctl label list {repo}` to see its labels."
        )
    versions = attrgetter("moved_at", "previous", "version", "moved_by")
    echo_list(
        ("moved", "from", "to", "by", "note"),
        moves,
        lambda one: [*(text or "-" for text in versions(one)), _line(one.note)],
        is_json=is_json,
    )


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


def _read(content: str, repo: str) -> Labels:
    owner, name = split_repo(repo)
    check_folder(content)
    return read_labels(content, check_owner(owner), check_repo(name))


def _line(note: str) -> str:
    return one_line(note, NOTE_BYTES_MAX)
