"""``hubctl mirror``: a copy of another hub's prompts, which any web server can serve."""

import os
from typing import Any

import click

from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.model.settings import parse_base_url
from cli.progress import Progress
from cli.standard_error import say_some
from operate.parallel import Work

WRONG_SHOWN = 20


def _url(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return parse_base_url(value)
    except OperatorError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("url", metavar="URL", callback=_url)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--check", "is_check", is_flag=True, help="Compare the files in DIR with the hub.")
def mirror(url: str, folder: str, is_check: bool) -> None:
    """Keep a copy of all prompts of the hub at URL in DIR.

    DIR gets all versions with their records, and labels, at the paths that the hub has: any web
    server can serve it, and `hub` reads it by HUB_URL. A later run fetches what has changed and
    removes what was withdrawn. Checks each text against its SHA-256, and the files of a prompt
    against the digest in the hub's catalogue. You can stop a run at any time: the next one
    continues. The token for a private hub comes from HUB_TOKEN.

    With --check, exits 1 if a prompt is missing or differs; the next run fetches it again.

    DIR has prompts, not pages, lists, searches or pull counts.

    \b
      hubctl mirror https://prompts.example.org /srv/mirror
    """
    from operate.mirror import mirror as mirrors  # loads requests

    token = os.environ.get("HUB_TOKEN", "")
    folder = folder.rstrip("/") or folder
    with Progress() as progress:
        act: Any = mirrors.check if is_check else mirrors.mirror
        report = act(url, folder, token, Work(progress=progress))
    if is_check:
        say_some([f"{repo} is missing or differs" for repo in report.wrong], WRONG_SHOWN)
        say_some([f"{repo} is gone from {url}" for repo in report.gone], WRONG_SHOWN)
        if report.wrong or report.gone:
            raise click.ClickException(
                f"{folder} is not as {url}. Run `hubctl mirror {url} {folder}`."
            )
        click.echo(f"{folder} is as {url}: {counted(report.prompts, 'prompt')}")
        return
    click.echo(
        f"{folder} is as {url}: {counted(report.prompts, 'prompt')}, {report.fetched:,} fetched, "
        f"{report.removed:,} removed"
    )
