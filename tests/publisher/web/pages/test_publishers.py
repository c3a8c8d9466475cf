"""The page of trusted publishers: what it adds is what a job needs, and what it shows works."""

import itertools
import re
from pathlib import Path

import pytest
import yaml

from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublisher, TrustedPublishers
from tests.docs.ci import NOTHING, Job, TrustedProject, Trusting, github_job, gitlab_job
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.publisher.web.pages.test_tokens import create, snippets_of, text_of
from tests.support.catalogues import write_version
from tests.support.servers import PROJECT

PUBLISHERS = "/account/publishers"
# A project belongs to an owner once a job has published, so each test takes another.
_projects = map("octo/prompts-{}".format, itertools.count(1))


def publishers_of(people: People, owner: str) -> list[TrustedPublisher]:
    return TrustedPublishers(people.database).of(owner)


def add(visitor: Visitor, **fields: str | None) -> Page:
    visitor.get(PUBLISHERS)
    return visitor.submit(
        PUBLISHERS, **{"project": next(_projects), "workflow": "publish.yml"} | fields
    )


def set_only(visitor: Visitor, repo: str, who: str) -> Page:
    visitor.get(PUBLISHERS)
    return visitor.post(f"{PUBLISHERS}/only", [("repo", repo), ("who", who), *visitor.csrf()])


def workflow_of(page: Page) -> str:
    """The workflow in the open part of a page."""
    (opened,) = re.findall("<details open>.*?</details>", page.html, re.DOTALL)
    (text,) = snippets_of(page._replace(html=opened))
    return text


class ShownProject(TrustedProject):
    """A user's project; its CI runs the workflow that a page shows."""

    def __init__(self, folder: Path, people: People, owner: str, path: str, shown: str) -> None:
        super().__init__(folder, Trusting(people.server, people.github, people.gitlab), owner, 7)
        self.path = path
        self.parsed = yaml.safe_load(shown)

    def job(self, platform: str, kind: str) -> Job:
        if platform == "github":
            return github_job(self.parsed, kind)
        job = gitlab_job(self.parsed, f"{kind}-prompts")
        assert job.audience == self.url
        return job


def show(
    people: People, owner: Visitor, folder: Path, platform: str, **fields: str
) -> ShownProject:  # fmt: skip
    """Add a trusted publisher; the project that has pasted what the page shows then."""
    project = next(_projects)
    github = {"workflow": "publish-prompts.yml"}
    fields |= github if platform == "github" else {"issuer": people.gitlab.url, "workflow": ""}
    page = add(owner, project=project, **fields)
    assert (page.status, page.path) == (200, PUBLISHERS)
    assert f"{project} is a trusted publisher now" in page.words
    assert "set by the first job" in page.words and "Last use never" in page.words
    return ShownProject(folder, people, owner.handle, project, workflow_of(page))


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("platform", ["github", "alpine"])
def test_a_workflow_publishes_as_it_is_shown(
    people: People, owner: Visitor, tmp_path: Path, platform: str
) -> None:
    project = show(people, owner, tmp_path, platform, environment="Hub")
    subject = "café $(date)"
    first = project.push_files(subject, {"prompts/one.md": "1.", "prompts/two.md": "2."})
    done = project.run(platform, NOTHING, first)
    assert done.status == 0, done.output
    for name, text in (("one", "1."), ("two", "2.")):
        answer = people.server.get(f"/api/v1/repos/{owner.handle}/{name}").json()["data"]
        assert (answer["content"], answer["changelog"]) == (text, subject)
    page = owner.get(PUBLISHERS)
    assert re.search(r"Number \d+ Last use \d", page.words), page.words
    assert "<details open" not in page.html


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("platform", ["github", "alpine"])
def test_a_workflow_for_one_repo_leaves_the_others(
    people: People, owner: Visitor, tmp_path: Path, platform: str
) -> None:
    project = show(people, owner, tmp_path, platform, repo=f"{owner.handle}/review")
    first = project.push_files("Begin", {"prompts/review.md": "R.", "prompts/other.md": "O."})
    done = project.run(platform, NOTHING, first)
    assert done.status == 0 and f"{owner.handle}/review 1.0.0\n" in done.output
    second = project.push_files("Aside", {"prompts/other.md": "O!"})
    done = project.run(platform, first, second)
    assert done.status == 0 and "1.0" not in done.output
    third = project.push_files("More", {"prompts/review.md": "R!"})
    assert project.run(platform, second, third).output.endswith(" 1.0.1\n")
    # An old job is run again.
    done = project.run(platform, NOTHING, first)
    assert done.status == 0 and f"is from commit {third}" in done.output
    raw = f"/api/v1/repos/{owner.handle}"
    assert people.server.get(f"{raw}/review/raw").text == "R!"
    assert people.server.get(f"{raw}/other/raw").status_code == 404


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("platform", ["github", "gitlab"])
def test_a_workflow_that_is_refused_shows_why(
    people: People, owner: Visitor, tmp_path: Path, platform: str
) -> None:
    project = show(people, owner, tmp_path, platform)
    owner.get(PUBLISHERS)
    owner.submit("/remove")
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    done = project.run(platform, NOTHING, after)
    assert done.status != 0 and f"project {project.path}" in done.output


