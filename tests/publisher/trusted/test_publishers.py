"""Trusted CI jobs of an owner: valid fields, and the jobs that they match."""

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.database import Database
from publisher.accounts.events import Event
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import (
    PUBLISHERS_PER_OWNER_MAX,
    Entered,
    TrustedPublisher,
    TrustedPublishers,
)
from tests.publisher.trusted.conftest import GITHUB, GITLAB, JOB, NOW, NOW_SECONDS
from tests.support.events import latest
from tests.support.postgres import only_sqlite


def wrong_fields(publishers: TrustedPublishers, *args: object, **more: str) -> dict[str, str]:
    """The message of each refused field."""
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
        now=NOW,
    )
    assert added == TrustedPublisher(
        added.id, "ann", "review", GITHUB.url, "octo/prompts", "74", "Publish.yml", "Main", "prod",
        NOW_SECONDS, None,
    )  # fmt: skip
    assert publishers.of("ann") == [added]
    assert publishers.of("bob") == []
    assert latest(database, "ann", 9) == [
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


@pytest.mark.parametrize(
    ("issuer", "project", "workflow", "stored"),
    [
        (GITHUB, "octo/prompts", "a.yaml", "a.yaml"),
        (GITHUB, "octo_corp/.github", "a b.yml", "a b.yml"),
        (GITHUB, "o/p", ".github/workflows/Ä.yml", "Ä.yml"),
        (GITHUB, "o/p", ".github/workflows/", "publish.yml"),
        (GITLAB, "acme/p", "ci/publish.yml", "ci/publish.yml"),
        (GITLAB, "acme/p", " .gitlab/ci ", ".gitlab/ci"),
        (GITLAB, "Acme/team/sub.team/p", "", ".gitlab-ci.yml"),
        (GITLAB, "acme/_p", ".github/workflows/x.yml", ".github/workflows/x.yml"),
    ],
)
def test_projects_and_workflows(
    publishers: TrustedPublishers, issuer: Issuer, project: str, workflow: str, stored: str
):
    assert publishers.add("ann", issuer, Entered(project, workflow)).workflow == stored


# Texts that are wrong, by issuer and field.
NONE = {
    (GITHUB, "project"): [
        "", "prompts", "octo/", "/prompts", "octo/prompts/x", "https://github.com/octo/prompts",
        "octo/prompts.git", "octo/..", "octo/.", "oc to/prompts", "öcto/prompts", "-octo/p",
        f"{'o' * 40}/p", f"o/{'p' * 101}", "octo/p\n/x", "octo/*",
    ],
    (GITLAB, "project"): [
        "", "prompts", "acme/", "/prompts", "acme//prompts", "https://gitlab.com/acme/prompts",
        "acme/prompts.git", "acme/pro mpts", "acme/-p", "acme/p/", f"acme/{'p' * 1000}", "../p",
    ],
    (GITHUB, "workflow"): [
        "publish", "publish.yml.txt", ".yml", "ci/publish.yml", "../publish.yml",
        ".github/workflows/sub/publish.yml", "publish.yml@refs/heads/main", "a\\b.yml",
        f"{'a' * 252}.yml", "a\nb.yml", "/.github/workflows/a.yml",
    ],
    (GITLAB, "workflow"): [
        "/ci.yml", "./ci.yml", "../ci.yml", "ci/", "ci//a.yml", "a.yml@acme/other", "a\nb.yml",
        "https://example.org/ci.yml", "a" * 256,
    ],
    (GITHUB, "branch"): [
        "a b", "a\tb", "a\nb", "a\0b",
        "a\x7fb", "a\u200bb", "a\xa0b", "a..b", "a//b", "a/.b", "a@{b",
        "a~b", "a^b", "a:b", "a?b", "a*", "a[b", "a\\b", 'a"b', "-a", "/a", ".a", "a/", "a.",
        "refs/tags/v1", "refs/heads/", "refs/heads/refs/heads/main", "refs/heads/ main", "x" * 256,
    ],
}  # fmt: skip
# What a message says to enter instead.
INSTEAD = {(GITHUB, "project"): "octo/prompts", (GITHUB, "branch"): "leave it empty"}


@only_sqlite
@pytest.mark.parametrize(
    ("issuer", "field", "text"), [(*key, text) for key, texts in NONE.items() for text in texts]
)
def test_what_is_none(publishers: TrustedPublishers, issuer: Issuer, field: str, text: str):
    right = {"project": "octo/prompts", "workflow": "a.yml"}
    faults = wrong_fields(publishers, "ann", issuer, Entered(**right | {field: text}))
    assert list(faults) == [field] and INSTEAD.get((issuer, field), "") in faults[field]
    assert publishers.of("ann") == []


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


def test_all_that_is_wrong_is_reported_at_once(database: Database, publishers: TrustedPublishers):
    faults = wrong_fields(
        publishers,
        "ann",
        GITHUB,
        Entered("octo", "x", "Re view", branch="a b", environment="e" * 256, project_id="7x"),
    )
    assert list(faults) == ["repo", "project", "workflow", "branch", "environment", "project_id"]
    assert all(faults.values())
    faults = wrong_fields(publishers, "ann", GITHUB, Entered("o/p", "a.yml", environment="a\nb"))
    assert list(faults) == ["environment"]
    faults = wrong_fields(publishers, "ann", GITHUB, Entered("o/p", "a.yml", "Review"))
    assert "Use 'review'" in faults["repo"]
    assert publishers.of("ann") == []
    assert latest(database, "ann", 9) == []


def test_twice_the_same(publishers: TrustedPublishers):
    usual = {"branch": "main", "environment": "prod"}
    publishers.add("ann", GITHUB, Entered("octo/prompts", "a.yml", "review", **usual))
    faults = wrong_fields(
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
    assert "already" in faults["project"] and "branch main environment prod" in faults["project"]
    for repo, workflow, changes in (
        ("story", "a.yml", {}), ("", "a.yml", {}), ("review", "A.yml", {}),
        ("review", "a.yml", {"environment": ""}), ("review", "a.yml", {"branch": ""}),
        ("review", "a.yml", {"branch": "Main"}),
    ):  # fmt: skip
        publishers.add("ann", GITHUB, Entered("octo/prompts", workflow, repo, **usual | changes))
    publishers.add("bob", GITHUB, Entered("octo/prompts", "a.yml", "review", **usual))
    assert len(publishers.of("ann")) == 7


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


def test_labels(publishers: TrustedPublishers):
    entered = Entered("octo/prompts", "publish.yml", labels=" production,canary production ")
    added = publishers.add("ann", GITHUB, entered)
    assert publishers.of("ann") == [added] and added.labels == "production canary"
    for labels in ("latest", "A b", " ".join(f"label-{number}" for number in range(21))):
        wrong = wrong_fields(publishers, "ann", GITHUB, entered._replace(labels=labels))
        assert wrong.keys() == {"labels"}
    only = Entered("octo/prompts", "release.yml", labels="production", publishes=False)
    moves = publishers.add("ann", GITHUB, only)
    assert not moves.publishes and publishers.of("ann") == [added, moves]
    wrong = wrong_fields(publishers, "ann", GITHUB, only._replace(labels=""))
    assert "at least one label" in wrong["labels"]


def test_removal(database: Database, publishers: TrustedPublishers):
    one = publishers.add("ann", GITHUB, Entered("octo/prompts", "a.yml"), now=NOW)
    other = publishers.add("ann", GITHUB, Entered("octo/prompts", "b.yml"), now=NOW)
    assert publishers.remove("ann", one.id, now=NOW) == one
    assert publishers.of("ann") == [other]
    assert latest(database, "ann", 1) == [
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
        case: accounts.create_trusted_token("ann", [], by, NOW)[0]
        for case, by in (("one", ids[0]), ("other", ids[1]), ("both", " ".join(ids)),
                         ("another's", "x" + ids[0]))
    }  # fmt: skip
    made["personal"] = accounts.create_token("ann", "laptop", now=NOW)[0]
    publishers.remove("ann", ids[0], now=NOW)
    good = set()
    for case, text in made.items():
        try:
            accounts.authenticate(text, NOW)
        except RequestError as error:
            assert error.code == "invalid_token"
        else:
            good.add(case)
    assert good == {"other", "another's", "personal"}
