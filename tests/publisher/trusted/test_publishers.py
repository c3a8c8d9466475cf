"""Which CI jobs an owner trusts: what can be named, and which jobs are meant by it."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.database import Database
from publisher.accounts.events import Event, Events
from publisher.accounts.tokens import Accounts
from publisher.trusted.claims import Job
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer
from publisher.trusted.publisher_fields import Entered
from publisher.trusted.publishers import (
    PUBLISHERS_PER_OWNER_MAX,
    TrustedPublisher,
    TrustedPublishers,
)
from tests.support.postgres import only_sqlite

NOW = datetime(2026, 1, 31, 9, 30, 15, 999_999, tzinfo=UTC)
NOW_SECONDS = 1_769_851_815
GITHUB, GITLAB = DEFAULT_ISSUERS
JOB = Job(
    issuer=GITHUB.url, kind="github", project="octo/prompts", project_id="74",
    workflow="publish.yml", environment="", ref="refs/heads/main", workflow_ref="refs/heads/main",
    commit="", run="run 1", token_hash=b"1", expires_at=NOW_SECONDS + 360,
)  # fmt: skip


@pytest.fixture
def database(accounts_place: str) -> Iterator[Database]:
    with Database(accounts_place) as opened:
        for owner in ("ann", "bob"):
            Accounts(opened).add_owner(owner, NOW)
        yield opened


@pytest.fixture
def publishers(database: Database) -> TrustedPublishers:
    return TrustedPublishers(database)


def wrong_fields(publishers: TrustedPublishers, *args: object, **more: str) -> dict[str, str]:
    """What is told of each field that is refused."""
    with pytest.raises(RequestError) as caught:
        publishers.add(*args, **more)
    assert caught.value.code == "validation_failed"
    return {field: message for field, message in caught.value.details}


def test_a_new_publisher(database: Database, publishers: TrustedPublishers):
    added = publishers.add(
        "ann",
        GITHUB,
        Entered(
            " Octo/Prompts ",
            ".github/workflows/Publish.yml",
            " review ",
            branch=" refs/heads/Main ",
            environment=" Prod ",
            project_id=" 74 ",
        ),
        address="192.0.2.1",
        now=NOW,
    )
    assert added == TrustedPublisher(
        added.id, "ann", "review", GITHUB.url, "octo/prompts", "74", "Publish.yml", "Main", "prod",
        NOW_SECONDS, None,
    )  # fmt: skip
    assert publishers.of("ann") == [added]
    assert publishers.of("bob") == []
    assert Events(database).latest("ann", 9) == [
        Event(
            NOW_SECONDS, "publisher_added", added.id, "192.0.2.1",
            "octo/prompts Publish.yml branch Main environment prod for ann/review",
        )
    ]  # fmt: skip


def test_an_environment_that_looks_like_another_is_not_that(publishers: TrustedPublishers):
    names = ("docker", "doc\u212aer", "do\u017fe", "b\u0131g", "\u0130d")
    added = {
        name: publishers.add(
            "ann", GITHUB, Entered("octo/prompts", "publish.yml", environment=name)
        )
        for name in names
    }
    for name in names:
        assert publishers.matching(JOB._replace(environment=name)) == [added[name]]


def test_for_all_repos_and_without_more(publishers: TrustedPublishers):
    added = publishers.add("ann", GITLAB, Entered("Acme/team/sub.team/prompts", ""))
    assert (added.repo, added.workflow) == ("", ".gitlab-ci.yml")
    assert (added.branch, added.environment) == ("", "")
    assert added.project == "acme/team/sub.team/prompts"
    assert added.scope() == "ann/*"


@pytest.mark.parametrize(
    ("issuer", "project", "workflow", "stored"),
    [
        (GITHUB, "octo/prompts", "a.yaml", "a.yaml"),
        (GITHUB, "octo_corp/.github", "a b.yml", "a b.yml"),
        (GITHUB, "o/p", ".github/workflows/Ä.yml", "Ä.yml"),
        (GITLAB, "acme/p", "ci/publish.yml", "ci/publish.yml"),
        (GITLAB, "acme/p", " .gitlab/ci ", ".gitlab/ci"),
        (GITLAB, "acme/_p", ".github/workflows/x.yml", ".github/workflows/x.yml"),
    ],
)
def test_projects_and_workflows(
    publishers: TrustedPublishers, issuer: Issuer, project: str, workflow: str, stored: str
):
    assert publishers.add("ann", issuer, Entered(project, workflow)).workflow == stored


@only_sqlite
@pytest.mark.parametrize(
    "project",
    ["", "prompts", "octo/", "/prompts", "octo/prompts/x", "https://github.com/octo/prompts",
     "octo/prompts.git", "octo/..", "octo/.", "oc to/prompts", "öcto/prompts", "-octo/p",
     f"{'o' * 40}/p", f"o/{'p' * 101}", "octo/p\n/x", "octo/*"],
)  # fmt: skip
def test_projects_that_are_not_githubs(publishers: TrustedPublishers, project: str):
    told = wrong_fields(publishers, "ann", GITHUB, Entered(project, "a.yml"))
    assert list(told) == ["project"]
    assert "octo/prompts" in told["project"]


@only_sqlite
@pytest.mark.parametrize(
    "project",
    ["", "prompts", "acme/", "/prompts", "acme//prompts", "https://gitlab.com/acme/prompts",
     "acme/prompts.git", "acme/pro mpts", "acme/-p", "acme/p/", f"acme/{'p' * 1000}", "../p"],
)  # fmt: skip
def test_projects_that_are_not_gitlabs(publishers: TrustedPublishers, project: str):
    assert list(wrong_fields(publishers, "ann", GITLAB, Entered(project, ""))) == ["project"]


@only_sqlite
@pytest.mark.parametrize(
    "workflow",
    ["", "publish", "publish.yml.txt", ".yml", "ci/publish.yml", "../publish.yml",
     ".github/workflows/sub/publish.yml", "publish.yml@refs/heads/main", "a\\b.yml",
     ".github/workflows/", f"{'a' * 252}.yml", "a\nb.yml", "/.github/workflows/a.yml"],
)  # fmt: skip
def test_workflows_that_are_not_githubs(publishers: TrustedPublishers, workflow: str):
    told = wrong_fields(publishers, "ann", GITHUB, Entered("octo/prompts", workflow))
    assert list(told) == ["workflow"]


@only_sqlite
@pytest.mark.parametrize(
    "workflow",
    ["/ci.yml", "./ci.yml", "../ci.yml", "ci/", "ci//a.yml", "a.yml@acme/other", "a\nb.yml",
     "https://example.org/ci.yml", "a" * 256],
)  # fmt: skip
def test_workflows_that_are_not_gitlabs(publishers: TrustedPublishers, workflow: str):
    told = wrong_fields(publishers, "ann", GITLAB, Entered("acme/prompts", workflow))
    assert list(told) == ["workflow"]


@pytest.mark.parametrize("issuer", [GITHUB, GITLAB])
@pytest.mark.parametrize(
    ("branch", "stored"),
    [
        ("main", "main"), ("Main", "Main"), (" refs/heads/release/1.x ", "release/1.x"),
        ("größe", "größe"), ("a@b]+!'#-", "a@b]+!'#-"), ("refs", "refs"), ("x" * 255, "x" * 255),
        ("", ""), (" ", ""),
    ],
)  # fmt: skip
def test_branches(publishers: TrustedPublishers, issuer: Issuer, branch: str, stored: str):
    assert publishers.add("ann", issuer, Entered("o/p", "a.yml", branch=branch)).branch == stored


@only_sqlite
@pytest.mark.parametrize(
    "branch",
    ["a b", "a\tb", "a\nb", "a\0b", "a\x7fb", "a\u200bb", "a\xa0b", "a..b", "a//b", "a/.b", "a@{b",
     "a~b", "a^b", "a:b", "a?b", "a*", "a[b", "a\\b", 'a"b', "-a", "/a", ".a", "a/", "a.",
     "refs/tags/v1", "refs/heads/", "refs/heads/refs/heads/main", "refs/heads/ main", "x" * 256],
)  # fmt: skip
def test_branches_that_are_none(publishers: TrustedPublishers, branch: str):
    told = wrong_fields(publishers, "ann", GITHUB, Entered("octo/prompts", "a.yml", branch=branch))
    assert list(told) == ["branch"]
    assert "main" in told["branch"] and "leave it empty" in told["branch"]
    assert publishers.of("ann") == []


def test_all_that_is_wrong_is_told_at_once(database: Database, publishers: TrustedPublishers):
    told = wrong_fields(
        publishers,
        "ann",
        GITHUB,
        Entered("octo", "x", "Re view", branch="a b", environment="e" * 256, project_id="7x"),
        address="192.0.2.1",
    )
    assert list(told) == ["repo", "project", "workflow", "branch", "environment", "project_id"]
    assert all(told.values())
    told = wrong_fields(publishers, "ann", GITHUB, Entered("o/p", "a.yml", environment="a\nb"))
    assert list(told) == ["environment"]
    told = wrong_fields(publishers, "ann", GITHUB, Entered("o/p", "a.yml", "Review"))
    assert "Use 'review'" in told["repo"]
    assert publishers.of("ann") == []
    assert Events(database).latest("ann", 9) == []


def test_twice_the_same(publishers: TrustedPublishers):
    usual = {"branch": "main", "environment": "prod"}
    publishers.add("ann", GITHUB, Entered("octo/prompts", "a.yml", "review", **usual))
    told = wrong_fields(
        publishers,
        "ann",
        GITHUB,
        Entered(
            "OCTO/prompts",
            ".github/workflows/a.yml",
            "review",
            branch="refs/heads/main",
            environment="PROD",
            project_id="7",
        ),
    )
    assert "already" in told["project"] and "branch main environment prod" in told["project"]
    for repo, workflow, changes in (
        ("story", "a.yml", {}), ("", "a.yml", {}), ("review", "A.yml", {}),
        ("review", "a.yml", {"environment": ""}), ("review", "a.yml", {"branch": ""}),
        ("review", "a.yml", {"branch": "Main"}),
    ):  # fmt: skip
        publishers.add("ann", GITHUB, Entered("octo/prompts", workflow, repo, **usual | changes))
    publishers.add("bob", GITHUB, Entered("octo/prompts", "a.yml", "review", **usual))
    assert len(publishers.of("ann")) == 7


def test_two_at_once_add_the_same(publishers: TrustedPublishers):
    def add(_: int) -> bool:
        try:
            publishers.add("ann", GITHUB, Entered("octo/prompts", "a.yml"))
        except RequestError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, range(4))) == 1


def test_an_owner_has_a_hundred_at_most(database: Database, publishers: TrustedPublishers):
    with database.transaction():  # waits for the disk once
        for number in range(PUBLISHERS_PER_OWNER_MAX):
            publishers.add("ann", GITHUB, Entered(f"octo/p{number}", "a.yml"))
    assert (
        "100" in wrong_fields(publishers, "ann", GITHUB, Entered("octo/more", "a.yml"))["project"]
    )
    publishers.add("bob", GITHUB, Entered("octo/more", "a.yml"))
    publishers.remove("ann", publishers.of("ann")[0].id)
    publishers.add("ann", GITHUB, Entered("octo/more", "a.yml"))


def test_an_owner_who_is_unknown(publishers: TrustedPublishers):
    with pytest.raises(OperatorError, match="hubctl owner add cleo"):
        publishers.add("cleo", GITHUB, Entered("octo/prompts", "a.yml"))


def test_labels_change(database: Database, publishers: TrustedPublishers):
    added = publishers.add("ann", GITHUB, Entered("octo/prompts", "publish.yml", "review"), now=NOW)
    changed = publishers.set_labels("ann", added.id, " production,canary production ", now=NOW)
    assert publishers.of("ann") == [changed] == [added._replace(labels="production canary")]
    publishers.set_labels("ann", added.id, "production canary", now=NOW)
    told = [event.kind for event in Events(database).latest("ann", 10)]
    assert told.count("publisher_changed") == 1
    for labels in ("latest", "A b", " ".join(f"label-{number}" for number in range(21))):
        with pytest.raises(RequestError) as caught:
            publishers.set_labels("ann", added.id, labels)
        assert {detail.field for detail in caught.value.details} == {"labels"}
    assert publishers.set_labels("ann", added.id, "", now=NOW).labels == ""
    for owner, publisher_id in (("ben", added.id), ("ann", "00000000"), ("ann", "' OR 1=1")):
        with pytest.raises(RequestError) as caught:
            publishers.set_labels(owner, publisher_id, "canary")
        assert caught.value.code == "not_found"


def test_removal(database: Database, publishers: TrustedPublishers):
    one = publishers.add("ann", GITHUB, Entered("octo/prompts", "a.yml"), now=NOW)
    other = publishers.add("ann", GITHUB, Entered("octo/prompts", "b.yml"), now=NOW)
    assert publishers.remove("ann", one.id, address="192.0.2.1", now=NOW) == one
    assert publishers.of("ann") == [other]
    assert Events(database).latest("ann", 1) == [
        Event(
            NOW_SECONDS, "publisher_removed", one.id, "192.0.2.1", "octo/prompts a.yml for ann/*"
        )
    ]  # fmt: skip


@pytest.mark.parametrize("owner", ["ann", "bob"])
def test_removal_of_what_is_not_there(publishers: TrustedPublishers, owner: str):
    of_ann = publishers.add("ann", GITHUB, Entered("octo/prompts", "a.yml"))
    for publisher_id in ("", "0", "' OR 1=1", *([of_ann.id] if owner == "bob" else [])):
        with pytest.raises(RequestError) as caught:
            publishers.remove(owner, publisher_id)
        assert caught.value.code == "not_found"
    assert publishers.of("ann") == [of_ann]


def test_removal_revokes_the_tokens_of_its_jobs_alone(
    database: Database, publishers: TrustedPublishers
):
    accounts = Accounts(database)
    ids = [
        publishers.add("ann", GITHUB, Entered("octo/prompts", name)).id
        for name in ("a.yml", "b.yml")
    ]
    made = {
        told: accounts.create_trusted_token("ann", [], by, NOW)[0]
        for told, by in (("one", ids[0]), ("other", ids[1]), ("both", " ".join(ids)),
                         ("another's", "x" + ids[0]))
    }  # fmt: skip
    made["personal"] = accounts.create_token("ann", "laptop", now=NOW)[0]
    publishers.remove("ann", ids[0], now=NOW)
    good = set()
    for told, text in made.items():
        try:
            accounts.authenticate(text, NOW)
        except RequestError as error:
            assert error.code == "invalid_token"
        else:
            good.add(told)
    assert good == {"other", "another's", "personal"}


# Jobs


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
    publishers.note_use(added, JOB, address="192.0.2.1", now=later)
    used = added._replace(project_id="74", used_at=NOW_SECONDS + 60)
    assert publishers.of("ann") == [used]
    assert publishers.matching(JOB) == [used]
    assert publishers.matching(JOB._replace(project_id="75")) == []
    assert Events(database).latest("ann", 1) == [
        Event(
            NOW_SECONDS + 60, "publisher_used", added.id, "192.0.2.1",
            "github octo/prompts publish.yml on refs/heads/main run 1",
        )
    ]  # fmt: skip
