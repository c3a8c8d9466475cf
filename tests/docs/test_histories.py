"""What `hub check --since` says of a merge is what `hub push --since` does after it, for random
histories of a repository and of its hub.
"""

import random
import subprocess
from pathlib import Path

import pytest

from tests.docs.ci import Trusting, git, git_environment
from tests.support.depth import some
from tests.support.servers import DEADLINE_SECONDS, add_publisher

SEEDS = range(24)
NAMES = ("a", "b", "c")
TRAILERS = ("", "", "", "\n\nBump: minor", "\n\nBump: major")


class World:
    """A repository, its hub, and a user of both."""

    def __init__(self, folder: Path, trusting: Trusting, seed: int) -> None:
        self.random = random.Random(seed)
        self.owner = f"history-{seed}"
        self.token = add_publisher(trusting.server.settings, self.owner)
        self.url, self.work = trusting.server.url, folder / "work"
        self.client = folder / "hub"
        self.client.write_text(trusting.server.get("/cli/hub").text)
        (self.work / "prompts").mkdir(parents=True)
        git(self.work, "init", "--quiet", "--initial-branch=main")
        self.commit("Begin")

    def hub(self, *words: str, stdin: str | None = None) -> tuple[int, str, str]:
        shell = self.random.choice((["bash"], ["dash"], ["busybox", "sh"]))
        done = subprocess.run(
            [*shell, str(self.client), *words], cwd=self.work, input=stdin or "", text=True,
            capture_output=True, timeout=DEADLINE_SECONDS,
            env=git_environment() | {
                "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.work.parent),
                "HUB_URL": self.url, "HUB_OWNER": self.owner, "HUB_TOKEN": self.token,
            },
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def commit(self, subject: str) -> None:
        git(self.work, "add", "--all")
        trailer = self.random.choice(TRAILERS)
        git(self.work, "commit", "--quiet", "--allow-empty", "--message", subject + trailer)

    def text(self) -> str:
        words = self.random.sample(["{{x}}", "{{y}}", "one", "two", "three"], 3)
        return f"{' '.join(words)} {self.random.random()}\n"

    def change(self) -> None:
        """Change the folder as authors do."""
        prompts, name = self.work / "prompts", self.random.choice(NAMES)
        file, folder = prompts / f"{name}.md", prompts / name
        match self.random.choice(["edit", "edit", "delete", "rename", "folder", "aside"]):
            case "edit" if folder.exists():
                (folder / "SKILL.md").write_text(self.text())
            case "edit":
                prompts.mkdir(exist_ok=True)
                file.write_text(self.text())
            case "delete" if file.exists():
                file.unlink()
            case "rename" if file.exists():
                file.rename(prompts / f"{self.random.choice(NAMES)}-2.md")
            case "folder":
                folder.mkdir(exist_ok=True, parents=True)
                (folder / "SKILL.md").write_text(self.text())
                (folder / "data.txt").write_text(str(self.random.random()))
                if self.random.random() < 0.8:  # otherwise two sources
                    file.unlink(missing_ok=True)
            case _:
                prompts.mkdir(exist_ok=True)  # git removes an empty folder
                (prompts / "notes.txt").write_text(self.text())

    def branch(self) -> None:
        """Leave a branch, topic, with some commits, and main with some of its own."""
        git(self.work, "checkout", "--quiet", "-B", "topic")
        for number in range(self.random.randint(1, 3)):
            self.change()
            self.commit(f"Change {number}")
        git(self.work, "checkout", "--quiet", "main")

    def merge(self) -> str:
        kind = self.random.choice(["--ff", "--no-ff", "--squash"])
        words = ["-m", "Merge topic"] if kind == "--no-ff" else []
        git(self.work, "merge", "--quiet", kind, *words, "topic")
        if kind == "--squash":
            self.commit("Squash topic")
        return kind

    def edit_on_hub(self) -> None:
        if self.random.random() < 0.3:
            self.hub("push", f"{self.owner}/{self.random.choice(NAMES)}", "-", stdin=self.text())


def outcome(said: str, owner: str) -> dict[str, str]:
    """The version that each prompt gets, by the lines of check or push."""
    found = {}
    for line in said.splitlines():
        name, _, rest = line.partition(" ")
        if name.startswith(f"{owner}/") and ":" not in name and "@" not in name:
            found[name] = rest.partition(" (")[0].rpartition(" ")[2]
    return found


def gone(said: str) -> list[str]:
    return [line for line in said.splitlines() if " stays on the hub " in line]


def errors(said: str) -> list[str]:
    return [line for line in said.splitlines() if ": error: " in line]


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("seed", list(some(SEEDS)))
def test_a_check_says_what_the_push_does(trusting: Trusting, tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, trusting, seed)
    for _ in range(4):
        world.branch()
        world.edit_on_hub()
        before = git(world.work, "rev-parse", "main")
        # As a job for a pull request sees it: merged, whatever the merge will be.
        git(world.work, "checkout", "--quiet", "--detach", "main")
        git(world.work, "merge", "--quiet", "--no-ff", "-m", "For the check", "topic")
        status, said, why = world.hub("check", "--since", "HEAD^1")
        git(world.work, "checkout", "--quiet", "main")
        kind = world.merge()
        pushed_status, pushed, pushed_why = world.hub(
            "push", "--since", before, "--label", "staging"
        )
        checked, done = outcome(said, world.owner), outcome(pushed, world.owner)
        # The message of a squashed commit has its own trailers.
        assert checked.keys() == done.keys() if kind == "--squash" else checked == done
        assert (gone(said), errors(why)) == (gone(pushed), errors(pushed_why))
        assert status == pushed_status and status in (0, 5), why + pushed_why
        # A second run publishes nothing and moves no label.
        _, again, _ = world.hub("push", "--since", before, "--label", "staging")
        assert "@staging" not in again
