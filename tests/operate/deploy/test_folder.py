"""A folder as the destination."""

import contextlib
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.locks import build_lock
from builder.store.site import ONE_SECOND_NS
from operate.deploy.destination import open_destination
from operate.deploy.folder import Folder
from operate.deploy.manifest import path_for
from operate.deploy.options import Options
from operate.deploy.plan import Plan
from operate.deploy.run import Hooks, deploy
from operate.folders import lock
from tests.operate.deploy.conftest import Sites, deploy_to
from tests.support.catalogues import edit_record, read_tree, write_version
from tests.support.servers import DEADLINE_SECONDS, HUBCTL, PROJECT, Process, clean_environment

FILE = "api/v1/repos.json"


@pytest.fixture
def root(tmp_path: Path, sites: Sites) -> Path:
    """A folder to which the old site is deployed."""
    deploy_to(Folder(str(tmp_path / "www")), sites.old, tmp_path / "state")
    return tmp_path / "www"


def inodes(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_ino for path in root.rglob("*") if path.is_file()}


def test_only_changed_files_are_copied(root: Path, sites: Sites, tmp_path: Path) -> None:
    before = inodes(root)
    again = deploy_to(Folder(str(root)), sites.old, tmp_path / "state")
    assert (again.new, again.changed, again.deleted) == (0, 0, 0)
    assert inodes(root) == before

    old, new = read_tree(sites.old.out), read_tree(sites.new.out)
    report = deploy_to(Folder(str(root)), sites.new, tmp_path / "state")
    assert report.new == len(new.keys() - old.keys())
    assert report.deleted == len(old.keys() - new.keys())
    changed = {file for file in old.keys() & new.keys() if old[file] != new[file]}
    assert report.changed == len(changed)
    assert report.current == len(new) - report.new - report.changed
    assert read_tree(root) == new
    touched = before.items() - inodes(root).items()
    assert len(touched) == len(changed) + report.deleted
    assert report.bytes == sum(len(new[file]) for file in changed | (new.keys() - old.keys()))


def test_without_a_manifest_equal_files_are_not_copied(
    root: Path, sites: Sites, tmp_path: Path
) -> None:
    before = inodes(root)
    report = deploy_to(Folder(str(root)), sites.old, tmp_path / "another-state")
    assert report.current == len(before) and inodes(root) == before


@pytest.mark.parametrize("damage", [b"", b"no database", "cut", "another version"])
def test_a_damaged_manifest_is_replaced(
    root: Path, sites: Sites, tmp_path: Path, damage: bytes | str
) -> None:
    (path,) = (tmp_path / "state").glob("deploy-*.sqlite3")
    data = path.read_bytes()
    if damage == "another version":
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript("DROP TABLE object; CREATE TABLE object (key); PRAGMA user_version=1")
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else damage)
    report = deploy_to(Folder(str(root)), sites.new, tmp_path / "state")
    assert report.new and read_tree(root) == read_tree(sites.new.out)


def test_changed_files_are_repaired_and_foreign_files_stay(
    root: Path, sites: Sites, tmp_path: Path
) -> None:
    (root / FILE).write_text("another writer's")
    (root / "home.html").unlink(missing_ok=True)
    (root / "index.html").unlink()
    (root / "index.html").symlink_to(root / "top.html")
    theirs = ["google0123.html", "favicon.ico", ".well-known/x", "ann.html.bak", "a/b.html"]
    for file in theirs:
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_text("theirs")
    # From an older site, which had another owner.
    gone = root / "api/v1/users/dora.json"
    gone.write_text("{}")
    (root / "dora.html").write_text("a page")

    report = deploy_to(Folder(str(root)), sites.old, tmp_path / "state")

    assert (report.new, report.changed, report.deleted) == (0, 2, 2)
    assert report.foreign == len(theirs) - 1  # names with a dot before them are not looked at
    tree = read_tree(root)
    assert not (root / "index.html").is_symlink()
    assert {tree.pop(file) for file in theirs} == {b"theirs"}
    assert tree == read_tree(sites.old.out)


