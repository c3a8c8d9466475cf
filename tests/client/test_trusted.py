"""`hub push --trusted`: a CI job publishes without a stored token, and leaks no secret."""

import json
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest

from publisher.accounts.database import Database
from publisher.accounts.token import make_token
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublishers
from tests.client.ci_job import (
    EXCHANGE,
    GRANTED,
    ID_TOKEN,
    PUSH,
    VERSIONS,
    Parts,
    on_github,
    push,
)
from tests.client.fake import Answer, Fake, Reset, answer, closed_port, error
from tests.client.shells import TOKEN, Client, Done
from tests.support.catalogues import settings_in
from tests.support.issuer import RUNTIME_SECRET, TestIssuer, issuer
from tests.support.servers import Server, add_publisher, add_team, serving

of_each_owner = pytest.mark.parametrize("owner", ["ada", "crew"])


def paths(fake: Fake) -> list[str]:
    """The paths of the requests, in order."""
    return [request.path.partition("?")[0] for request in fake.requests]


# With a real hub ---------------------------------------------------------------------------------


class Trusting(NamedTuple):
    """A live hub, and the issuers whose jobs may publish as ada and as the team crew."""

    server: Server
    github: TestIssuer
    gitlab: TestIssuer

    @property
    def url(self) -> str:
        return self.server.url

    def gitlab_token(self) -> str:
        return self.gitlab.gitlab_token(aud=self.url)


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    settings = settings_in(tmp_path_factory.mktemp("hub"))
    add_publisher(settings, "ada")
    add_team(settings, "crew")
    with issuer() as github, issuer() as gitlab:
        with Database(settings.state) as database:
            publishers = TrustedPublishers(database)
            for owner in ("ada", "crew"):
                publishers.add(
                    owner,
                    Issuer("github", github.url),
                    Entered("octo/prompts", "publish.yml", labels="staging"),
                )
                publishers.add(
                    owner, Issuer("gitlab", gitlab.url), Entered("acme/team/prompts", "")
                )
        options = (f"github={github.url}", f"gitlab={gitlab.url}")
        with serving(
            settings,
            "--publish-limit",
            "0",
            *(word for each in options for word in ("--trusted-issuer", each)),
        ) as server:
            yield Trusting(server, github, gitlab)


@of_each_owner
def test_a_job_of_github(client: Client, trusting: Trusting, owner: str) -> None:
    job = on_github(client, trusting.url, trusting.github.url)
    repo = f"{owner}/github"
    (job.work / "a.md").write_bytes(b"One.")
    assert job.run("push", "--trusted", repo, "a.md") == (0, f"{repo} 1.0.0\n".encode(), "")
    # Each push has an ID token of its own.
    done = job.run("push", "--trusted", repo, "-", "Two", "minor", stdin=b"Two.")
    assert done == (0, f"{repo} 1.1.0\n".encode(), "")
    assert trusting.server.get(f"/api/v1/repos/{repo}/raw").content == b"Two."
    record = trusting.server.get(f"/api/v1/repos/{repo}/versions/1.1.0").json()["data"]
    assert (record["publisher"], record["source"]["project"]) == (owner, "octo/prompts")


@of_each_owner
def test_a_job_checks_publishes_and_moves_the_labels_of_its_form(
    client: Client, trusting: Trusting, owner: str
) -> None:
    repo = f"{owner}/strict"
    push = ("push", "--trusted", repo, "-", "--strict")
    job = on_github(client, trusting.url, trusting.github.url)
    done = job.run(*push, "--label", "staging", stdin=b"One.")
    assert (done.status, done.text) == (0, f"{repo} 1.0.0\n{repo}@staging 1.0.0\n"), done
    refused = job.run(*push, stdin=b"---\nnonsense: 1\n---\nTwo.")
    assert refused.status == 5 and "nonsense" in refused.err
    # A job of GitLab can get one token, which the check and the publication share.
    gitlab = client.to(trusting.url, HUB_ID_TOKEN=trusting.gitlab_token(), GITLAB_CI="true")
    assert gitlab.run(*push, stdin=b"Two.").text == f"{repo} 1.0.1\n"
    move = ("label", repo, "--trusted", "staging", "1.0.1")
    assert job.run(*move, "--expected", "1.0.0").text == f"{repo}@staging 1.0.1\n"
    assert job.run("label", repo, "production", "1.0.1", "--trusted").status == 4
    assert job.run("label", repo, "staging", "--remove", "--trusted").status == 0


