"""``hubctl build``: content in, site out."""

from __future__ import annotations

import gc
import math
from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from builder.model.plural import counted
from builder.model.settings import Settings
from builder.store.state.serving import FOLDERS, service_settings
from cli.options import open_hub, queries_option, settle_private, site_options, url_of_serve
from cli.standard_error import Progress, say, say_some, say_waiting
from operate.content_check import stray_texts

if TYPE_CHECKING:
    from builder.pipeline.build import Built, Difference

SHOWN_FILES = 20
ON_WAIT = partial(say_waiting, "build")


@click.command()
@site_options("http://HOST:PORT of `hubctl serve`", queries_option)
@click.option(
    "--index/--no-index",
    default=None,
    help="Update the search index, which a service reads.  [default: with --queries]",
)
@click.option("--full", is_flag=True, help="Render every prompt, not only what changed.")
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Build nothing; exit 1 if the site differs from the content, and list the files.",
)
@click.pass_context
def build(
    context: click.Context, settings: Settings, index: bool | None, full: bool, is_check: bool
) -> None:
    """Build the site from the content.

    Renders only what changed since the last build, and writes only files whose bytes differ. While
    a service runs on the folders, builds with its settings.

    \b
      hubctl build --base-url https://prompts.example.org
    """
    # Loaded late: other commands import this module to read its options.
    from builder.emit import GC_THRESHOLD
    from builder.pipeline.build import build as build_site
    from builder.pipeline.build import compare

    gc.set_threshold(GC_THRESHOLD)
    base_url, private = settings.base_url, settings.private
    service = service_settings(settings.content, settings.out, settings.state)
    if service:
        _check_same(context, service)
    default_url = url_of_serve(context)
    settings = service or settings._replace(
        base_url=base_url or default_url,
        words=not settings.queries,
        private=settle_private(settings.content, settings.out, private),
    )
    if not service and not is_check:
        open_hub(settings)
    with Progress() as progress:
        if is_check:
            difference = compare(settings, progress)
        else:
            index = settings.queries if index is None else index
            options = {"full": full, "index": index, "check_seconds": math.inf}
            report = build_site(settings, progress=progress, on_wait=ON_WAIT, **options)
    if is_check:
        tell_difference(difference, settings)
        return
    click.echo(describe(report, settings.search))
    warn_of_strays(settings.content)
    if service:
        say("Built with the settings of the service that runs on these folders.")
    elif not base_url:
        say(
            f"Links on the site point to {default_url}. Pass --base-url (or set "
            "HUB_BASE_URL) before you put the site elsewhere."
        )


def warn_of_strays(content: str) -> None:
    """Name the texts in the content folder that are no prompts."""
    strays = [f"Warning: {stray}" for stray in stray_texts(content)]
    say_some(strays, SHOWN_FILES, ": run `hubctl check`.")


def _check_same(context: click.Context, service: Settings) -> None:
    """Refuse flags that contradict the service. Raises click.UsageError."""
    for field, value in service._asdict().items():
        is_given = context.get_parameter_source(field) is ParameterSource.COMMANDLINE
        if is_given and field not in FOLDERS and context.params[field] != value:
            raise click.UsageError(
                f"A service runs on these folders, with {value!r} and not "
                f"{context.params[field]!r}. Restart the service with the other "
                f"--{field.replace('_', '-')}, or leave out the option here."
            )


def describe(report: Built, search: str) -> str:
    """One line that says what a build did. ``search``: the engine of the index."""
    indexed = f", {counted(report.indexed, 'prompt')} indexed with {search}"
    return (
        f"{counted(report.repos, 'prompt')}, {counted(report.versions, 'version')}: "
        f"{counted(report.written, 'file')} written, {report.unchanged:,} unchanged, "
        f"{report.removed:,} removed{indexed if report.indexed else ''} "
        f"in {report.seconds:.2f} seconds"
    )


def tell_difference(difference: Difference, settings: Settings) -> None:
    """List the files that differ. Raises ClickException if there are any."""
    *kinds, (_, leaving) = difference._asdict().items()
    for what, files in kinds:
        for file in files[:SHOWN_FILES]:
            click.echo(f"{what}: {file}")
        if len(files) > SHOWN_FILES:
            click.echo(f"{what}: … and {len(files) - SHOWN_FILES:,} more")
    wrong = sum(len(files) for _, files in kinds)
    if wrong:
        raise click.ClickException(
            f"{settings.out} differs from {settings.content} in {counted(wrong, 'file')}. Run "
            "`hubctl build` with the same options. If that changes nothing, add --full."
        )
    click.echo(f"{settings.out} is up to date with {settings.content}.")
    if leaving:
        click.echo(
            f"Files whose prompt or list is gone: {len(leaving):,}. They stay for readers with an "
            "old page until the next `hubctl build`."
        )