def test_files_with_names_of_urls_are_foreign(root: Path, sites: Sites, tmp_path: Path) -> None:
    """A folder never gets a URL's key; pages of that name are found by rules."""
    (tmp_path / "other").mkdir()
    (root / "docs").symlink_to(tmp_path / "other")
    theirs = ["new", "search", "404", "connect", "ann/review/9.9.9", "api/v1/catalogue"]
    for file in theirs:
        (root / file).write_text("mine")
    for state in ("state", "another-state"):
        report = deploy_to(Folder(str(root)), sites.new, tmp_path / state)
        assert report.foreign == len(theirs) + 1
    assert report.deleted == 0
    assert (root / "docs").is_symlink()
    tree = read_tree(root)
    assert {tree.pop(file) for file in theirs} == {b"mine"}
    assert tree == read_tree(sites.new.out)


def test_everything_and_no_delete(root: Path, sites: Sites, tmp_path: Path) -> None:
    count = len(read_tree(sites.old.out))
    report = deploy_to(Folder(str(root)), sites.old, tmp_path / "state", everything=True)
    assert (report.new, report.changed, report.current) == (0, count, 0)

    report = deploy_to(Folder(str(root)), sites.new, tmp_path / "state", no_delete=True)
    assert report.deleted == 0 and report.kept > 0
    assert read_tree(root).keys() == read_tree(sites.old.out).keys() | read_tree(sites.new.out)
    # The next deployment that may delete does so.
    report = deploy_to(Folder(str(root)), sites.new, tmp_path / "state")
    assert report.deleted and read_tree(root) == read_tree(sites.new.out)


def test_everyone_can_read_with_any_umask(sites: Sites, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        deploy_to(Folder(str(tmp_path / "new" / "www")), sites.new, tmp_path / "state")
    finally:
        os.umask(old)
    for path in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o755 if path.is_dir() else 0o644), path
    # A file that others may not read is not as it should be.
    (tmp_path / "new/www/index.html").chmod(0o600)
    report = deploy_to(Folder(str(tmp_path / "new" / "www")), sites.new, tmp_path / "other")
    assert report.changed == 1
    assert stat.S_IMODE((tmp_path / "new/www/index.html").stat().st_mode) == 0o644


def test_times_are_the_sites_unless_new_bytes_would_look_old(
    root: Path, sites: Sites, tmp_path: Path
) -> None:
    assert (root / FILE).stat().st_mtime_ns == Path(sites.old.out, FILE).stat().st_mtime_ns
    # The destination is ahead of the site, as after a new build elsewhere.
    ahead_ns = Path(sites.new.out, FILE).stat().st_mtime_ns + 5 * ONE_SECOND_NS
    os.utime(root / FILE, ns=(ahead_ns, ahead_ns))
    deploy_to(Folder(str(root)), sites.new, tmp_path / "state")
    assert (root / FILE).stat().st_mtime_ns == ahead_ns + ONE_SECOND_NS


def test_a_rebuilt_site_with_the_same_bytes_is_not_copied(
    root: Path, sites: Sites, tmp_path: Path
) -> None:
    before = inodes(root)
    shutil.copytree(sites.old.out, tmp_path / "copy")
    copy = sites.old._replace(out=str(tmp_path / "copy"))
    assert deploy_to(Folder(str(root)), copy, tmp_path / "state").changed == 0
    assert inodes(root) == before


def other_disk(folder: Path) -> str:
    """A place on another disk than this folder; tests have theirs in memory or not."""
    return next(
        place for place in ("/dev/shm", "/tmp", "/var/tmp", str(PROJECT))
        if os.access(place, os.W_OK) and os.stat(place).st_dev != folder.stat().st_dev
    )  # fmt: skip


def test_the_state_may_be_on_another_disk(sites: Sites, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=other_disk(tmp_path)) as state:
        deploy_to(Folder(str(tmp_path / "www")), sites.new, Path(state))
        site = Path(sites.new.out)
        assert read_tree(tmp_path / "www") == read_tree(site)
        for file in read_tree(site):
            assert (tmp_path / "www" / file).stat().st_mtime == (site / file).stat().st_mtime


