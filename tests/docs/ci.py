"""The CI jobs of docs/use/publish-from-ci.md: their very shell, in real clones, to a live hub."""

import itertools
import os
import re
import shutil
import string
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from publisher.accounts.database import Database
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublisher, TrustedPublishers
from publisher.web.pages.snippets import workflow
from tests.support.issuer import TestIssuer
from tests.support.servers import DEADLINE_SECONDS, PROJECT, Server

DOCUMENT = (PROJECT / "docs/use/publish-from-ci.md").read_text(encoding="utf-8")
# Fields of the account settings, and the values to enter to publish and to release, for GitHub and
# GitLab.
FIELDS = {
    field: ["" if cell.startswith("empty") else cell.strip("`") for cell in cells]
    for field, *cells in re.findall(
        r"^\| (\w[\w ]*) " + r"\| (.*?) " * 4 + r"\|$",
        DOCUMENT.partition("## 2.")[2].partition("## 3.")[0],
        flags=re.MULTILINE,
    )
}
# Values that a reader replaces.
ADDRESS, HANDLE = "https://prompts.example.org", "ada"
# The jobs as the page shows them.
SHOWN = [
    workflow(ADDRESS, kind, TrustedPublisher(
        id="", owner=HANDLE, repo="", issuer="", project="", project_id="", workflow="", branch="",
        environment=FIELDS["Environment"][at], labels=FIELDS["Labels"][at], publishes=at < 2,
        added_at=0, used_at=None,
    ))
    for at, kind in enumerate(("github", "gitlab", "github", "gitlab"))
]  # fmt: skip
GITHUB, GITLAB, GITHUB_RELEASE, GITLAB_RELEASE = map(yaml.safe_load, SHOWN)

SHELLS = {"github": ["bash", "-e"], "gitlab": ["dash", "-e"], "alpine": ["busybox", "sh", "-e"]}
NOTHING = "0" * 40

numbers = itertools.count()


class Done(NamedTuple):
    """The result of a job: ``output`` is its log, ``summary`` the page that GitHub shows for it."""

    status: int
    output: str
    summary: str = ""


class Trusting(NamedTuple):
    """A live hub, and the issuers that it believes."""

    server: Server
    github: TestIssuer
    gitlab: TestIssuer

    @property
    def issuers(self) -> tuple[Issuer, Issuer]:
        return Issuer("github", self.github.url), Issuer("gitlab", self.gitlab.url)


class Job(NamedTuple):
    """A job of a workflow: its shell, the variables that it sets, and what it says it is."""

    shell: str
    variables: dict[str, str]
    environment: str
    audience: str


def github_job(workflow: dict[str, Any], name: str) -> Job:
    job = workflow["jobs"][name]
    step = job["steps"][-1]
    variables = workflow.get("env", {}) | step.get("env", {})
    return Job(step["run"], variables, job.get("environment", ""), "")


def gitlab_job(file: dict[str, Any], name: str) -> Job:
    job = file[name]
    base = file.get(job.get("extends"), {})
    install, *fetch = base["before_script"]
    assert install == "apk add --no-cache curl git"
    shell = "\n".join([*fetch, *job["script"]])
    variables = base.get("variables", {}) | job.get("variables", {})
    audience = job.get("id_tokens", {}).get("HUB_ID_TOKEN", {}).get("aud", "")
    return Job(shell, variables, job.get("environment", ""), audience)


def printed_job(platform: str, kind: str) -> Job:
    """The job that checks, publishes or releases, as the document has it."""
    if platform == "github":
        return github_job(GITHUB_RELEASE if kind == "release" else GITHUB, kind)
    names = {"check": "check-prompts", "publish": "publish-prompts", "release": "release-prompt"}
    return gitlab_job(GITLAB | GITLAB_RELEASE, names[kind])


def evaluate(text: str, known: dict[str, str]) -> str:
    """Fill in what the document's jobs have of GitHub's expressions."""

    def value(found: re.Match[str]) -> str:
        name, _, otherwise = found[1].partition(" || ")
        return known[name] or otherwise.strip("'")

    return re.sub(r"\$\{\{ (.+?) \}\}", value, text)


