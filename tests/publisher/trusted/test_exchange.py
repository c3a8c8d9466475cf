"""An ID token is exchanged for a token of the hub: once, for owners that trust the job, and
briefly.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.token import Token
from publisher.accounts.tokens import Accounts
from publisher.trusted.id_tokens import LEEWAY_SECONDS, KeyRing, verify
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublishers, exchange
from tests.support.actors import holder, rights_of
from tests.support.catalogues import BASE_URL
from tests.support.events import latest
from tests.support.issuer import TestIssuer, claims_of, issuer

NOW = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
AT = 1_769_851_815
MINUTE = timedelta(minutes=1)


class Hub:
    """A hub that believes one issuer, as GitHub and as GitLab, with the owners ann and bob."""

    def __init__(self, accounts_place: str, live: TestIssuer) -> None:
        self.live = live
        self.place = accounts_place
        self.database = Database(accounts_place)
        self.accounts = Accounts(self.database)
        for owner in ("ann", "bob"):
            self.accounts.add_owner(owner, NOW)
        self.publishers = TrustedPublishers(self.database)
        self.github, self.gitlab = Issuer("github", live.url), Issuer("gitlab", live.url)
        self.keys = KeyRing([self.github, self.gitlab])

    def trust(self, owner: str = "ann", repo: str = "review", **changes: Any) -> str:
        """Trust the usual job of GitHub; returns the publisher's id."""
        usual = {"project": "octo/prompts", "workflow": "publish.yml"}
        entered = Entered(repo=repo, **usual | changes)
        return self.publishers.add(owner, self.github, entered, now=NOW).id

    def token(self, **claims: Any) -> str:
        return self.live.token(**{"now": AT} | claims)

    def exchange(
        self, token: str, repo: str | None = "ann/review", now: datetime = NOW
    ) -> tuple[str, Token]:
        is_gitlab = "project_path" in claims_of(token)
        believed = [self.gitlab if is_gitlab else self.github]
        job = verify(token, believed, self.keys, BASE_URL, now)
        return exchange(self.database, self.accounts, job, repo, now)

    def refusal(
        self, token: str, repo: str | None = "ann/review", now: datetime = NOW
    ) -> RequestError:
        before = self.state()
        with pytest.raises(RequestError) as caught:
            self.exchange(token, repo, now)
        assert self.state() == before
        return caught.value

    def state(self) -> list[list[tuple]]:
        """All that an exchange can change."""
        return [
            self.database.execute(f"SELECT * FROM {table} ORDER BY 1")
            for table in ("token", "trusted_publisher", "exchanged", "event")
        ]


@pytest.fixture
def hub(accounts_place: str) -> Iterator[Hub]:
    with issuer() as live:
        made = Hub(accounts_place, live)
        with made.database:
            yield made


# Granted exchanges


def test_a_job_of_github_gets_a_token(hub: Hub):
    publisher = hub.trust()
    text, token = hub.exchange(hub.token())
    assert (token.owner, token.repos, token.trusted_publisher) == ("ann", ("review",), publisher)
    assert token.expires_at == AT + 15 * 60
    assert hub.accounts.authenticate(text, NOW) == token
    assert hub.accounts.authenticate(text, NOW + 15 * MINUTE - timedelta(seconds=1))
    with pytest.raises(RequestError, match="expired"):
        hub.accounts.authenticate(text, NOW + 15 * MINUTE)
    rights_of(hub.accounts).check_may_publish(holder(token, "ann"), "review")
    with pytest.raises(RequestError) as caught:
        rights_of(hub.accounts).check_may_publish(holder(token, "ann"), "story")
    assert caught.value.code == "insufficient_scope"
    (used,) = hub.publishers.of("ann")
    assert (used.project_id, used.used_at) == ("74", AT)
    event = latest(hub.database, "ann", 1)[0]
    assert (event.kind, event.subject, event.address) == ("publisher_used", publisher, "192.0.2.1")
    assert event.note == "github octo/prompts publish.yml on refs/heads/main run 1234567890"
    assert hub.accounts.tokens("ann") == []  # it is no personal one


def test_a_job_of_gitlab_gets_a_token(hub: Hub):
    hub.publishers.add("ann", hub.gitlab, Entered("Acme/Team/Prompts", ""), now=NOW)
    _, token = hub.exchange(hub.live.gitlab_token(now=AT), "ann/*")
    assert (token.owner, token.repos) == ("ann", ())
    _, token = hub.exchange(hub.live.gitlab_token(now=AT), "ann/any")
    assert token.repos == ("any",)
    assert latest(hub.database, "ann", 1)[0].note == (
        "gitlab acme/team/prompts .gitlab-ci.yml on refs/heads/main "
        f"{hub.live.url}/acme/team/prompts/-/jobs/302"
    )


