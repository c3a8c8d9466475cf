"""The jobs with a stored token, as the document's commands change them."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.ci import (
    DOCUMENT,
    NOTHING,
    SHELLS,
    Done,
    Job,
    TrustedProject,
    Trusting,
    github_job,
    gitlab_job,
    versions,
)
from tests.support.servers import add_publisher


class StoredProject(TrustedProject):
    """One that the document's commands have changed to a stored token."""

    token = ""

    def job(self, platform: str, kind: str) -> Job:
        """The jobs after the change, which is made in the files of the repository."""
        blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENT, flags=re.DOTALL)
        files = {".github/workflows/publish-prompts.yml": blocks[0], ".gitlab-ci.yml": blocks[2]}
        folder = self.folder / "changed"
        for name, block in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block)
        (commands,) = re.findall(r"```sh\n(# GitHub\n.*?)```", DOCUMENT, flags=re.DOTALL)
        subprocess.run(["sh", "-e", "-c", commands], cwd=folder, check=True)
        github, gitlab = (yaml.safe_load((folder / name).read_text()) for name in files)
        if platform == "github":
            assert github["jobs"]["publish"]["permissions"] == {"contents": "read"}
            job = github_job(github, kind)
        else:
            assert "id_tokens" not in gitlab["publish-prompts"]
            job = gitlab_job(gitlab, "publish-prompts")
        assert "--trusted" not in job.shell
        secret = {"${{ secrets.HUB_TOKEN }}": self.token}
        mine = super().job(platform, kind).variables
        return job._replace(
            variables={
                name: mine.get(name) or secret[value] for name, value in job.variables.items()
            }
        )

    def rights(self, platform: str, kind: str, job: Job) -> dict[str, str]:
        return {} if platform == "github" else {"HUB_TOKEN": self.token}


@pytest.mark.parametrize("platform", SHELLS)
def test_a_stored_token(trusting: Trusting, tmp_path: Path, platform: str):
    owner = f"stored-{platform}"
    project = StoredProject(tmp_path, trusting, owner, 0)
    project.token = add_publisher(trusting.server.settings, owner)
    after = project.push_files("Begin", {"prompts/a.md": "A"})
    done = project.run(platform, NOTHING, after)
    repo = f"{owner}/a"
    assert done == Done(0, f"hub: OK\n{repo} 1.0.0\n{repo}@staging 1.0.0\n")
    assert versions(trusting.server, project, "a") == {"1.0.0": "Begin"}
