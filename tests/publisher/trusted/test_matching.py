"""Trusted publishers that match a job: by project, workflow, branch and environment."""

import itertools
from datetime import timedelta

import pytest

from publisher.accounts.database import Database
from publisher.accounts.events import Event
from publisher.trusted.publishers import Entered, TrustedPublishers
from tests.publisher.trusted.conftest import GITHUB, GITLAB, JOB, NOW, NOW_SECONDS
from tests.support.events import latest


def test_a_job_that_matches(publishers: TrustedPublishers):
    of_ann = publishers.add("ann", GITHUB, Entered("octo/prompts", "publish.yml"))
    of_bob = publishers.add("bob", GITHUB, Entered("octo/prompts", "publish.yml", "review"))
    assert publishers.matching(JOB) == [of_ann, of_bob]


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": GITLAB.url}, {"project": "octo/other"}, {"project": "octo/prompts2"},
        {"workflow": "Publish.yml"}, {"workflow": "other.yml"}, {"environment": ""},
        {"environment": "test"}, {"project_id": "75"}, {"ref": "refs/heads/topic"},
        {"workflow_ref": "refs/heads/topic"}, {"ref": ""}, {"ref": "main"},
    ],
)  # fmt: skip
def test_a_job_that_does_not(publishers: TrustedPublishers, change: dict[str, str]):
    added = publishers.add(
        "ann",
        GITHUB,
        Entered("octo/prompts", "publish.yml", branch="main", environment="prod", project_id="74"),
    )
    job = JOB._replace(environment="prod")
    assert publishers.matching(job) == [added]
    assert publishers.matching(job._replace(**change)) == []


def test_no_environment_is_any(publishers: TrustedPublishers):
    added = publishers.add("ann", GITHUB, Entered("octo/prompts", "publish.yml"))
    for environment in ("", "prod", "test"):
        assert publishers.matching(JOB._replace(environment=environment)) == [added]


REFS = (
    "refs/heads/main", "refs/heads/topic", "refs/heads/Main", "refs/heads/main/x",
    "refs/heads/refs/heads/main", "refs/tags/main", "refs/pull/7/merge", "main", "", "0" * 40,
)  # fmt: skip


def test_the_branch_is_that_of_the_job_and_of_its_file(publishers: TrustedPublishers):
    one = publishers.add("ann", GITHUB, Entered("octo/prompts", "publish.yml", branch="main"))
    for refs in itertools.product(REFS, REFS):
        job = JOB._replace(ref=refs[0], workflow_ref=refs[1])
        assert publishers.matching(job) == ([one] if refs == (REFS[0], REFS[0]) else []), refs


def test_no_branch_is_any_branch_or_tag(publishers: TrustedPublishers):
    one = publishers.add("ann", GITHUB, Entered("octo/prompts", "publish.yml"))
    for ref, workflow_ref in itertools.product(REFS, REFS):
        assert publishers.matching(JOB._replace(ref=ref, workflow_ref=workflow_ref)) == [one]


def test_of_several_branches_one_fits(publishers: TrustedPublishers):
    for branch in ("topic", "main", ""):
        publishers.add(
            "ann", GITHUB, Entered("octo/prompts", "publish.yml", branch or "any", branch=branch)
        )
    assert [one.repo for one in publishers.matching(JOB)] == ["any", "main"]


def test_a_use_ties_the_name_to_the_project(database: Database, publishers: TrustedPublishers):
    added = publishers.add("ann", GITHUB, Entered("octo/prompts", "publish.yml"), now=NOW)
    later = NOW + timedelta(minutes=1)
    publishers.note_use(added, JOB, now=later)
    used = added._replace(project_id="74", used_at=NOW_SECONDS + 60)
    assert publishers.of("ann") == [used]
    assert publishers.matching(JOB) == [used]
    assert publishers.matching(JOB._replace(project_id="75")) == []
    assert latest(database, "ann", 1) == [
        Event(
            NOW_SECONDS + 60, "publisher_used", added.id, "192.0.2.1",
            "github octo/prompts publish.yml on refs/heads/main run 1",
        )
    ]  # fmt: skip