def test_a_job_that_only_moves_labels_publishes_nothing(hub: Hub):
    labels = hub.trust(labels="production", publishes=False)
    _, token = hub.exchange(hub.token(jti="1"))
    assert (token.rights, token.labels) == (("label",), ("production",))
    rights_of(hub.accounts).check_may_label(holder(token, "ann"), "review", ["production"])
    with pytest.raises(RequestError, match="only moves labels"):
        rights_of(hub.accounts).check_may_publish(holder(token, "ann"), "review")
    assert hub.exchange(hub.token(jti="2"), "ann/*")[1].rights == ("label",)
    # Another entry publishes another prompt: a token for both would publish in both.
    other = hub.trust(repo="story", labels="staging")
    _, token = hub.exchange(hub.token(jti="3"), "ann/*")
    assert (token.repos, token.labels, token.trusted_publisher) == (("story",), ("staging",), other)
    # In one prompt, a job may do all that its entries allow.
    both = hub.trust(environment="prod", labels="staging")
    _, token = hub.exchange(hub.token(jti="4", environment="prod"))
    assert (token.rights, token.labels) == (("publish", "label"), ("production", "staging"))
    assert set(token.trusted_publisher.split()) == {labels, both}


GITHUB_FILE = "octo/prompts/.github/workflows/publish.yml"
GITLAB_FILE = "HOST/acme/team/prompts//.gitlab-ci.yml"


def of_branch(hub: Hub, kind: str, **claims: str | None) -> str:
    """An ID token of a job on main, but for these claims."""
    if kind == "github":
        return hub.token(**claims)
    host = hub.live.url.partition("://")[2]
    filled = {name: value and value.replace("HOST", host) for name, value in claims.items()}
    return hub.live.gitlab_token(now=AT, **filled)


@pytest.mark.parametrize(
    ("kind", "claims", "message"),
    [
        ("github", {"ref": "refs/heads/topic"},
         "on refs/heads/topic with the file of refs/heads/main"),
        ("github", {"job_workflow_ref": f"{GITHUB_FILE}@refs/heads/topic"},
         "on refs/heads/main with the file of refs/heads/topic"),
        ("github", {"ref": "refs/tags/main",
                    "job_workflow_ref": f"{GITHUB_FILE}@refs/tags/main"}, "on refs/tags/main,"),
        ("github", {"ref": None}, "on no branch or tag"),
        ("gitlab", {"ref": "topic", "ref_path": None}, "on refs/heads/topic with"),
        ("gitlab", {"ci_config_ref_uri": f"{GITLAB_FILE}@refs/heads/topic"},
         "on refs/heads/main with the file of refs/heads/topic"),
        ("gitlab", {"ref_type": "tag", "ref_path": "refs/tags/main",
                    "ci_config_ref_uri": f"{GITLAB_FILE}@refs/tags/main"}, "on refs/tags/main,"),
    ],
)  # fmt: skip
def test_a_branch_that_is_wanted(hub: Hub, kind: str, claims: dict[str, str | None], message: str):
    add = hub.publishers.add
    hub.trust(branch="main")
    entered = Entered("acme/team/prompts", "", "review", branch="refs/heads/main")
    add("ann", hub.gitlab, entered, now=NOW)
    assert hub.exchange(of_branch(hub, kind))
    error = hub.refusal(of_branch(hub, kind, **claims))
    assert error.code == "insufficient_scope"
    assert message in str(error)
    # A publisher without a branch trusts them all, and the log has the branch.
    hub.trust("bob")
    add("bob", hub.gitlab, Entered("acme/team/prompts", "", "review"), now=NOW)
    assert hub.exchange(of_branch(hub, kind, **claims), "bob/review")
    assert message.strip(",") in latest(hub.database, "bob", 1)[0].note


def test_for_all_repos_those_that_trust_the_job_are_meant(hub: Hub):
    ids = [hub.trust(repo=repo) for repo in ("story", "review")]
    _, token = hub.exchange(hub.token(), "ann/*")
    assert token.repos == ("review", "story")
    assert sorted(token.trusted_publisher.split()) == sorted(ids)
    hub.trust(repo="")
    _, token = hub.exchange(hub.token(), "ann/*")
    assert (token.owner, token.repos) == ("ann", ())
    _, token = hub.exchange(hub.token(), "ann/story")
    assert token.repos == ("story",)


def test_the_labels_that_a_job_may_move(hub: Hub):
    hub.trust(labels="production, canary")
    hub.trust(repo="", labels="canary beta", branch="main")
    hub.trust(repo="story")
    # In one repo, the labels that any publisher allows; in several, those that all allow.
    assert hub.exchange(hub.token())[1].labels == ("beta", "canary", "production")
    assert hub.exchange(hub.token(), "ann/story")[1].labels == ("beta", "canary")
    everywhere = hub.exchange(hub.token(), "ann/*")[1]
    assert (everywhere.labels, everywhere.rights) == ((), ("publish",))
    assert everywhere.repos == ()


def test_who_else_names_a_project_changes_nothing(hub: Hub):
    hub.trust("bob", repo="")
    assert hub.refusal(hub.token(), "ann/*").code == "insufficient_scope"
    hub.trust("ann", repo="")
    for owner in ("ann", "bob"):
        assert hub.exchange(hub.token(), f"{owner}/*")[1].owner == owner


# Refused exchanges


