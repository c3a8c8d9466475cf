"""The publish service: a Flask application around ``publish``, for any WSGI server. The account
settings are pages of it.

Says who may publish, waits until readers can see what was published, and answers; every error
in the envelope of the API. Writes one line of log for each request. Limits are counted in this
process alone.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NoReturn

import msgspec
from flask import Flask, Response, g, request
from flask_cors import CORS
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import (
    ClientDisconnected,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from builder.model import answer_headers, names
from builder.model.answer_headers import RETRY_SECONDS, WINDOW_SECONDS
from builder.model.errors import OperatorError, RequestError
from builder.model.metrics import FAILED_SIGN_INS, PUBLICATIONS
from builder.model.records import ChangedLabel, Publication
from builder.model.routes import (
    API,
    CACHE_CONTROL,
    HEALTH_URL,
    JSON,
    LABEL_URL,
    PUBLISH_URL,
    READY_URL,
    TRUSTED_URL,
    is_account_url,
)
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from builder.render.compiled import CompiledTemplates
from builder.render.derive import Links
from builder.render.envelopes import json_bytes, single
from publisher.accounts.accounts import Accounts, Token
from publisher.accounts.database import Database
from publisher.log import log_event
from publisher.openid.provider import Provider
from publisher.trusted.claims import Job
from publisher.trusted.exchange import exchange
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer
from publisher.web.editor import views as editor_pages
from publisher.web.incoming import bearer_token, read_label_change, read_publication
from publisher.web.pages import labels as label_pages
from publisher.web.pages import profile, publishers, release, security, sign_in, tokens, withdraw
from publisher.web.pages.cookie import CookieSessions, VisitorsFlask
from publisher.web.pages.frame import Frame
from publisher.web.readiness import Readiness
from publisher.web.trusted_exchange import read_exchange, trusted_token
from publisher.write.idempotency import (
    KEPT_SECONDS,
    IdempotencyKey,
    TooManyKept,
    fingerprint,
)
from publisher.write.labels import LabelChange, change_label
from publisher.write.publish import Published, publish
from publisher.write.quotas import NO_QUOTAS, PUBLISH_LIMIT, QuotaKeeper, Quotas
from publisher.write.store import Folder, Store
from server import answers
from server.access import ANY, Access
from server.throttle import Shared, Throttle, network

FAILED_AUTH_LIMIT = 20
# Of a token that was good so short a time ago, the accounts are not asked again.
STILL_GOOD_SECONDS = 1.0

log = logging.getLogger("hub.publish")

_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}")


def create_app(
    settings: Settings,
    rebuilder: Rebuilder,
    accounts: Accounts,
    database: Database,
    *,
    publish_limit: int = PUBLISH_LIMIT,
    failed_auth_limit: int = FAILED_AUTH_LIMIT,
    quotas: Quotas = NO_QUOTAS,
    open_signup: bool = False,
    issuers: Sequence[Issuer] = DEFAULT_ISSUERS,
    openid: Provider | None = None,
    origins: Sequence[str] = (),
    readiness: Readiness | None = None,
    store: Store | None = None,
    shared: Shared | None = None,
) -> Flask:
    """The application, for requests whose path is relative to the base URL's.

    ``publish_limit``: publications a minute and owner; ``failed_auth_limit``: wrong tokens a
    minute and client address; 0 for none. ``quotas``: the most that an owner may have.
    ``open_signup``: whether people may make accounts.
    ``issuers``: whose word on CI jobs is believed. ``openid``: with whom people may sign in, too.
    ``origins``: other addresses of the account settings (see ``Access``), each by name.
    ``readiness``: what /readyz answers; by default without parts. ``store``: where what is
    published goes; by default the content folder. ``shared``: where limits are counted with other
    processes.
    """
    store = store or Folder(settings.content)
    keeper = QuotaKeeper(settings.content, quotas)
    publications = Throttle(publish_limit, "publish", shared=shared) if publish_limit else None
    # More than the limit lets anybody publish in the time that answers are kept. (A window
    # that began before, and one that ends after, add one.)
    kept_max = publish_limit * (KEPT_SECONDS // WINDOW_SECONDS + 1)
    service = _Service(
        settings, store, rebuilder, accounts, database, issuers, publications, kept_max,
        failed_auth_limit, keeper, readiness or Readiness(settings, rebuilder, database, {}),
        shared,
    )  # fmt: skip
    app = VisitorsFlask(__name__, static_folder=None)
    app.jinja_options = {"bytecode_cache": CompiledTemplates()}
    app.session_interface = CookieSessions(settings)
    app.url_map.merge_slashes = False  # a redirect is no answer to a POST
    # What is registered first runs last: the log gets the answer as it is sent.
    app.before_request(_begin)
    app.after_request(_end)
    _allow_other_origins(app)
    access = Access(settings.base_url, tuple(origin for origin in origins if origin != ANY))
    frame = Frame(
        app, settings, store, accounts, database, issuers, access,
        shared=shared, has_signup=open_signup, openid=openid and openid.name,
    )  # fmt: skip
    app.register_error_handler(Exception, partial(_answer_error, frame))
    app.add_url_rule(_rule(PUBLISH_URL), "publish", service.publish, methods=["POST"])
    app.add_url_rule(_rule(LABEL_URL), "label", service.label, methods=["PUT", "DELETE"])
    app.add_url_rule(TRUSTED_URL, "exchange", service.exchange, methods=["POST"])
    app.add_url_rule(HEALTH_URL, "health", service.health)
    app.add_url_rule(READY_URL, "ready", service.ready)
    sign_in.add_to(frame, open_signup=open_signup)
    editor_pages.add_to(frame, rebuilder, keeper, publications, kept_max)
    tokens.add_to(frame)
    publishers.add_to(frame)
    label_pages.add_to(frame)
    release.add_to(frame, rebuilder, keeper)
    withdraw.add_to(frame, rebuilder)
    profile.add_to(frame, rebuilder)
    security.add_to(frame)
    if openid is not None:
        # Its libraries take long to load, and few hubs need them.
        from publisher.web.pages import openid as openid_pages

        openid_pages.add_to(frame, openid, open_signup=open_signup, shared=shared)
    return app


def _rule(url: str) -> str:
    return url.replace("{", "<").replace("}", ">")


class _Service:
    """The views."""

    def __init__(
        self, settings: Settings, store: Store, rebuilder: Rebuilder, accounts: Accounts,
        database: Database, issuers: Sequence[Issuer], publications: Throttle | None, kept_max: int,
        failed_auth_limit: int, quotas: QuotaKeeper, readiness: Readiness, shared: Shared | None,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._store = store
        self._links = Links(settings.base_url)
        self._rebuilder = rebuilder
        self._accounts = accounts
        self._database = database
        self._issuers = issuers
        self._kept_max = kept_max
        self._quotas = quotas
        self._readiness = readiness
        self._publications = publications
        self._failures = (
            Throttle(failed_auth_limit, "failed-auth", shared=shared) if failed_auth_limit else None
        )

    def health(self) -> Response:
        """200 where there is a site to read, even an old one; 503 before the first is built."""
        health = self._rebuilder.health()
        return _monitored(health, is_well=health["serial"] is not None)

    def ready(self) -> Response:
        """200 where all works; 503 where nothing can be served, or publications fail."""
        answer = self._readiness.answer()
        return _monitored(answer, is_well=not answer["reasons"])

    @cached_property
    def _verify(self) -> Callable[[str], Job]:
        # For the first job: to load what reads keys takes as long as all the rest of the service.
        from publisher.trusted.id_tokens import verify
        from publisher.trusted.keys import KeyRing

        keys = KeyRing(self._issuers, before_asking=self._count_attempt)
        return partial(verify, issuers=self._issuers, keys=keys, audience=self._settings.base_url)

    def exchange(self) -> Response:
        """A token for a CI job, for the word of its issuer."""
        id_token, repo = read_exchange(request)
        try:
            job = self._verify(id_token)
            g.fields |= {"issuer": job.issuer, "project": job.project, "run": job.run}
            text, token = exchange(
                self._database, self._accounts, job, repo, address=request.remote_addr or ""
            )
        except RequestError as error:
            if error.status in (401, 403):
                FAILED_SIGN_INS.count("ci_job")
                if not g.is_counted:
                    self._count_failure()
            raise
        if g.is_counted and self._failures:
            self._failures.give_back(_client())
        g.fields |= {"owner": token.owner, "token": token.id}
        return _json(200, single(json_bytes(trusted_token(text, token))))

    def publish(self, owner: str, name: str) -> Response:
        g.publication = "version"
        _note_repo(owner, name)
        check = partial(self._accounts.check_may_publish, owner=owner, name=name)
        token = self._admit(check)
        names.check_possible_owner(owner)
        names.check_repo(name)
        incoming = read_publication(request)
        g.fields["bytes"] = len(incoming.body)
        token = self._admit_again(token, check)
        if incoming.draft.labels:
            check(token, labels=incoming.draft.labels)
        mark = fingerprint(owner, name, incoming.if_match, body=incoming.body)
        done = publish(
            self._store, owner, name, incoming.draft, publisher=token.owner,
            idempotency_key=self._key(token, incoming.key, mark), quotas=self._quotas,
        )  # fmt: skip
        g.fields |= {"version": done.version, "unchanged": done.unchanged}
        saved = f"{owner}/{name} {done.version}"
        return self._answer(done, self._make_visible(owner, name, saved))

    def label(self, owner: str, name: str, label: str) -> Response:
        """Move a label to a version, or remove it."""
        g.publication = "label"
        _note_repo(owner, name)
        check = partial(self._accounts.check_may_label, owner=owner, name=name, labels=[label])
        token = self._admit(check)
        names.check_possible_owner(owner)
        names.check_repo(name)
        g.fields["label"] = names.check_new_label(label)
        incoming = read_label_change(request)
        g.fields["bytes"] = len(incoming.body)
        self._admit_again(token, check)
        mark = fingerprint(owner, name, label, request.method, body=incoming.body)
        done = change_label(
            self._store, owner, name, label, incoming.draft, by=token.owner,
            idempotency_key=self._key(token, incoming.key, mark), quotas=self._quotas,
        )  # fmt: skip
        g.fields |= {"version": done.version, "unchanged": done.unchanged}
        self._make_visible(owner, name, f"The label {label} of {owner}/{name}")
        return self._answer_label(done)

    def _key(self, token: Token, key: str | None, mark: bytes) -> IdempotencyKey | None:
        """The key of a request, if it has one."""
        if key is None:
            return None
        return IdempotencyKey(self._database, token.owner, key, mark, self._kept_max)

    def _admit(self, check: Callable[[Token], None]) -> Token:
        """The token of somebody who may write here now, as far as ``check`` does not raise. Raises
        RequestError.
        """
        try:
            token = self._authenticate()
        except RequestError as error:
            if error.status == 401:
                FAILED_SIGN_INS.count("token")
                self._count_failure()
            raise
        g.fields["token"] = token.id
        if self._publications:
            g.headers["RateLimit-Policy"] = self._publications.policy
        self._accounts.note_use(token, address=request.remote_addr or "")
        check(token)
        if self._publications:
            # Not by token: an owner may have a hundred, and each job has its own.
            wait_seconds = self._publications.hit(token.owner)
            if wait_seconds:
                g.headers["RateLimit"] = self._publications.exhausted(wait_seconds)
                _refuse(wait_seconds, f"Too many publications or label changes of {token.owner}")
        return token

    def _admit_again(self, token: Token, check: Callable[[Token], None]) -> Token:
        """The token as it is now: what was revoked while a body came must not publish any more."""
        if time.perf_counter() - g.began < STILL_GOOD_SECONDS:
            return token
        token = self._authenticate()
        check(token)
        return token

    def _authenticate(self) -> Token:
        return self._accounts.authenticate(bearer_token(request.headers.get("Authorization")))

    def _count_attempt(self) -> None:
        """Count as a failure, until it is none, what makes this hub ask an issuer."""
        self._count_failure()
        g.is_counted = True

    def _count_failure(self) -> None:
        # Only failures are refused: a right token works, whoever else has the same address.
        wait_seconds = self._failures.hit(_client()) if self._failures else 0
        if wait_seconds:
            _refuse(wait_seconds, "Too many requests with a wrong token from your address")

    def _make_visible(self, owner: str, name: str, saved: str) -> int:
        """Wait until readers see what was ``saved``."""
        try:
            visible = self._rebuilder.make_visible(owner, name)
        except RequestError as error:
            raise RequestError(
                error.code,
                f"{saved} is saved. {error} Send the same request again in {RETRY_SECONDS} "
                "seconds: it is not saved twice.",
            ) from error
        return self._store.decided_serial or visible

    def _answer(self, done: Published, serial: int) -> Response:
        where = {"owner": done.owner, "name": done.name, "version": done.version}
        publication = Publication(
            **msgspec.structs.asdict(done),
            url=self._links.page("version_page", **where),
            raw_url=self._links.file("version_raw", **where),
            serial=serial,
        )
        response = _json(200 if done.unchanged else 201, single(json_bytes(publication)))
        if not done.unchanged:
            response.headers["Location"] = self._links.page("version", **where)
        return response

    def _answer_label(self, done: LabelChange) -> Response:
        changed = ChangedLabel(**msgspec.structs.asdict(done))
        is_new = done.version is not None and done.previous is None and not done.unchanged
        response = _json(201 if is_new else 200, single(json_bytes(changed)))
        if is_new:
            url = LABEL_URL.format(owner=done.owner, name=done.name, label=done.label)
            response.headers["Location"] = self._settings.base_url + url
        return response


def _note_repo(owner: str, name: str) -> None:
    # A client may send anything as a name, a token too; the log gets what is one.
    if names.is_name(owner, names.OWNER_CHARS_MAX) and names.is_name(name, names.REPO_CHARS_MAX):
        g.fields |= {"owner": owner, "repo": name}


def _client() -> str:
    """Whose failures count together."""
    return network(request.remote_addr or "")


def _refuse(wait_seconds: int, reason: str) -> NoReturn:
    g.headers["Retry-After"] = str(wait_seconds)
    raise RequestError("rate_limited", f"{reason}. Try again in {wait_seconds} s.")


def _monitored(told: dict[str, Any], *, is_well: bool) -> Response:
    if not is_well:
        g.headers["Retry-After"] = str(RETRY_SECONDS)
    return _json(200 if is_well else 503, json_bytes(told))


def _json(status: int, body: bytes) -> Response:
    headers = {
        "Cache-Control": CACHE_CONTROL["none"],
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, status, headers, content_type=JSON)


# Around every request


def _begin() -> None:
    given = request.headers.get("X-Request-Id", "")
    g.began = time.perf_counter()
    g.request_id = given if _request_id.fullmatch(given) else uuid.uuid4().hex
    g.headers = {"X-Request-Id": g.request_id}
    g.fields = {}
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
    log_event(
        log,
        level,
        request.endpoint if request.endpoint in ("publish", "label", "exchange") else "request",
        g.failure,
        request_id=g.request_id,
        method=request.method,
        status=response.status_code,
        **g.fields,
        address=request.remote_addr,
        milliseconds=round((time.perf_counter() - g.began) * 1000, 1),
    )
    return response


def _result(status: int) -> str:
    """What a publication that is answered so has come to."""
    if status >= 500:
        return "failed"
    if status >= 400:
        return "limited" if status == 429 else "refused"
    return "unchanged" if g.fields.get("unchanged") else "done"


def _answer_error(frame: Frame, error: Exception) -> Response:
    told = _tell(error)
    if isinstance(error, TooManyKept):
        g.headers["Retry-After"] = str(error.wait_seconds)
    response = frame.error(told) if is_account_url(request.path) else _envelope(told)
    if told.status == 503:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
    return response


def _tell(error: Exception) -> RequestError:
    """What to tell of whatever went wrong; the log gets the cause of what is not the client's."""
    told = _as_request_error(error)
    g.fields["code"] = told.code
    if told.status >= 500:
        g.failure = error
    return told


