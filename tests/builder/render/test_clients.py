"""The clients as the build releases them: whole, verifiable, and for the site they are from."""

import ast
import hashlib
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import builder
from builder.model.routes import CLIENT_VERSION
from builder.render.clients import SHELL_CLIENT, search_program
from builder.search.rules import search_rules
from tests.support.catalogues import build_files
from tests.support.servers import PROJECT, clean_environment

RELEASE = f"cli/releases/v{CLIENT_VERSION}/hub"


def test_the_release_has_the_address_of_its_site_and_the_rules_of_its_search(small):
    site = build_files(small)
    source = Path(SHELL_CLIENT).read_bytes()
    assert site["cli/hub"] == site[RELEASE]
    # Between the parts that the build puts in, the release is the source.
    at = 0
    for part in re.split(rb"# The build puts \w+\.py here\.\n", source):
        part = part.replace(b"http://127.0.0.1:8000", b"https://hub.example")
        at = site[RELEASE].index(part, at) + len(part)
    assert at == len(site[RELEASE])
    program = search_program(search_rules())
    assert program in site[RELEASE]
    ast.parse(program, feature_version=(3, 7))
    assert search_rules().encode() in site[RELEASE]
    assert b'"STOP":["a",' in site["assets/catalogue.js"]
    digest = hashlib.sha256(site[RELEASE]).hexdigest()
    assert site[f"{RELEASE}.sha256"] == f"{digest}  hub\n".encode()


def test_the_version_is_the_path_s(small):
    done = subprocess.run(["sh", SHELL_CLIENT, "--version"], capture_output=True, text=True)
    assert done.stdout == f"hub {CLIENT_VERSION}\n"


def test_a_changed_client_is_released(small, tmp_path):
    """Built by a copy of the builder, since it is the installed file that changes."""
    shutil.copytree(Path(builder.__file__).parent, tmp_path / "builder")
    client = tmp_path / "builder" / Path(SHELL_CLIENT).relative_to(PROJECT / "builder")

    def released() -> bytes:
        script = f"from builder.model.settings import Settings; build({small!r}, index=False)"
        subprocess.run(
            [sys.executable, "-c", f"from builder.pipeline.build import build; {script}"],
            cwd=tmp_path, check=True, env=clean_environment(PYTHONPATH=str(tmp_path)),
        )  # fmt: skip
        return Path(small.out, "cli", "hub").read_bytes()

    script = released()
    with client.open("ab") as file:
        file.write(b"# more\n")
    assert released() == script + b"# more\n"


@pytest.mark.usefixtures("installed_tools")
def test_the_snippet_of_the_connect_page_installs_it(live, tmp_path):
    page = live.get("/connect").text
    snippets = re.findall('<pre class="snippet">\n(.*?)</pre>', page, re.DOTALL)
    (snippet,) = [html.unescape(one) for one in snippets if "sha256sum -c" in one]
    done = subprocess.run(
        ["sh", "-euc", snippet], cwd=tmp_path, capture_output=True, text=True,
        env=clean_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "hub: OK" in done.stdout and live.url in done.stdout
    done = subprocess.run(
        ["./hub", "cat", "mara-okafor/sql-review"], cwd=tmp_path, capture_output=True,
        env=clean_environment(HOME=str(tmp_path)),
    )  # fmt: skip
    assert done.stdout == live.get("/api/v1/repos/mara-okafor/sql-review/raw").content


def test_the_python_client_is_the_package_s_module_with_the_address_of_its_site(small):
    source = Path(SHELL_CLIENT).with_name("hub_prompts.py").read_bytes()
    assert source == (PROJECT / "clients/python/hub_prompts/__init__.py").read_bytes()
    released = build_files(small)["clients/hub_prompts.py"]
    assert released == source.replace(
        b'\nBAKED_URL = ""\n', b'\nBAKED_URL = "https://hub.example"\n'
    )
    assert released != source
