"""An issuer of ID tokens, and hubs that believe it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from builder.model.errors import RequestError
from publisher.trusted.claims import Job
from publisher.trusted.id_tokens import (
    verify,
)
from publisher.trusted.issuers import Issuer
from publisher.trusted.keys import KeyRing
from tests.support.catalogues import BASE_URL
from tests.support.issuer import TestIssuer

AT = 1_769_851_815
HOST = "HOST"  # in the place of the issuer's host, where a test does not know it yet


class Verifier:
    """Verifies as a hub that believes this issuer alone, at AT and so many seconds later."""

    def __init__(self, kind: str, live: TestIssuer) -> None:
        self.kind = kind
        self.live = live
        self.issuers = [Issuer(kind, live.url)]
        self.keys = KeyRing(self.issuers)

    def token(self, **changes: Any) -> str:
        make = self.live.token if self.kind == "github" else self.live.gitlab_token
        host = self.live.url.partition("://")[2]
        filled = {
            name: value.replace(HOST, host) if isinstance(value, str) else value
            for name, value in changes.items()
        }
        return make(**{"now": AT} | filled)

    def job(self, token: str, later: float = 0) -> Job:
        now = datetime.fromtimestamp(AT + later, UTC)
        return verify(token, self.issuers, self.keys, BASE_URL, now)

    def refusal(self, token: str, later: float = 0) -> RequestError:
        with pytest.raises(RequestError) as caught:
            self.job(token, later)
        # What the token says may be told, and never the token.
        for part in token.split("."):
            assert len(part) < 20 or part not in str(caught.value)
        assert len(str(caught.value)) < 2000
        return caught.value


@pytest.fixture
def github(live: TestIssuer) -> Verifier:
    return Verifier("github", live)


@pytest.fixture
def gitlab(live: TestIssuer) -> Verifier:
    return Verifier("gitlab", live)


@pytest.fixture(params=["github", "gitlab"])
def either(request: pytest.FixtureRequest, live: TestIssuer) -> Verifier:
    return Verifier(request.param, live)
