"""``hubctl export``: the prompts as Markdown or as skills."""

import click

from builder.model.plural import counted
from cli.options import content_option
from cli.standard_error import Progress, say
from moving.export.listing import FORMATS
from moving.export.run import ExportReport
from moving.export.run import export as export_content

KEPT_SHOWN = 20


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--as",
    "format",
    metavar="FORMAT",
    required=True,
    type=click.Choice(FORMATS),
    help=f"Format of the files: {', '.join(FORMATS)}.",
)
@content_option
@click.option("--owner", metavar="HANDLE", help="Only this owner's prompts. Other files stay.")
def export(folder: str, format: str, content: str, owner: str | None) -> None:
    """Write the latest version of each prompt to DIR, as Markdown or as a skill.

    \b
    markdown   OWNER/NAME.md, as it was published; with files, OWNER/NAME/PROMPT.md beside them
    skill      OWNER/NAME/SKILL.md, and the files of the version beside it

    DIR can be a git repository. The same prompts give the same bytes, and only changed files are
    written. Files of prompts that are gone are removed. Files that no export has written, or that
    you have changed since, are left alone and listed. `hubctl import DIR` brings the prompts back.

    Counts at the end what a skill cannot hold. No format has changelogs, labels or times. Exits
    1 if a file is left alone or a prompt has a fault.

    \b
      hubctl export --as markdown ../prompts
    """
    with Progress() as progress:
        report = export_content(content, folder, format, owner=owner, progress=progress)
    _report(report, folder, format)
    failed = len(report.kept) + len(report.faults)
    if failed:
        raise click.ClickException(f"{counted(failed, 'file')} not exported.")


def _report(report: ExportReport, folder: str, format: str) -> None:
    """Print the result on standard output, and files left alone and losses on standard error."""
    for fault in report.faults[:KEPT_SHOWN]:
        say(f"Fault: {fault}")
    for path in report.kept[:KEPT_SHOWN]:
        say(
            f"Left alone: {folder}/{path} is not as an export wrote it. Import it to keep your "
            "changes, then remove it."
        )
    more = sum(max(0, len(one) - KEPT_SHOWN) for one in (report.faults, report.kept))
    if more:
        say(f"… and {more:,} more")
    for loss, count in sorted(report.losses.items()):
        say(f"{counted(count, 'file')}: {format} cannot hold {loss}")
    click.echo(
        f"{counted(report.files, 'file')} in {folder}: {report.written:,} written, "
        f"{report.files - report.written:,} unchanged, {report.removed:,} removed"
    )
