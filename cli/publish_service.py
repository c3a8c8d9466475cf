"""The publish service without the rest, as a WSGI application. ``cli.wsgi`` starts it."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import click

from builder.model.errors import OperatorError
from builder.model.settings import DEFAULT_BASE_URL, Settings, check_folders
from builder.store.site import read_hub
from cli.groups import setting
from cli.options import database_option, queries_option, site_options
from cli.service_options import Publishing, metrics_option, publishing_options
from cli.stores import make_store


@click.command("publish-service")
@site_options(DEFAULT_BASE_URL, queries_option)
@database_option
@publishing_options()
@metrics_option
@setting(
    "--trusted-proxies",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Number of proxies in front of the publish service that add to "
    "X-Forwarded-For. 0: the header is ignored.",
)
@click.pass_obj
def publish_service(
    stack: ExitStack,
    settings: Settings,
    database_url: str | None,
    publishing: Publishing,
    metrics: tuple[str, int] | None,
    trusted_proxies: int,
) -> Callable:
    """Return the WSGI application; ``stack`` gets what it needs, to be closed after it.

    Requests have the base URL's path, or lack it if a proxy removes it.
    """
    # Loaded late: other commands import this module to read its options.
    from werkzeug.middleware.dispatcher import DispatcherMiddleware
    from werkzeug.middleware.proxy_fix import ProxyFix

    from builder.pipeline.rebuild import Rebuilder
    from builder.store.state.serving import serving
    from cli.running import Running
    from publisher.accounts.database import Database
    from publisher.log import configure_logging, log_build
    from server.listening import listen_for_metrics

    publishing.check(settings.base_url)
    check_folders(settings)
    _check_is_public(settings)
    settings = settings._replace(base_url=settings.base_url or DEFAULT_BASE_URL, private=False)
    configure_logging()
    stack.enter_context(serving(settings))
    database = stack.enter_context(Database(database_url or settings.state))
    opened, rebuilder, parts = make_store(
        settings,
        database,
        partial(Rebuilder, settings, log_build),
        has_quotas=any(publishing.limits.quotas),
    )
    store = stack.enter_context(opened)
    stack.enter_context(rebuilder)
    rebuilder.request(None)  # versions that the last process published and did not build
    running = Running(settings, database, store, rebuilder, parts)
    monitor = listen_for_metrics(*metrics) if metrics else None
    wsgi: Callable = running.publish_app(stack, publishing, monitor)
    if settings.base_path:
        wsgi = DispatcherMiddleware(wsgi, {settings.base_path: wsgi})
    if trusted_proxies:
        wsgi = ProxyFix(wsgi, x_for=trusted_proxies, x_proto=0, x_host=0)
    return wsgi


def _check_is_public(settings: Settings) -> None:
    hub = read_hub(settings.out)
    if settings.private or (hub and hub.private):
        raise OperatorError(
            "This hub is private, and the publish service on its own cannot tell a web server who "
            "may read. Run `hubctl serve --private` instead."
        )
