"""The CI jobs of docs/use/publish-from-ci.md: their very shell, in real clones, to a live hub."""

import hashlib
import http.server
import itertools
import json
import os
import re
import shutil
import string
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from publisher.accounts.database import Database
from publisher.accounts.token_text import make_token
from publisher.trusted.issuers import Issuer
from publisher.trusted.publisher_fields import Entered
from publisher.trusted.publishers import TrustedPublishers
from tests.support.catalogues import settings_in
from tests.support.issuer import RUNTIME_SECRET, TestIssuer, issuer
from tests.support.servers import (
    DEADLINE_SECONDS,
    PROJECT,
    Server,
    add_publisher,
    free_port,
    serving,
    wait_until,
)

DOCUMENT = (PROJECT / "docs/use/publish-from-ci.md").read_text(encoding="utf-8")
TRUSTED_GITHUB, TRUSTED_GITLAB, GITHUB, GITLAB = (
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", DOCUMENT, flags=re.DOTALL)
)
CHECKOUT, STEP = GITHUB["jobs"]["publish"]["steps"]
JOB = GITLAB["publish-prompts"]
(GITLAB_SHELL,) = JOB["script"]
TRUSTED_CHECKOUT, TRUSTED_STEP = TRUSTED_GITHUB["jobs"]["publish"]["steps"]
TRUSTED_JOB = TRUSTED_GITLAB["publish-prompts"]
(TRUSTED_GITLAB_SHELL,) = TRUSTED_JOB["script"]
# What is to be entered in the account settings: what each field is called, for GitHub and GitLab.
FIELDS = {
    field: (github.strip("`"), gitlab.strip("`"))
    for field, github, gitlab in re.findall(
        r"^\| (\w[\w ]*) \| (.*?) \| (.*?) \|$",
        DOCUMENT.partition("### 1.")[2].partition("### 2.")[0], flags=re.MULTILINE,
    )
}  # fmt: skip
# What a reader is to replace.
ADDRESS, HANDLE = "https://prompts.example.org", "ada"

SHELLS = {"github": ["bash", "-e"], "gitlab": ["dash", "-e"], "alpine": ["busybox", "sh", "-e"]}
NOTHING = "0" * 40
CONTENT_BYTES_MAX = 256 * 1024

_numbers = itertools.count()


class Done(NamedTuple):
    """What a job came to; ``output`` is what its log shows."""

    status: int
    output: str


class Project:
    """Somebody's repository of prompts, its remote, and jobs for what is pushed there."""

    def __init__(self, folder: Path, url: str, owner: str, token: str) -> None:
        self.folder = folder
        self.url, self.owner, self.token = url, owner, token
        self.work, self.origin = folder / "work", folder / "origin.git"
        self.tools = folder / "tools"  # found before the real ones
        for made in (self.work, self.tools):
            made.mkdir()
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        git(self.work, "init", "--quiet", "--initial-branch=main")
        git(self.work, "remote", "add", "origin", f"file://{self.origin}")

    def commit(self, message: str, files: dict[str, bytes | str | None]) -> str:
        """Commit these files, of which those that are None are removed; the commit's hash."""
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
        git(self.work, "push", "--quiet", "--force", "origin", "main")

    def push_files(self, message: str, files: dict[str, bytes | str | None]) -> str:
        commit = self.commit(message, files)
        self.push()
        return commit

    def run(self, platform: str, before: str, after: str, **options: Any) -> Done:
        """What the platform does for a push: clones, sets variables, runs the shell."""
        job = self.start(platform, before, after, **options)
        output, _ = job.communicate(timeout=DEADLINE_SECONDS)
        return Done(job.returncode, output)

    def start(
        self, platform: str, before: str, after: str, run: str = "", depth: int | None = None
    ) -> subprocess.Popen:
        """``run`` is the platform's number of this run, by default a new one."""
        run = run or f"run{next(_numbers)}"
        clone = self.folder / f"clone{next(_numbers)}"
        shallow = [f"--depth={depth}"] if depth else []
        git(self.folder, "clone", "--quiet", *shallow, f"file://{self.origin}", str(clone))
        git(clone, "checkout", "--quiet", "--detach", after)
        environment, shell = self.job(platform, before, after, run)
        script = clone.with_suffix(".sh")
        script.write_text(shell)
        return subprocess.Popen(
            [*SHELLS[platform], str(script)], cwd=clone, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment | git_environment() | {"PATH": f"{self.tools}:{os.environ['PATH']}"},
        )  # fmt: skip

    def job(self, platform: str, before: str, after: str, run: str) -> tuple[dict[str, str], str]:
        """The environment of a job, and its shell."""
        hub = {"HUB_URL": self.url, "HUB_OWNER": self.owner, "HUB_TOKEN": self.token}
        if platform == "github":
            return github_environment(STEP, hub, before, after, run), STEP["run"]
        return gitlab_environment(JOB, hub, before, after, run), GITLAB_SHELL

    def put_tool(self, name: str, lines: str) -> None:
        """Let jobs find a program of ours; ``REAL`` in it is the one that is hidden."""
        tool = self.tools / name
        tool.write_text("#!/bin/sh\n" + lines.replace("REAL", shutil.which(name)))
        tool.chmod(0o755)


