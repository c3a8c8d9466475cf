"""At every moment of a deployment, everything that a reader can reach exists, even if it is
killed.
"""

import itertools
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from operate.deploy import run
from operate.deploy.folder import Folder
from operate.deploy.order import File, Step
from operate.deploy.run import Deployment
from tests.operate.deploy.conftest import Sites, deploy_to
from tests.operate.deploy.links import HOME, broken, broken_records, by_rules, links
from tests.support.catalogues import read_tree, write_version

INDEX = "sitemap.xml"


class Died(BaseException):
    """Nothing of ours catches it, as nothing catches a kill."""


class Dying(Folder):
    """A folder whose deployment is killed after some puts and deletes, and before the next."""

    def __init__(self, name: str, steps: int) -> None:
        super().__init__(name)
        self.steps_left = steps

    def put(self, step: Step, file: File, data: bytes) -> str:
        self._step()
        return super().put(step, file, data)

    def delete(self, key: str) -> None:
        self._step()
        super().delete(key)

    def _step(self) -> None:
        if not self.steps_left:
            raise Died
        self.steps_left -= 1


def deploy_step_by_step(
    root: Path,
    settings: Settings,
    look: Callable[[dict[str, bytes]], None],
    monkeypatch: pytest.MonkeyPatch,
    steps: int = 1,
) -> int:
    """Deploy by deployments that are killed after some steps each; check the destination after
    each. Returns the number of killed ones.
    """
    monkeypatch.setattr(run, "JOBS", 1)
    for deaths in itertools.count():
        try:
            deploy_to(Dying(str(root), steps), settings)
        except Died:
            look(read_tree(root))
        else:
            return deaths


@pytest.mark.parametrize("steps", [1, 4])
def test_killed_at_any_point_no_link_breaks_and_the_next_continues(
    sites: Sites, tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "www"
    deploy_to(Folder(str(root)), sites.old)
    old, new = read_tree(sites.old.out), read_tree(sites.new.out)
    assert read_tree(root) == old

    def look(tree: dict[str, bytes]) -> None:
        assert broken(tree, by_rules) == []
        assert broken_records(tree, by_rules) == []
        if old.keys() - tree.keys():
            # Readers who began on the old site can continue until the new one is complete.
            assert tree.items() >= new.items()
        if tree["api/v1/hub.json"] == new["api/v1/hub.json"]:
            assert tree.items() >= new.items()

    deaths = deploy_step_by_step(root, sites.new, look, monkeypatch, steps)

    assert read_tree(root) == new
    changed = sum(old.get(file) != data for file, data in new.items())
    # The deployment of the last step is killed only if another step follows.
    assert deaths == (changed + len(old.keys() - new.keys()) - 1) // steps


def test_the_first_deployment_has_only_records_whose_links_work(
    sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(tree: dict[str, bytes]) -> None:
        if HOME in tree:
            # The object with the serial of everything comes last of all, and pages link to it.
            missed = {line.partition(": ")[2] for line in broken(tree, by_rules, [HOME])}
            assert missed <= {"/api/v1/hub.json"}
        if INDEX in tree:
            assert tree.keys() >= {by_rules(path) for path in links(INDEX, tree[INDEX])}
        assert broken_records(tree, by_rules) == []

    deaths = deploy_step_by_step(tmp_path / "www", sites.new, look, monkeypatch)

    new = read_tree(sites.new.out)
    assert read_tree(tmp_path / "www") == new
    assert deaths == len(new) - 1


@pytest.fixture
def steps(sites: Sites, tmp_path: Path) -> list[Step]:
    """The steps that lead from the old site to the new one."""
    folder = Folder(str(tmp_path / "www"))
    deploy_to(folder, sites.old)
    return Deployment(sites.new.out, str(tmp_path), folder, dry_run=True).run({})


def test_any_order_within_a_place_is_right(sites: Sites, steps: list[Step]) -> None:
    """Uploads of a place run at once: they are shuffled here."""
    old, new = read_tree(sites.old.out), read_tree(sites.new.out)
    for seed in range(4):
        tree = dict(old)
        random.Random(seed).shuffle(steps)
        for step in sorted(steps, key=lambda step: step.place):
            if step.file:
                tree[step.key] = new[step.key]
            else:
                del tree[step.key]
            assert broken(tree, by_rules) == []
            assert broken_records(tree, by_rules) == []
        assert tree == new


def test_the_reverse_order_breaks_links(sites: Sites, steps: list[Step]) -> None:
    """The order matters, and the test above notices."""
    tree, new = read_tree(sites.old.out), read_tree(sites.new.out)
    missed = 0
    for step in reversed(steps):
        if step.file:
            tree[step.key] = new[step.key]
            missed += len(broken(tree, by_rules))
    assert missed


def test_publications_and_builds_continue_meanwhile(small: Settings, tmp_path: Path) -> None:
    build(small, index=False)
    root = tmp_path / "www"
    published = threading.Event()
    looks: list[list[str]] = []

    def publish() -> None:
        try:
            for number in range(14):
                owner, name = f"owner-{number % 3}", f"repo-{number % 5}"
                version = f"1.{number // 10}.{number}"
                tags = [f"tag-{number % 4}"]
                write_version(small.content, owner, name, version, f"Text {number}\n", tags=tags)
                if number % 6 == 5:
                    shutil.rmtree(Path(small.content, owner, name))
                build(small, index=False)
        finally:
            published.set()

    class Watched(Folder):
        def put(self, step: Step, file: File, data: bytes) -> str:
            mark = super().put(step, file, data)
            if is_first_done and len(looks) % 7 == 0:
                looks.append(broken(read_tree(self.root), by_rules))
            return mark

    is_first_done = False
    deployment = Deployment(small.out, small.state, Watched(str(root)))
    deployment.run({})
    is_first_done = True
    publisher = threading.Thread(target=publish)
    publisher.start()
    while not published.is_set():
        deployment.run({})
    publisher.join()
    deployment.run({})
    assert read_tree(root) == read_tree(small.out)
    assert looks and not any(looks)
