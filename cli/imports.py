"""``hubctl import``: publishes the prompts of another collection."""

import contextlib
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Sequence

import click

from builder.model.errors import RequestError
from builder.model.plural import counted
from cli.options import content_option, init_option, prepare_content
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
        option, metavar="COLUMN", **settings, show_envvar=True,
        envvar=f"HUB_IMPORT_{option.removeprefix('--').replace('-', '_').upper()}",
        help=f"Column or key with {what}. [default: {' or '.join(usual)}]",
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
    envvar="HUB_IMPORT_OWNER", show_envvar=True,
    help="Owner of prompts for which the source names no owner.",
)  # fmt: skip
@column_option("--title-column", "the titles, which become names", TITLE_COLUMNS)
@column_option("--prompt-column", "the texts", PROMPT_COLUMNS)
@column_option("--tags-column", "tags. Can be repeated", TAGS_COLUMNS, multiple=True)
@column_option("--contributor-column", "the owners; '' uses --owner for all", CONTRIBUTOR_COLUMNS)
@click.option(
    "--license", metavar="ID", envvar="HUB_IMPORT_LICENSE", show_envvar=True,
    help="License of prompts that name none, like CC0-1.0.",
)  # fmt: skip
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True, callback=check_tags,
    help="Tag to add to every prompt. Can be repeated.",
)  # fmt: skip
@click.option(
    "-m", "--changelog", metavar="TEXT",
    help="Changelog of each version. [default: Imported from FILE, or Changed in FILE]",
)  # fmt: skip
@click.option(
    "--allow-owner", "allowed_owners", metavar="NAME", multiple=True,
    envvar="HUB_IMPORT_ALLOW_OWNER", show_envvar=True,
    help="Also update existing prompts of this owner. By default, only those of --owner are "
    "updated. Can be repeated.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; list what would be created and updated."
)
@init_option
def imports(
    content: str, source: str, owner: str, title_column: str | None, prompt_column: str | None,
    tags_column: tuple[str, ...], contributor_column: str | None, license: str | None,
    tags: tuple[str, ...], changelog: str | None, allowed_owners: tuple[str, ...],
    dry_run: bool, init: bool,
) -> None:  # fmt: skip
    """Publish every prompt of a file or folder.

    \b
    .csv .tsv            a table, one prompt per row
    .jsonl .ndjson       one JSON object per line
    .md                  a prompt, with or without front matter
    .prompt              dotprompt
    .prompty             prompty
    .prompt.yml          the prompt format of GitHub Models
    SKILL.md             a skill
    a folder             all such files below it, except tables

    Messages of dotprompt, prompty, GitHub Models and JSON (role, content) become messages here.

    You can import the same source again: unchanged prompts are skipped, changed ones get a new
    version. A source can create prompts of any owner, but updates only those of --owner and
    --allow-owner. Prompts that cannot be imported are listed and skipped. Exits 1 if any prompt is
    rejected or refused.

    \b
      hubctl import prompts.csv --owner ann --allow-owner bob
    """
    columns = Columns(title_column, prompt_column, tags_column, contributor_column)
    options = Options(owner, columns, license, tags, changelog, dry_run, allowed_owners)
    with contextlib.ExitStack() as stack:
        if init and dry_run and not os.path.isdir(content):
            content = stack.enter_context(tempfile.TemporaryDirectory())
        prepare_content(content, init, f"import {shlex.quote(source)}")
        outcome = import_source(source, content, options, stack.enter_context(Progress()))
    tell(outcome, options)
    failed = len(outcome.rejected) + len(outcome.refused)
    if failed:
        raise click.ClickException(f"{counted(failed, 'prompt')} not imported.")


def tell(outcome: Outcome, options: Options) -> None:
    """Print what happened, or would: the totals on standard output, the rest on standard error."""
    for warning in outcome.warnings[:SHOWN_WARNINGS]:
        click.echo(f"Warning: {warning}", err=True)
    if len(outcome.warnings) > SHOWN_WARNINGS:
        click.echo(
            f"… and {counted(len(outcome.warnings) - SHOWN_WARNINGS, 'more warning')}", err=True
        )
    for where, reason in outcome.rejected:
        click.echo(f"Rejected: {where}: {reason}", err=True)
    if options.dry_run:
        for what, repos in (("create", outcome.created), ("update", outcome.updated)):
            for repo in repos:
                click.echo(f"would {what} {repo}")
    _tell_of_others(outcome, options)
    if told := outcome.placeholders.tell():
        click.echo(told, err=True)
    click.echo(
        f"{counted(len(outcome.created), 'prompt')} "
        f"{'to create' if options.dry_run else 'created'}, {len(outcome.updated):,} "
        f"{'to update' if options.dry_run else 'updated'}, {len(outcome.unchanged):,} unchanged, "
        f"{len(outcome.rejected):,} rejected, {len(outcome.refused):,} refused"
    )
    if (outcome.created or outcome.updated) and not options.dry_run:
        click.echo(HINT, err=True)


def _tell_of_others(outcome: Outcome, options: Options) -> None:
    created = [repo for repo in outcome.created if not repo.startswith(f"{options.owner}/")]
    if created:
        click.echo(f"New prompts of other owners: {_by_owner(created)}", err=True)
    if outcome.refused:
        owners = sorted({repo.partition("/")[0] for repo in outcome.refused})
        allow = " ".join(f"--allow-owner {owner}" for owner in owners[:SHOWN_OWNERS])
        click.echo(
            f"Refused: {counted(len(outcome.refused), 'change')} to prompts of other owners: "
            f"{_by_owner(outcome.refused)}. To update these prompts, add {allow}",
            err=True,
        )


def _by_owner(repos: Sequence[str]) -> str:
    """``ann 2, bob 1``: how many of the repos each owner has, highest first."""
    counts = Counter(repo.partition("/")[0] for repo in repos).most_common()
    told = ", ".join(f"{owner} {count:,}" for owner, count in counts[:SHOWN_OWNERS])
    more = len(counts) - SHOWN_OWNERS
    return f"{told} and {counted(more, 'more owner')}" if more > 0 else told