class TrustedProject(Project):
    """One whose jobs have no stored token. ``claims`` are what its CI says of them, where that is
    not what the owner has entered; ``id_token`` is the one that GitLab gives, by default its own.
    """

    def __init__(self, folder: Path, trusting: "Trusting", owner: str, number: int) -> None:
        super().__init__(folder, trusting.server.url, owner, token="")
        self._trusting = trusting
        self._number = number
        self.path = f"acme/prompts-{number}"
        self.claims: dict[str, str] = {}
        self.id_token = ""

    def trust(self) -> None:
        """Enter its jobs in the account settings, as the document says."""
        with Database(self._trusting.server.settings.state) as database:
            for at, known in enumerate(self._trusting.issuers):
                repo, workflow, branch, environment = (
                    "" if FIELDS[field][at].startswith("empty") else FIELDS[field][at]
                    for field in ("Repo", "Workflow file", "Branch", "Environment")
                )
                TrustedPublishers(database).add(
                    self.owner,
                    known,
                    Entered(self.path, workflow, repo, branch=branch, environment=environment),
                )

    def job(self, platform: str, before: str, after: str, run: str) -> tuple[dict[str, str], str]:
        if platform == "github":
            path = self.claims.get("repository", self.path)
            workflow = f"{path}/.github/workflows/publish-prompts.yml@refs/heads/main"
            self._trusting.github.job = {
                "repository": path, "repository_id": str(self._number),
                "workflow_ref": workflow, "job_workflow_ref": workflow,
                "environment": TRUSTED_GITHUB["jobs"]["publish"]["environment"],
            } | self.claims  # fmt: skip
            given = github_environment(TRUSTED_STEP, {}, before, after, run)
            return self._replace(given) | self._trusting.github.env(), TRUSTED_STEP["run"]
        given = self._replace(gitlab_environment(TRUSTED_JOB, {}, before, after, run))
        ((name, wanted),) = TRUSTED_JOB["id_tokens"].items()
        return given | {name: self.id_token or self.ask_gitlab(wanted["aud"])}, TRUSTED_GITLAB_SHELL

    def ask_gitlab(self, audience: str = ADDRESS) -> str:
        """An ID token of a job."""
        gitlab = self._trusting.gitlab.url.partition("://")[2]
        path = self.claims.get("project_path", self.path)
        claims = {
            "aud": self.url if audience == ADDRESS else audience,
            "project_path": path, "project_id": str(self._number),
            "ci_config_ref_uri": f"{gitlab}/{path}//.gitlab-ci.yml@refs/heads/main",
        }  # fmt: skip
        return self._trusting.gitlab.gitlab_token(**claims | self.claims)

    def _replace(self, given: dict[str, str]) -> dict[str, str]:
        """Put the address and the handle where those of the document stand."""
        mine = {ADDRESS: self.url, HANDLE: self.owner}
        assert set(mine) <= set(given.values())
        return {name: mine.get(value, value) for name, value in given.items()}


def git_environment() -> dict[str, str]:
    """Whose commits these are, and nothing of the settings of whoever runs the tests."""
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


def github_environment(
    step: dict[str, Any], hub: dict[str, str], before: str, after: str, run: str
) -> dict[str, str]:
    """What the step's ``env`` comes to; an expression that GitHub has not fails."""
    known = {
        **{f"{kind}.{name}": value for name, value in hub.items() for kind in ("vars", "secrets")},
        "github.event.before": before, "github.sha": after, "github.ref_name": "main",
        "github.run_id": run,
    }  # fmt: skip
    env = {
        name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: known[found[1]], value)
        for name, value in step["env"].items()
    }
    return {"CI": "true", "GITHUB_ACTIONS": "true"} | env


def gitlab_environment(
    job: dict[str, Any], hub: dict[str, str], before: str, after: str, run: str
) -> dict[str, str]:
    given = {
        "CI": "true", "GITLAB_CI": "true", "CI_COMMIT_BEFORE_SHA": before, "CI_COMMIT_SHA": after,
        "CI_COMMIT_BRANCH": "main", "CI_PIPELINE_ID": run, **hub,
    }  # fmt: skip
    set_by_job = {
        name: string.Template(value).substitute(given) for name, value in job["variables"].items()
    }
    return given | set_by_job


@pytest.fixture(scope="module", autouse=True)
def _tools_are_there(installed_tools: None) -> None:
    missing = [each for each in ("bash", "dash", "busybox", "curl", "git", "jq", "cmp")
               if not shutil.which(each)]  # fmt: skip
    assert not missing, f"Install these, as tests/install-tools does: {', '.join(missing)}"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(settings_in(tmp_path_factory.mktemp("hub"))) as server:
        yield server


@pytest.fixture
def project(hub: Server, tmp_path: Path) -> Project:
    """A project of an owner who has nothing on the hub."""
    owner = f"ada-{next(_numbers)}"
    return Project(tmp_path, hub.url, owner, add_publisher(hub.settings, owner))


