"""A folder as the destination."""

import math
import os
import resource
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import DEFAULT_BASE_URL, Settings
from builder.pipeline.build import build
from builder.store.locks import build_lock, lock
from builder.store.site import ONE_SECOND_NS, Site
from operate.deploy.folder import Folder
from operate.deploy.order import Step
from operate.deploy.run import Deployment, open_destination
from tests.operate.deploy.conftest import Sites, deploy_to
from tests.support.catalogues import read_tree, settings_in, write_version
from tests.support.servers import DEADLINE_SECONDS, HUBCTL, Process, clean_environment

FILE = "api/v1/repos.json"


@pytest.fixture
def root(tmp_path: Path, sites: Sites) -> Path:
    """A folder to which the old site is deployed."""
    deploy_to(Folder(str(tmp_path / "www")), sites.old)
    return tmp_path / "www"


def inodes(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_ino for path in root.rglob("*") if path.is_file()}


def test_only_changed_files_are_copied(root: Path, sites: Sites) -> None:
    before = inodes(root)
    old, new = read_tree(sites.old.out), read_tree(sites.new.out)
    assert deploy_to(Folder(str(root)), sites.old) == (0, 0, 0)
    assert inodes(root) == before

    done = deploy_to(Folder(str(root)), sites.new)
    changed = {file for file in old.keys() & new.keys() if old[file] != new[file]}
    fresh, gone = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    assert done == (fresh, len(changed), gone)
    assert read_tree(root) == new
    assert len(before.items() - inodes(root).items()) == len(changed) + gone


def test_files_that_the_site_has_lost_are_not_deleted(tmp_path: Path) -> None:
    settings, root = settings_in(tmp_path), tmp_path / "www"
    write_version(settings.content, "ann", "story", "1.0.0", "Text.")
    build(settings)

    def deploy() -> list[Step]:
        return Deployment(settings.out, settings.state, Folder(str(root))).run({})

    deploy()
    whole = read_tree(root)
    Path(settings.out, "ann/story.html").unlink()
    with pytest.raises(OperatorError, match=r"has lost 1 file, such as ann/story\.html\. Run `hub"):
        deploy()
    assert read_tree(root) == whole
    build(settings, check_seconds=math.inf)  # as `hubctl build`
    assert all(step.file for step in deploy()) and read_tree(root).keys() == whole.keys()


def test_changed_files_are_repaired_and_foreign_files_stay(root: Path, sites: Sites) -> None:
    (root / FILE).write_text("another writer's")
    (root / "top.html").chmod(0o600)
    (root / "index.html").unlink()
    (root / "index.html").symlink_to(root / "top.html")
    (root / "api/v1/.repos.json.hubctl-deploy").write_bytes(b"half, of a killed deployment")
    theirs = ["google0123.html", "favicon.ico", ".well-known/x", "ann.html.bak", "a/b.html"]
    # Pages are found by rules, so a folder never gets a URL's key.
    theirs += ["new", "search", "404", "ann/review/9.9.9", "api/v1/catalogue"]
    for file in theirs:
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_text("theirs")
    # From an older site, which had another owner.
    (root / "api/v1/users/dora.json").write_text("{}")
    (root / "dora.html").write_text("a page")

    assert deploy_to(Folder(str(root)), sites.old) == (0, 3, 2)
    assert not (root / "index.html").is_symlink()
    tree = read_tree(root)
    assert {tree.pop(file) for file in theirs} == {b"theirs"}
    assert tree == read_tree(sites.old.out)


def test_everything_no_delete_and_a_dry_run(root: Path, sites: Sites) -> None:
    before = read_tree(root)
    would = deploy_to(Folder(str(root)), sites.new, dry_run=True)
    assert read_tree(root) == before and would.new and would.changed and would.deleted
    done = deploy_to(Folder(str(root)), sites.old, everything=True)
    assert done == (0, len(before), 0)

    assert deploy_to(Folder(str(root)), sites.new, no_delete=True).deleted == 0
    assert read_tree(root).keys() == before.keys() | read_tree(sites.new.out).keys()
    # The next deployment that may delete does so.
    assert deploy_to(Folder(str(root)), sites.new).deleted == would.deleted
    assert read_tree(root) == read_tree(sites.new.out)


