"""ID tokens of CI jobs: what the right ones say, and each claim wrong in turn."""

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from builder.model.errors import RequestError
from publisher.trusted.id_tokens import LEEWAY_SECONDS, LIFE_SECONDS_MAX, KeyRing, verify
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer, Job, fold
from tests.publisher.trusted.conftest import AT, HOST, Verifier
from tests.support.catalogues import BASE_URL
from tests.support.issuer import KEYS, MISSING, TestIssuer

# The right ones


def test_a_job_of_github(github: Verifier):
    workflow = "octo/prompts/.github/workflows/Publish.yml@refs/tags/v1"
    token = github.token(
        repository="Octo/Prompts", environment="Release", jti="abc", job_workflow_ref=workflow,
        ref="refs/heads/topic",
    )  # fmt: skip
    assert github.job(token) == Job(
        issuer=github.live.url, kind="github", project="octo/prompts", project_id="74",
        workflow="Publish.yml", environment="release", ref="refs/heads/topic",
        workflow_ref="refs/tags/v1",
        commit="1f2e3d4c5b6a79880796a5b4c3d2e1f001234567", run="run 1234567890",
        token_hash=hashlib.sha256(f"{github.live.url}\nabc".encode()).digest(),
        expires_at=AT + 300 + LEEWAY_SECONDS,
    )  # fmt: skip


# Lower-casing or case-insensitive matching turns each of these into an ASCII letter.
LIKE_ASCII = {
    "Kelvin sign": "\u212a",
    "long s": "\u017f",
    "dotted I": "\u0130",
    "dotless i": "\u0131",
}


@pytest.mark.parametrize("letter", LIKE_ASCII.values(), ids=LIKE_ASCII)
def test_letters_that_pass_for_those_of_ascii_stay(github: Verifier, letter: str):
    job = github.job(github.token(environment=f"Doc{letter}erS"))
    assert job.environment == f"doc{letter}ers"
    assert fold(f"AZ{letter}az") == f"az{letter}az"


@pytest.mark.parametrize(("ascii", "letter"), [*zip("ksii", LIKE_ASCII.values(), strict=True)])
def test_no_other_repository_passes_for_the_jobs(github: Verifier, ascii: str, letter: str):
    workflow = f"octo/prompts{ascii}/.github/workflows/publish.yml@refs/heads/main"
    token = github.token(repository=f"octo/prompts{letter}", job_workflow_ref=workflow)
    assert "defined elsewhere" in str(github.refusal(token))


def test_a_job_of_gitlab(gitlab: Verifier):
    token = gitlab.token(project_path="Acme/Team/Prompts", jti="abc")
    assert gitlab.job(token) == Job(
        issuer=gitlab.live.url, kind="gitlab", project="acme/team/prompts", project_id="20",
        workflow=".gitlab-ci.yml", environment="", ref="refs/heads/main",
        workflow_ref="refs/heads/main",
        commit="1f2e3d4c5b6a79880796a5b4c3d2e1f001234567",
        run=f"{gitlab.live.url}/Acme/Team/Prompts/-/jobs/302",
        token_hash=hashlib.sha256(f"{gitlab.live.url}\nabc".encode()).digest(),
        expires_at=AT + 3600 + LEEWAY_SECONDS,
    )  # fmt: skip
    assert gitlab.job(gitlab.token(environment="Prod/EU")).environment == "Prod/EU"
    assert gitlab.job(gitlab.token(environment=None)).environment == ""


def test_runs_of_githubs_own_have_a_page(live: TestIssuer):
    class Keys:
        """Those of the issuer in this test, in the name of GitHub's."""

        def key_for(self, _: Issuer, kid: str):
            return KeyRing([there]).key_for(there, kid)

    there = Issuer("github", live.url)
    token = live.token(now=AT, iss=DEFAULT_ISSUERS[0].url)
    job = verify(token, DEFAULT_ISSUERS, Keys(), BASE_URL, datetime.fromtimestamp(AT, UTC))
    assert job.run == "https://github.com/octo/prompts/actions/runs/1234567890"


