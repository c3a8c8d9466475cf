"""``hubctl serve``: the whole hub on one port."""

import contextlib

import click

from builder.model.errors import ContentError, PullsError
from builder.model.settings import Settings
from builder.pipeline.build import build as build_site
from builder.pipeline.rebuild import Rebuilder
from builder.pipeline.watch import Watch
from builder.search.query_thread import QueryThread
from builder.store.site import is_built
from cli.build import describe, say_waiting
from cli.options import (
    base_url_option,
    folder_options,
    mcp_origin_option,
    name_option,
    openid_options,
    search_option,
    signup_options,
    trusted_issuer_option,
)
from cli.progress import Progress
from mcp_app.app import create_app as create_mcp_app
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.log import configure_logging, log_build
from publisher.openid.provider import Provider
from publisher.outside.private_way import is_loopback, is_private_way
from publisher.trusted.issuers import Issuer
from publisher.web.app import PUBLISH_LIMIT, create_app
from publisher.write.quotas import Quotas
from server.app import ReadApp
from server.listening import address_of, listen, listening_options, run
from server.mount import Hub
from server.throttle import Throttle


@click.command()
@folder_options
@base_url_option("http://HOST:PORT")
@name_option
@search_option
@listening_options(8000)
@click.option(
    "--publish-limit", type=click.IntRange(0), metavar="N", default=PUBLISH_LIMIT,
    show_default=True, help="Publications a minute for each owner; 0 for no limit.",
)  # fmt: skip
@signup_options
@openid_options
@trusted_issuer_option
@mcp_origin_option
@click.option("--watch", is_flag=True, help="Build again whenever the content changes.")
def serve(
    content: str, out: str, state: str, base_url: str | None, site_name: str, search: str,
    host: str, port: int, rate_limit: int, trusted_proxies: tuple[str, ...],
    access_log: str | None, publish_limit: int, open_signup: bool, quotas: Quotas,
    openid: Provider | None, issuers: tuple[Issuer, ...], mcp_origins: tuple[str, ...],
    watch: bool,
) -> None:  # fmt: skip
    """Build the site, then serve everything on one port.

    Pages for people, the API, searches, MCP for programs that use language models at /mcp, and
    publishing over HTTP with the tokens that `hubctl token` makes. /healthz tells how the builds
    are doing. Logs publications and builds as lines of JSON on standard error. Stops at Ctrl-C or
    SIGTERM, after the requests that are under way.
    """
    with listen(host, port) as listener:
        address = address_of(listener, host)
        settings = Settings(content, out, state, base_url or address, site_name, True, search)
        was_built = _build(settings)
        configure_logging()
        with (
            Database(state) as database,
            Rebuilder(settings, log_build) as rebuilder,
            contextlib.closing(QueryThread(settings, rebuilder.doubt)) as queries,
            Watch(content, rebuilder) if watch else contextlib.nullcontext(),
        ):
            if not was_built:
                rebuilder.request(None)
            throttle = Throttle(rate_limit) if rate_limit else None
            hub = Hub(
                ReadApp(settings, throttle, queries),
                create_app(
                    settings,
                    rebuilder,
                    Accounts(database),
                    database,
                    publish_limit=publish_limit,
                    quotas=quotas,
                    open_signup=open_signup,
                    issuers=issuers,
                    openid=openid,
                    origins=mcp_origins,
                ),
                create_mcp_app(settings, queries, throttle, mcp_origins),
            )
            _say_who_cannot_sign_in(settings.base_url, listener.getsockname()[0])
            where = f"{address}{settings.base_path}/"
            told = f"Serving {out} at {where}"
            run(hub, listener, told, trusted_proxies, access_log, settings.base_path)


def _say_who_cannot_sign_in(base_url: str, host: str) -> None:
    if not is_private_way(base_url):
        who = "nobody can sign in"
    elif base_url.startswith("https:") or is_loopback(host):
        return
    else:
        who = "people can sign in on this machine alone"
    click.echo(
        f"The address is {base_url}, so {who}: passwords would travel in clear text. For "
        "accounts serve it over https, and give that address with --base-url.",
        err=True,
    )


def _build(settings: Settings) -> bool:
    """Build before serving. With faults in the content or the counts of pulls, a site that is
    there is served as it is; then False.
    """
    try:
        with Progress() as progress:
            report = build_site(settings, progress=progress, on_wait=say_waiting)
    except (ContentError, PullsError) as error:
        if not is_built(settings.out):
            raise
        click.echo(f"{error}\nServing the site as it was built before.", err=True)
        return False
    click.echo(describe(report, settings.search), err=True)
    return True