def test_everyone_can_read_with_any_umask(sites: Sites, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        deploy_to(Folder(str(tmp_path / "new" / "www")), sites.new)
    finally:
        os.umask(old)
    for path in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_times_are_the_sites_unless_new_bytes_would_look_old(root: Path, sites: Sites) -> None:
    assert (root / FILE).stat().st_mtime_ns == Path(sites.old.out, FILE).stat().st_mtime_ns
    # The destination is ahead of the site, as after a new build elsewhere.
    ahead_ns = Path(sites.new.out, FILE).stat().st_mtime_ns + 5 * ONE_SECOND_NS
    os.utime(root / FILE, ns=(ahead_ns, ahead_ns))
    deploy_to(Folder(str(root)), sites.new)
    assert (root / FILE).stat().st_mtime_ns == ahead_ns + ONE_SECOND_NS


def test_a_rebuilt_site_with_the_same_bytes_is_not_copied(
    root: Path, sites: Sites, tmp_path: Path
) -> None:
    before = inodes(root)
    shutil.copytree(sites.old.out, tmp_path / "copy")
    assert deploy_to(Folder(str(root)), sites.old._replace(out=str(tmp_path / "copy"))).changed == 0
    assert inodes(root) == before


def test_the_site_stays_as_it_was_and_other_files_in_it_stay_there(
    small: Settings, tmp_path: Path
) -> None:
    build(small, index=False)
    Path(small.out, "notes.md").write_text("mine")
    Path(small.out, ".git").mkdir()
    mark = Site(small.out).mark()
    deploy_to(Folder(str(tmp_path / "www")), small)
    # Another mark would make the next build render everything again.
    assert Site(small.out).mark() == mark
    assert not (tmp_path / "www/notes.md").exists() and not (tmp_path / "www/.git").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: (root / "api").write_text(""), "Cannot write .*/api/"),
        (lambda root: (root / "index.html").mkdir(), "Is a directory"),
    ],
)
def test_obstacles_are_named(sites: Sites, tmp_path: Path, make, message: str) -> None:
    root = tmp_path / "www"
    root.mkdir()
    make(root)
    with pytest.raises(OperatorError, match=message):
        deploy_to(Folder(str(root)), sites.new)


@pytest.mark.parametrize("where", ["", "inside", ".."])
def test_a_destination_and_the_site_must_be_apart(sites: Sites, tmp_path: Path, where: str) -> None:
    name = os.path.join(sites.new.out, where)
    with pytest.raises(OperatorError, match="Use separate folders"):
        open_destination(name, [sites.new.out, str(tmp_path)])


def test_without_a_site_nothing_is_deleted(root: Path, small: Settings) -> None:
    before = read_tree(root)
    with pytest.raises(OperatorError, match="hubctl build"):
        deploy_to(Folder(str(root)), small)
    assert read_tree(root) == before


def command(settings: Settings, root: Path, *options: str) -> list[str]:
    state = f"{settings.state}-deploys"
    return [HUBCTL, "deploy", str(root), "--out", settings.out, "--state", state, *options]


def run(*words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        words, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=clean_environment(),
        **options,
    )  # fmt: skip


def test_the_command(tmp_path: Path, sites: Sites) -> None:
    root = tmp_path / "www"
    count = len(read_tree(sites.old.out))
    dry = run(*command(sites.old, root, "--dry-run")).stdout.splitlines()
    assert not root.exists()
    assert dry[0].startswith("would add assets/") and dry[-2] == "would add api/v1/hub.json"
    summary = f"{count} objects %s, 0 changed, 0 deleted"
    assert (dry[-1], len(dry)) == (summary % "to add", count + 1)
    assert run(*command(sites.old, root)).stdout == summary % "added" + "\n"
    assert run(HUBCTL, "deploy").returncode == 2


def test_a_site_with_the_default_address_is_reported(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, DEFAULT_BASE_URL)
    build(settings, index=False)
    assert "Build it with --base-url" in run(*command(settings, tmp_path / "www")).stderr


def test_a_full_disk_is_reported_and_files_that_fit_stay(small: Settings, tmp_path: Path) -> None:
    """The limit on a file's size stands in for a disk that is full."""
    write_version(small.content, "ann", "long", "1.0.0", "A long text. " * 20_000)
    build(small, index=False)
    root, limit = tmp_path / "www", 250_000
    done = run(
        *command(small, root),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "Cannot write" in done.stderr and "File too large" in done.stderr
    assert "Fix that and deploy again" in done.stderr
    assert not list(root.rglob(".*"))  # no half a file
    assert run(*command(small, root)).returncode == 0
    assert read_tree(root) == read_tree(small.out)


def test_a_deployment_waits_for_another_and_for_a_build(root: Path, sites: Sites) -> None:
    state = f"{sites.new.state}-deploys"
    with build_lock(state):
        with lock(f"{state}/deploy", lambda: None):
            process = Process(*command(sites.new, root))
            process.wait_for_line("Waiting for another deployment to end.")
            assert read_tree(root) == read_tree(sites.old.out)
        process.wait_for_line("Waiting for another build to end.")
    assert process.wait() == 0
    assert read_tree(root) == read_tree(sites.new.out)