@pytest.mark.parametrize(
    ("claim", "workflow", "ref"),
    [
        ("octo/prompts/.github/workflows/a.yaml@refs/heads/x@y/z", "a.yaml", "refs/heads/x@y/z"),
        ("octo/prompts/.github/workflows/a@b.yml@refs/heads/a.yml@refs/x", "a@b.yml",
         "refs/heads/a.yml@refs/x"),
        ("OCTO/prompts/.github/workflows/a.yml@" + "0" * 40, "a.yml", "0" * 40),
        ("octo/prompts/.github/workflows/a.yml@x.yml@refs/heads/main", "a.yml@x.yml",
         "refs/heads/main"),
    ],
)  # fmt: skip
def test_workflows_of_github(github: Verifier, claim: str, workflow: str, ref: str):
    job = github.job(github.token(job_workflow_ref=claim))
    assert (job.workflow, job.workflow_ref) == (workflow, ref)


@pytest.mark.parametrize(
    ("path", "workflow", "ref"),
    [
        ("ci/publish.yml@refs/tags/v1", "ci/publish.yml", "refs/tags/v1"),
        ("a.yml@refs/heads/x@refs/heads/main", "a.yml", "refs/heads/x@refs/heads/main"),
    ],
)
def test_pipelines_of_gitlab(gitlab: Verifier, path: str, workflow: str, ref: str):
    job = gitlab.job(gitlab.token(ci_config_ref_uri=f"{HOST}/acme/team/prompts//{path}"))
    assert (job.workflow, job.workflow_ref) == (workflow, ref)


@pytest.mark.parametrize(
    ("claims", "ref"),
    [
        ({}, "refs/heads/main"),
        ({"ref_path": MISSING}, "refs/heads/main"),
        ({"ref_path": None, "ref": "a/b"}, "refs/heads/a/b"),
        ({"ref_path": MISSING, "ref_type": "tag"}, "refs/tags/main"),
        ({"ref_path": "refs/tags/main"}, "refs/tags/main"),
        ({"ref_path": MISSING, "ref": "refs/heads/main"}, "refs/heads/refs/heads/main"),
        ({"ref_path": MISSING, "ref": "refs/heads/main", "ref_type": "tag"},
         "refs/tags/refs/heads/main"),
        ({"ref_path": MISSING, "ref_type": MISSING}, ""),
        ({"ref_path": MISSING, "ref_type": "other"}, ""),
        ({"ref_path": MISSING, "ref": MISSING}, ""),
        ({"ref_path": MISSING, "ref": ""}, ""),
    ],
)  # fmt: skip
def test_what_jobs_of_gitlab_run_on(gitlab: Verifier, claims: dict[str, Any], ref: str):
    assert gitlab.job(gitlab.token(**claims)).ref == ref


def test_what_jobs_of_github_run_on(github: Verifier):
    for ref in ("refs/heads/a/b", "refs/tags/main", "refs/pull/7/merge"):
        assert github.job(github.token(ref=ref)).ref == ref
    assert github.job(github.token(ref=MISSING)).ref == ""


@pytest.mark.parametrize(
    ("ref", "file", "branch", "place"),
    [
        ("refs/heads/a/b", "refs/heads/a/b", "a/b", "on refs/heads/a/b"),
        ("refs/heads/a", "refs/heads/main", "", "on refs/heads/a with the file of refs/heads/main"),
        ("refs/heads/main", "refs/tags/main", "",
         "on refs/heads/main with the file of refs/tags/main"),
        ("refs/tags/main", "refs/tags/main", "", "on refs/tags/main"),
        ("", "refs/heads/main", "", "on no branch or tag with the file of refs/heads/main"),
    ],
)  # fmt: skip
def test_the_branch_of_a_job(github: Verifier, ref: str, file: str, branch: str, place: str):
    workflow = f"octo/prompts/.github/workflows/a.yml@{file}"
    job = github.job(github.token(ref=ref, job_workflow_ref=workflow))
    assert (job.branch, job.place()) == (branch, place)


def test_an_issuer_with_a_path(live: TestIssuer):
    url = f"{live.url}/git"
    there = [Issuer("gitlab", url)]
    live.replace("/git/.well-known/openid-configuration",
                 {"issuer": url, "jwks_uri": live.url + KEYS})  # fmt: skip
    host = url.partition("://")[2]
    token = live.gitlab_token(
        now=AT, iss=url, ci_config_ref_uri=f"{host}/acme/team/prompts//a.yml@refs/heads/main"
    )
    job = verify(token, there, KeyRing(there), BASE_URL, datetime.fromtimestamp(AT, UTC))
    assert job.run == f"{url}/acme/team/prompts/-/jobs/302"


