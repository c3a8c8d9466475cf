"""The publish service without the rest, as a WSGI application. ``cli.wsgi`` starts it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from builder.model.errors import OperatorError
from builder.model.settings import DEFAULT_BASE_URL, Settings, check_folders
from builder.store.site import read_hub
from cli.options import (
    base_url_option,
    database_option,
    folder_options,
    langfuse_option,
    limits_option,
    metrics_option,
    name_option,
    openid_options,
    private_option,
    publish_limit_option,
    queries_option,
    search_option,
    signup_options,
    trusted_issuer_option,
)
from cli.stores import make_store

if TYPE_CHECKING:
    from publisher.openid.provider import Provider
    from publisher.trusted.issuers import Issuer
    from publisher.write.quotas import Quotas


@click.command("publish-service")
@folder_options
@database_option
@base_url_option()
@name_option
@queries_option
@search_option
@langfuse_option
@private_option
@publish_limit_option
@limits_option
@signup_options
@openid_options
@trusted_issuer_option
@metrics_option
@click.option(
    "--trusted-proxies", type=click.IntRange(0), metavar="N", default=0, show_default=True,
    envvar="HUB_TRUSTED_PROXIES", show_envvar=True,
    help="Number of proxies in front of the publish service, each of which adds to "
    "X-Forwarded-For. 0: the header is ignored.",
)  # fmt: skip
@click.pass_obj
def publish_service(
    running: ExitStack, content: str, out: str, state: str, database_url: str | None,
    base_url: str | None, site_name: str, queries: bool, search: str,
    langfuse: bool, private: bool | None, publish_limit: int, limits: str | None,
    open_signup: bool, quotas: Quotas, openid: Provider | None, issuers: tuple[Issuer, ...],
    metrics: tuple[str, int] | None, trusted_proxies: int,
) -> Callable:  # fmt: skip
    """Return the WSGI application; ``running`` gets what it needs, to be closed after it.

    Requests come with the base URL's path, or without it where a proxy takes it off.
    """
    # Late, since other commands load this module to know its options.
    from werkzeug.middleware.dispatcher import DispatcherMiddleware
    from werkzeug.middleware.proxy_fix import ProxyFix

    from builder.pipeline.rebuild import Rebuilder
    from builder.store.state.serving import serving
    from cli.limits import counting
    from publisher.accounts.accounts import Accounts
    from publisher.accounts.database import Database
    from publisher.log import configure_logging, log_build
    from publisher.sizes import size_readings
    from publisher.web.app import create_app
    from publisher.web.readiness import Readiness
    from server.listening import listen_for_metrics

    settings = Settings(
        content, out, state, base_url or DEFAULT_BASE_URL, site_name, queries, search, langfuse
    )
    check_folders(settings)
    hub = read_hub(out)
    if private or (hub and hub.private):
        raise OperatorError(
            "This hub is private, and the publish service on its own cannot tell a web server who "
            "may read. Run `hubctl serve --private` instead."
        )
    configure_logging()
    running.enter_context(serving(settings))
    database = running.enter_context(Database(database_url or settings.state))
    opened, rebuilder, parts = make_store(
        settings, database, partial(Rebuilder, settings, log_build), has_quotas=any(quotas)
    )
    store = running.enter_context(opened)
    running.enter_context(rebuilder)
    rebuilder.request(None)  # what was published and not built when the last process ended
    shared = running.enter_context(counting(limits, settings.base_url))
    if shared:
        parts["limits"] = shared.status
    readiness = Readiness(settings, rebuilder, database, parts)
    if metrics:
        # Its library takes long to load, and few need it.
        from server.metrics_port import MetricsPort

        sources = (rebuilder.readings, readiness.readings, partial(size_readings, settings))
        running.enter_context(MetricsPort(listen_for_metrics(*metrics), sources, parts))
    wsgi: Callable = create_app(
        settings, rebuilder, Accounts(database), database,
        publish_limit=publish_limit, quotas=quotas, issuers=issuers, open_signup=open_signup,
        openid=openid, readiness=readiness, store=store, shared=shared,
    )  # fmt: skip
    if settings.base_path:
        wsgi = DispatcherMiddleware(wsgi, {settings.base_path: wsgi})
    if trusted_proxies:
        wsgi = ProxyFix(wsgi, x_for=trusted_proxies, x_proto=0, x_host=0)
    return wsgi