@pytest.mark.parametrize("disk", ["another", "the same"])
def test_files_are_kept_before_builds_have_to_wait(
    small: Settings, tmp_path: Path, disk: str
) -> None:
    build(small, index=False)
    site, root = Path(small.out), tmp_path / "www"
    changed, gone, new = site / FILE, site / "new.html", site / "api/v1/users/dora.json"
    kept: dict[int, bytes] = {}

    def read_kept() -> dict[int, bytes]:
        (folder,) = Path(state).glob("deploy-*.snapshot")
        return {path.stat().st_ino: path.read_bytes() for path in folder.iterdir()}

    def end_the_build(what: str) -> None:
        assert what == "build"
        kept.update(read_kept())
        gone.unlink()
        for path in (changed, new):
            path.with_suffix(".tmp").write_bytes(b"{}")
            path.with_suffix(".tmp").rename(path)
        running.close()

    def look(plan: Plan) -> None:
        later = read_kept()
        assert [later[inode] for inode in later.keys() - kept.keys()] == [b"{}", b"{}"]

    before = read_tree(site)
    where = other_disk(tmp_path) if disk == "another" else tmp_path
    with tempfile.TemporaryDirectory(dir=where) as state, contextlib.ExitStack() as running:
        running.enter_context(build_lock(state))
        hooks = Hooks(on_wait=end_the_build, on_plan=look)
        deploy(small.out, state, Folder(str(root)), Options(), hooks)
    assert set(kept.values()) == set(before.values())
    assert read_tree(root) == read_tree(site) != before


def test_files_that_a_build_removes_meanwhile_are_left_out(small: Settings, tmp_path: Path) -> None:
    build(small, index=False)
    removed = list(Path(small.out).glob("*.html"))

    def remove(what: str, done: int, total: int) -> None:
        """The folder is listed, and its files are not looked at yet."""
        while what == "Reading the site" and removed:
            removed.pop().unlink()

    hooks = Hooks(progress=remove)
    deploy(small.out, small.state, Folder(str(tmp_path / "www")), Options(), hooks)
    assert not removed
    assert read_tree(tmp_path / "www") == read_tree(small.out)


def test_a_dry_run_changes_nothing(root: Path, sites: Sites, tmp_path: Path) -> None:
    before = read_tree(root)
    would = deploy_to(Folder(str(root)), sites.new, tmp_path / "state", dry_run=True)
    assert read_tree(root) == before
    done = deploy_to(Folder(str(root)), sites.new, tmp_path / "state")
    assert would._replace(seconds=0) == done._replace(seconds=0)


def test_leftovers_of_killed_deployments_are_removed(
    root: Path, sites: Sites, tmp_path: Path
) -> None:
    (root / "api" / ".repos.json.hubctl-deploy").write_bytes(b"half")
    (state,) = (tmp_path / "state").glob("deploy-*.lock")
    snapshot = state.with_suffix(".snapshot")
    snapshot.mkdir()
    (snapshot / "17").write_bytes(b"old")
    deploy_to(Folder(str(root)), sites.new, tmp_path / "state")
    assert read_tree(root) == read_tree(sites.new.out)
    assert not snapshot.exists()


def test_a_file_that_hub_did_not_make_is_left_out(small: Settings, tmp_path: Path) -> None:
    build(small, index=False)
    Path(small.out, "notes.md").write_text("mine")
    Path(small.out, ".git").mkdir()
    report = deploy_to(Folder(str(tmp_path / "www")), small, tmp_path / "state")
    assert report.unknown == 1 and not (tmp_path / "www/notes.md").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: (root / "api").symlink_to("/tmp"), "below a symbolic link"),
        (
            lambda root: (root / "api").write_text(""),
            "api: a file of that name exists",
        ),
        (lambda root: (root / "index.html").mkdir(), "Is a directory"),
    ],
)
def test_obstacles_are_named(sites: Sites, tmp_path: Path, make, message: str) -> None:
    root = tmp_path / "www"
    root.mkdir()
    make(root)
    with pytest.raises(OperatorError, match=message):
        deploy_to(Folder(str(root)), sites.new, tmp_path / "state")


