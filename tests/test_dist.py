"""The distributions of ``make dist`` have everything, and a hub runs from the wheel alone."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.servers import DEADLINE_SECONDS, PROJECT, Process, clean_environment

PACKAGES = ("builder", "cli", "mcp_app", "moving", "operate", "publisher", "server")
OF_THE_BUILD = ("PKG-INFO", "setup.cfg", "prompt_hub.egg-info/")
SAMPLE = "cli/new_hub/sample"


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=clean_environment(MAKEFLAGS=""), capture_output=True, text=True,
        timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """The files of the repository; those of the sample where a link leads to them, too."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=PROJECT)
    files = {name for name in names.split("\0") if name and (PROJECT / name).exists()}
    sample = {f"{SAMPLE}/{name.partition('/')[2]}" for name in files if name.startswith("content/")}
    return files - {SAMPLE} | sample


@pytest.fixture(scope="module")
def clone(tracked: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository of one commit, with both distributions in ``dist``."""
    clone = tmp_path_factory.mktemp("clone")
    for name in tracked:
        if not name.startswith(f"{SAMPLE}/"):
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, clone / name, follow_symlinks=False)
    (clone / SAMPLE).symlink_to("../../content")
    run("git", "init", "--quiet", cwd=clone)
    commit(clone)
    return clone


def commit(clone: Path) -> None:
    """Commit all there is, and make the distributions of that."""
    run("git", "add", "--all", cwd=clone)
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    run("git", *who, "commit", "--quiet", "--allow-empty", "--message", "Change", cwd=clone)
    if not (clone / ".venv").is_symlink():
        # As if make had created an environment.
        (clone / ".venv").symlink_to(sys.prefix)
        (clone / ".git/info/exclude").write_text("/.venv\n")
    run("make", "--assume-old", ".venv/.serve", "dist", cwd=clone)


@pytest.fixture(scope="module")
def dist(clone: Path) -> Path:
    """The folder with both distributions, built from the files of the repository alone."""
    return clone / "dist"


def test_the_source_distribution_is_the_repository(dist: Path, tracked: set[str]) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)  # and no link
    files = {member.name.partition("/")[2] for member in members if member.isfile()}
    assert {name for name in files if not name.startswith(OF_THE_BUILD)} == tracked


def test_the_wheel_has_every_file_of_the_packages(dist: Path, tracked: set[str]) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        files = {*opened.namelist()}
        for name in (
            "builder/render/client/hub.js",
            "builder/render/client/hub",
            f"{SAMPLE}/home.md",
        ):
            source = PROJECT / name.replace(SAMPLE, "content")
            assert opened.read(name) == source.read_bytes()
    packaged = {name for name in tracked if name.startswith(tuple(f"{top}/" for top in PACKAGES))}
    assert {name for name in files if not name.startswith("prompt_hub-")} == packaged
    units = {name.rpartition("/")[2] for name in files if "/share/prompt-hub/" in name}
    assert units == {name.rpartition("/")[2] for name in tracked if name.startswith("deploy/")}


@pytest.fixture(params=["offline", pytest.param("registry", marks=pytest.mark.tools)])
def environment(request: pytest.FixtureRequest, dist: Path, tmp_path: Path) -> Path:
    """An environment in which nothing but the wheel is, and what it depends on: from a registry, or
    those of this environment.
    """
    folder = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=tmp_path)
    (wheel,) = dist.glob("*.whl")
    python = ("--python", f"{folder}/bin/python")
    pip = (sys.executable, "-m", "pip", *python, "install", "--quiet")
    if request.param == "registry":
        uv = Path(sys.executable).with_name("uv")  # takes seconds where pip takes minutes
        install = (str(uv), "pip", "install", *python) if uv.exists() else pip
        run(*install, str(wheel), cwd=tmp_path)
        return folder
    run(*pip, "--no-deps", "--no-index", str(wheel), cwd=tmp_path)
    # A folder that a .pth file names is searched for packages, but its own .pth files are not read;
    # one of them leads to the project's sources.
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", vars=variables))
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


@pytest.fixture
def hub(environment: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a new hub that `hubctl serve` serves, of the environment."""
    hubctl = str(environment / "bin/hubctl")
    run(hubctl, "init", "my-hub", "--owner", "ann", cwd=tmp_path)
    assert str(PROJECT) not in run(
        str(environment / "bin/python"), "-c", "import cli; print(cli.__file__)", cwd=tmp_path
    )
    serve = f"cd {tmp_path}/my-hub && exec {hubctl} serve"
    process = Process("sh", "-c", serve, env=clean_environment(HUB_PORT="0"))
    try:
        line = process.wait_for_line("(stop with Ctrl-C)")
        yield line.partition(" at ")[2].split()[0].rstrip("/")
    finally:
        status = process.stop()
    assert status == 0, process.text


def test_a_hub_from_the_wheel(hub: str) -> None:
    with requests.Session() as session:
        for path, part in (
            ("/api/v1/repos/ann/summarize-for-a-busy-reader/raw", "{{text}}"),
            ("/ann/summarize-for-a-busy-reader", "Summarize a text"),
            ("/api/v1/repos?q=summarize", '"name":"summarize-for-a-busy-reader"'),
            ("/clients/hub_prompts.py", "class Hub"),
            ("/clients/hub.js", "class Hub"),
            ("/cli/releases/v1.0.0/hub", "#!/bin/sh"),
            ("/account/login", "My hub"),
            ("/api/v1/hub.json", '"version":"1.0.1.dev1+g'),
        ):
            answer = session.get(hub + path, timeout=DEADLINE_SECONDS)
            assert answer.status_code == 200 and part in answer.text, path


def test_each_commit_has_a_version_and_a_newer_wheel_replaces_an_older_one(
    clone: Path, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    run("git", "clone", "--quiet", str(clone), str(newer), cwd=tmp_path)
    commit(newer)
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment), cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", f"{environment}/bin/python", "install")
    for count, source in enumerate((clone, newer), 1):
        (wheel,) = (source / "dist").glob("*.whl")
        head = run("git", "rev-parse", "HEAD", cwd=source)[:7]
        version = wheel.name.split("-")[1]
        # The source distribution has no git, but its wheel has the same version.
        assert re.fullmatch(rf"1\.0\.1\.dev{count}\+g{head}[0-9a-f]*", version)
        assert (source / f"dist/prompt_hub-{version}.tar.gz").exists()
        said = run(*pip, "--no-deps", "--no-index", str(wheel), cwd=tmp_path)
        assert "already" not in said and f"prompt-hub-{version}" in said