class Trusting(NamedTuple):
    """A live hub, and the issuers that it believes."""

    server: Server
    github: TestIssuer
    gitlab: TestIssuer

    @property
    def issuers(self) -> tuple[Issuer, Issuer]:
        return Issuer("github", self.github.url), Issuer("gitlab", self.gitlab.url)


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    settings = settings_in(tmp_path_factory.mktemp("trusting"))
    with issuer() as github, issuer() as gitlab:
        options = (f"github={github.url}", f"gitlab={gitlab.url}")
        with serving(
            settings, *(word for each in options for word in ("--trusted-issuer", each))
        ) as server:
            yield Trusting(server, github, gitlab)


@pytest.fixture
def trusted(trusting: Trusting, tmp_path: Path) -> TrustedProject:
    """A project whose jobs may publish for an owner who has nothing on the hub."""
    number = next(_numbers)
    add_publisher(trusting.server.settings, f"ada-{number}")
    project = TrustedProject(tmp_path, trusting, f"ada-{number}", number)
    project.trust()
    return project


@pytest.fixture(params=["github", "gitlab"])
def platform(request: pytest.FixtureRequest) -> str:
    return request.param


def versions(hub: Server, project: Project, name: str) -> dict[str, str]:
    """A repo's versions and changelogs, the latest first; none if there is no such repo."""
    answer = hub.get(f"/api/v1/repos/{project.owner}/{name}/versions")
    if answer.status_code == 404:
        return {}
    return {version["version"]: version["changelog"] for version in answer.json()["data"]}


def text(hub: Server, project: Project, name: str) -> bytes:
    return hub.get(f"/api/v1/repos/{project.owner}/{name}/raw").content


# What the documents say


def test_both_jobs_run_the_same_shell():
    assert STEP["run"] == GITLAB_SHELL


def test_the_workflow_runs_for_pushed_prompts_and_by_hand():
    triggers = GITHUB[True]  # YAML 1.1 takes the key "on" for a boolean
    assert triggers == {
        "push": {"branches": ["main"], "paths": ["prompts/*.md"]}, "workflow_dispatch": None,
    }  # fmt: skip
    assert GITHUB["permissions"] == {"contents": "read"}
    assert GITHUB["concurrency"] == {"group": "publish-prompts", "queue": "max"}
    job = GITHUB["jobs"]["publish"]
    assert "default_branch" in job["if"] and job["environment"] == "hub"
    assert CHECKOUT["uses"].startswith("actions/checkout@")
    assert CHECKOUT["with"] == {"fetch-depth": 0}


def test_the_job_runs_for_pushed_prompts_and_by_hand():
    on_default_branch = "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $CI_PIPELINE_SOURCE == "
    assert JOB["rules"] == [
        {"if": f'{on_default_branch}"push"', "changes": ["prompts/*.md"]},
        {"if": f'{on_default_branch}"web"'},
    ]
    assert JOB["resource_group"] and JOB["variables"]["GIT_DEPTH"] == "0"
    assert GITLAB["workflow"] == {"auto_cancel": {"on_new_commit": "none"}}
    (install,) = JOB["before_script"]
    assert {"curl", "git", "jq"} <= set(install.split())


def test_the_shell_asks_for_nothing_that_an_old_curl_has_not():
    options = set(re.findall(r"--[a-z-]+", STEP["run"]))
    assert not options & {"--fail-with-body", "--retry-all-errors", "--json", "--variable"}


# Which files


def test_a_first_push(hub: Server, project: Project, platform: str):
    after = project.push_files("Begin", {
        "prompts/hello.md": "---\ntitle: Greeting\n---\nHello {{name}}\n",
        "prompts/deep/other.md": "Other", "prompts/notes.txt": "Notes", "README.md": "Read",
        "prompts/bye-2.md": "Bye",
    })  # fmt: skip
    done = project.run(platform, NOTHING, after)
    assert done == Done(0, f"{project.owner}/bye-2 1.0.0\n{project.owner}/hello 1.0.0\n")
    assert versions(hub, project, "hello") == {"1.0.0": "Begin"}
    assert text(hub, project, "bye-2") == b"Bye"
    repos = hub.get(f"/api/v1/repos/{project.owner}/hello").json()["data"]
    assert repos["title"] == "Greeting"
    assert not versions(hub, project, "other") and not versions(hub, project, "readme")


def test_a_later_push_publishes_what_it_changes(hub: Server, project: Project, platform: str):
    first = project.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    project.run(platform, NOTHING, first)
    second = project.push_files("Say more\n\nBecause.", {"prompts/a.md": "A more"})
    done = project.run(platform, first, second)
    assert done == Done(0, f"{project.owner}/a 1.0.1\n")
    assert versions(hub, project, "a") == {"1.0.1": "Say more", "1.0.0": "Begin"}


