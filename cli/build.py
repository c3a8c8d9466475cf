"""``hubctl build``: content in, site out."""

import click

from builder.model.settings import DEFAULT_BASE_URL, Settings
from builder.pipeline.build import Difference, Report, compare
from builder.pipeline.build import build as build_site
from cli.options import base_url_option, folder_options, name_option, search_option
from cli.progress import Progress

SHOWN_FILES = 20


@click.command()
@folder_options
@base_url_option()
@name_option
@click.option(
    "--queries/--no-queries", default=False, show_default=True, envvar="HUB_QUERIES",
    show_envvar=True,
    help="Say that the host answers searches (q), several tags at once and MCP: it passes them "
    "on to `hubctl serve`. Plain file hosts do not.",
)  # fmt: skip
@search_option
@click.option(
    "--index/--no-index", default=True, show_default=True, help="Update the search index."
)
@click.option("--full", is_flag=True, help="Compare every file, whatever the state remembers.")
@click.option(
    "--check", "is_check", is_flag=True,
    help="Build nothing; tell whether the site is what the content says. Exit status 1 if not.",
)  # fmt: skip
def build(
    content: str, out: str, state: str, base_url: str | None, site_name: str, queries: bool,
    search: str, index: bool, full: bool, is_check: bool,
) -> None:  # fmt: skip
    """Make the site's files from the content.

    Writes only what has changed since the last build, and only files whose bytes differ.
    """
    settings = Settings(
        content, out, state, base_url or DEFAULT_BASE_URL, site_name, queries, search
    )
    with Progress() as progress:
        if is_check:
            difference = compare(settings, progress)
        else:
            report = build_site(
                settings, full=full, index=index, progress=progress, on_wait=say_waiting
            )
    if is_check:
        tell_difference(difference, settings)
        return
    click.echo(describe(report, search))
    if not base_url:
        click.echo(
            f"Links lead to {DEFAULT_BASE_URL}; give --base-url (or HUB_BASE_URL) before you "
            "put the site elsewhere.",
            err=True,
        )


def say_waiting() -> None:
    click.echo("Another build is running; waiting for it to end.", err=True)


def describe(report: Report, search: str) -> str:
    """A line for people about what a build did. ``search``: the engine of the index."""
    return (
        f"{report.repos:,} repos, {report.versions:,} versions: "
        f"{report.written:,} files written, {report.unchanged:,} unchanged, "
        f"{report.removed:,} removed, {report.indexed:,} repos indexed "
        f"with {search} in {report.seconds:.2f} seconds"
    )


def tell_difference(difference: Difference, settings: Settings) -> None:
    """Name the files that are not as they should be. Raises ClickException if there are any."""
    for what, files in difference._asdict().items():
        for file in files[:SHOWN_FILES]:
            click.echo(f"{what}: {file}")
        if len(files) > SHOWN_FILES:
            click.echo(f"{what}: … and {len(files) - SHOWN_FILES:,} more")
    wrong = sum(map(len, difference))
    if wrong:
        raise click.ClickException(
            f"{wrong:,} files of {settings.out} are not what {settings.content} says; "
            "run `hubctl build` with the same options, and `--full` if that changes nothing."
        )
    click.echo(f"{settings.out} is what {settings.content} says.")
