"""The publish service on its own: ``gunicorn --threads 16 publisher.web.wsgi:app``.

Settings are environment variables, as ``hubctl`` has them: HUB_CONTENT, HUB_OUT, HUB_STATE,
HUB_BASE_URL, HUB_SITE_NAME, HUB_QUERIES (1: what serves the site answers searches), HUB_SEARCH.
Beside them:

HUB_PUBLISH_LIMIT    publications a minute and owner, 30 by default, 0 for no limit
HUB_OPEN_SIGNUP      1: people may make accounts themselves
HUB_QUOTA_REPOS      the most that an owner may have: repos, versions, and bytes of texts and
HUB_QUOTA_VERSIONS   records; 0 for no quota, which is the default unless people may make
HUB_QUOTA_BYTES      accounts themselves
HUB_OPENID_ISSUER    an OpenID Connect provider with which people may sign in. With it come
                     HUB_OPENID_CLIENT_ID, HUB_OPENID_NAME, and the client secret as
                     HUB_OPENID_CLIENT_SECRET or in a file, HUB_OPENID_CLIENT_SECRET_FILE.
                     The provider has to know HUB_BASE_URL/account/openid/callback
HUB_TRUSTED_ISSUERS  whose word on CI jobs is believed, as KIND=URL with spaces between
HUB_METRICS          HOST:PORT on which monitors get metrics, under /metrics; those of reads are the
                     web server's, which answers them
HUB_TRUSTED_PROXIES  how many reverse proxies are in front, each of which adds to
                     X-Forwarded-For; 0 by default, where the header is not believed

Requests come with the base URL's path, or without it where a proxy takes it off. One worker
with threads is right: a publication waits for the disk, and each worker counts limits and metrics
for itself. With HUB_METRICS, a second one cannot start, also not for a reload. Without
``--preload``: the thread that builds would not outlive the fork.
Raises OperatorError at start where a setting is wrong or a folder cannot be used.
"""

import atexit
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from builder.pipeline.rebuild import Rebuilder
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.log import configure_logging, log_build
from publisher.sizes import size_readings
from publisher.web.app import PUBLISH_LIMIT, create_app
from publisher.web.environment import (
    flag_from,
    issuers_from,
    number_from,
    provider_from,
    quotas_from,
    settings_from,
)
from publisher.web.readiness import Readiness
from publisher.write.quotas import default_quotas
from server.listening import listen_for_metrics, parse_address


def _start(environ: Mapping[str, str], running: ExitStack) -> Callable:
    """The application, and in ``running`` what it needs."""
    settings = settings_from(environ)
    publish_limit = number_from(environ, "HUB_PUBLISH_LIMIT", PUBLISH_LIMIT)
    proxies = number_from(environ, "HUB_TRUSTED_PROXIES", 0)
    open_signup = flag_from(environ, "HUB_OPEN_SIGNUP")
    quotas = quotas_from(environ, default_quotas(open_signup))
    database = running.enter_context(Database(settings.state))
    rebuilder = running.enter_context(Rebuilder(settings, log_build))
    rebuilder.request(None)  # what was published and not built when the last process ended
    readiness = Readiness(settings, rebuilder, database, {})
    if environ.get("HUB_METRICS"):
        # Its library takes long to load, and few need it.
        from server.metrics_port import MetricsPort

        sources = (rebuilder.readings, readiness.readings, partial(size_readings, settings))
        listener = listen_for_metrics(*parse_address(environ["HUB_METRICS"]))
        running.enter_context(MetricsPort(listener, sources))
    wsgi: Callable = create_app(
        settings, rebuilder, Accounts(database), database,
        publish_limit=publish_limit, quotas=quotas, issuers=issuers_from(environ),
        open_signup=open_signup, openid=provider_from(environ), readiness=readiness,
    )  # fmt: skip
    if settings.base_path:
        wsgi = DispatcherMiddleware(wsgi, {settings.base_path: wsgi})
    return ProxyFix(wsgi, x_for=proxies, x_proto=0, x_host=0) if proxies else wsgi


configure_logging()
_running = ExitStack()
atexit.register(_running.close)
app = _start(os.environ, _running)
