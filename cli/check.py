"""``hubctl check``: is the content tree sound?"""

import click

from builder.store import content as tree
from cli.options import content_option


@click.command()
@content_option
def check(content: str) -> None:
    """Verify the content tree and name each fault with its file.

    Looks at names, records, hashes, the order of versions, variables, and files that do not
    belong. Warns of front matter over the limits. Changes nothing. Exit status 1 if there is a
    fault.
    """
    faults = 0
    for fault in tree.check(content):
        click.echo(f"Warning: {fault}" if fault.is_warning else str(fault))
        faults += not fault.is_warning
    if faults:
        raise click.ClickException(f"{faults} fault{'s' if faults > 1 else ''} in {content}.")
    owners = tree.list_owners(content)
    repos = sum(len(tree.list_repos(content, owner)) for owner in owners)
    click.echo(f"{content} is sound: {repos} repos of {len(owners)} owners.", err=True)
