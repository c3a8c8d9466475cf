"""The publish service: a Flask application around ``publish``, for any WSGI server. The account
settings are pages of it.

Each request is one line of the log, and each error is in the envelope of the API. Limits are
counted in this process alone.
"""

import logging
import re
import time
import uuid
from functools import partial

from flask import Flask, Response, g, request
from flask_cors import CORS

from builder.model.metrics import Counter
from builder.model.service_urls import HEALTH_URL, READY_URL
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from builder.render.pages import CompiledTemplates
from publisher.accounts.database import Database
from publisher.accounts.token import find_token
from publisher.limits import DEFAULT_LIMITS, Limits
from publisher.log import log_event
from publisher.openid.provider import DEFAULT_SIGN_IN, SignIn
from publisher.service.parts import Service
from publisher.web import compare, publishing, trusted_exchange
from publisher.web.editor import views as editor
from publisher.web.json_answers import error_answer, monitored
from publisher.web.pages import (
    labels,
    people,
    profile,
    publishers,
    release,
    security,
    teams,
    tokens,
    withdraw,
)
from publisher.web.pages import sign_in as sign_in_pages
from publisher.web.pages.cookie import CookieSessions, VisitorsFlask
from publisher.web.pages.frame import Frame
from publisher.web.readiness import Readiness
from publisher.web.token_check import TokenCheck
from publisher.write.durable import FolderStore
from server import answer_headers

PUBLICATIONS = Counter(
    "hub_publications_total",
    "Requests that publish, by the API or in the editor, or check a draft. unchanged: nothing new; "
    "refused: the client's fault; limited: a rate limit; failed: the server's fault.",
    kind=("version", "label", "withdrawal", "check"),
    result=("done", "unchanged", "refused", "limited", "failed"),
)

PAGES = (
    sign_in_pages,
    editor,
    tokens,
    publishers,
    labels,
    release,
    withdraw,
    teams,
    profile,
    security,
    people,
)

# Views whose requests have an event name of their own in the log; all others are a "request".
NAMED_EVENTS = ("publish", "check", "label", "exchange")
# The log has so much of a longer path.
PATH_CHARS_MAX = 500

log = logging.getLogger("hub.publish")

_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}")


def create_app(
    settings: Settings,
    rebuilder: Rebuilder,
    database: Database,
    *,
    limits: Limits = DEFAULT_LIMITS,
    sign_in: SignIn = DEFAULT_SIGN_IN,
    readiness: Readiness | None = None,
    store: FolderStore | None = None,
) -> Flask:
    """Returns the application, for requests whose path is relative to the base URL's.

    ``readiness`` answers /readyz; by default without parts. ``store`` receives publications; by
    default it is the content folder.
    """
    readiness = readiness or Readiness(settings, rebuilder, database, {})
    app = VisitorsFlask(__name__, static_folder=None)
    app.jinja_options = {"bytecode_cache": CompiledTemplates()}
    app.session_interface = CookieSessions(settings)
    app.url_map.merge_slashes = False  # a client does not repeat a POST at a redirect's target
    # The first registered runs last, so the log gets the answer as it is sent.
    app.before_request(_begin)
    app.after_request(_end)
    _allow_other_origins(app)
    store = store or FolderStore(settings.content)
    service = Service(settings, rebuilder, database, store, limits, sign_in)
    frame = Frame(app, service)
    app.register_error_handler(Exception, partial(error_answer, frame))
    app.add_url_rule(HEALTH_URL, "health", partial(_health, rebuilder))
    app.add_url_rule(READY_URL, "ready", partial(_ready, readiness))
    checks = TokenCheck(service.accounts, service.publications, limits)
    publishing.add_to(app, service, checks)
    trusted_exchange.add_to(app, service, checks)
    compare.add_to(frame)
    for pages in PAGES:
        pages.add_to(frame)
    if sign_in.openid is not None:
        # Imported late: its libraries take long to load, and few hubs need them.
        from publisher.web.pages import openid

        openid.add_to(frame, sign_in.openid)
    return app


def _health(rebuilder: Rebuilder) -> Response:
    """Returns 200 if there is a site to read, even an old one; 503 before the first build."""
    health = rebuilder.health()
    return monitored(health, is_well=health["serial"] is not None)


def _ready(readiness: Readiness) -> Response:
    """Returns 200 if everything works; 503 if reads or publications fail."""
    answer = readiness.answer()
    return monitored(answer, is_well=not answer["reasons"])


# Around every request


def _begin() -> None:
    given = request.headers.get("X-Request-Id", "")
    g.began = time.perf_counter()
    g.request_id = given if _request_id.fullmatch(given) else uuid.uuid4().hex
    g.headers = {"X-Request-Id": g.request_id}
    g.fields = {}
    g.event = ""
    g.failure = None
    g.is_counted = False
    g.publication = None


def _end(response: Response) -> Response:
    response.headers.update(g.headers)
    level = logging.ERROR if response.status_code >= 500 else logging.INFO
    if request.endpoint in ("health", "ready") and g.failure is None:
        level = logging.DEBUG  # monitors ask all the time
    if g.publication:
        PUBLICATIONS.count(g.publication, _result(response.status_code))
    if session := g.get("account_session"):
        g.fields["account"] = session.owner
    log_event(
        log,
        level,
        g.event or (request.endpoint if request.endpoint in NAMED_EVENTS else "request"),
        g.failure,
        request_id=g.request_id,
        method=request.method,
        path=_path(),
        route=request.url_rule and request.url_rule.rule,
        status=response.status_code,
        **g.fields,
        address=request.remote_addr,
        milliseconds=round((time.perf_counter() - g.began) * 1000, 1),
    )
    return response


def _path() -> str:
    """Returns the request's path, without its query, which has secrets at a sign-in; empty if a
    client has put a token into it.
    """
    return "" if find_token(request.path) else request.path[:PATH_CHARS_MAX]


def _result(status: int) -> str:
    """Returns the result of a publication with this status, for the metrics."""
    if status >= 500:
        return "failed"
    if status >= 400:
        return "limited" if status == 429 else "refused"
    return "unchanged" if g.fields.get("unchanged") else "done"


def _allow_other_origins(app: Flask) -> None:
    """Adds the CORS headers of the read server, for browsers that publish."""
    said = {
        key.decode(): value.decode()
        for key, value in answer_headers.CORS + answer_headers.PREFLIGHT
    }
    CORS(
        app,
        resources=r"/api/.*",
        origins=said["access-control-allow-origin"],
        send_wildcard=True,
        methods=said["access-control-allow-methods"].split(", "),
        allow_headers=said["access-control-allow-headers"].split(", "),
        expose_headers=said["access-control-expose-headers"].split(", "),
        max_age=said["access-control-max-age"],
    )
