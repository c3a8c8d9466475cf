"""The libraries in the site's scripts are those that npm's lock pins."""

import json
import re
import subprocess
from pathlib import Path

from builder.render.colours import ASSETS
from tests.node import NODE, PACKAGES, PROGRAMS
from tests.support.servers import DEADLINE_SECONDS


def test_the_committed_bundles_are_what_npm_gives(installed_tools, tmp_path):
    done = subprocess.run(
        [PROGRAMS / "node", NODE / "bundle.mjs", tmp_path],
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = sorted(tmp_path.iterdir())
    assert [one.name for one in made] == ["codemirror.js"]
    for one in made:
        assert one.read_bytes() == Path(ASSETS, one.name).read_bytes(), one.name


def test_the_bundle_has_the_licences_of_all_that_is_in_it(installed_tools):
    banner = Path(ASSETS, "codemirror.js").read_text(encoding="utf-8").partition("*/")[0]
    named = re.findall(r"(\S+) (\d+\.\d+\.\d+) \(", banner)
    assert named
    for name, version in named:
        home = PACKAGES / name
        assert json.loads((home / "package.json").read_text())["version"] == version
        assert (home / "LICENSE").read_text(encoding="utf-8").strip() in banner, name