def test_a_workflow_is_the_document_s(people: People, owner: Visitor) -> None:
    publishes = {"branch": "", "labels": "staging"}
    document = (PROJECT / "docs/use/publish-from-ci.md").read_text(encoding="utf-8")
    replaced = document.replace("https://prompts.example.org", people.url)
    replaced = replaced.replace("HUB_OWNER: ada", f"HUB_OWNER: {owner.handle}")
    github = {"workflow": "publish-prompts.yml", "environment": "hub"}
    assert workflow_of(add(owner, **publishes | github)) in replaced


def test_what_a_page_says_of_an_entry_is_true_of_it(people: People, owner: Visitor) -> None:
    gitlab = {"issuer": people.gitlab.url, "workflow": "", "project": "acme/team/p"}
    add(owner, project="octo/p", environment="hub", labels="staging")
    add(owner, project="octo/p", workflow="release.yml", labels="production", does="label")
    add(owner, **gitlab, repo="review")
    page = add(owner, **gitlab, repo="review", environment="live", labels="live", does="label")
    job = yaml.safe_load(workflow_of(page))["release-prompt"]
    assert job["environment"] == "live" and '"$HUB_OWNER/$PROMPT" live ' in job["script"][0]
    of = {
        heading: words
        for heading, words in re.findall(
            r'<section class="panel publisher".*?<h2 [^>]*>(.*?)</h2>(.*?)</section>',
            page.html,
            re.DOTALL,
        )
    }
    said = {
        " ".join(re.sub("<[^>]*>", "", heading).split()): words for heading, words in of.items()
    }
    everything = f"all prompts of {owner.handle}"
    review = f"{owner.handle}/review, from .gitlab-ci.yml on main"
    publishes, releases, checked, moves = (
        said[f"octo/p publishes {everything}, from publish.yml on main in hub"],
        said[f"octo/p moves labels of {everything}, from release.yml on main"],
        said[f"acme/team/p publishes {review}"],
        said[f"acme/team/p moves labels of {review} in live"],
    )
    assert len(said) == 4
    assert "A pull request gets a check" in publishes and "new version gets the labels" in publishes
    assert "A merge request gets a check" in checked and "gets the labels" not in checked
    assert "Save it as <code>.github/workflows/release.yml" in releases
    assert "Add it to <code>.gitlab-ci.yml" in moves
    for words in (releases, moves):
        assert "cannot publish" in words and "gets a check" not in words


