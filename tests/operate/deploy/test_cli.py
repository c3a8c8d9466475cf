"""`hubctl deploy` as people and CI jobs run it."""

import json
import subprocess
from pathlib import Path

from builder.model.settings import DEFAULT_BASE_URL, Settings
from builder.pipeline.build import build
from tests.operate.deploy.conftest import Sites
from tests.support.catalogues import read_tree, settings_in
from tests.support.progress import without_progress
from tests.support.servers import DEADLINE_SECONDS, HUBCTL, clean_environment


def run(settings: Settings, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [HUBCTL, "deploy", *options, "--out", settings.out], capture_output=True, text=True,
        timeout=DEADLINE_SECONDS, env=clean_environment(HUB_STATE=f"{settings.state}-deploys"),
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_folder_dry_for_real_and_as_json(sites: Sites, tmp_path: Path) -> None:
    root = tmp_path / "www"
    count = len(read_tree(sites.old.out))
    dry = run(sites.old, str(root), "--dry-run").stdout.splitlines()
    assert not root.exists()
    assert dry[0].startswith("would add assets/") and dry[-2] == "would add api/v1/hub.json"
    assert dry[-1].startswith(f"{count} objects to add, 0 to change, 0 to delete, 0 unchanged; ")
    assert len(dry) == count + 1

    done = run(sites.old, str(root))
    assert done.stdout.startswith(f"{count} objects added, 0 changed, 0 deleted, 0 unchanged; ")
    assert without_progress(done.stderr) == ""
    (root / "favicon.ico").write_bytes(b"")
    done = run(sites.new, str(root), "--no-delete", "--jobs", "2")
    assert "no longer on the site kept; 1 not part of the site left alone" in done.stdout

    report = json.loads(run(sites.new, str(root), "--json").stdout)
    assert report["deleted"] > 0 and report["foreign"] == 1 and report["new"] == 0
    (root / "favicon.ico").unlink()
    assert read_tree(root) == read_tree(sites.new.out)


def test_a_site_with_the_default_address_is_reported(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, DEFAULT_BASE_URL)
    build(settings, index=False)
    done = run(settings, str(tmp_path / "www"))
    assert "Build it with --base-url" in done.stderr


def test_wrong_use(sites: Sites, tmp_path: Path) -> None:
    assert "Missing argument 'DESTINATION'" in run(sites.new, status=2).stderr
    assert "--jobs" in run(sites.new, "x", "--jobs", "0", status=2).stderr
    done = run(sites.new._replace(out=str(tmp_path)), str(tmp_path / "www"), status=1)
    assert "three separate folders" in done.stderr
