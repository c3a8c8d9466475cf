"""``hubctl serve``: the whole hub on one port."""

import click

from builder.model.settings import Settings
from cli.groups import setting
from cli.options import (
    database_option,
    said_private,
    settle_private,
    site_options,
)
from cli.service_options import (
    Following,
    Listening,
    Publishing,
    following_options,
    listening_options,
    metrics_option,
    publishing_options,
)
from cli.stores import settle_shared


@click.command()
@site_options("http://HOST:PORT")
@database_option
@listening_options
@publishing_options
@following_options
@metrics_option
@setting("--watch", is_flag=True, help="Rebuild when the content changes.")
def serve(
    settings: Settings,
    database_url: str | None,
    listening: Listening,
    publishing: Publishing,
    following: Following,
    metrics: tuple[str, int] | None,
    watch: bool,
) -> None:
    """Build the site and serve everything on one port.

    Serves pages, the API, search, publishing over HTTP, and MCP at /mcp. Shows the previous site
    until the new one is built; without a previous site, answers 503. /healthz reports the state of
    the builds; /readyz also reports whether publications work. Logs publications and builds as JSON
    lines on standard error. Ctrl-C or SIGTERM stops it, after the open requests are answered.

    \b
      hubctl serve --base-url https://prompts.example.org --trusted-proxy 127.0.0.1
    """
    said = said_private(settings.private)
    is_private = settle_private(settings.content, settings.out, settings.private)
    if database_url:
        is_private = settle_shared(database_url, said, is_private)
    if is_private and publishing.sign_in.open_signup:
        raise click.UsageError(
            "--open-signup lets everybody become a member, so --private would keep nothing back. "
            "Leave out one of them, and invite members with `hubctl owner invite`."
        )
    # Loaded late: other commands import this module to read its options.
    from cli.service import serve_hub

    # Where a deployment goes, there may be no service.
    words = bool(following.deploy)
    settings = settings._replace(queries=True, words=words, private=is_private)
    serve_hub(settings, database_url, listening, publishing, following, metrics, watch)
