"""``hubctl check``: checks the content tree."""

import click

from builder.model.plural import counted
from builder.store import content as tree
from cli.options import content_option
from cli.standard_error import say
from operate import content_check


@click.command()
@content_option
def check(content: str) -> None:
    """Check the content folder, and list each fault with its file.

    Checks names, records, hashes, the order of versions, variables, changes of labels, and files
    that do not belong there. Warns about front matter that cannot be read, and about changes of
    labels that are out of order. Changes nothing. Exits 1 if there is a fault.

    \b
      hubctl check --content my-prompts
    """
    faults = 0
    for fault in content_check.check(content):
        click.echo(f"Warning: {fault}" if fault.is_warning else str(fault))
        faults += not fault.is_warning
    if faults:
        raise click.ClickException(
            f"{counted(faults, 'fault')} in {content}. Fix or remove these files."
        )
    owners = tree.list_owners(content)
    repos = sum(len(tree.list_repos(content, owner)) for owner in owners)
    say(f"No faults in {content}: {counted(repos, 'prompt')}, {counted(len(owners), 'owner')}.")