def test_a_workflow_runs_where_it_is_trusted(people: People, owner: Visitor) -> None:
    shown = yaml.safe_load(workflow_of(add(owner, branch="it's/2", repo="review")))
    paths = ["prompts/review.md", "prompts/review/**"]
    assert shown[True]["push"] == {"branches": ["it's/2"], "paths": paths}
    # GitHub doubles what quotes a string.
    assert shown["jobs"]["publish"]["if"] == "github.ref == 'refs/heads/it''s/2'"
    gitlab = {"issuer": people.gitlab.url, "workflow": "", "project": "acme/where"}
    page = add(owner, **gitlab, branch="it's/2", repo="review", environment="on")
    job = yaml.safe_load(workflow_of(page))["publish-prompts"]
    assert job["environment"] == "on"
    pushed, by_hand = job["rules"]
    assert pushed["changes"] == paths and "changes" not in by_hand
    for rule in (pushed, by_hand):
        assert rule["if"].startswith('$CI_COMMIT_BRANCH == "it\'s/2" && ')


def test_a_branch_is_offered(people: People, owner: Visitor) -> None:
    page = owner.get(PUBLISHERS)
    (form,) = (form for form in page.forms if form.action == PUBLISHERS)
    assert ("branch", "main") in form.fields
    assert (
        "Only jobs on this branch. Empty: any branch or tag, so anyone who can push a branch can "
        "publish." in page.words
    )
    # A form without the field does not mean every branch.
    for branch, stored in (("main", "main"), (None, "main"), (" refs/heads/Dev/2 ", "Dev/2")):
        page = add(owner, branch=branch)
        assert page.status == 200 and f" on {stored} GitHub Actions" in page.words
        (added,) = publishers_of(people, owner.handle)
        assert added.branch == stored
        noted = f"Trusted publisher added: {added.project} publish.yml branch {stored} for"
        assert noted in owner.get("/account/security").words
        owner.get(PUBLISHERS)
        owner.submit("/remove")


@pytest.mark.parametrize(
    ("branch", "pattern"),
    [
        ("release/1.x", "release/1.x"), ("größe", "größe"), ("c++", r"c\+\+"), ("!a!", r"\!a!"),
        ("a]#b", "a]#b"), ("#1", "#1"), ("{a},b", "{a},b"), ("yes", "yes"), ("1.0", "1.0"),
        ("it's", "it's"), ("", "main"),
    ],
)  # fmt: skip
def test_workflows_name_the_branch(
    people: People, owner: Visitor, branch: str, pattern: str
) -> None:
    page = add(owner, branch=branch)
    assert page.status == 200 and f" on {branch or 'any branch'} GitHub Actions" in page.words
    assert yaml.safe_load(workflow_of(page))[True]["push"]["branches"] == [pattern]
    owner.submit("/remove")
    page = add(owner, branch=branch, issuer=people.gitlab.url, project="acme/x", workflow="")
    rule, _ = yaml.safe_load(workflow_of(page))["publish-prompts"]["rules"]
    there = f'"{branch}"' if branch else "$CI_DEFAULT_BRANCH"
    assert rule["if"].startswith(f"$CI_COMMIT_BRANCH == {there} && ")
    assert publishers_of(people, owner.handle)[0].branch == branch
    owner.submit("/remove")


def test_nobody_removes_that_of_another(people: People, owner: Visitor) -> None:
    add(owner)
    (publisher,) = publishers_of(people, owner.handle)
    stranger = people.guest()
    stranger.get(PUBLISHERS)
    for given in (publisher.id, "0", "%00", "%ff", "..%2f", publisher.project.replace("/", "%2f")):
        page = stranger.post(f"{PUBLISHERS}/{given}/remove", stranger.csrf())
        assert page.status == 404, given
    assert publishers_of(people, owner.handle) == [publisher]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"project": None}, "Enter the project"),
        ({"project": "<b>/x"}, "Must be OWNER/REPO"),
        ({"repo": "No Name"}, "Invalid prompt name"),
        ({"does": "label"}, "Name at least one label"),
        ({"does": "all"}, "Not a valid choice"),
        ({"issuer": "https://evil.example"}, "Not a valid choice"),
        ({"issuer": None}, "Not a valid choice"),
    ],
)
def test_what_a_form_is_refused_for(
    people: People, owner: Visitor, fields: dict[str, str | None], message: str
) -> None:
    page = add(owner, **fields)
    assert page.status == 422 and message in page.words, page.words
    assert 'class="wrong"' in page.html and "<b>" not in page.html
    assert not publishers_of(people, owner.handle)