def test_the_present_is_now(live: TestIssuer):
    there = [Issuer("github", live.url)]
    assert verify(live.token(), there, KeyRing(there), BASE_URL).project == "octo/prompts"
    with pytest.raises(RequestError, match="expired"):
        verify(live.token(now=AT), there, KeyRing(there), BASE_URL)


def test_another_token_has_another_hash(either: Verifier):
    assert either.job(either.token(jti="a")).token_hash != either.job(
        either.token(jti="b")
    ).token_hash  # fmt: skip
    assert either.job(either.token(jti="a")) == either.job(either.token(jti="a"))


# Claims of both


@pytest.mark.parametrize(
    "url",
    [MISSING, "https://evil.example", "https://gitlab.com", f"http://{HOST}/", f"HTTP://{HOST}",
     f"http://{HOST}.evil.example", None, "", 7, [f"http://{HOST}"]],
)  # fmt: skip
def test_issuer_is_unknown(either: Verifier, url: object):
    error = either.refusal(either.token(iss=url))
    assert error.code == "invalid_token"
    assert "(iss)" in str(error) and either.live.url in str(error)
    assert not either.live.requests


@pytest.mark.parametrize(
    ("came", "shown"),
    [("x" * 999, f"'{'x' * 199}…"), (["a", 7], "['a', 7]"), (True, "True"), ("é\n", r"'\xe9\n'"),
     ([["a"]], "nested data"), ({"a": "b"}, "nested data"), (None, "missing")],
)  # fmt: skip
def test_how_claims_are_quoted(either: Verifier, came: object, shown: str):
    assert f"(iss) is {shown}, but" in str(either.refusal(either.token(iss=came)))


@pytest.mark.parametrize(
    "audience",
    [MISSING, None, "", "https://github.com/octo", BASE_URL + "/", BASE_URL.upper(), [],
     [BASE_URL, "https://other.example"], [BASE_URL, BASE_URL], [[BASE_URL]], {BASE_URL: 1}, 7,
     BASE_URL + "/api", f" {BASE_URL}"],
)  # fmt: skip
def test_audience_is_wrong(either: Verifier, audience: object):
    error = either.refusal(either.token(aud=audience))
    assert error.code == "invalid_token"
    assert "(aud)" in str(error) and repr(BASE_URL) in str(error)


def test_audience_may_be_a_list_of_one(either: Verifier):
    assert either.job(either.token(aud=[BASE_URL]))


def test_expired(either: Verifier):
    token = either.token(exp=AT)
    for later in (-1, 0, LEEWAY_SECONDS - 1, LEEWAY_SECONDS - 0.01):
        assert either.job(token, later)
    error = either.refusal(token, LEEWAY_SECONDS)
    assert error.code == "token_expired"
    assert "2026-01-31T09:30:15Z" in str(error) and "2026-01-31T09:31:15Z" in str(error)


def test_an_expired_token_tells_of_clocks(either: Verifier):
    error = either.refusal(either.token(exp=AT + 300, iat=AT), 420)
    assert (
        "If it is new, a clock is wrong: the CI's said 2026-01-31T09:30:15Z when it was created "
        "(iat), this hub's says 2026-01-31T09:37:15Z."
    ) in str(error)
    error = either.refusal(either.token(exp=AT, iat=MISSING), 420)
    assert str(error).endswith("a clock is wrong: this hub's says 2026-01-31T09:37:15Z.")


def test_a_fraction_of_a_second_counts(either: Verifier):
    token = either.token(exp=AT + 0.5)
    assert either.job(token, LEEWAY_SECONDS + 0.4).expires_at == AT + LEEWAY_SECONDS + 1
    assert either.refusal(token, LEEWAY_SECONDS + 0.5).code == "token_expired"


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_not_yet(either: Verifier, claim: str):
    token = either.token(**{claim: AT + LEEWAY_SECONDS})
    assert either.job(token)
    error = either.refusal(token, -1)
    assert error.code == "invalid_token"
    assert f"({claim})" in str(error)
    assert either.job(either.token(**{claim: MISSING}))


def test_it_must_expire_within_a_day(either: Verifier):
    edge = AT + LIFE_SECONDS_MAX + LEEWAY_SECONDS
    assert either.job(either.token(exp=edge))
    assert "more than a day" in str(either.refusal(either.token(exp=edge + 1)))
    assert "never expires" in str(either.refusal(either.token(exp=MISSING)))
