"""``hubctl publish``: a file becomes the next version of a repo."""

from typing import Any, BinaryIO

import click

from builder.model.errors import OperatorError
from builder.model.names import BUMPS
from cli.options import content_option
from publisher.write.drafts import make_draft
from publisher.write.publish import publish as publish_draft

HINT = "Run `hubctl build` to show it on the site; `hubctl serve --watch` does so by itself."


@click.command()
@content_option
@click.argument("repo", metavar="OWNER/NAME")
@click.argument("file", type=click.File("rb"))
@click.option("-m", "--changelog", metavar="TEXT", default="", help="What has changed, and why.")
@click.option(
    "--bump", type=click.Choice(BUMPS), default="patch", show_default=True,
    help="Which number of the version goes up. A repo's first version is 1.0.0 in any case.",
)  # fmt: skip
@click.option("--title", metavar="TEXT", help="One line for people. [default: as before, or NAME]")
@click.option(
    "--description", metavar="TEXT", help="[default: as before, or the first sentence of the text]"
)
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True,
    help="May be given several times; replaces the tags of before.",
)  # fmt: skip
@click.option(
    "--license", metavar="ID", help="As SPDX names it: CC0-1.0, MIT. [default: as before]"
)
@click.option(
    "--base-version", metavar="X.Y.Z",
    help="Publish only if this is still the latest version: nobody's change gets lost.",
)  # fmt: skip
@click.option("--publisher", metavar="HANDLE", help="Who publishes. [default: OWNER]")
def publish(content: str, repo: str, file: BinaryIO, publisher: str | None, **fields: Any) -> None:
    """Store FILE (- is standard input) as the next version of OWNER/NAME.

    The first publication makes the repo, and the owner. Title, description, tags, license,
    variables and parameters can stand in the file's front matter too; options win over it.
    Text and metadata that are the latest version's already make no new version.
    """
    owner, slash, name = repo.partition("/")
    if not slash:
        raise click.BadParameter("give OWNER/NAME, with a slash", param_hint="OWNER/NAME")
    try:
        text = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise OperatorError(
            f"The text is not UTF-8 at byte {error.start}; save it in this encoding."
        ) from None
    fields["tags"] = [*fields["tags"]] or None
    given = {field: value for field, value in fields.items() if value is not None}
    draft = make_draft({"content": text} | given)
    done = publish_draft(content, owner, name, draft, publisher=publisher or owner)
    for warning in done.warnings:
        click.echo(f"Warning: {warning}", err=True)
    click.echo(f"{owner}/{name} {done.version}{' unchanged' if done.unchanged else ''}")
    if not done.unchanged:
        click.echo(HINT, err=True)
