"""A job of a CI publishes to a live hub, with nothing but its issuer's word."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from builder.model.service_urls import TRUSTED_URL
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublishers
from tests.support.catalogues import settings_in
from tests.support.issuer import TestIssuer, issuer
from tests.support.servers import Server, serving, wait_until

VERSIONS = "/api/v1/repos/ann/{}/versions"


class Site(NamedTuple):
    server: Server
    live: TestIssuer
    gitlab: TestIssuer
    settings: Settings

    def id_token(self, **claims: object) -> str:
        return self.live.token(**{"aud": self.server.url} | claims)

    def exchange(self, **sent: object) -> requests.Response:
        return self.server.request("POST", TRUSTED_URL, json={"repo": "ann/*"} | sent)

    def publish(self, token: str, repo: str = "review") -> requests.Response:
        return self.server.request(
            "POST", VERSIONS.format(repo), json={"content": "Review this.\n"},
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A hub whose owner ann lets only octo/prompts publish ann/review."""
    settings = settings_in(tmp_path_factory.mktemp("trusted"))
    Path(settings.content).mkdir(exist_ok=True)
    with issuer() as live, issuer() as gitlab:
        with Database(settings.state) as database:
            Accounts(database).add_owner("ann")
            Accounts(database).set_trusted_only("ann", "review", True)
            TrustedPublishers(database).add(
                "ann", Issuer("github", live.url), Entered("octo/prompts", "publish.yml", "review")
            )
            TrustedPublishers(database).add(
                "ann",
                Issuer("gitlab", gitlab.url),
                Entered("acme/team/prompts", "", "guide", labels="production"),
            )
        options = [f"github={live.url}", f"gitlab={gitlab.url}"]
        with serving(settings, *(f"--trusted-issuer={one}" for one in options)) as server:
            yield Site(server, live, gitlab, settings)


def error_of(answer: requests.Response, status: int) -> dict:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.json()["error"]


def test_a_job_publishes(site: Site):
    id_token = site.id_token()
    answer = site.exchange(token=id_token, repo="ann/review")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert list(answer.json()) == ["data"]
    data = answer.json()["data"]
    assert list(data) == ["token", "owner", "repos", "expires_at"]
    assert (data["owner"], data["repos"]) == ("ann", ["review"])
    assert site.publish(data["token"]).status_code == 201
    assert error_of(site.publish(data["token"], "story"), 403)["code"] == "insufficient_scope"
    again = error_of(site.exchange(token=id_token, repo="ann/review"), 401)
    assert again["code"] == "invalid_token"
    assert "used already" in again["message"]
    with Database(site.settings.state) as database:
        personal, _ = Accounts(database).create_token("ann", "laptop")
    assert error_of(site.publish(personal), 403)["code"] == "insufficient_scope"
    # Neither token is in a folder or a log of the hub. During a build, temporary files appear and
    # disappear.
    wait_until(lambda: site.server.get("/healthz").json()["status"] == "ok", "the last build")
    written = []
    for path in Path(site.settings.state).parent.rglob("*"):
        with contextlib.suppress(
            FileNotFoundError, IsADirectoryError
        ):  # a look at lost files goes on
            written.append(path.read_bytes())
    assert any(b"publish.yml" in data for data in written)
    for secret in (id_token, *id_token.split("."), data["token"], personal):
        assert secret not in site.server.process.text
        assert not any(secret.encode() in data for data in written)


COMMIT = "1f2e3d4c5b6a79880796a5b4c3d2e1f001234567"


def test_a_version_and_a_label_name_the_job_of_gitlab(site: Site):
    id_token = site.gitlab.gitlab_token(aud=site.server.url)
    token = site.exchange(token=id_token, repo="ann/guide").json()["data"]["token"]
    assert site.publish(token, "guide").status_code == 201
    label = "/api/v1/repos/ann/guide/labels/production"
    headers = {"Authorization": f"Bearer {token}"}
    moved = site.server.request("PUT", label, json={"version": "1.0.0"}, headers=headers)
    assert moved.status_code == 201
    with Database(site.settings.state) as database:
        personal, _ = Accounts(database).create_token("ann", "desk")
    edited = {"content": "Another.\n"}
    headers = {"Authorization": f"Bearer {personal}"}
    url = VERSIONS.format("guide")
    claimed = site.server.request("POST", url, json=edited | {"source": {}}, headers=headers)
    assert error_of(claimed, 422)["details"][0]["field"] == "source"
    by_hand = "---\nsource:\n  project: other/project\n---\nAnother.\n"
    answer = site.server.request("POST", url, json={"content": by_hand}, headers=headers)
    assert answer.status_code == 201

    run_url = f"{site.gitlab.url}/acme/team/prompts/-/jobs/302"
    source = {
        "issuer": site.gitlab.url, "project": "acme/team/prompts", "ref": "refs/heads/main",
        "commit": COMMIT, "run_url": run_url,
    }  # fmt: skip
    newer, older = site.server.get(url).json()["data"]
    assert (newer["source"], older["source"]) == (None, source)
    assert site.server.get(f"{url}/1.0.0").json()["data"]["source"] == source
    assert site.server.get(f"{label}/history").json()["data"][0]["source"] == source
    for page in ("/ann/guide/1.0.0", "/ann/guide/versions"):
        html = site.server.get(page).text
        # The second page also has the moves of labels.
        count = html.count(f'href="{run_url}">acme/team/prompts@1f2e3d4, job 302</a>')
        assert count == (2 if page.endswith("versions") else 1)
    listed = site.server.request(
        "POST",
        "/mcp",
        json={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "list_versions", "arguments": {"id": "ann/guide"}},
        },
        headers={"Accept": "application/json, text/event-stream"},
    ).json()["result"]
    newer, older = listed["structuredContent"]["versions"]
    assert older["source"] == "acme/team/prompts@1f2e3d4, job 302"
    assert "source" not in newer
    assert "Built from" not in site.server.get("/ann/guide/1.0.1").text


def test_an_issuer_whose_pages_are_unknown_gives_no_link(site: Site):
    token = site.exchange(token=site.id_token(), repo="ann/review").json()["data"]["token"]
    assert site.publish(token).status_code in (200, 201)
    source = site.server.get(VERSIONS.format("review")).json()["data"][0]["source"]
    assert (source["project"], source["run_url"]) == ("octo/prompts", None)
    page = site.server.get("/ann/review/1.0.0").text
    assert "<dt>Built from</dt><dd>octo/prompts@1f2e3d4</dd>" in page


def test_a_token_for_another_hub_is_refused(site: Site):
    refused = error_of(site.exchange(token=site.id_token(aud="https://other.example")), 401)
    assert refused["code"] == "invalid_token"
    assert repr(site.server.url) in refused["message"]
