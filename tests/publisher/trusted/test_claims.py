"""Claims of ID tokens that name a job: which are read, and which are refused."""

import pytest

from tests.publisher.trusted.conftest import AT, HOST, JSON_VALUES, Verifier
from tests.support.issuer import MISSING, TestIssuer

CLAIMS = {
    "github": ("repository", "repository_id", "job_workflow_ref", "event_name", "jti", "sub"),
    "gitlab": ("project_path", "project_id", "ci_config_ref_uri", "pipeline_source", "jti", "sub"),
}
TIMES = (None, "", str(AT), True, [AT], float("nan"), float("inf"), -1, 10**400, {})


@pytest.mark.parametrize("kind", CLAIMS)
@pytest.mark.parametrize("value", [MISSING, *JSON_VALUES])
def test_claims_that_are_texts(live: TestIssuer, kind: str, value: object):
    verifier = Verifier(kind, live)
    for claim in CLAIMS[kind]:
        error = verifier.refusal(verifier.token(**{claim: value}))
        assert error.code == "invalid_token" and claim in str(error)


@pytest.mark.parametrize("value", TIMES)
def test_claims_that_are_times(either: Verifier, value: object):
    for claim in ("exp", "nbf", "iat"):
        error = either.refusal(either.token(**{claim: value}))
        assert error.code == "invalid_token" and claim in str(error)


@pytest.mark.parametrize("value", [7, True, ["prod"], "a\nb", "x" * 1001])
def test_environments_that_are_none(either: Verifier, value: object):
    assert "environment" in str(either.refusal(either.token(environment=value)))


@pytest.mark.parametrize("value", ["74a", "-1", "7.4", " 74", "٧٤", "7" * 21])
def test_ids_are_digits(github: Verifier, gitlab: Verifier, value: str):
    assert "repository_id" in str(github.refusal(github.token(repository_id=value)))
    assert "project_id" in str(gitlab.refusal(gitlab.token(project_id=value)))


@pytest.mark.parametrize("value", [7, True, ["main"], "a\nb", "x" * 1001])
def test_refs_that_are_none(github: Verifier, gitlab: Verifier, value: object):
    assert "ref is" in str(github.refusal(github.token(ref=value)))
    for claim in ("ref", "ref_type", "ref_path"):
        assert f"{claim} is" in str(gitlab.refusal(gitlab.token(**{claim: value})))


def test_a_workflow_of_another_repository(github: Verifier):
    for project in ("octo/shared", "evil/prompts", "octo/prompts2"):
        ref = f"{project}/.github/workflows/publish.yml@refs/heads/main"
        error = github.refusal(github.token(job_workflow_ref=ref))
        assert error.code == "invalid_token"
        assert "Others could change it" in str(error)


@pytest.mark.parametrize(
    "ref",
    [
        "octo/prompts/.github/workflows/publish.yml", "octo/prompts/publish.yml@refs/heads/main",
        "octo/prompts/.github/workflows/sub/publish.yml@refs/heads/main",
        "octo/prompts/.github/workflows/publish.yml@main",
        "octo/prompts/.github/workflows/publish.yml@refs/",
        "octo/prompts/.github/workflows/publish.sh@refs/heads/main",
        "octo/prompts/.github/workflows/.yml@refs/heads/main",
        "prompts/.github/workflows/publish.yml@refs/heads/main",
        "evil/octo/prompts/.github/workflows/publish.yml@refs/heads/main",
    ],
)  # fmt: skip
def test_workflows_that_are_none(github: Verifier, ref: str):
    error = github.refusal(github.token(job_workflow_ref=ref))
    assert "but must be octo/prompts/.github/workflows/FILE.yml@REF" in str(error)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (f"{HOST}/acme/team/other//.gitlab-ci.yml@refs/heads/main", "defined elsewhere"),
        (f"{HOST}/acme/team//prompts/.gitlab-ci.yml@refs/heads/main", "defined elsewhere"),
        ("gitlab.com/acme/team/prompts//.gitlab-ci.yml@refs/heads/main", "defined elsewhere"),
        ("//acme/team/prompts//.gitlab-ci.yml@refs/heads/main", "defined elsewhere"),
        (f"{HOST}/acme/team/prompts/.gitlab-ci.yml@refs/heads/main", "but must be"),
        (f"{HOST}/acme/team/prompts//.gitlab-ci.yml", "but must be"),
        (f"{HOST}/acme/team/prompts//.gitlab-ci.yml@main", "but must be"),
        (f"{HOST}/acme/team/prompts//@refs/heads/main", "but must be"),
    ],
)
def test_pipelines_that_are_defined_elsewhere(gitlab: Verifier, uri: str, message: str):
    error = gitlab.refusal(gitlab.token(ci_config_ref_uri=uri))
    assert error.code == "invalid_token"
    assert message in str(error)


@pytest.mark.parametrize(
    ("kind", "claim", "event"),
    [
        ("github", "event_name", "pull_request_target"),
        ("gitlab", "pipeline_source", "merge_request_event"),
        ("gitlab", "pipeline_source", "external_pull_request_event"),
        ("gitlab", "pipeline_source", "parent_pipeline"),
    ],
)
def test_jobs_that_run_what_strangers_wrote(live: TestIssuer, kind: str, claim: str, event: str):
    verifier = Verifier(kind, live)
    error = verifier.refusal(verifier.token(**{claim: event}))
    assert error.code == "invalid_token"
    assert f"{event} ({claim})" in str(error) and "stranger" in str(error)
    assert verifier.job(verifier.token(**{claim: "schedule"}))


def test_tokens_of_one_kind_are_none_of_the_other(github: Verifier, gitlab: Verifier):
    assert "repository" in str(github.refusal(gitlab.token()))
    assert "project_path" in str(gitlab.refusal(github.token()))


def test_what_it_is_run_by_may_be_unknown(github: Verifier, gitlab: Verifier):
    assert github.job(github.token(run_id=MISSING)).run == ""
    assert github.job(github.token(run_id="1/../2")).run == ""
    assert gitlab.job(gitlab.token(job_id="x")).run == ""
