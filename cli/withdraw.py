"""``hubctl withdraw``: takes back a version of a prompt, or the whole prompt."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from builder.model.names import LATEST, Version
from builder.model.plural import counted
from builder.model.request_bodies import WithdrawalDraft
from builder.model.withdrawn import BECAUSE, tell
from builder.store import content as tree
from builder.text.one_line import one_line
from cli.activity import note_change
from cli.build import ON_WAIT
from cli.options import Places, places_options, split_repo
from cli.site import update_site
from cli.standard_error import say
from cli.stores import open_store
from publisher.write.drafts import make_change

if TYPE_CHECKING:
    from publisher.write.withdraw import Withdrawn

LINE_CHARS_MAX = 2000
_THEN = "Deploy the site, and purge your CDN, if you have one."


@click.command()
@places_options
@click.argument("repo", metavar="OWNER/NAME[@VERSION]")
@click.option(
    "--reason", type=click.Choice([*BECAUSE]), required=True, help="Why; readers see this."
)
@click.option(
    "--note",
    metavar="TEXT",
    default="",
    help="What readers should do now. Do not repeat what you withdraw.",
)
@click.option(
    "--move-labels",
    metavar="VERSION",
    help="Move its labels to VERSION in the same step. Without it, they name no version.",
)
@click.option("--by", metavar="HANDLE", help="Name to record as who withdrew it. [default: OWNER]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def withdraw(
    places: Places, repo: str, by: str | None, yes: bool, note: str, **fields: str | None
) -> None:
    """Withdraw VERSION of OWNER/NAME; without @VERSION, the whole prompt.

    Deletes the text from the content, and updates the site that was built last. Readers get
    status 410, which says when and why it was withdrawn. The number is never given again, and
    neither is the name of a prompt that is withdrawn whole. This cannot be undone. Copies in
    backups, in a git history, in caches and on other hosts stay. If a secret leaked, revoke it
    first.

    \b
      hubctl withdraw ann/story@1.2.0 --reason secret --note "Use 1.2.1." --move-labels 1.2.1
    """
    # Loaded late: other commands import this module to read its options.
    from publisher.write.withdraw import preview
    from publisher.write.withdraw import withdraw as withdraw_for_good

    where, _, version = repo.partition("@")
    owner, name = split_repo(where)
    if "@" in repo and not version:
        raise click.BadParameter(
            f"{repo!r} has no version after the @. Give OWNER/NAME@X.Y.Z, or only OWNER/NAME.",
            param_hint="OWNER/NAME[@VERSION]",
        )
    given = {key: value for key, value in fields.items() if value is not None}
    draft = make_change(WithdrawalDraft, given | {"note": note.strip()})
    chosen, who = version or None, by or owner
    with open_store(places) as store:
        if not yes:
            _confirm(preview(places.content, owner, name, chosen, draft, by=who), draft)
        done = withdraw_for_good(store, owner, name, chosen, draft, by=who)
    if done.unchanged:
        click.echo(one_line(f"Already withdrawn: {tell(repo, done)}", LINE_CHARS_MAX))
    else:
        click.echo(f"{repo} withdrawn")
        note_change(places, "withdrawn", owner, done.what)
        if done.labels:
            then = "" if done.move_labels else " To move one, run `hubctl label set`."
            say(f"{done.about_labels}{then}")
    if places.database_url:
        say(f"Each node takes it off its site within seconds. {_THEN}")
        return
    _update(places, done, f"{repo} is withdrawn")
    say(_THEN)


def _confirm(planned: Withdrawn, draft: WithdrawalDraft) -> None:
    """Ask the user at the terminal for confirmation. Raises click.UsageError without a terminal,
    click.Abort.
    """
    if planned.unchanged:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to ask at. Pass --yes to withdraw it.")
    what = f"{planned.owner}/{planned.name}"
    if planned.version:
        click.echo(f"Version {planned.version} of {what} loses its text {BECAUSE[draft.reason]}.")
    else:
        click.echo(
            f"{what} loses {counted(len(planned.versions), 'version')} {BECAUSE[draft.reason]}. "
            "Nobody can publish under its name again."
        )
    if planned.labels:
        click.echo(planned.about_labels)
    if planned.latest != planned.was_latest:
        now = planned.latest or "none: it disappears from lists, search and feeds"
        click.echo(f"Its latest version is {planned.was_latest}, and will be {now}.")
    click.confirm("This cannot be undone. Withdraw it?", abort=True)


def _update(places: Places, done: Withdrawn, what: str) -> None:
    """Take the text off the site at once, and build the rest. The files of labels that have moved
    are replaced by the build, and removed only if it fails: their readers meet no gap.
    """
    labels = done.labels or []
    moved = labels if done.move_labels and not done.unchanged else []
    removed = _take_off(places, done, [label for label in labels if label not in moved])
    say(f"Removed {counted(removed, 'file')} from {places.out}.")
    is_built = False
    try:
        is_built = update_site(places, [(done.owner, done.name)], what)
    finally:
        if moved and not is_built:
            _take_off(places, done, moved)


def _take_off(places: Places, done: Withdrawn, labels: list[str]) -> int:
    """Remove the files that show a withdrawn text from the site, also at these labels; returns
    their number.
    """
    from builder.pipeline.take_off import take_off

    alive = tree.list_versions(places.content, done.owner, done.name).versions
    gone = [Version.parse(version) for version in done.versions]
    following = [next((one for one in alive if one > version), None) for version in gone]
    has_latest = not alive or (bool(gone) and gone[-1] > alive[-1])
    versions = {str(one) for one in (*gone, *following) if one}
    labels = [*labels, LATEST] if has_latest else labels
    return take_off(places.out, places.state, done.owner, done.name, versions, labels, ON_WAIT)