@of_each_owner
def test_a_job_of_gitlab(client: Client, trusting: Trusting, owner: str) -> None:
    repo = f"{owner}/gitlab"
    job = client.to(trusting.url + "/", HUB_ID_TOKEN=trusting.gitlab_token(), GITLAB_CI="true")
    assert job.run("push", "--trusted", repo, "-", stdin=b"One.").text == f"{repo} 1.0.0\n"
    again = job.run("push", "--trusted", repo, "-", stdin=b"Two.")
    assert again.status == 4 and again.err and again.out == b""
    assert list(versions(trusting, repo)) == ["1.0.0"]


def versions(trusting: Trusting, repo: str) -> list[str]:
    found = trusting.server.get(f"/api/v1/repos/{repo}/versions").json()["data"]
    return [each["version"] for each in found]


def test_a_job_that_nobody_trusts(client: Client, trusting: Trusting) -> None:
    trusting.github.job = {"repository_id": "666", "repository": "evil/fork"}
    try:
        done = push(on_github(client, trusting.url, trusting.github.url, HUB_TOKEN=TOKEN))
    finally:
        trusting.github.job = {}
    assert done.status == 4 and "evil/fork" in done.err and done.out == b""


def test_an_id_token_for_another_hub(client: Client, trusting: Trusting) -> None:
    job = client.to(trusting.url, HUB_ID_TOKEN=trusting.gitlab.gitlab_token(aud="https://other"))
    done = push(job)
    assert done.status == 4 and trusting.url in done.err


def test_a_hub_of_files_has_no_trusted_publishing(client: Client, hosts: dict[str, str]) -> None:
    for host in ("python", "nginx"):
        done = push(client.to(hosts[host], HUB_ID_TOKEN=ID_TOKEN))
        assert done.status in (1, 3, 6) and f"{hosts[host]} has no trusted publishing" in done.err


# What is asked -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/token?api-version=2.0", "/token?api-version=2.0&audience="),
        ("/token", "/token?audience="),
    ],
)
def test_who_gets_which_token(path: str, asked: str, client: Client) -> None:
    with Fake(Parts()) as fake:
        given = {"ACTIONS_ID_TOKEN_REQUEST_URL": fake.url + path, "HUB_TOKEN": "a b"}
        job = on_github(client, fake.url, fake.url, **given)
        assert push(job) == (0, b"ada/x 1.0.0\n", "")
    id_token, exchange, versions = fake.requests
    audience = quote(fake.url, safe="")
    assert id_token.method == "GET"
    assert id_token.path.replace("%3a", "%3A").replace("%2f", "%2F") == asked + audience
    assert id_token.headers["authorization"] == f"bearer {RUNTIME_SECRET}"
    assert (exchange.method, exchange.path) == ("POST", EXCHANGE)
    assert exchange.headers["content-type"] == "application/json"
    assert "authorization" not in exchange.headers
    assert json.loads(exchange.body) == {"token": ID_TOKEN, "repo": "ada/x"}
    assert versions.headers["authorization"] == f"Bearer {TOKEN}"
    assert json.loads(versions.body)["content"] == "Hi."


def test_github_is_asked_where_both_are_given(client: Client) -> None:
    with Fake(Parts()) as fake:
        assert push(on_github(client, fake.url, fake.url, HUB_ID_TOKEN="x.y.z")).status == 0
        assert json.loads(fake.requests[1].body)["token"] == ID_TOKEN


def test_an_id_token_that_is_given(client: Client) -> None:
    """Also in a job of GitHub whose own is not to be had."""
    with Fake(Parts()) as fake:
        for env in ({}, {"GITHUB_ACTIONS": "true"}, {"HUB_TOKEN": make_token()}):
            assert push(client.to(fake.url, HUB_ID_TOKEN=ID_TOKEN, **env)).status == 0
            assert paths(fake) == [EXCHANGE, VERSIONS]
            fake.requests.clear()


def test_answers_in_other_spaces(client: Client) -> None:
    pretty = answer(json.dumps({"count": 1, "value": ID_TOKEN}, indent=4))
    granted = answer(json.dumps({"data": {"token": TOKEN, "repos": []}}, indent=2))
    with Fake(Parts(id_token=(pretty,), exchange=(granted,))) as fake:
        assert push(on_github(client, fake.url, fake.url)).status == 0


# What is missing or wrong ------------------------------------------------------------------------


