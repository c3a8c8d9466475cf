"""The way of ten prompts of a team from a pull request to production, by the document's jobs."""

import sqlite3
from pathlib import Path

import pytest

from publisher.accounts.database import Database
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.teams import Teams
from publisher.accounts.tokens import Accounts
from tests.docs.ci import NOTHING, SHELLS, Done, TrustedProject, Trusting, git, versions
from tests.support.servers import Server

PROMPTS = {f"prompts/prompt-{number}.md": f"Say {{{{word}}}} {number}.\n" for number in range(9)}
TRIAGE = {"prompts/triage.md": "Sort {{mail}}.\n"}
THOUGHT = "A thought that is nobody else's."


def labels(hub: Server, project: TrustedProject, name: str) -> dict[str, str]:
    return hub.get(f"/api/v1/repos/{project.owner}/{name}").json()["data"]["labels"]


def traces(hub: Server) -> tuple[dict[Path, bytes], list[str]]:
    """The stored data of the hub: the content to the byte, and the accounts."""
    content, state = Path(hub.settings.content), Path(hub.settings.state)
    files = {path: path.read_bytes() for path in content.rglob("*") if path.is_file()}
    with sqlite3.connect(state / "accounts.sqlite3") as database:
        return files, [*database.iterdump()]


@pytest.mark.parametrize("platform", SHELLS)
def test_from_a_pull_request_to_production(
    trusting: Trusting, trusted: TrustedProject, platform: str
):
    hub, owner = trusting.server, trusted.owner
    with Database(hub.settings.state) as database:
        Accounts(database).add_owner(f"grace-{trusted.number}")
        Teams(database).create(owner, f"grace-{trusted.number}")
        ProtectedLabels(database).set(owner, "", "production", True)
    first = trusted.push_files("Begin", PROMPTS | TRIAGE)
    assert trusted.run(platform, NOTHING, first).status == 0
    assert trusted.release(platform, "triage", "1.0.0", "none").status == 0

    # A pull request: first with a mistake, then with a new variable.
    git(trusted.work, "checkout", "--quiet", "-b", "topic")
    broken = trusted.push_files("Break", {"prompts/triage.md": "---\ntitle: [\n---\nText\n"})
    done = trusted.check(platform, broken)
    assert done.status == 5
    assert "prompts/triage.md" in done.output and "front matter" in done.output
    better = trusted.push_files(
        "Ask for the tone",
        {"prompts/triage.md": f"Sort {{{{mail}}}} in a {{{{tone}}}} tone.\n{THOUGHT}\n",
         "prompts/sub/x.md": "X"},
    )  # fmt: skip
    before = traces(hub)
    done = trusted.check(platform, better)
    assert done.status == 0, done.output
    shown = done.summary if platform == "github" else done.output
    assert "1.0.0 → 2.0.0" in shown.replace("\\", "")
    assert "tone is a new required variable" in shown
    assert "prompts/sub/x.md" in done.output
    assert "prompt-1" not in shown
    # Nothing has happened.
    assert traces(hub) == before
    assert THOUGHT not in hub.process.text
    assert list(versions(hub, trusted, "triage")) == ["1.0.0"]

    # The merge publishes to staging.
    git(trusted.work, "checkout", "--quiet", "main")
    git(trusted.work, "merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic")
    trusted.push()
    merged = git(trusted.work, "rev-parse", "HEAD")
    done = trusted.run(platform, first, merged)
    assert done.status == 0, done.output
    assert f"{owner}/triage@staging 2.0.0\n" in done.output
    assert "prompts/sub/x.md: warning: not the file of a prompt" in done.output
    assert labels(hub, trusted, "triage") == {"production": "1.0.0", "staging": "2.0.0"}
    assert versions(hub, trusted, "triage")["2.0.0"] == "Ask for the tone"

    # Production: by its own job, to what is expected, and back.
    done = trusted.release(platform, "triage", "2.0.0", "none")
    assert done.status != 0 and "Expected production to name no version" in done.output
    done = trusted.release(platform, "triage", "2.0.0", "1.0.0")
    needs = f"hub: {owner}/triage 1.0.0 → 2.0.0 (major: tone is a new required variable)\n"
    assert done == Done(0, f"hub: OK\n{owner}/triage@production 2.0.0\n{needs}")
    assert trusted.release(platform, "triage", "1.0.0", "2.0.0").status == 0
    assert labels(hub, trusted, "triage") == {"production": "1.0.0", "staging": "2.0.0"}
    history = hub.get(f"/api/v1/repos/{owner}/triage/labels/production/history").json()["data"]
    assert [(move["version"], move["note"]) for move in history] == [
        (version, "By grace") for version in ("1.0.0", "2.0.0", "1.0.0")
    ]


def test_a_release_needs_a_job_of_its_own(
    trusting: Trusting, trusted: TrustedProject, platform: str
):
    first = trusted.push_files("Begin", TRIAGE)
    assert trusted.run(platform, NOTHING, first).status == 0
    trusted.claims = {"environment": "hub"}
    if platform == "github":
        path = f"{trusted.path}/.github/workflows/publish-prompts.yml@refs/heads/main"
        trusted.claims |= {"workflow_ref": path, "job_workflow_ref": path}
    done = trusted.release(platform, "triage", "1.0.0", "none")
    assert done.status == 4 and "moves only these labels: staging" in done.output
    assert labels(trusting.server, trusted, "triage") == {"staging": "1.0.0"}
