"""``hubctl import``: another collection's prompts become repos."""

from collections import Counter
from collections.abc import Sequence

import click

from builder.model.errors import RequestError
from cli.options import content_option
from cli.progress import Progress
from cli.publish import HINT
from publisher.importers.items import (
    CONTRIBUTOR_COLUMNS,
    PROMPT_COLUMNS,
    TAGS_COLUMNS,
    TITLE_COLUMNS,
    Columns,
)
from publisher.importers.run import Options, Outcome, import_source
from publisher.write.fields import parse_field

SHOWN_WARNINGS = 20
SHOWN_OWNERS = 20


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
@click.option(
    "--allow-owner", "allowed_owners", metavar="NAME", multiple=True,
    help="Update repos of this owner, too. Repos of other owners than --owner are only created, "
    "never updated. May be given several times.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would happen.")
def imports(
    content: str, source: str, owner: str, title_column: str | None, prompt_column: str | None,
    tags_column: tuple[str, ...], contributor_column: str | None, license: str | None,
    tags: tuple[str, ...], changelog: str | None, allowed_owners: tuple[str, ...],
    dry_run: bool,
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
    version of its repo. A source may name owners, but updates only the repos of --owner and
    --allow-owner. What cannot be imported is named with its place, and the rest goes on. Exits 1
    if any prompt is rejected, or is a change to a repo of another owner.

    \b
      hubctl import prompts.csv --owner ann --allow-owner bob
    """
    columns = Columns(title_column, prompt_column, tags_column, contributor_column)
    options = Options(owner, columns, license, tags, changelog, dry_run, allowed_owners)
    with Progress() as progress:
        outcome = import_source(source, content, options, progress)
    tell(outcome, options)
    failed = len(outcome.rejected) + len(outcome.refused)
    if failed:
        raise click.ClickException(f"{failed:,} could not be imported.")


def tell(outcome: Outcome, options: Options) -> None:
    """What happened, or would: the sum on standard output, the rest on standard error."""
    for warning in outcome.warnings[:SHOWN_WARNINGS]:
        click.echo(f"Warning: {warning}", err=True)
    if len(outcome.warnings) > SHOWN_WARNINGS:
        click.echo(f"… and {len(outcome.warnings) - SHOWN_WARNINGS:,} more warnings", err=True)
    for where, reason in outcome.rejected:
        click.echo(f"Rejected: {where}: {reason}", err=True)
    if options.dry_run:
        for what, repos in (("create", outcome.created), ("update", outcome.updated)):
            for repo in repos:
                click.echo(f"would {what} {repo}")
    _tell_of_others(outcome, options)
    click.echo(
        f"{len(outcome.created):,} repos {'to create' if options.dry_run else 'created'}, "
        f"{len(outcome.updated):,} {'to update' if options.dry_run else 'updated'}, "
        f"{len(outcome.unchanged):,} unchanged, {len(outcome.rejected):,} rejected, "
        f"{len(outcome.refused):,} refused"
    )
    if (outcome.created or outcome.updated) and not options.dry_run:
        click.echo(HINT, err=True)


def _tell_of_others(outcome: Outcome, options: Options) -> None:
    created = [repo for repo in outcome.created if not repo.startswith(f"{options.owner}/")]
    if created:
        click.echo(f"New repos of other owners: {_by_owner(created)}", err=True)
    if outcome.refused:
        owners = sorted({repo.partition("/")[0] for repo in outcome.refused})
        allow = " ".join(f"--allow-owner {owner}" for owner in owners[:SHOWN_OWNERS])
        click.echo(
            f"Refused: {len(outcome.refused):,} changes to repos of other owners: "
            f"{_by_owner(outcome.refused)}. To update these repos, add {allow}",
            err=True,
        )


def _by_owner(repos: Sequence[str]) -> str:
    """``ann 2, bob 1``: how many of the repos each owner has, most first."""
    counts = Counter(repo.partition("/")[0] for repo in repos).most_common()
    told = ", ".join(f"{owner} {count:,}" for owner, count in counts[:SHOWN_OWNERS])
    more = len(counts) - SHOWN_OWNERS
    return f"{told} and {more:,} owners more" if more > 0 else told