def test_a_push_of_commits_and_merges(hub: Server, project: Project, platform: str):
    files = {f"prompts/{name}.md": name for name in "abcd"}
    first = project.push_files("Begin", files)
    project.run(platform, NOTHING, first)
    project.commit("A once", {"prompts/a.md": "A1"})
    project.commit("A again\n\nIt is better.\n\nBump: minor", {"prompts/a.md": "A2"})
    git(project.work, "checkout", "--quiet", "-b", "topic", first)
    project.commit("B aside\n\nbump: major\nReviewed-by: Bob", {"prompts/b.md": "B1"})
    git(project.work, "checkout", "--quiet", "main")
    git(project.work, "merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic")
    last = project.push_files('Say "C" \\ $(id) 😀', {"prompts/c.md": "C1"})
    done = project.run(platform, first, last)
    assert done.status == 0
    assert versions(hub, project, "a") == {"1.1.0": "A again", "1.0.0": "Begin"}
    assert versions(hub, project, "b") == {"2.0.0": "B aside", "1.0.0": "Begin"}
    assert versions(hub, project, "c") == {"1.0.1": 'Say "C" \\ $(id) 😀', "1.0.0": "Begin"}
    assert versions(hub, project, "d") == {"1.0.0": "Begin"}


def test_files_renamed_and_deleted(hub: Server, project: Project):
    first = project.push_files("Begin", {"prompts/old.md": "Text", "prompts/gone.md": "Gone"})
    project.run("gitlab", NOTHING, first)
    second = project.push_files(
        "Tidy", {"prompts/old.md": None, "prompts/gone.md": None, "prompts/new.md": "Text"}
    )
    assert project.run("gitlab", first, second) == Done(0, f"{project.owner}/new 1.0.0\n")
    assert text(hub, project, "old") == b"Text" and text(hub, project, "gone") == b"Gone"


def test_a_push_that_changes_no_prompt(project: Project):
    first = project.push_files("Begin", {"prompts/a.md": "A"})
    second = project.push_files("Remove", {"prompts/a.md": None})
    assert project.run("gitlab", first, second) == Done(0, "")


@pytest.mark.parametrize("before", ["", NOTHING, "f" * 40], ids=["by hand", "new", "unknown"])
def test_nothing_to_compare_with(hub: Server, project: Project, before: str):
    first = project.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    project.run("gitlab", NOTHING, first)
    second = project.push_files("Change", {"prompts/b.md": "B1"})
    done = project.run("gitlab", before, second)
    assert done == Done(0, f"{project.owner}/a 1.0.0 as it was\n{project.owner}/b 1.0.1\n")
    assert versions(hub, project, "a") == {"1.0.0": "Begin"}
    assert versions(hub, project, "b") == {"1.0.1": "Change", "1.0.0": "Begin"}


def test_a_shallow_clone_has_nothing_to_compare_with(hub: Server, project: Project):
    first = project.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    project.run("github", NOTHING, first)
    second = project.push_files("Change", {"prompts/b.md": "B1"})
    assert project.run("github", first, second, depth=1).status == 0
    assert list(versions(hub, project, "a")) == ["1.0.0"]
    assert versions(hub, project, "b") == {"1.0.1": "Change", "1.0.0": "Begin"}


def test_a_push_by_force_goes_back(hub: Server, project: Project):
    first = project.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    project.run("github", NOTHING, first)
    second = project.push_files("Change", {"prompts/a.md": "A1"})
    project.run("github", first, second)
    git(project.work, "reset", "--quiet", "--hard", first)
    project.push()
    assert project.run("github", second, first).status == 0
    assert list(versions(hub, project, "a")) == ["1.0.2", "1.0.1", "1.0.0"]
    assert text(hub, project, "a") == b"A"
    assert list(versions(hub, project, "b")) == ["1.0.0"]


# Which bytes

ODD = {
    "no-newline": b"x",
    "newlines": b"\n\nx\n\n\n",
    "crlf": b"a\r\nb\rc\n\r\n",
    "blanks": b"\t a \t\x0b\x0c b \t",
    "quotes": b"\"a\" 'b' \\n \\u0041 \\\\ `id` $(id) $HOME %s %0A ${{ github.sha }}\n",
    "controls": bytes(range(1, 32)) + b"\x7f\x1b[31m",
    "emoji": "😀👩‍👩‍👧 é é \u2028 \ufeff \U0010ffff \uffff".encode(),
    "byte-order-mark": b"\xef\xbb\xbfHello\n",
    "like-options": b"--retry 9\n@/etc/hosts\n",
    "like-json": b'{"content": "x"}',
    "long": (b"xy" + "é😀".encode() * CONTENT_BYTES_MAX)[: CONTENT_BYTES_MAX - 2] + b"zz",
}


@pytest.mark.parametrize("platform", ["github", "alpine"])
def test_every_byte_arrives(hub: Server, project: Project, platform: str):
    files = {f"prompts/{name}.md": content for name, content in ODD.items()}
    after = project.push_files("Odd", files | {".gitattributes": "prompts/*.md -text"})
    assert len(ODD["long"].decode().encode()) == CONTENT_BYTES_MAX
    done = project.run(platform, NOTHING, after)
    assert done.status == 0, done.output
    for name, content in ODD.items():
        assert text(hub, project, name) == content, name


def test_the_text_is_what_git_has_and_not_the_checkout(hub: Server, project: Project):
    attributes = {".gitattributes": "*.md text eol=crlf"}
    after = project.push_files("Begin", attributes | {"prompts/a.md": "One\nTwo\n"})
    assert project.run("github", NOTHING, after).status == 0
    assert text(hub, project, "a") == b"One\nTwo\n"


