"""``hubctl serve``: the whole hub on one port."""

from typing import Any

import click

from builder.model.settings import Settings
from cli.options import (
    DEFAULT_PORT,
    base_url_option,
    database_option,
    folder_options,
    following_options,
    git_options,
    langfuse_option,
    limits_option,
    listening_options,
    mcp_origin_option,
    metrics_option,
    name_option,
    openid_options,
    private_option,
    publish_limit_option,
    search_option,
    settle_private,
    signup_options,
    trusted_issuer_option,
)


@click.command()
@folder_options
@database_option
@base_url_option("http://HOST:PORT")
@name_option
@search_option
@langfuse_option
@private_option
@listening_options(DEFAULT_PORT)
@publish_limit_option
@limits_option
@signup_options
@openid_options
@trusted_issuer_option
@mcp_origin_option
@following_options
@metrics_option
@git_options
@click.option(
    "--watch", is_flag=True, envvar="HUB_WATCH", show_envvar=True,
    help="Rebuild when the content changes.",
)  # fmt: skip
def serve(
    content: str, out: str, state: str, base_url: str | None, site_name: str, search: str,
    langfuse: bool, private: bool | None, open_signup: bool, **params: Any,
) -> None:  # fmt: skip
    """Build the site and serve everything on one port.

    Serves pages, the API, search, publishing over HTTP, and MCP at /mcp. Shows the previous site
    until the new one is built; without a previous site, answers 503. /healthz reports the state of
    the builds, /readyz whether publications work, too. Logs publications and builds as JSON lines
    on standard error. Ctrl-C or SIGTERM stops it, after the open requests are answered.

    \b
      hubctl serve --base-url https://prompts.example.org --trusted-proxy 127.0.0.1
    """
    is_private = settle_private(out, private)
    if is_private and open_signup:
        raise click.UsageError(
            "--open-signup lets everybody become a member, so --private would keep nothing back. "
            "Leave out one of them, and invite members with `hubctl owner invite`."
        )
    # Late, since other commands load this module to know its options.
    from cli.service import serve_hub

    settings = Settings(
        content, out, state, base_url or "", site_name, True, search, langfuse, is_private
    )
    serve_hub(settings, open_signup=open_signup, **params)