def test_a_refusal_tells_what_the_job_is_and_nothing_else(hub: Hub):
    hub.trust(environment="secret-environment", workflow="hidden.yml")
    hub.trust("bob", "hidden-repo")
    error = hub.refusal(hub.token(environment="Test"))
    for part in ("ann/review", "octo/prompts", "(id 74)", "publish.yml", "on refs/heads/main,",
                 "environment test", hub.live.url):  # fmt: skip
        assert part in str(error)
    assert "no environment" in str(hub.refusal(hub.token()))
    assert "hidden" not in str(error) and "secret" not in str(error) and "bob" not in str(error)
    # The same message as without any trusted publisher.
    nothing = hub.refusal(hub.token(environment="Test"), "cleo/review")
    assert str(nothing) == str(error).replace("ann/", "cleo/")


@pytest.mark.parametrize("repo", ["ann/story", "bob/review", "bob/story", "cleo/review"])
def test_repos_of_which_it_is_not_trusted(hub: Hub, repo: str):
    hub.trust()
    hub.trust("bob", "other")
    error = hub.refusal(hub.token(), repo)
    assert error.code == "insufficient_scope"
    assert repo in str(error)


def test_a_project_created_again_by_another_owner(hub: Hub):
    hub.trust()
    assert hub.exchange(hub.token(repository_id="74"))
    error = hub.refusal(hub.token(repository_id="75"))
    assert error.code == "insufficient_scope"
    assert "(id 75)" in str(error) and "(id 74)" not in str(error)
    assert hub.exchange(hub.token(repository_id="74"))
    (publisher,) = hub.publishers.of("ann")
    hub.publishers.remove("ann", publisher.id)
    hub.trust()
    assert hub.exchange(hub.token(repository_id="75"))


# Once


def test_an_id_token_counts_once(hub: Hub):
    hub.trust(repo="")
    token = hub.token()
    hub.exchange(token)
    for later, repo in ((timedelta(), "ann/review"), (MINUTE, "ann/story"), (6 * MINUTE, "ann/*")):
        error = hub.refusal(token, repo, NOW + min(later, timedelta(seconds=359)))
        assert error.code == "invalid_token"
        assert "used already" in str(error)
    assert hub.exchange(hub.token())
    # Tokens with the same jti are the same token, even if other claims differ.
    spent = claims_of(token)["jti"]
    assert "used already" in str(hub.refusal(hub.token(jti=spent, ref="refs/heads/other")))


def test_a_refusal_does_not_use_it_up(hub: Hub):
    token = hub.token()
    assert hub.refusal(token).code == "insufficient_scope"
    hub.trust()
    assert hub.refusal(token, "ann/story").code == "insufficient_scope"
    assert hub.exchange(token)
    assert "used already" in str(hub.refusal(token))


def test_two_at_once_with_one_id_token(hub: Hub):
    hub.trust()
    job = verify(hub.token(), [hub.github], hub.keys, BASE_URL, NOW)
    together = threading.Barrier(6)

    def ask(number: int) -> str | None:
        # Two processes' worth: what a transaction keeps apart, and what a lock does.
        with Database(hub.place) as other:
            database = other if number % 2 else hub.database
            together.wait()
            try:
                return exchange(database, Accounts(database), job, "ann/review", NOW)[0]
            except RequestError as error:
                assert error.code == "invalid_token"
                return None

    with ThreadPoolExecutor(6) as pool:
        texts = [text for text in pool.map(ask, range(6)) if text]
    assert len(texts) == 1
    assert hub.accounts.authenticate(texts[0], NOW)


def test_two_projects_of_one_name_at_once(hub: Hub):
    hub.trust()
    jobs = [
        verify(hub.token(repository_id=str(74 + number % 2)), [hub.github], hub.keys, BASE_URL, NOW)
        for number in range(6)
    ]

    def ask(job: Any) -> str:
        try:
            exchange(hub.database, hub.accounts, job, "ann/review", NOW)
        except RequestError as error:
            assert error.code == "insufficient_scope"
            return ""
        return job.project_id

    with ThreadPoolExecutor(6) as pool:
        assert len({project for project in pool.map(ask, jobs) if project}) == 1


def test_what_is_used_up_is_remembered_as_long_as_it_holds(hub: Hub):
    hub.trust()
    token = hub.token(exp=AT + 300)
    job = verify(token, [hub.github], hub.keys, BASE_URL, NOW)
    last = timedelta(seconds=300 + LEEWAY_SECONDS - 1)
    hub.exchange(token)
    hub.exchange(hub.token(now=AT + 359), now=NOW + last)
    assert len(hub.database.execute("SELECT * FROM exchanged")) == 2
    assert "used already" in str(hub.refusal(token, now=NOW + last))
    # It held when it was verified; the row goes with the next exchange.
    after = NOW + last + timedelta(seconds=1)
    hub.exchange(hub.token(now=AT + 360), now=after)
    assert len(hub.database.execute("SELECT * FROM exchanged")) == 2
    with pytest.raises(RequestError) as caught:
        exchange(hub.database, hub.accounts, job, "ann/review", after)
    assert caught.value.code == "token_expired"
