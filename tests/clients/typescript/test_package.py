"""The npm package: packed, installed where nothing else is, compiled against and used."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.clients.typescript.conftest import CLIENT, HERE, RUNTIMES, Run
from tests.node import PROGRAMS
from tests.support.servers import PROJECT, Server

ID = "mara-okafor/sql-review"
NPM = ("npm", "--offline", "--no-audit", "--no-fund", "--loglevel=error")
USE = f"""
import {{ Hub, NotFound }} from "hub-prompts";
const hub = new Hub(process.argv[2], {{ timeout: 3600 }}); // no timer may keep the process alive
const {{ version, sha256 }} = await hub.get("{ID}");
const gone = await hub.get("{ID}@9.9.9").catch((error) => error instanceof NotFound);
console.log(JSON.stringify({{ version, sha256, gone }}));
"""


@pytest.fixture(scope="module")
def tarball(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tarball")
    run(*NPM, "pack", "--pack-destination", folder, folder=CLIENT)
    (tarball,) = folder.iterdir()
    return tarball


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project of ES modules, with ``use.js``."""
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}', encoding="utf-8")
    (tmp_path / "use.js").write_text(USE, encoding="utf-8")
    return tmp_path


def check_use(printed: str, live: Server) -> None:
    known = live.get(f"/api/v1/repos/{ID}").json()["data"]
    assert json.loads(printed) == {
        "version": known["latest_version"], "sha256": known["sha256"], "gone": True,
    }  # fmt: skip


@pytest.mark.parametrize("option", ["", "--no-experimental-detect-module"])
def test_node_imports_the_served_file_in_a_fresh_folder(
    run: Run, tmp_path: Path, live: Server, option: str
):
    """As docs/use/typescript.md says. Node before 20.19 takes a file called .js for CommonJS."""
    page = (PROJECT / "docs/use/typescript.md").read_text(encoding="utf-8")
    for name, kept in re.findall(r"/clients/(hub[.a-z]+) -o (\S+)", page):
        (tmp_path / kept).write_bytes(live.get(f"/clients/{name}").content)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub.d.mts", "hub.mjs"]
    (imported,) = {*re.findall(r'from "(\./hub[.a-z]+)"', page)}
    (tmp_path / "use.mjs").write_text(USE.replace("hub-prompts", imported), encoding="utf-8")
    check_use(run("node", *filter(None, [option]), "use.mjs", live.url, folder=tmp_path), live)


def test_it_has_no_more_than_it_needs(run: Run, tarball: Path):
    files = run("tar", "-tf", tarball).split()
    assert sorted(files) == [
        f"package/{name}" for name in ("LICENSE", "README.md", "hub.d.ts", "hub.js", "package.json")
    ]
    described = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert not any("ependencies" in key or key == "scripts" for key in described)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_package_reads_from_a_hub(
    run: Run, tarball: Path, project: Path, live: Server, runtime: str
):
    run(*NPM, "install", tarball, folder=project)
    check_use(run(*RUNTIMES[runtime], "use.js", live.url, folder=project), live)


def test_it_installs_from_the_clone(run: Run, project: Path, live: Server):
    run(*NPM, "install", CLIENT, folder=project)
    check_use(run(PROGRAMS / "node", "use.js", live.url, folder=project), live)


@pytest.mark.parametrize("module", ["nodenext", "preserve"])
def test_a_user_s_program_compiles(run: Run, tarball: Path, project: Path, module: str):
    run(*NPM, "install", tarball, folder=project)
    shutil.copy(HERE / "user.ts", project)
    run(
        PROGRAMS / "tsc", "--ignoreConfig", "--strict", "--noEmit", "--exactOptionalPropertyTypes",
        "--noUncheckedIndexedAccess", "--target", "es2022", "--lib", "es2022,dom",
        "--module", module, "--types", "", "user.ts", folder=project,
    )  # fmt: skip


def test_the_types_declare_what_is_there(run: Run, project: Path):
    shutil.copy(CLIENT / "hub.js", project / "source.js")
    shutil.copy(CLIENT / "hub.d.ts", project)
    shutil.copy(HERE / "same_names.ts", project)
    run(
        PROGRAMS / "tsc", "--ignoreConfig", "--strict", "--noEmit", "--allowJs", "--skipLibCheck",
        "--target", "es2022", "--lib", "es2023,dom", "--module", "nodenext", "--types", "",
        "same_names.ts", folder=project,
    )  # fmt: skip


def test_bundlers_for_browsers_need_nothing_of_node(run: Run, tarball: Path, project: Path):
    run(*NPM, "install", tarball, folder=project)
    bundled = run(
        PROGRAMS / "esbuild", "use.js", "--bundle", "--minify", "--format=esm",
        "--platform=browser", folder=project,
    )  # fmt: skip
    assert "hub-prompts" in bundled and "import" not in bundled