@pytest.mark.parametrize(
    "environment",
    ['"><script>alert(1)</script>', "prod: 1 # no", "{{ 7*7 }}", "größe 本番", "'\"\\"],
)
def test_any_text_stays_text(people: People, owner: Visitor, environment: str) -> None:
    page = add(owner, workflow="<i>&.yml", environment=environment)
    assert page.status == 200 and environment in page.words and "<i>&.yml" in page.words
    assert "<script>" not in page.html and "<i>" not in page.html
    job = yaml.safe_load(workflow_of(page))["jobs"]["publish"]
    assert job["environment"] == environment
    assert environment in owner.get("/account/security").words


def test_a_repo_that_takes_nothing_else(people: People, owner: Visitor) -> None:
    write_version(people.settings.content, owner.handle, "review", "1.0.0", "Review.\n")
    token = text_of(create(owner, "ci"))
    page = set_only(owner, "review", "only")
    assert page.path == PUBLISHERS and "accepts only trusted publishers" in page.words
    assert "Nobody can publish to it" in page.words
    assert people.publish(token, owner.handle, "review").status_code == 403
    assert people.publish(token, owner.handle, "other").status_code == 201
    page = add(owner, repo="review")
    assert "Nobody can publish to it" not in page.words
    row = "review trusted publishers only"
    assert row in page.words
    # Its button takes it back.
    form = next(form for form in page.forms if ("repo", "review") in form.fields)
    page = owner.post(form.action, form.fields)
    assert row not in page.words and "accepts tokens" in page.words
    assert people.publish(token, owner.handle, "review").status_code == 201


def test_one_for_all_repos_is_for_each(people: People, owner: Visitor) -> None:
    set_only(owner, f"{owner.handle}/to-come", "only")
    assert "to-come trusted publishers only" in owner.page.words
    assert "Nobody can publish to it" in owner.page.words
    assert "Nobody can publish to it" not in add(owner, repo="").words


@pytest.mark.parametrize(
    ("repo", "who", "message"),
    [
        ("No Name", "only", "Invalid prompt name"),
        ("Review", "only", "Use 'review'"),
        ("bob/sql", "only", "Invalid prompt name"),
        ("", "only", "Enter the prompt name"),
        ("review", "nobody", "Not a valid choice"),
        ("<b>", "only", "Invalid prompt name"),
    ],
)
def test_what_is_no_choice(
    people: People, owner: Visitor, repo: str, who: str, message: str
) -> None:
    page = set_only(owner, repo, who)
    assert page.status == 422 and message in page.words and "<b>" not in page.html
    page = owner.post(f"{PUBLISHERS}/only", owner.csrf())
    assert page.status == 422 and "Enter the prompt name." in page.words
    assert not Accounts(people.database).trusted_only(owner.handle)


def test_one_whose_issuer_is_believed_no_more(people: People, owner: Visitor) -> None:
    gone = Issuer("gitlab", "https://gone.example")
    TrustedPublishers(people.database).add(owner.handle, gone, Entered("acme/prompts", ""))
    page = owner.get(PUBLISHERS)
    assert page.status == 200 and "no longer trusts this provider" in page.words
    assert "<summary>Workflow file" not in page.html
    assert "is no longer a trusted publisher" in owner.submit("/remove").words