@pytest.mark.parametrize("platform", ["github", "alpine"])
def test_what_is_refused_is_told_and_the_others_are_published(
    hub: Server, project: Project, platform: str
):
    refused: dict[str, tuple[bytes, str]] = {
        "blank": (b" \n\t", "HTTP 422. Correct the request: content: is empty"),
        "empty": (b"", "HTTP 422. Correct the request: content: is empty"),
        "latin-1": (b"caf\xe9", "This is not UTF-8"),
        "nul": (b"a\0b", "HTTP 422. Correct the request: content: has a NUL"),
        "surrogate": (b"\xed\xa0\x80", "This is not UTF-8"),
        "too-long": (b"x" * (CONTENT_BYTES_MAX + 1), "HTTP 413. The content has 262,145 bytes"),
        "two--hyphens": (b"x", "HTTP 400. "),
        "My Prompt": (b"x", "Name the file as its repo"),
        "über": (b"x", "Name the file as its repo"),
        'a"b\nc': (b"x", "Name the file as its repo"),
        "": (b"x", "Name the file as its repo"),
    }
    files = {f"prompts/{name}.md": content for name, (content, _) in refused.items()}
    after = project.push_files("Odd", files | {"prompts/a.md": "A", "prompts/z.md": "Z"})
    done = project.run(platform, NOTHING, after)
    assert done.status == 1
    for name, (_, reason) in refused.items():
        # git writes a name with other characters as a string of C.
        shown = re.escape(f"prompts/{name}.md") if name.isascii() and '"' not in name else r'"\S+"'
        start = rf"::error file={shown}:: " if platform == "github" else rf"{shown}: "
        assert re.search(f"^{start}{re.escape(reason)}", done.output, re.MULTILINE), done.output
    assert len(done.output.splitlines()) == len(refused) + 2
    assert text(hub, project, "a") == b"A" and text(hub, project, "z") == b"Z"


def test_a_bump_that_is_none(hub: Server, project: Project):
    after = project.push_files("Begin\n\nBump: mnior", {"prompts/a.md": "A"})
    done = project.run("gitlab", NOTHING, after)
    assert done.status == 1 and "bump: must be one of major, minor, patch, auto" in done.output
    assert not versions(hub, project, "a")


def test_warnings_are_shown(project: Project):
    after = project.push_files("Begin", {"prompts/a.md": "---\nvariables: [who]\n---\nHi\n"})
    done = project.run("github", NOTHING, after)
    told = "  Declared variables that are not in the text: who."
    assert done == Done(0, f"{project.owner}/a 1.0.0\n{told}\n")


# Again


def test_a_job_that_runs_again_publishes_nothing(hub: Server, project: Project, platform: str):
    first = project.push_files("Begin", {"prompts/a.md": "A"})
    second = project.push_files("Change", {"prompts/a.md": "A1"})
    done = project.run(platform, first, second, run="7")
    assert done == Done(0, f"{project.owner}/a 1.0.0\n")
    assert project.run(platform, first, second, run="7") == done
    with Database(hub.settings.state) as database:  # as after a day
        database.execute("DELETE FROM answer")
    again = project.run(platform, first, second, run="7")
    assert again == Done(0, f"{project.owner}/a 1.0.0 as it was\n")
    assert list(versions(hub, project, "a")) == ["1.0.0"]


def test_an_old_job_leaves_newer_texts_alone(hub: Server, project: Project):
    first = project.push_files(
        "Begin", {"prompts/a.md": "A", "prompts/b.md": "B", "prompts/c.md": "C"}
    )
    second = project.push_files("Change", {"prompts/a.md": "A1", "prompts/b.md": None})
    project.run("github", first, second)
    done = project.run("github", NOTHING, first)
    assert done.status == 0
    left = "a later push has changed it, whose job publishes it"
    assert done.output.splitlines() == [
        f"prompts/a.md: {left}", f"prompts/b.md: {left}", f"{project.owner}/c 1.0.0",
    ]  # fmt: skip
    assert versions(hub, project, "a") == {"1.0.0": "Change"}
    assert not versions(hub, project, "b")


# The token


def test_the_token_is_in_no_log_and_no_command_line(
    project: Project, platform: str, tmp_path: Path
):
    for tool in ("curl", "git", "jq", "cmp"):
        project.put_tool(tool, f'printf "%s\\n" "$0" "$@" >>{tmp_path}/seen\nexec REAL "$@"\n')
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    done = project.run(platform, NOTHING, after)
    seen = (tmp_path / "seen").read_text()
    assert done.status == 0 and "--data-binary" in seen
    assert project.token not in done.output + seen


def test_a_wrong_token_ends_the_job(hub: Server, project: Project, platform: str, tmp_path: Path):
    project.put_tool("curl", f'echo >>{tmp_path}/requests\nexec REAL "$@"\n')
    project.token = make_token()
    after = project.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    done = project.run(platform, NOTHING, after)
    start = "::error file=prompts/a.md:: " if platform == "github" else "prompts/a.md: "
    assert done.status == 1
    assert done.output.startswith(f"{start}HTTP 401. This hub does not know the token")
    assert project.token not in done.output
    assert (tmp_path / "requests").read_text().count("\n") == 1
    assert not versions(hub, project, "a")


