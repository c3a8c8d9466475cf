"""Prints the summary of ``hubctl import``: some 40 lines, or everything if requested."""

import re
from collections.abc import Sequence

import click

from builder.model.plural import counted
from builder.text.one_line import one_line
from cli.standard_error import say
from cli.table import echo_table
from moving.importers.run import Options, Outcome

SHOWN_KINDS = 10
SHOWN_OWNERS = 20
LINE_CHARS_MAX = 1_000
SHORT_LINE_CHARS_MAX = 300
# The parts in which messages of one kind differ.
_detail = re.compile(
    r"(?<=the same as ).*|(?<=Left out ).*|'[^']*'|\{\{[^}]*\}\}|\$\{[^}]*\}|[\d,.]+"
)


def tell(outcome: Outcome, options: Options, *, verbose: bool) -> None:
    """Print what happened, or in a dry run what would: totals on standard output, the rest on
    standard error. In a dry run, the table of prompts and what is left out go to standard output,
    too.
    """
    if options.dry_run:
        _show_table(outcome)
    rejected = [f"{where}: {reason}" for where, reason in outcome.rejected]
    left_out = [
        f"{where}: {reason}"
        for one, reason, paths in outcome.passed_over
        for where in (paths if verbose and paths else [one])
    ]
    short = _show("Warning", outcome.warnings, verbose, err=True)
    short += _show("Left out", left_out, verbose, err=not options.dry_run)
    short += _show("Rejected", rejected, verbose or len(rejected) <= SHOWN_KINDS, err=True)
    short += sum(len(one.paths) for one in outcome.passed_over if not verbose)
    if short:
        say(f"Add --verbose to list {counted(short, 'more message')}.")
    for line in outcome.elsewhere:
        click.echo(one_line(line, LINE_CHARS_MAX), err=not options.dry_run)
    if outcome.elsewhere:
        say("Add --onto-others to import these as next versions instead.")
    _tell_of_refused(outcome)
    for line in outcome.placeholders.tell(options.dry_run):
        say(line)
    click.echo(_total(outcome, options))
    _tell_of_histories(outcome, options)


def _show_table(outcome: Outcome) -> None:
    rows = []
    for change, repos in (("new", outcome.created), ("update", outcome.updated)):
        for repo in repos:
            name, _, versions = repo.partition(" ")
            title = one_line(outcome.titles[name], LINE_CHARS_MAX)
            rows.append((name, versions.removeprefix("with "), change, title))
    if rows:
        echo_table(("name", "version", "change", "title"), rows)


def _show(what: str, messages: Sequence[str], verbose: bool, *, err: bool) -> int:
    """Print messages such as ``file: reason``: all, or the first of each kind and their number.
    Returns the number of messages that are not printed.
    """
    kinds: dict[str, list[str]] = {}
    for message in messages:
        reason = message.partition(": ")[2].partition(": ")[0]
        kinds.setdefault(message if verbose else _detail.sub("", reason), []).append(message)
    shown = [*kinds.values()] if verbose else [*kinds.values()][:SHOWN_KINDS]
    for first, *more in shown:
        line = one_line(f"{what}: {first}", LINE_CHARS_MAX if verbose else SHORT_LINE_CHARS_MAX)
        click.echo(f"{line} ({len(more):,} more like this)" if more else line, err=err)
    return len(messages) - len(shown)


def _total(outcome: Outcome, options: Options) -> str:
    to_do = options.dry_run
    total = (
        f"{counted(len(outcome.created), 'prompt')} {'to create' if to_do else 'created'}, "
        f"{len(outcome.updated):,} {'to update' if to_do else 'updated'}, "
        f"{len(outcome.unchanged):,} unchanged, {len(outcome.rejected):,} rejected, "
        f"{len(outcome.refused):,} refused"
    )
    if outcome.passed_over:
        total += f", {sum(len(one.paths) or 1 for one in outcome.passed_over):,} left out"
    if outcome.beside:
        total += f"; files of {counted(outcome.beside, 'prompt')} left out"
    return total


def _tell_of_histories(outcome: Outcome, options: Options) -> None:
    if outcome.versions or outcome.labels:
        to_do = options.dry_run
        click.echo(
            f"{counted(outcome.versions, 'version')} {'to publish' if to_do else 'published'}, "
            f"{counted(outcome.labels, 'label')} {'to move' if to_do else 'moved'}"
        )


def _tell_of_refused(outcome: Outcome) -> None:
    if outcome.refused:
        owners = sorted({repo.partition("/")[0] for repo in outcome.refused})
        allow = " ".join(f"--allow-owner {owner}" for owner in owners[:SHOWN_OWNERS])
        if more := owners[SHOWN_OWNERS:]:
            allow += f", and so on for {counted(len(more), 'more owner')}"
        say(
            f"Refused: {counted(len(outcome.refused), 'change')} to prompts of other owners. To "
            f"update these prompts, add {allow}"
        )
