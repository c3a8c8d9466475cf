"""The exchange of a CI job's ID token for a token of the hub, over HTTP."""

from collections.abc import Callable
from functools import cached_property, partial

from flask import Flask, Request, Response, g, request

from builder.model.answers import TrustedToken
from builder.model.envelopes import single
from builder.model.errors import RequestError
from builder.model.request_bodies import TrustedExchange
from builder.model.service_urls import TRUSTED_URL
from publisher.accounts.events import written_by
from publisher.accounts.people.attempts import FAILED_SIGN_INS
from publisher.accounts.tokens import format_time
from publisher.service.parts import Service
from publisher.trusted.issuers import Job
from publisher.trusted.publishers import exchange
from publisher.web.incoming import read_json_body
from publisher.web.json_answers import json_answer
from publisher.web.token_check import TokenCheck
from publisher.write.drafts import parse_exchange
from server.bodies import VISITOR_BYTES_MAX


def add_to(app: Flask, service: Service, tokens: TokenCheck) -> None:
    """Adds this view."""
    view = _Exchange(service, tokens).exchange
    app.add_url_rule(TRUSTED_URL, "exchange", view, methods=["POST"])


class _Exchange:
    """The view, and the keys of issuers."""

    def __init__(self, service: Service, tokens: TokenCheck) -> None:
        self._service = service
        self._tokens = tokens

    @cached_property
    def _verify(self) -> Callable[[str], Job]:
        # Loaded at the start, for the first job: it takes as long to load as the rest of the
        # service.
        from publisher.trusted.id_tokens import KeyRing, verify

        issuers = tuple(self._service.issuers.values())
        keys = KeyRing(issuers, before_fetching=self._count_attempt)
        return partial(verify, issuers=issuers, keys=keys, audience=self._service.settings.base_url)

    def _count_attempt(self) -> None:
        """Counts a request that makes this hub contact an issuer as a failure, until it
        succeeds.
        """
        self._tokens.count_failure()
        g.is_counted = True

    def exchange(self) -> Response:
        """Returns a token for a CI job, on its issuer's signature."""
        sent = read_exchange(request)
        try:
            job = self._verify(sent.token)
            g.fields |= {"issuer": job.issuer, "project": job.project, "run": job.run}
            with written_by("", request.remote_addr or ""):
                database, accounts = self._service.database, self._service.accounts
                text, token = exchange(database, accounts, job, sent.repo)
        except RequestError as error:
            if error.status in (401, 403):
                FAILED_SIGN_INS.count("ci_job")
                if not g.is_counted:
                    self._tokens.count_failure()
            raise
        if g.is_counted:
            self._tokens.give_back()
        g.fields |= {"owner": token.owner, "token": token.id}
        expires_at = format_time(token.expires_at)
        answer = TrustedToken(text, token.owner, list(token.repos), expires_at)
        return json_answer(200, single(answer))


def read_exchange(request: Request) -> TrustedExchange:
    """Returns the body of a request.

    Raises RequestError ``unsupported_media_type``, ``content_too_large``, ``invalid_json``,
    ``validation_failed``; none quotes the ID token.
    """
    body = read_json_body(request, VISITOR_BYTES_MAX, "send only the ID token and the repo")
    return parse_exchange(body)
