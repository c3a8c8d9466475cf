"""Checks the token of a request: its owner, its rights, and the limits on both."""

import time
from collections.abc import Callable
from typing import NoReturn

from flask import g, request

from builder.model.errors import RequestError
from publisher.accounts.people.attempts import FAILED_SIGN_INS
from publisher.accounts.teams import Actor
from publisher.accounts.tokens import Accounts
from publisher.limits import Limits
from publisher.web.incoming import bearer_token
from server.throttle import Throttle, network

# A token that was valid this recently is not looked up again.
STILL_GOOD_SECONDS = 1.0


class TokenCheck:
    """Checks the tokens of requests. ``publications`` counts those of each owner.

    A ``check`` calls a method of ``Rights`` that raises RequestError for an actor without the
    right to write here. ``owner``: for whom, as the request names it.
    """

    def __init__(self, accounts: Accounts, publications: Throttle, limits: Limits) -> None:
        self._accounts = accounts
        self._publications = publications
        self._checks = Throttle(limits.checks, "check")
        self._failures = Throttle(limits.wrong_tokens, "failed-auth")

    def admit(self, owner: str, check: Callable[[Actor], None]) -> Actor:
        """Returns the actor of a request that may write here now, counted as a publication. Raises
        RequestError.
        """
        actor = self._authenticate_or_count(owner)
        _show_policy(self._publications)
        self._accounts.note_use(actor.token, address=request.remote_addr or "")
        check(actor)
        # Counted by owner, not by token: an owner may have many, and each job has its own.
        reason = f"Too many publications or label changes of {actor.owner}"
        _count(self._publications, actor.owner, reason)
        return actor

    def admit_check(self, owner: str, check: Callable[[Actor], None]) -> Actor | None:
        """Returns the actor of a request that may write here, if it has a token. The use is not
        noted: the request writes nothing, and counts for its address. A read-only token counts as
        none.
        """
        _show_policy(self._checks)
        _count(self._checks, client(), "Too many checks from your address")
        if not bearer_token(request.headers.get("Authorization")):
            return None
        actor = self._authenticate_or_count(owner)
        if actor.token.only_reads:
            return None
        check(actor)
        return actor

    def admit_again(self, actor: Actor, check: Callable[[Actor], None]) -> Actor:
        """Returns the actor as it is now: one whose token was revoked, or who left the team, while
        the body arrived must not publish.
        """
        if time.perf_counter() - g.began < STILL_GOOD_SECONDS:
            return actor
        actor = self._authenticate(actor.owner)
        check(actor)
        return actor

    def _authenticate_or_count(self, owner: str) -> Actor:
        try:
            actor = self._authenticate(owner)
        except RequestError as error:
            if error.status == 401:
                FAILED_SIGN_INS.count("token")
                self.count_failure()
            raise
        g.fields["token"] = actor.token.id
        return actor

    def _authenticate(self, owner: str) -> Actor:
        return self._accounts.admit(bearer_token(request.headers.get("Authorization")), owner)

    def count_failure(self) -> None:
        """Counts a wrong token. Raises RequestError ``rate_limited``.

        Only failures are refused: a valid token works, whatever other clients at its address do.
        """
        if wait_seconds := self._failures.hit(client()):
            refuse(wait_seconds, "Too many requests with a wrong token from your address")

    def give_back(self) -> None:
        """Takes back one failure of this request's client."""
        self._failures.give_back(client())


def _show_policy(throttle: Throttle) -> None:
    if throttle.policy:
        g.headers["RateLimit-Policy"] = throttle.policy


def _count(throttle: Throttle, client: str, reason: str) -> None:
    if wait_seconds := throttle.hit(client):
        g.headers["RateLimit"] = throttle.exhausted(wait_seconds)
        refuse(wait_seconds, reason)


def client() -> str:
    """Returns the key under which checks and failures are counted."""
    return network(request.remote_addr or "")


def refuse(wait_seconds: int, reason: str) -> NoReturn:
    """Raises the RequestError ``rate_limited``, with its header."""
    g.headers["Retry-After"] = str(wait_seconds)
    raise RequestError("rate_limited", f"{reason}. Try again in {wait_seconds} s.")
