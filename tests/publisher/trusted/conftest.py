"""An issuer of ID tokens, and hubs that believe it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.events import written_by
from publisher.accounts.tokens import Accounts
from publisher.trusted.id_tokens import KeyRing, verify
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer, Job
from publisher.trusted.publishers import TrustedPublishers
from tests.support.catalogues import BASE_URL
from tests.support.issuer import TestIssuer

AT = 1_769_851_815
HOST = "HOST"  # in the place of the issuer's host, where a test does not know it yet
JSON_VALUES = [None, "", 7, True, ["x"], {"a": "b"}, "x\ny", "\ud800", "x" * 1001]
NOW = datetime(2026, 1, 31, 9, 30, 15, 999_999, tzinfo=UTC)
NOW_SECONDS = AT
GITHUB, GITLAB = DEFAULT_ISSUERS
JOB = Job(
    issuer=GITHUB.url, kind="github", project="octo/prompts", project_id="74",
    workflow="publish.yml", environment="", ref="refs/heads/main", workflow_ref="refs/heads/main",
    commit="", run="run 1", token_hash=b"1", expires_at=NOW_SECONDS + 360,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _home() -> Iterator[None]:
    """Everything is done at this address."""
    with written_by("", "192.0.2.1"):
        yield


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
        # A message may contain the token's claims, and never the token.
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


@pytest.fixture
def database(accounts_place: str) -> Iterator[Database]:
    with Database(accounts_place) as opened:
        for owner in ("ann", "bob"):
            Accounts(opened).add_owner(owner, NOW)
        yield opened


@pytest.fixture
def publishers(database: Database) -> TrustedPublishers:
    return TrustedPublishers(database)
