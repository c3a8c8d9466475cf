"""The exchange of a CI job's ID token for a token of the hub, over HTTP."""

import json
import re
from collections.abc import Callable
from functools import cached_property, partial

import msgspec
from flask import Flask, Request, Response, g, request

from builder.model import names
from builder.model.answers import TrustedToken
from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.request_bodies import TrustedExchange
from builder.model.service_urls import TRUSTED_URL
from builder.render.envelopes import json_bytes, single
from builder.text.json_keys import only_once
from publisher.accounts.events import written_by
from publisher.accounts.people.attempts import FAILED_SIGN_INS
from publisher.accounts.tokens import Token, format_time
from publisher.service.parts import Service
from publisher.trusted.claims import Job
from publisher.trusted.exchange import ALL, exchange
from publisher.web.incoming import read_json_body
from publisher.web.json_answers import json_answer
from publisher.web.token_check import TokenCheck
from publisher.write.fields import suggest
from server.bodies import VISITOR_BYTES_MAX

_GRAMMAR = {
    "repo": "must be OWNER/NAME in lower case, or OWNER/* for all that trust the job: "
    "ada/code-review"
}

_decode = msgspec.json.Decoder(TrustedExchange).decode
_place = re.compile(r"(?P<message>.*) - at `\$\.(?P<field>\w+)`", re.DOTALL)
_missing = re.compile(r"Object missing required field `(?P<field>\w+)`")
_unknown = re.compile(r"Object contains unknown field `(?P<field>.*)`", re.DOTALL)


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
        from publisher.trusted.id_tokens import verify
        from publisher.trusted.keys import KeyRing

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
        id_token, repo = read_exchange(request)
        try:
            job = self._verify(id_token)
            g.fields |= {"issuer": job.issuer, "project": job.project, "run": job.run}
            with written_by("", request.remote_addr or ""):
                database, accounts = self._service.database, self._service.accounts
                text, token = exchange(database, accounts, job, repo)
        except RequestError as error:
            if error.status in (401, 403):
                FAILED_SIGN_INS.count("ci_job")
                if not g.is_counted:
                    self._tokens.count_failure()
            raise
        if g.is_counted:
            self._tokens.give_back()
        g.fields |= {"owner": token.owner, "token": token.id}
        return json_answer(200, single(json_bytes(trusted_token(text, token))))


def read_exchange(request: Request) -> tuple[str, str]:
    """Returns the ID token in a request, and its target: ``owner/name``, or ``owner/*``.

    Raises RequestError ``unsupported_media_type``, ``content_too_large``, ``invalid_json``,
    ``validation_failed``; none quotes the ID token.
    """
    body = read_json_body(request, VISITOR_BYTES_MAX, "send only the ID token and the repo")
    try:
        sent = _decode(body)
        json.loads(body, object_pairs_hook=only_once)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    except (ValueError, RecursionError):
        raise _not_an_object() from None
    if not _is_scope(sent.repo):
        raise validation_failed(Detail("repo", _GRAMMAR["repo"]))
    return sent.token, sent.repo


def trusted_token(text: str, token: Token) -> TrustedToken:
    """Returns the answer: a token with its text."""
    return TrustedToken(text, token.owner, list(token.repos), format_time(token.expires_at))


def _wrong(message: str) -> RequestError:
    if found := _place.fullmatch(message):
        field = found["field"]
        message = _GRAMMAR.get(field, found["message"])
        return validation_failed(Detail(field, message))
    if found := _missing.fullmatch(message):
        field = found["field"]
        message = _GRAMMAR.get(
            field, "is missing: send the ID token that the CI created for this job"
        )
        return validation_failed(Detail(field, message))
    if found := _unknown.fullmatch(message):
        known = TrustedExchange.__struct_fields__
        message = f"is not a known field{suggest(found['field'], known)}: send {', '.join(known)}"
        return validation_failed(Detail(found["field"], message))
    return _not_an_object()


def _is_scope(text: str) -> bool:
    # The pattern of the record accepts a final newline, and an owner that is too long.
    owner, _, name = text.partition("/")
    return names.is_name(owner, names.OWNER_CHARS_MAX) and (
        name == ALL or names.is_name(name, names.REPO_CHARS_MAX)
    )


def _not_an_object() -> RequestError:
    return RequestError(
        "invalid_json",
        'Send a JSON object in UTF-8, each key once: {"token": "…", "repo": "ada/code-review"}.',
    )
