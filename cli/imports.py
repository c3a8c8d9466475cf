"""``hubctl import``: another collection's prompts become repos."""

import click

from builder.errors import RequestError
from cli.options import content_option
from cli.progress import Progress
from cli.publish import HINT
from publisher.fields import parse_field
from publisher.importers.items import (
    CONTRIBUTOR_COLUMNS,
    PROMPT_COLUMNS,
    TAGS_COLUMNS,
    TITLE_COLUMNS,
    Columns,
)
from publisher.importers.run import Options, Outcome, import_source

SHOWN_WARNINGS = 20


def column_option(option: str, what: str, usual: tuple[str, ...], **settings: object):
    return click.option(
        option, metavar="COLUMN", **settings,
        help=f"Column (or key) of {what}. [default: {' or '.join(usual)}]",
    )  # fmt: skip


def check_tags(context: click.Context, option: click.Parameter, tags: tuple[str, ...]):
    try:
        return tuple(parse_field("tags", list(tags)))
    except RequestError as error:
        raise click.BadParameter(error.details[0].message) from None


@click.command("import")
@content_option
@click.argument("source", metavar="FILE_OR_DIR", type=click.Path(exists=True))
@click.option(
    "--owner", metavar="HANDLE", default="imported", show_default=True,
    help="Owner of the prompts for which the source names none.",
)  # fmt: skip
@column_option("--title-column", "the titles, of which names are made", TITLE_COLUMNS)
@column_option("--prompt-column", "the texts", PROMPT_COLUMNS)
@column_option("--tags-column", "tags; may be given several times", TAGS_COLUMNS, multiple=True)
@column_option(
    "--contributor-column", "the owners ('' ignores it: all go to --owner)", CONTRIBUTOR_COLUMNS
)
@click.option("--license", metavar="ID", help="License of the prompts that name none: CC0-1.0.")
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True, callback=check_tags,
    help="Tag for every prompt; may be given several times.",
)  # fmt: skip
@click.option(
    "-m", "--changelog", metavar="TEXT",
    help="[default: Imported from FILE, or Changed in FILE for a new version]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would happen.")
def imports(
    content: str, source: str, owner: str, title_column: str | None, prompt_column: str | None,
    tags_column: tuple[str, ...], contributor_column: str | None, license: str | None,
    tags: tuple[str, ...], changelog: str | None, dry_run: bool,
) -> None:  # fmt: skip
    """Publish every prompt of a file or folder.

    \b
    .csv .tsv            a table: a prompt a row
    .jsonl .ndjson       an object a line
    .md                  a prompt, with or without front matter
    .prompt              dotprompt
    .prompty             prompty
    .prompt.yml          the prompt format of GitHub Models
    SKILL.md             a skill
    a folder             all such prompt files below it; no tables

    Can be repeated: a prompt that has not changed is left alone, one that has becomes a new
    version of its repo. What cannot be imported is named with its place, and the rest goes on.
    Exit status 1 if there is such a one.
    """
    columns = Columns(title_column, prompt_column, tags_column, contributor_column)
    options = Options(owner, columns, license, tags, changelog, dry_run)
    with Progress() as progress:
        outcome = import_source(source, content, options, progress)
    tell(outcome, dry_run)
    if outcome.rejected:
        raise click.ClickException(f"{len(outcome.rejected):,} could not be imported.")


def tell(outcome: Outcome, dry_run: bool) -> None:
    """What happened, or would: the sum on standard output, the rest on standard error."""
    for warning in outcome.warnings[:SHOWN_WARNINGS]:
        click.echo(f"Warning: {warning}", err=True)
    if len(outcome.warnings) > SHOWN_WARNINGS:
        click.echo(f"… and {len(outcome.warnings) - SHOWN_WARNINGS:,} more warnings", err=True)
    for where, reason in outcome.rejected:
        click.echo(f"Rejected: {where}: {reason}", err=True)
    if dry_run:
        for what, repos in (("create", outcome.created), ("update", outcome.updated)):
            for repo in repos:
                click.echo(f"would {what} {repo}")
    click.echo(
        f"{len(outcome.created):,} repos {'to create' if dry_run else 'created'}, "
        f"{len(outcome.updated):,} {'to update' if dry_run else 'updated'}, "
        f"{len(outcome.unchanged):,} unchanged, {len(outcome.rejected):,} rejected"
    )
    if (outcome.created or outcome.updated) and not dry_run:
        click.echo(HINT, err=True)
