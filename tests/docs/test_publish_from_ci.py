"""The jobs that publish: which files of a push, as what, and who may run them."""

import re
from pathlib import Path

import pytest

from tests.docs.ci import (
    DOCUMENT,
    GITHUB,
    GITHUB_RELEASE,
    GITLAB,
    GITLAB_RELEASE,
    NOTHING,
    SHELLS,
    SHOWN,
    Done,
    TrustedProject,
    Trusting,
    git,
    printed_job,
    text,
    versions,
)
from tests.support.issuer import RUNTIME_SECRET

FETCHED = "hub: OK\n"


def published(project: TrustedProject, name: str, version: str, said: str = "") -> str:
    """The output of a job for a file that it has published to staging."""
    repo = f"{project.owner}/{name}"
    return f"{repo} {version}{said}\n{repo}@staging {version}\n"


# Text of the document


def test_rights_are_the_least():
    assert GITHUB["permissions"] == {"contents": "read"}
    check, publish = GITHUB["jobs"]["check"], GITHUB["jobs"]["publish"]
    assert "permissions" not in check and "environment" not in check
    assert publish["permissions"] == {"contents": "read", "id-token": "write"}
    assert GITHUB_RELEASE["permissions"] == {"id-token": "write"}
    for job in (publish, GITHUB_RELEASE["jobs"]["release"]):
        assert "default_branch" in job["if"]
    assert "id_tokens" not in GITLAB["check-prompts"]
    for job in (check, publish):
        assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", job["steps"][0]["uses"])
        assert job["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert not any("secrets." in shown for shown in SHOWN)


def test_when_jobs_run():
    # Without a filter of paths: a required check that it skips would stay pending forever.
    assert GITHUB[True]["pull_request"] is None  # YAML 1.1 takes the key "on" for a boolean
    assert GITHUB[True]["push"] == {"branches": ["main"], "paths": ["prompts/**"]}
    assert list(GITHUB_RELEASE[True]) == ["workflow_dispatch"]
    release = GITLAB_RELEASE["release-prompt"]
    assert release["rules"][0]["when"] == "manual"
    assert GITHUB_RELEASE["jobs"]["release"]["environment"] == release["environment"]
    assert GITLAB["workflow"] == {"auto_cancel": {"on_new_commit": "none"}}


def test_the_jobs_are_short_and_run_the_same_commands(trusting: Trusting):
    page = trusting.server.get("/connect").text
    release = "/cli/releases/v1.0.0/hub"
    assert f"{trusting.server.url}{release}.sha256" in page and "sha256sum -c hub.sha256" in page
    for kind, command in (("check", "check"), ("publish", "push"), ("release", "label")):
        for platform in ("github", "gitlab"):
            shell = printed_job(platform, kind).shell
            fetch = f'"$HUB_URL{release}" "$HUB_URL{release}.sha256"\nsha256sum -c hub.sha256\n'
            assert fetch in shell and len(shell.splitlines()) <= 5
            assert re.findall(r'^sh .*hub"? (\w+) ', shell, re.MULTILINE) == [command]
    assert f"```yaml\n{SHOWN[0]}```" in DOCUMENT
    for shown in SHOWN:
        jobs = re.split(r"^(?=[\w.-]+:$|  \w+:\n    if)", shown, flags=re.MULTILINE)
        assert max(len(job.splitlines()) for job in jobs) <= 20


# Choice of files


@pytest.mark.parametrize("platform", SHELLS)
def test_pushes(trusting: Trusting, trusted: TrustedProject, platform: str):
    hub = trusting.server
    first = trusted.push_files("Begin", {
        "prompts/hello.md": "---\nvariables: [who]\n---\nHello\n", "prompts/bye-2.md": "Bye",
        "prompts/deep/other.md": "Other", "prompts/notes.txt": "Notes", "README.md": "Read",
    })  # fmt: skip
    done = trusted.run(platform, NOTHING, first)
    named = "prompts/deep/other.md: warning: not the file of a prompt."
    message = "Declared variables that are not in the text: who."
    assert done.status == 0 and message in done.output and named in done.output
    assert "prompts/notes.txt: warning: not the file of a prompt, so it is left out" in done.output
    assert done.output.startswith(FETCHED + published(trusted, "bye-2", "1.0.0"))
    assert published(trusted, "hello", "1.0.0") in done.output
    trusted.commit("Aside", {"prompts/hello.md": "Hello.\n"})
    subject = 'Say "more" \\ $(id) 😀'
    second = trusted.push_files(f"{subject}\n\nBump: minor", {"prompts/hello.md": "Hello!\n"})
    done = trusted.run(platform, first, second)
    assert done == Done(0, FETCHED + published(trusted, "hello", "1.1.0"))
    assert versions(hub, trusted, "hello") == {"1.1.0": subject, "1.0.0": "Begin"}
    # A manual start publishes again.
    done = trusted.run(platform, "", second)
    assert done.status == 0
    assert f"{trusted.owner}/bye-2 1.0.0 unchanged\n" in done.output
    assert f"{trusted.owner}/hello 1.1.0 unchanged\n" in done.output
    # An old one.
    done = trusted.run(platform, NOTHING, first)
    assert done.status == 0 and f"is from commit {second}, which is not in" in done.output
    assert text(hub, trusted, "hello") == b"Hello!\n"


def test_a_push_of_commits_and_merges(trusting: Trusting, trusted: TrustedProject, platform: str):
    hub = trusting.server
    files = {f"prompts/{name}.md": name for name in "abcd"}
    first = trusted.push_files("Begin", files)
    trusted.run(platform, NOTHING, first)
    trusted.commit("A once", {"prompts/a.md": "A1"})
    trusted.commit("A again\n\nIt is better.\n\nBump: minor", {"prompts/a.md": "A2"})
    git(trusted.work, "checkout", "--quiet", "-b", "topic", first)
    trusted.commit("B aside\n\nbump: major\nReviewed-by: Bob", {"prompts/b.md": "B1"})
    git(trusted.work, "checkout", "--quiet", "main")
    git(trusted.work, "merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic")
    last = trusted.push_files("C asks", {"prompts/c.md": "C {{tone}}"})
    assert trusted.run(platform, first, last).status == 0
    assert versions(hub, trusted, "a") == {"1.1.0": "A again", "1.0.0": "Begin"}
    assert versions(hub, trusted, "b") == {"2.0.0": "B aside", "1.0.0": "Begin"}
    assert versions(hub, trusted, "c") == {"2.0.0": "C asks", "1.0.0": "Begin"}
    assert versions(hub, trusted, "d") == {"1.0.0": "Begin"}


def test_files_renamed_and_deleted(trusting: Trusting, trusted: TrustedProject):
    first = trusted.push_files("Begin", {"prompts/old.md": "Text", "prompts/gone.md": "Gone"})
    trusted.run("gitlab", NOTHING, first)
    second = trusted.push_files(
        "Tidy", {"prompts/old.md": None, "prompts/gone.md": None, "prompts/new.md": "Text"}
    )
    done = trusted.run("gitlab", first, second)
    assert done.status == 0 and published(trusted, "new", "1.0.0") in done.output
    gone = f"stays on the hub at 1.0.0. Withdraw it with: hubctl withdraw {trusted.owner}"
    assert f"{trusted.owner}/gone: file gone; {gone}/gone\n" in done.output
    assert f"{trusted.owner}/old: file gone; {gone}/old\n" in done.output
    assert text(trusting.server, trusted, "old") == b"Text"
    assert text(trusting.server, trusted, "gone") == b"Gone"


def test_nothing_to_compare_with(trusting: Trusting, trusted: TrustedProject):
    first = trusted.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    trusted.run("github", NOTHING, first)
    second = trusted.push_files("Change", {"prompts/b.md": "B1"})
    done = trusted.run("github", first, second, depth=1)
    assert done.status == 1 and "this clone is too shallow" in done.output
    assert trusted.run("github", "f" * 40, second).status == 0
    assert list(versions(trusting.server, trusted, "a")) == ["1.0.0"]
    assert list(versions(trusting.server, trusted, "b")) == ["1.0.1", "1.0.0"]


def test_a_push_by_force_goes_back(trusting: Trusting, trusted: TrustedProject):
    first = trusted.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    trusted.run("github", NOTHING, first)
    second = trusted.push_files("Change", {"prompts/a.md": "A1"})
    trusted.run("github", first, second)
    git(trusted.work, "reset", "--quiet", "--hard", first)
    trusted.push()
    assert trusted.run("github", second, first).status == 0
    assert list(versions(trusting.server, trusted, "a")) == ["1.0.2", "1.0.1", "1.0.0"]
    assert text(trusting.server, trusted, "a") == b"A"
    assert list(versions(trusting.server, trusted, "b")) == ["1.0.0"]


def test_a_bump_that_is_none(trusting: Trusting, trusted: TrustedProject, platform: str):
    after = trusted.push_files("Begin\n\nBump: mnior", {"prompts/a.md": "A"})
    done = trusted.run(platform, NOTHING, after)
    assert done.status == 5 and f"commit {after[:7]}" in done.output
    assert 'says "Bump: mnior". Write major, minor, patch or auto' in done.output
    assert not versions(trusting.server, trusted, "a")


# Trust


@pytest.mark.parametrize(
    ("platform", "claims"),
    [
        ("github", {"repository": "eve/fork", "repository_id": "1000001"}),
        ("gitlab", {"project_path": "eve/fork", "project_id": "1000001"}),
    ],
)
def test_a_job_that_is_not_trusted(
    trusting: Trusting, trusted: TrustedProject, platform: str, claims: dict[str, str]
):
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    trusted.claims = claims
    done = trusted.run(platform, NOTHING, after)
    assert done.status != 0 and "project eve/fork" in done.output
    assert not versions(trusting.server, trusted, "a")


@pytest.mark.parametrize("platform", SHELLS)
def test_a_job_shows_no_secrets(
    trusting: Trusting, trusted: TrustedProject, platform: str, tmp_path: Path
):
    for tool in ("curl", "git", "sed", "sha256sum"):
        trusted.put_tool(tool, f'printf "%s\\n" "$0" "$@" >>{tmp_path}/seen\nexec REAL "$@"\n')
    trusted.id_token = trusted.ask_gitlab()
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    done = trusted.run(platform, NOTHING, after)
    seen = (tmp_path / "seen").read_text(errors="replace")
    assert done.status == 0, done.output
    assert "trusted-publishing/token" in seen
    output = done.output + seen + trusting.server.process.text
    assert RUNTIME_SECRET not in output and trusted.id_token not in output
    # Patterns of any token of a job, and of the hub.
    assert not re.search(r"eyJ[\w-]+\.|hub_[0-9A-Za-z]{38}", output)


@pytest.mark.parametrize("kind", ["check", "publish"])
def test_a_client_that_is_not_the_hubs(trusted: TrustedProject, platform: str, kind: str):
    trusted.put_tool("curl", 'REAL "$@" || exit\n[ ! -f hub ] || echo : >>hub\n')
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    done = (
        trusted.check(platform, after) if kind == "check" else trusted.run(platform, NOTHING, after)
    )
    assert done.status != 0 and "hub: FAILED" in done.output
    assert "1.0.0" not in done.output + done.summary
