"""What ``hubctl import`` says at its end."""

from collections import Counter
from collections.abc import Sequence

import click

from builder.model.plural import counted
from builder.text.one_line import one_line
from publisher.importers.run import Options, Outcome

SHOWN_WARNINGS = 20
SHOWN_OWNERS = 20
LINE_CHARS_MAX = 1_000


def tell(outcome: Outcome, options: Options) -> None:
    """Print what happened, or would: the totals on standard output, the rest on standard error."""
    for warning in outcome.warnings[:SHOWN_WARNINGS]:
        click.echo(one_line(f"Warning: {warning}", LINE_CHARS_MAX), err=True)
    if len(outcome.warnings) > SHOWN_WARNINGS:
        click.echo(
            f"… and {counted(len(outcome.warnings) - SHOWN_WARNINGS, 'more warning')}", err=True
        )
    for where, reason in outcome.rejected:
        click.echo(one_line(f"Rejected: {where}: {reason}", LINE_CHARS_MAX), err=True)
    if options.dry_run:
        for what, repos in (("create", outcome.created), ("update", outcome.updated)):
            for repo in repos:
                click.echo(f"would {what} {repo}")
    _tell_of_others(outcome, options)
    for line in outcome.placeholders.tell(options.dry_run):
        click.echo(line, err=True)
    click.echo(
        f"{counted(len(outcome.created), 'prompt')} "
        f"{'to create' if options.dry_run else 'created'}, {len(outcome.updated):,} "
        f"{'to update' if options.dry_run else 'updated'}, {len(outcome.unchanged):,} unchanged, "
        f"{len(outcome.rejected):,} rejected, {len(outcome.refused):,} refused"
    )
    _tell_of_histories(outcome, options)


def _tell_of_histories(outcome: Outcome, options: Options) -> None:
    if outcome.versions or outcome.labels:
        to_do = options.dry_run
        click.echo(
            f"{counted(outcome.versions, 'version')} {'to publish' if to_do else 'published'}, "
            f"{counted(outcome.labels, 'label')} {'to move' if to_do else 'moved'}"
        )


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