@pytest.mark.parametrize("setting", ["url", "owner", "token"])
def test_a_setting_that_is_missing(project: Project, setting: str):
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    setattr(project, setting, "")
    done = project.run("gitlab", NOTHING, after)
    assert done.status != 0 and f"HUB_{setting.upper()}" in done.output


# Trouble


class Answer(NamedTuple):
    """What a server that is not well says; a status of 0: nothing, it cuts the connection."""

    status: int
    body: Any = None
    retry_after: int | None = None


class Unwell:
    """A server that gives these answers, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        left = list(answers)
        asked = self.asked

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked.append((self.path, self.headers["Idempotency-Key"], body))
                answer = left.pop(0)
                if not answer.status:
                    self.close_connection = True
                    return
                raw = answer.body
                raw = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
                self.send_response(answer.status)
                if answer.retry_after is not None:
                    self.send_header("Retry-After", str(answer.retry_after))
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self) -> "Unwell":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def error(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "Wait.\nThen go on."}}


PUBLISHED = {"data": {
    "owner": "ada", "name": "a", "version": "1.0.0", "unchanged": False, "warnings": [],
}}  # fmt: skip


def test_a_hub_that_is_away_for_a_while(project: Project, platform: str):
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    project.put_tool("sleep", 'exec REAL "0$1e-3"\n')
    answers = [
        Answer(0),
        Answer(503, error("unavailable"), retry_after=1),
        Answer(429, error("rate_limited"), retry_after=1),
        Answer(201, PUBLISHED),
    ]
    with Unwell(*answers) as server:
        project.url = f"{server.url}/"
        done = project.run(platform, NOTHING, after, run="8")
    assert done.status == 0 and done.output.endswith("ada/a 1.0.0\n")
    assert len(server.asked) == len(answers) and len(set(server.asked)) == 1
    path, key, body = server.asked[0]
    assert path == f"/api/v1/repos/{project.owner}/a/versions"
    assert key == f"8-{after}-a"
    assert json.loads(body) == {"content": "A", "changelog": "Begin"}


def test_a_hub_that_is_not_up_yet(project: Project, tmp_path: Path):
    port = free_port()
    project.put_tool("curl", f'echo >>{tmp_path}/begun\nexec REAL "$@"\n')
    project.put_tool("sleep", "exit 1")  # the job's own pause is for other trouble
    project.url = f"http://127.0.0.1:{port}"
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    settings = settings_in(tmp_path)
    project.token = add_publisher(settings, project.owner)
    job = project.start("github", NOTHING, after)
    wait_until((tmp_path / "begun").exists, "a first try")
    with serving(settings, "--port", str(port)) as server:
        output, _ = job.communicate(timeout=DEADLINE_SECONDS)
        assert job.returncode == 0, output
        assert versions(server, project, "a") == {"1.0.0": "Begin"}


def test_a_hub_that_stays_away(project: Project):
    project.put_tool("sleep", 'exec REAL "0$1e-3"\n')
    project.put_tool("curl", 'exec REAL "$@" --retry 0\n')
    project.url = f"http://127.0.0.1:{free_port()}"
    after = project.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    done = project.run("gitlab", NOTHING, after)
    assert done.status == 1
    assert done.output.count("HTTP 000. That is no answer of a hub") == 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(422, error("validation_failed")), "HTTP 422. Wait. Then go on."),
        (Answer(403, error("not_owner")), "HTTP 403. Wait. Then go on."),
        (Answer(404, b"<html>"), "HTTP 404. That is no answer of a hub"),
        (Answer(301, b""), "HTTP 301. That is no answer of a hub"),
        (Answer(200, b"<html>"), "HTTP 200. That is no answer of a hub"),
        (Answer(201, b""), "HTTP 201. That is no answer of a hub"),
        (Answer(200, {}), "HTTP 200. That is no answer of a hub"),
    ],
)
def test_what_is_not_tried_again(project: Project, answer: Answer, told: str):
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    with Unwell(answer) as server:
        project.url = server.url
        done = project.run("github", NOTHING, after)
    assert done.status == 1 and f"::error file=prompts/a.md:: {told}" in done.output
    assert len(server.asked) == 1


# With no secret

FETCHED = "hub: OK\n"


def test_the_trusted_jobs_differ_in_who_they_are():
    whole, trusted = GITHUB, TRUSTED_GITHUB
    assert trusted["permissions"] == {"contents": "read", "id-token": "write"}
    for part in (True, "concurrency"):
        assert trusted[part] == whole[part]
    for part in ("if", "runs-on", "environment"):
        assert trusted["jobs"]["publish"][part] == whole["jobs"]["publish"][part]
    assert TRUSTED_CHECKOUT == CHECKOUT
    assert TRUSTED_GITLAB["workflow"] == GITLAB["workflow"]
    for part in ("rules", "resource_group", "interruptible", "image", "stage"):
        assert TRUSTED_JOB[part] == JOB[part]
    assert TRUSTED_JOB["variables"]["GIT_DEPTH"] == "0"
    assert TRUSTED_JOB["id_tokens"]["HUB_ID_TOKEN"] == {"aud": TRUSTED_JOB["variables"]["HUB_URL"]}
    for text in (str(TRUSTED_GITHUB), str(TRUSTED_GITLAB)):
        assert "secrets." not in text and "hub_" not in text


def test_the_trusted_jobs_run_the_same_shell_but_for_the_token():
    exchange = re.compile(r"\n# The job has one ID token.*?\n\n", re.DOTALL)
    assert len(exchange.findall(TRUSTED_GITLAB_SHELL)) == 1
    gitlab = exchange.sub("\n", TRUSTED_GITLAB_SHELL)
    assert gitlab == TRUSTED_STEP["run"].replace(
        'sh "$work/hub" push --trusted', 'HUB_TOKEN=$token sh "$work/hub" push'
    )


def test_the_jobs_fetch_the_client_as_the_hub_says(trusting: Trusting):
    page = trusting.server.get("/connect").text
    for path in ("/cli/releases/v1.0.0/hub", "/cli/releases/v1.0.0/hub.sha256"):
        assert f"{trusting.server.url}{path}" in page
    assert "release=${HUB_URL%/}/cli/releases/v1.0.0\n" in TRUSTED_STEP["run"]
    assert "sha256sum -c hub.sha256" in page and "sha256sum -c hub.sha256" in TRUSTED_STEP["run"]


@pytest.mark.parametrize("platform", SHELLS)
def test_trusted_pushes(trusting: Trusting, trusted: TrustedProject, platform: str):
    hub, owner = trusting.server, trusted.owner
    first = trusted.push_files("Begin", {
        "prompts/hello.md": "---\nvariables: [who]\n---\nHello\n", "prompts/bye-2.md": "Bye",
        "prompts/deep/other.md": "Other", "README.md": "Read",
    })  # fmt: skip
    done = trusted.run(platform, NOTHING, first)
    warned = "hub: warning: Declared variables that are not in the text: who.\n"
    assert done == Done(0, f"{FETCHED}{owner}/bye-2 1.0.0\n{warned}{owner}/hello 1.0.0\n")
    trusted.commit("Aside", {"prompts/hello.md": "Hello.\n"})
    subject = 'Say "more" \\ $(id) 😀'
    second = trusted.push_files(f"{subject}\n\nBump: minor", {"prompts/hello.md": "Hello!\n"})
    assert trusted.run(platform, first, second) == Done(0, f"{FETCHED}{owner}/hello 1.1.0\n")
    assert versions(hub, trusted, "hello") == {"1.1.0": subject, "1.0.0": "Begin"}
    # By hand, and again.
    done = trusted.run(platform, "", second)
    unchanged = f"{owner}/bye-2 1.0.0 unchanged\n{owner}/hello 1.1.0 unchanged\n"
    assert done == Done(0, FETCHED + unchanged)
    # An old one.
    done = trusted.run(platform, NOTHING, first)
    assert done.status == 0 and "prompts/hello.md: a later push has changed it" in done.output
    assert text(hub, trusted, "hello") == b"Hello!\n"


def test_every_byte_arrives_from_a_trusted_job(trusting: Trusting, trusted: TrustedProject):
    files = {f"prompts/{name}.md": content for name, content in ODD.items()}
    after = trusted.push_files("Odd", files | {".gitattributes": "*.md text eol=crlf"})
    done = trusted.run("alpine", NOTHING, after)
    assert done.status == 0, done.output
    for name in ODD:
        kept = git(trusted.work, "rev-parse", f"HEAD:prompts/{name}.md")
        published = text(trusting.server, trusted, name)
        header = f"blob {len(published)}\0".encode()
        assert hashlib.sha1(header + published).hexdigest() == kept, name


@pytest.mark.parametrize("platform", ["github", "alpine"])
def test_what_is_refused_of_a_trusted_job(
    trusting: Trusting, trusted: TrustedProject, platform: str
):
    refused = {
        "empty": (b"", "standard input is empty"),
        "latin-1": (b"caf\xe9", "standard input is not UTF-8 at byte 4"),
        "nul": (b"a\0b", "standard input has a NUL character at byte 1"),
        "too-long": (b"x" * (CONTENT_BYTES_MAX + 1), "standard input has 262145 bytes"),
        "two--hyphens": (b"x", "'two--hyphens' is not a name"),
    }
    files = {f"prompts/{name}.md": content for name, (content, _) in refused.items()}
    misnamed = {"prompts/My Prompt.md": b"x", 'prompts/a"b\nc.md': b"x", "prompts/.md": b"x"}
    after = trusted.push_files("Odd", files | misnamed | {"prompts/a.md": "A", "prompts/z.md": "Z"})
    done = trusted.run(platform, NOTHING, after)
    assert done.status == 1
    for name, (_, reason) in refused.items():
        told = rf"^hub: {re.escape(reason)}.*\n(hub: .*\n)?prompts/{name}\.md: not published$"
        assert re.search(told, done.output, re.MULTILINE), done.output
    assert done.output.count(": Name the file as its repo") == len(misnamed)
    assert text(trusting.server, trusted, "a") == b"A"
    assert text(trusting.server, trusted, "z") == b"Z"


def test_a_trusted_job_whose_bump_is_none(
    trusting: Trusting, trusted: TrustedProject, platform: str
):
    after = trusted.push_files("Begin\n\nBump: mnior", {"prompts/a.md": "A"})
    done = trusted.run(platform, NOTHING, after)
    assert done.status == 1 and "major, minor, patch or auto, not 'mnior'" in done.output
    assert not versions(trusting.server, trusted, "a")


@pytest.mark.parametrize(
    ("platform", "claims", "told"),
    [
        ("github", {"repository": "eve/fork", "repository_id": "1000001"}, "project eve/fork"),
        ("github", {"repository": "acme/renamed"}, "project acme/renamed"),
        ("github", {"ref": "refs/heads/topic"}, "on refs/heads/topic"),
        ("github", {"environment": "other"}, "environment other"),
        ("github", {"event_name": "pull_request_target"}, "pull_request_target"),
        (
            "github",
            {"job_workflow_ref": "acme/shared/.github/workflows/publish-prompts.yml@main"},
            "acme/shared",
        ),
        ("gitlab", {"project_path": "eve/fork", "project_id": "1000001"}, "project eve/fork"),
        ("gitlab", {"ref_path": "refs/tags/main"}, "on refs/tags/main"),
        ("gitlab", {"pipeline_source": "merge_request_event"}, "merge_request_event"),
    ],
)
def test_jobs_that_nobody_trusts(
    trusting: Trusting, trusted: TrustedProject, platform: str, claims: dict[str, str], told: str
):
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    trusted.claims = claims
    done = trusted.run(platform, NOTHING, after)
    assert done.status != 0 and told in done.output
    assert not versions(trusting.server, trusted, "a")


def test_a_project_under_the_name_of_another(trusted: TrustedProject, platform: str):
    """The hub remembers the number of the first."""
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    assert trusted.run(platform, NOTHING, after).status == 0
    trusted.claims = {"repository_id" if platform == "github" else "project_id": "1000002"}
    done = trusted.run(platform, NOTHING, after)
    assert done.status != 0 and "1000002" in done.output


def test_an_id_token_of_gitlab_counts_once(trusting: Trusting, trusted: TrustedProject):
    trusted.id_token = trusted.ask_gitlab()
    after = trusted.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    assert trusted.run("gitlab", NOTHING, after).status == 0
    assert list(versions(trusting.server, trusted, "b")) == ["1.0.0"]
    done = trusted.run("gitlab", NOTHING, after)
    assert done.status != 0 and "used already" in done.output


def test_a_trusted_job_of_gitlab_that_takes_too_long(trusting: Trusting, trusted: TrustedProject):
    """Its token expires between two files; another run publishes what is left."""
    state = trusting.server.settings.state
    expire = f"UPDATE token SET expires_at = 1 WHERE owner = '{trusted.owner}'"
    trusted.put_tool(
        "git",
        f'case "$*" in *HEAD:prompts/b.md*) {sys.executable} -c "import sqlite3\n'
        f"with sqlite3.connect('{state}/accounts.sqlite3', timeout=10) as database: "
        f'database.execute(\\"{expire}\\")" ;; esac\nexec REAL "$@"\n',
    )
    after = trusted.push_files("Begin", {"prompts/a.md": "A", "prompts/b.md": "B"})
    done = trusted.run("gitlab", NOTHING, after)
    assert done.status == 1 and "expired" in done.output
    assert done.output.endswith("prompts/b.md: not published\n")
    (trusted.tools / "git").unlink()
    done = trusted.run("gitlab", NOTHING, after)
    names = f"{trusted.owner}/a 1.0.0 unchanged\n{trusted.owner}/b 1.0.0\n"
    assert done == Done(0, FETCHED + names)


@pytest.mark.parametrize("platform", SHELLS)
def test_a_trusted_job_tells_nobody_its_secrets(
    trusting: Trusting, trusted: TrustedProject, platform: str, tmp_path: Path
):
    for tool in ("curl", "git", "sed", "sha256sum"):
        trusted.put_tool(tool, f'printf "%s\\n" "$0" "$@" >>{tmp_path}/seen\nexec REAL "$@"\n')
    trusted.id_token = trusted.ask_gitlab()
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    done = trusted.run(platform, NOTHING, after)
    seen = (tmp_path / "seen").read_text()
    assert done.status == 0, done.output
    assert "trusted-publishing/token" in seen
    told = done.output + seen + trusting.server.process.text
    assert RUNTIME_SECRET not in told and trusted.id_token not in told
    # What any token of a job looks like, and any of the hub.
    assert not re.search(r"eyJ[\w-]+\.|hub_[0-9A-Za-z]{38}", told)


def test_a_client_that_is_not_the_hub_s(trusted: TrustedProject, platform: str):
    trusted.put_tool("curl", 'REAL "$@" || exit\n[ ! -f hub ] || echo : >>hub\n')
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    done = trusted.run(platform, NOTHING, after)
    assert done.status != 0 and "hub: FAILED" in done.output
    assert "1.0.0" not in done.output


def test_a_trusted_job_whose_hub_is_another_thing(trusted: TrustedProject, platform: str):
    trusted.url = f"{trusted.url}/connect"
    after = trusted.push_files("Begin", {"prompts/a.md": "A"})
    done = trusted.run(platform, NOTHING, after)
    assert done.status != 0 and "404" in done.output