@pytest.mark.parametrize("where", ["", "inside", ".."])
def test_a_destination_and_the_site_must_be_apart(sites: Sites, tmp_path: Path, where: str) -> None:
    name = os.path.join(sites.new.out, where)
    with pytest.raises(OperatorError, match="three separate folders"):
        open_destination(name, apart_from=[sites.new.out, str(tmp_path)])


def test_without_a_site_nothing_is_deleted(root: Path, small: Settings, tmp_path: Path) -> None:
    before = read_tree(root)
    with pytest.raises(OperatorError, match="hubctl build"):
        deploy_to(Folder(str(root)), small, tmp_path / "state")
    assert read_tree(root) == before


def command(settings: Settings, root: Path, state: Path, *options: str) -> list[str]:
    return [HUBCTL, "deploy", str(root), "--out", settings.out, "--state", str(state), *options]


def test_a_full_disk_is_reported_and_files_that_fit_stay(small: Settings, tmp_path: Path) -> None:
    """The limit on a file's size stands in for a disk that is full."""
    write_version(small.content, "ann", "long", "1.0.0", "A long text. " * 20_000)
    build(small, index=False)
    root, state = tmp_path / "www", tmp_path / "deploys"
    limit = 250_000

    def run(**options) -> subprocess.CompletedProcess:
        return subprocess.run(
            command(small, root, state), capture_output=True, text=True, timeout=DEADLINE_SECONDS,
            env=clean_environment(), **options,
        )  # fmt: skip

    done = run(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 1
    assert "Cannot write" in done.stderr and "File too large" in done.stderr
    assert "Run `hubctl deploy` again to continue" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(root.rglob(".*"))  # no half a file
    assert run().returncode == 0
    assert read_tree(root) == read_tree(small.out)


def test_a_second_deployment_waits_for_the_first(root: Path, sites: Sites, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with lock(path_for(str(state), Folder(str(root)).identity), lambda: None):
        second = Process(*command(sites.new, root, state))
        second.wait_for_line("Waiting for another deployment to end.")
        assert read_tree(root) == read_tree(sites.old.out)
    assert second.wait() == 0
    assert read_tree(root) == read_tree(sites.new.out)


def test_a_deployment_waits_for_the_end_of_a_build(sites: Sites, tmp_path: Path) -> None:
    root, state = tmp_path / "www", tmp_path / "state"
    with build_lock(str(state)):
        process = Process(*command(sites.new, root, state))
        process.wait_for_line("Waiting for another build to end.")
        assert not root.exists()
    assert process.wait() == 0
    assert read_tree(root) == read_tree(sites.new.out)


def test_builds_wait_only_for_links(small: Settings, tmp_path: Path) -> None:
    """A build that begins while files go is not held up by that."""
    build(small, index=False)

    class Building(Folder):
        async def end_group(self) -> None:
            await super().end_group()
            if len(built) < builds:
                edit_record(Path(small.content, "bob/sql/1.0.0.json"), title=f"Title {len(built)}")
                built.append(build(small, index=False))

    built = []
    builds = 8
    report = deploy_to(Building(str(tmp_path / "www")), small, Path(small.state))
    assert len(built) == builds and report.new == len(read_tree(small.out))
    assert read_tree(tmp_path / "www") != read_tree(small.out)
    deploy_to(Folder(str(tmp_path / "www")), small, Path(small.state))
    assert read_tree(tmp_path / "www") == read_tree(small.out)


def test_a_changed_cache_rule_changes_nothing_in_a_folder(
    root: Path, sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = inodes(root)
    monkeypatch.setitem(CACHE_CONTROL, "list", "public, max-age=61")
    assert deploy_to(Folder(str(root)), sites.old, tmp_path / "state").changed == 0
    assert inodes(root) == before