class TrustedProject:
    """A user's repository of prompts, its remote, and the jobs of the document for pushes to it,
    without stored tokens.

    ``claims`` are those that the CI issues differently from the owner's entry. ``id_token`` is the
    token that GitLab gives, by default its own. A fork has another ``path`` and ``number``.
    """

    def __init__(self, folder: Path, trusting: Trusting, owner: str, number: int) -> None:
        self.folder, self.url, self.owner = folder, trusting.server.url, owner
        self._trusting = trusting
        self.number = number
        self.path = f"acme/prompts-{number}"
        self.claims: dict[str, str] = {}
        self.id_token = ""
        self.work, self.origin = folder / "work", folder / "origin.git"
        self.tools = folder / "tools"  # found before the real ones
        self.commit_run = ""  # the commit of the last job
        for made in (self.work, self.tools):
            made.mkdir()
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        git(self.work, "init", "--quiet", "--initial-branch=main")
        git(self.work, "remote", "add", "origin", f"file://{self.origin}")

    def commit(self, message: str, files: dict[str, bytes | str | None]) -> str:
        """Commit these files; None removes a file. Returns the commit's hash."""
        for path, text in files.items():
            place = self.work / path
            if text is None:
                place.unlink()
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode() if isinstance(text, str) else text)
        git(self.work, "add", "--all")
        git(self.work, "commit", "--quiet", "--message", message)
        return git(self.work, "rev-parse", "HEAD")

    def push(self) -> None:
        git(self.work, "push", "--quiet", "--force", "origin", "HEAD")

    def push_files(self, message: str, files: dict[str, bytes | str | None]) -> str:
        commit = self.commit(message, files)
        self.push()
        return commit

    def run(self, platform: str, before: str, after: str, depth: int | None = None) -> Done:
        """Run the job as the platform does for a push."""
        known = {
            "github.event.before": before, "github.sha": after, "github.ref_name": "main",
            "CI_COMMIT_BEFORE_SHA": before or NOTHING, "CI_COMMIT_SHA": after,
            "CI_COMMIT_BRANCH": "main",
        }  # fmt: skip
        return self.run_job(platform, "publish", known, after, depth)

    def check(self, platform: str, commit: str, base: str = "origin/main") -> Done:
        """Run the job as the platform does for a request to merge ``commit`` into ``base``."""
        known = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": git(self.work, "merge-base", base, commit)}
        if platform == "github":
            git(self.work, "checkout", "--quiet", "--detach", base)
            git(self.work, "merge", "--quiet", "--no-ff", "-m", f"Merge {commit}", commit)
            commit = git(self.work, "rev-parse", "HEAD")
            git(self.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/merge")
            git(self.work, "checkout", "--quiet", "-")
        return self.run_job(platform, "check", known, commit)

    def run_job(
        self, platform: str, kind: str, known: dict[str, str], commit: str, depth: int | None = None
    ) -> Done:
        """Clone, set variables and run the shell; ``known`` are the platform's own variables."""
        clone = self.folder / f"clone{next(numbers)}"
        shallow = [f"--depth={depth}"] if depth else []
        git(self.folder, "clone", "--quiet", *shallow, f"file://{self.origin}", str(clone))
        git(clone, "checkout", "--quiet", "--detach", commit)
        job, self.commit_run = self.job(platform, kind), git(clone, "rev-parse", "HEAD")
        script, summary = clone.with_suffix(".sh"), clone.with_suffix(".md")
        temporary = clone.with_suffix(".tmp")
        temporary.mkdir()
        script.write_text(job.shell.replace("/tmp", str(temporary)))
        summary.touch()
        given = {"CI": "true"} | self.rights(platform, kind, job)
        if platform == "github":
            given |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
            given |= {"RUNNER_TEMP": str(temporary), "GITHUB_WORKSPACE": str(clone)}
            given |= {name: evaluate(value, known) for name, value in job.variables.items()}
        else:
            given |= known | {"CI_PROJECT_DIR": str(clone)}
            given |= {
                name: string.Template(value).substitute(known)
                for name, value in job.variables.items()
            }
        done = subprocess.run(
            [*SHELLS[platform], str(script)], cwd=clone, text=True, timeout=DEADLINE_SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=given | git_environment() | {"PATH": f"{self.tools}:{os.environ['PATH']}"},
        )  # fmt: skip
        return Done(done.returncode, done.stdout, summary.read_text())

    def put_tool(self, name: str, lines: str) -> None:
        """Let jobs find this script instead of a program; ``REAL`` in it is the path of the
        program.
        """
        tool = self.tools / name
        tool.write_text("#!/bin/sh\n" + lines.replace("REAL", shutil.which(name)))
        tool.chmod(0o755)

    def trust(self) -> None:
        """Enter its jobs in the account settings, as the document says."""
        with Database(self._trusting.server.settings.state) as database:
            for at in range(4):
                entered = Entered(
                    self.path,
                    FIELDS["Workflow file"][at],
                    FIELDS["Prompt"][at],
                    branch=FIELDS["Branch"][at],
                    environment=FIELDS["Environment"][at],
                    labels=FIELDS["Labels"][at],
                    publishes=FIELDS["Its jobs"][at] != "only move labels",
                )
                issuer = self._trusting.issuers[at % 2]
                TrustedPublishers(database).add(self.owner, issuer, entered)

    def release(self, platform: str, prompt: str, version: str, expected: str) -> Done:
        """Run the job as the platform does for a manual start."""
        given = {"prompt": prompt, "version": version, "expected": expected}
        known = {f"inputs.{name}": value for name, value in given.items()}
        known |= {name.upper(): value for name, value in given.items()}
        known |= {"github.actor": "grace", "GITLAB_USER_LOGIN": "grace"}
        return self.run_job(platform, "release", known, "HEAD")

    def job(self, platform: str, kind: str) -> Job:
        job = printed_job(platform, kind)
        mine = {ADDRESS: self.url, HANDLE: self.owner}
        assert ADDRESS in job.variables.values()
        variables = {name: mine.get(value, value) for name, value in job.variables.items()}
        if "PROMPT" in variables:
            variables["PROMPT"] = variables["PROMPT"].replace(f"{HANDLE}/", f"{self.owner}/")
        return job._replace(variables=variables, audience=job.audience and self.url)

    def rights(self, platform: str, kind: str, job: Job) -> dict[str, str]:
        if kind == "check":
            return {}
        if platform == "github":
            path = self.claims.get("repository", self.path)
            file = "release-prompt.yml" if kind == "release" else "publish-prompts.yml"
            workflow = f"{path}/.github/workflows/{file}@refs/heads/main"
            self._trusting.github.job = {
                "repository": path, "repository_id": str(self.number),
                "workflow_ref": workflow, "job_workflow_ref": workflow,
                "environment": job.environment, "sha": self.commit_run,
            } | self.claims  # fmt: skip
            return self._trusting.github.env()
        return {"HUB_ID_TOKEN": self.id_token or self.ask_gitlab(job.environment)}

    def ask_gitlab(self, environment: str = "") -> str:
        """An ID token of a job."""
        gitlab = self._trusting.gitlab.url.partition("://")[2]
        path = self.claims.get("project_path", self.path)
        claims = {
            "aud": self.url, "project_path": path, "project_id": str(self.number),
            "ci_config_ref_uri": f"{gitlab}/{path}//.gitlab-ci.yml@refs/heads/main",
            "environment": environment or None, "sha": self.commit_run,
        }  # fmt: skip
        return self._trusting.gitlab.gitlab_token(**claims | self.claims)


def git_environment() -> dict[str, str]:
    """An environment with a fixed author, without the git settings of the tests' user."""
    somebody = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
    }
    return somebody | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *command: str) -> str:
    done = subprocess.run(
        ["git", *command], cwd=folder, env=os.environ | git_environment(), text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def versions(hub: Server, project: TrustedProject, name: str) -> dict[str, str]:
    """A repo's versions and changelogs, the latest first; none if the repo does not exist."""
    answer = hub.get(f"/api/v1/repos/{project.owner}/{name}/versions")
    if answer.status_code == 404:
        return {}
    return {version["version"]: version["changelog"] for version in answer.json()["data"]}


def text(hub: Server, project: TrustedProject, name: str) -> bytes:
    return hub.get(f"/api/v1/repos/{project.owner}/{name}/raw").content
