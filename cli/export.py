"""``hubctl export``: the prompts as Markdown or as skills."""

import click

from builder.model.errors import bounded
from builder.model.plural import counted
from cli.options import content_option
from cli.standard_error import Progress, say
from moving.export.run import FORMATS, ExportReport
from moving.export.run import export as export_content


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
@click.option("--owner", metavar="HANDLE", help="Only this owner's prompts.")
def export(folder: str, format: str, content: str, owner: str | None) -> None:
    """Write the latest version of each prompt to DIR, as Markdown or as a skill.

    \b
    markdown   OWNER/NAME.md, as it was published; with files, OWNER/NAME/PROMPT.md beside them
    skill      OWNER/NAME/SKILL.md, and the files of the version beside it

    DIR can be a git repository. The same prompts give the same bytes, and only changed files are
    written, in the place of what was there. Nothing is removed: files of no prompt are listed.
    `hubctl import --owner HANDLE DIR/HANDLE` brings the prompts of an owner back.

    Counts at the end what a skill cannot hold. No format has changelogs, labels or times. Exits
    1 if a prompt has a fault.

    \b
      hubctl export --as markdown ../prompts
    """
    with Progress() as progress:
        report = export_content(content, folder, format, owner=owner, progress=progress)
    _report(report, folder, format)
    if report.faults:
        raise click.ClickException(f"{counted(len(report.faults), 'file')} not exported.")


def _report(report: ExportReport, folder: str, format: str) -> None:
    """Print the result on standard output, and faults, other files and losses on standard error."""
    for fault in bounded(report.faults):
        say(f"Fault: {fault}")
    for path in bounded(report.others):
        say(f"Of no prompt: {path}")
    for loss, count in sorted(report.losses.items()):
        say(f"{counted(count, 'file')}: {format} cannot hold {loss}")
    click.echo(
        f"{counted(report.files, 'file')} in {folder}: {report.written:,} written, "
        f"{report.files - report.written:,} unchanged"
    )