def test_what_cannot_be_published_uses_no_id_token_up(each: Client) -> None:
    with Fake(Parts()) as fake:
        job = on_github(each, fake.url, fake.url)
        assert job.run(*PUSH) == (
            5,
            b"",
            "standard input is empty. A prompt needs at least one character\n",
        )
        assert job.run(*PUSH, stdin=b"a\xff").status == 5
        assert job.run("push", "--trusted", "ada/x", "nowhere").status == 1
        assert not fake.requests


@pytest.mark.parametrize(
    ("operands", "told"),
    [
        (["--trust", "ada/x", "f"], "unknown option --trust"),
        (["--trusted"], "too few arguments for hub push"),
        (["--trusted", "ada", "f"], "'ada' is not OWNER/NAME"),
    ],
)
def test_wrong_uses(operands: list[str], told: str, client: Client) -> None:
    nowhere = "http://127.0.0.1:9"
    done = on_github(client, nowhere, nowhere).run("push", *operands)
    assert done.status == 2 and told in done.err


def with_exchange(client: Client, *answers: Answer) -> tuple[Done, list[str]]:
    """The result of a push with this answer to the exchange, and the hosts that got requests."""
    with Fake(Parts(exchange=answers)) as fake:
        done = push(on_github(client, fake.url, fake.url))
        return done, paths(fake)


@pytest.mark.parametrize(
    ("status", "ended"), [(400, 5), (401, 4), (403, 4), (413, 5), (415, 5), (422, 5), (418, 1)]
)
def test_an_exchange_that_is_refused(status: int, ended: int, client: Client) -> None:
    done, asked = with_exchange(client, error(status, "This is why."))
    assert done == (ended, b"", "This is why.\n")
    assert asked == ["/token", EXCHANGE]


@pytest.mark.parametrize(("status", "ended"), [(429, 7), (500, 6), (503, 6)])
def test_an_exchange_that_is_tried_again(status: int, ended: int, client: Client) -> None:
    done, asked = with_exchange(client, error(status), error(status), GRANTED)
    assert done == (0, b"ada/x 1.0.0\n", "")
    assert asked == ["/token", EXCHANGE, EXCHANGE, EXCHANGE, VERSIONS]
    done, asked = with_exchange(client, error(status))
    assert done.status == ended and asked == ["/token", *[EXCHANGE] * 4]


@pytest.mark.parametrize(
    "page",
    ["<p>Log in", "", "{}", '{"token":""}', '{"token":"a.b"}', '{"token":"a b"}', '{"token":null}'],
)
def test_what_is_no_exchange(page: str, client: Client) -> None:
    done, asked = with_exchange(client, answer(page))
    assert done.status == 6 and "is not from a hub" in done.err
    assert VERSIONS not in asked


@pytest.mark.parametrize(
    ("status", "ended"), [(400, 6), (401, 4), (403, 4), (404, 6), (429, 7), (500, 6), (302, 6)]
)
def test_an_issuer_that_refuses(status: int, ended: int, client: Client) -> None:
    with Fake(Parts(id_token=(error(status, "Unknown to us."),))) as fake:
        done = push(on_github(client, fake.url, fake.url))
    assert done.status == ended and f"it answers {status}" in done.err and "GitHub" in done.err
    assert set(paths(fake)) == {"/token"}


def test_an_issuer_that_is_away(client: Client) -> None:
    with Fake(Parts()) as fake, closed_port() as url:
        done = push(on_github(client, fake.url, url))
    assert done.status == 6 and done.err.startswith("cannot reach GitHub for an ID token: ")
    assert not fake.requests and client.sleeps == ["1", "2", "4"]


@pytest.mark.parametrize("page", ["", "<p>Log in", "{}", '{"value":null}', '{"value":"a b"}'])
def test_an_issuer_that_answers_nonsense(page: str, client: Client) -> None:
    with Fake(Parts(id_token=(answer(page),))) as fake:
        done = push(on_github(client, fake.url, fake.url))
    assert done == (6, b"", "the answer of GitHub has no ID token. Run the job again\n")


def test_an_id_token_is_used_up_by_an_answer_that_was_lost(client: Client) -> None:
    used = error(401, "This ID token was used already.")
    done, asked = with_exchange(client, Reset(GRANTED[:30]), used)
    assert done == (4, b"", "This ID token was used already.\n")
    assert asked == ["/token", EXCHANGE, EXCHANGE]
