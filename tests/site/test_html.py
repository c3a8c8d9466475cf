"""The Nu checker finds nothing to say of any page, and the site's scripts are small."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from builder.render.colours import ASSETS
from tests.node import PACKAGES
from tests.site.catalogue import CALLED, FOLDER, MARKUP, PAGES, RELEASED
from tests.support.servers import DEADLINE_SECONDS

CHECKER = PACKAGES / "vnu-jar" / "build" / "dist" / "vnu.jar"
CHECKED = {".html", ".svg", ".css"}
# Compressed: on any page of the site, to search a catalogue by itself, to compare texts, to show
# results, and to sign in and write.
SCRIPTS_BYTES_MAX, SEARCHING_BYTES_MAX, COMPARING_BYTES_MAX = 7_700, 8_300, 3_300
RESULTS_BYTES_MAX, WRITING_BYTES_MAX = 4_650, 116_000
# All scripts but the libraries, as sources.
OWN_BYTES_MAX = 82_100
SEARCHING = {"catalogue.js"}
COMPARING = {"compare.js", "changes.js"}
WRITING = {"account.js", "editor.js", "editor_files.js", "marked_text.js"}
WRITING |= {"codemirror.js"}
HOME_BYTES_MAX = 30_000

pytestmark = pytest.mark.usefixtures("installed_tools")

# Messages of the checker about deliberate or newer markup.
MEANT = (
    # A file has no origin that 'self' could match. Browsers report what the policy forbids.
    "Resource violates Content Security Policy (meta tag): external",
    "Resource violates Content Security Policy (meta tag): image",
    # It guesses the language of prompts.
    "This document appears to be written in",
    "CSS: “field-sizing”: Property “field-sizing” doesn't exist.",
)


def check(*files: Path) -> list[str]:
    """Messages of the checker for these files, errors and warnings."""
    assert CHECKER.exists(), "vnu-jar is not there; install it with: sh tests/install-tools"
    assert shutil.which("java"), "java is not there; install it with: sh tests/install-tools"
    done = subprocess.run(
        ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss8m", "-jar", CHECKER,
         "--also-check-css", "--also-check-svg", "--format", "json", "--exit-zero-always", *files],
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    messages = json.loads(done.stderr)["messages"]
    return sorted(
        f"{Path(one['url']).name}:{one.get('lastLine')}: {one['message']}: "
        f"{one.get('extract', '')!r}"
        for one in messages
        if not one["message"].startswith(MEANT)
    )


def test_pages_of_the_service_are_valid(hub, tmp_path):
    for number, repo in enumerate((CALLED, FOLDER, MARKUP, f"{RELEASED}?from=9.9.9")):
        answer = hub.session.get(f"{hub.url}/account/compare/{repo}", timeout=DEADLINE_SECONDS)
        assert answer.status_code == (404 if "?" in repo else 200)
        (tmp_path / f"compared-{number}.html").write_bytes(answer.content)
    assert check(*tmp_path.iterdir()) == []


def test_the_checker_finds_nothing(hosts, golden):
    files = [file for file in Path(golden.out).rglob("*") if file.suffix in CHECKED]
    paths = {path.partition("?")[0].strip("/") or "index" for path in PAGES.values()}
    shown = [Path(hosts.settings.out, f"{path}.html") for path in sorted(paths)]
    files += [file for file in shown if file.exists()]
    assert {file.suffix for file in files} == CHECKED
    assert check(*files) == []


def test_the_checker_finds_faults(tmp_path):
    faulty = {
        "page.html": "<!doctype html><title>x</title><p><div id=a id=a></p><img src=x>",
        "style.css": "p { colour: red }",
        "image.svg": '<svg xmlns="http://www.w3.org/2000/svg"><p/></svg>',
    }
    for name, text in faulty.items():
        (tmp_path / name).write_text(text)
    names = [one.partition(":")[0] for one in check(*(tmp_path / name for name in faulty))]
    assert names.count("page.html") > 2
    assert set(names) == set(faulty)


def test_scripts_and_the_home_page_are_small(hosts):
    scripts = sorted(Path(hosts.settings.out, "assets").glob("*.js"))
    assert scripts
    sizes = {one.name: len(gzip.compress(one.read_bytes())) for one in scripts}
    searching = sum(sizes.pop(name) for name in SEARCHING)
    comparing = sum(sizes.pop(name) for name in COMPARING)
    assert sizes.pop("results.js") < RESULTS_BYTES_MAX
    # No page that people read loads these.
    writing = sum(sizes.pop(name) for name in WRITING)
    assert sum(sizes.values()) < SCRIPTS_BYTES_MAX
    assert searching < SEARCHING_BYTES_MAX and comparing < COMPARING_BYTES_MAX
    assert writing < WRITING_BYTES_MAX
    sources = {one.name: one.stat().st_size for one in Path(ASSETS).glob("*.js")}
    assert sum(sources.values()) - sources["codemirror.js"] < OWN_BYTES_MAX
    assert len(Path(hosts.settings.out, "index.html").read_bytes()) < HOME_BYTES_MAX
