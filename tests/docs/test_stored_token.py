"""The jobs with a stored token, as the document changes them."""

from pathlib import Path

import pytest

from tests.docs.ci import NOTHING, SHELLS, Done, Job, TrustedProject, Trusting, versions
from tests.support.servers import add_publisher


class StoredProject(TrustedProject):
    """One whose jobs have a stored token."""

    token = ""

    def job(self, platform: str, kind: str) -> Job:
        job = super().job(platform, kind)
        return job._replace(shell=job.shell.replace(" --trusted", ""))

    def rights(self, platform: str, kind: str, job: Job) -> dict[str, str]:
        return {"HUB_TOKEN": self.token}


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