def _envelope(told: RequestError) -> Response:
    answer = answers.error_answer(told)
    # Headers are set without regard to case, so these replace those of the read server.
    response = Response(answer.body, answer.status)
    response.headers.update({key.decode(): value.decode() for key, value in answer.headers})
    if told.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _as_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, CSRFError):
        return RequestError(
            "invalid_parameter",
            "This form has expired, or was sent from another page. Allow cookies, open the "
            "page again, and send the form again.",
        )
    if isinstance(error, RequestEntityTooLarge):
        return RequestError("content_too_large", "The form is too large. Send less.")
    if isinstance(error, ClientDisconnected):
        return RequestError(
            "invalid_parameter", "The form arrived incomplete. Open the page and send it again."
        )
    if isinstance(error, OperatorError):
        return RequestError(
            "unavailable",
            "The server has a problem that only its operator can fix; the log has the cause. "
            "Try again later.",
        )
    if isinstance(error, NotFound) and is_account_url(request.path):
        return RequestError(
            "not_found",
            "This page of the account settings does not exist. Go back to your account.",
        )
    if isinstance(error, NotFound):
        return RequestError(
            "not_found",
            f"Nothing at this address. Publish with POST {PUBLISH_URL}; {API}/openapi.json "
            "lists all endpoints.",
        )
    if isinstance(error, MethodNotAllowed):
        methods = " or ".join(sorted(error.valid_methods or ()))
        return RequestError(
            "method_not_allowed", f"This address does not accept this method. Send {methods}."
        )
    return RequestError(
        "internal_error", "The server failed. Send the same request again in a moment."
    )


def _allow_other_origins(app: Flask) -> None:
    """The CORS headers of the read server, for browsers that publish."""
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
