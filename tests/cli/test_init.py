"""``hubctl init``: a folder that is a hub, whatever was there before."""

import errno
import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from builder.model.names import Version
from builder.store.content import read_version
from cli.config import read_config
from cli.hubctl import main
from cli.init import FIRST_PROMPT
from publisher.accounts.token import is_token
from tests.cli.test_hubctl import hubctl
from tests.support.catalogues import read_tree
from tests.support.servers import DEADLINE_SECONDS, HUBCTL, SAMPLE, clean_environment

FILES = {
    "hub.toml", "README.md", ".gitignore", ".gitattributes", ".github/workflows/hub.yml",
    ".gitlab-ci.yml",
}  # fmt: skip

STEPS = "  hubctl owner invite ann  # a link to sign in\n  hubctl serve\n"
NAMED = ("--owner", "ann", "--package", "a-package")


def init(*arguments: str, cwd: Path) -> Result:
    return hubctl("init", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub as the command creates it."""
    folder = tmp_path_factory.mktemp("made")
    done = init("my hub", *NAMED, cwd=folder)
    assert done.exit_code == 0, done.output
    assert done.stderr.endswith(f"Next:\n  cd 'my hub'\n{STEPS}")
    return folder / "my hub"


def test_a_hub(made: Path) -> None:
    prompt = f"content/ann/{FIRST_PROMPT}/1.0.0"
    files = {file for file in read_tree(made) if "sqlite3-" not in file}
    files.remove("var/accounts.sqlite3")
    assert files == FILES | {"content/ann/owner.json", f"{prompt}.md", f"{prompt}.json"}
    record, text = read_version(f"{made}/content", "ann", FIRST_PROMPT, Version(1, 0, 0))
    assert (record.title, record.publisher) == ("Summarize a text", "ann")
    assert "{{text}}" in text
    assert hubctl("check", cwd=made / "content/ann").exit_code == 0
    readme = (made / "README.md").read_text()
    assert "hubctl publish ann/hello hello.md" in readme and "hubctl owner invite ann" in readme


def test_its_owner_can_have_tokens_at_once(made: Path, tmp_path: Path) -> None:
    hub = shutil.copytree(made, tmp_path / "hub")
    done = hubctl("token", "create", "ann", cwd=hub)
    assert done.exit_code == 0 and is_token(done.stdout.strip()), done.output
    assert hubctl("owner", "add", "ann", cwd=hub).exit_code == 1


def test_the_settings_are_explained_with_values_that_are_right(made: Path) -> None:
    text = (made / "hub.toml").read_text()
    assert 'site-name = "My hub"\n' in text and 'default-owner = "ann"\n' in text
    assert read_config(f"{made}/hub.toml", main)["serve"]["site_name"] == "My hub"
    shown = re.sub(r"^# (?=[a-z-]+ = )", "", text, flags=re.MULTILINE)
    assert len(re.findall(r"^[a-z-]+ = ", shown, flags=re.MULTILINE)) > 30
    (made.parent / "all.toml").write_text(shown)
    defaults = read_config(f"{made.parent}/all.toml", main)
    assert defaults["serve"]["port"] == 8000
    assert defaults["build"]["base_url"] == "https://prompts.example.org"


def test_nothing_is_overwritten_and_what_is_missing_is_added(made: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "content/bob").mkdir(parents=True)
    (tmp_path / ".gitignore").symlink_to("nowhere")
    done = init(".", *NAMED, cwd=tmp_path)
    assert done.exit_code == 0 and done.stderr.endswith(f"Next:\n{STEPS}")
    assert "Kept README.md" in done.stderr and "Kept content" in done.stderr
    there = read_tree(tmp_path)
    ours = {file for file in there if not file.startswith("var/")}
    assert ours == FILES - {".gitignore"} and there["README.md"] == b"mine"
    again = init(str(tmp_path), "--package", "a-package", cwd=tmp_path)
    assert "belong to" not in again.stderr  # hub.toml says whose they are
    assert again.exit_code == 0 and again.stdout == "" and read_tree(tmp_path) == there


def test_a_run_after_a_failure_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run creates one of the files, and fails at the next."""
    rename = os.rename
    parts = {*FILES, "content"}
    created: list[str] = []

    def failing(old: str, new: str) -> None:
        if os.path.relpath(new, "hub") in parts:
            if created:
                raise OSError(errno.ENOSPC, "No space left on device", old, None, new)
            created.append(new)
        rename(old, new)

    monkeypatch.setattr("os.rename", failing)
    for count in range(1, len(parts)):
        created.clear()
        failed = init("hub", *NAMED, cwd=tmp_path)
        assert failed.exit_code == 1 and "No space left on device" in failed.stderr
        assert "run the command again: it adds what is missing" in failed.stderr
        names = {path.relative_to(tmp_path / "hub").parts[0] for path in tmp_path.rglob("*/*")}
        assert len(names & {name.split("/")[0] for name in parts}) >= count
        assert not [name for name in names if name.endswith(str(os.getpid()))]
    created.clear()
    assert init("hub", *NAMED, cwd=tmp_path).exit_code == 0
    assert {*read_tree(tmp_path / "hub")} >= FILES


def test_the_sample(tmp_path: Path) -> None:
    (tmp_path / "demo/content").mkdir(parents=True)  # empty, so it is filled
    done = init("demo", "--sample", cwd=tmp_path)
    assert "Created demo/content with 33 prompts.\n" in done.stdout
    assert read_tree(f"{tmp_path}/demo/content") == read_tree(str(SAMPLE))


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ([], 2, "DIR"),
        (["file"], 1, "Cannot create file: File exists"),
        (["file/hub"], 1, "Not a directory"),
        (["hub", "--owner", "No One"], 1, "Invalid owner"),
        (["hub", "--owner", "admin"], 1, "admin"),
        (["hub", "--package", 'a"b'], 2, "--package"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: list[str], status: int, told: str) -> None:
    (tmp_path / "file").touch()
    done = init(*arguments, cwd=tmp_path)
    assert done.exit_code == status and told in done.stderr
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("user", ["admin", "Zoë.O'Neil", "", "x" * 60, "名前"])
def test_any_user_name_gives_an_owner(
    tmp_path: Path, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: user)
    assert init("hub", cwd=tmp_path).exit_code == 0
    (owner,) = os.listdir(tmp_path / "hub/content")
    assert hubctl("check", cwd=tmp_path / "hub").exit_code == 0
    assert owner == {"": "author", "admin": "admin-user", "Zoë.O'Neil": "zoe-oneil"}.get(
        user, owner
    )


@pytest.mark.parametrize("folder", ['quote"d', "büro 名", "back\\slash", "new\nline", "a\x7fb"])
def test_any_name_of_a_folder_is_one_of_a_hub(tmp_path: Path, folder: str) -> None:
    assert init(folder, "--owner", "ann", cwd=tmp_path).exit_code == 0
    defaults = read_config(f"{tmp_path}/{folder}/hub.toml", main)
    assert defaults["build"]["site_name"] == folder


GIT = "https://git.example.org/hub.git"


@pytest.mark.parametrize(
    ("origin", "spec"),
    [
        (None, None),
        ({"url": "file:///home/ann/hub", "dir_info": {}}, None),
        ({"url": "file:///hub", "vcs_info": {"vcs": "git", "commit_id": "a"}}, None),
        ({"url": "http://example.org/a.whl", "archive_info": {}}, None),
        ({"url": "https://example.org/a.whl", "archive_info": {}},
         "prompt-hub @ https://example.org/a.whl"),
        ({"url": GIT, "vcs_info": {"vcs": "git", "commit_id": "a1b2"}},
         f"prompt-hub @ git+{GIT}@a1b2"),
    ],
)  # fmt: skip
def test_the_jobs_install_what_is_installed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    origin: dict[str, object] | None,
    spec: str | None,
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return origin and json.dumps(origin)

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed())
    done = init("hub", cwd=tmp_path)
    assert ("Created no CI jobs" in done.stderr) == (spec is None)
    readme = (tmp_path / "hub/README.md").read_text()
    assert ("pip install" in readme) == (spec is not None)
    assert "@" not in readme.replace(spec or "@", "")
    for file in (".gitlab-ci.yml", ".github/workflows/hub.yml"):
        assert (tmp_path / "hub" / file).exists() == (spec is not None)
        if spec:
            job = yaml.safe_load((tmp_path / "hub" / file).read_text())
            assert (job.get("env") or job["variables"]) == {"HUB_PACKAGE": spec}


def test_the_jobs_build_a_site(made: Path, tmp_path: Path) -> None:
    """Their commands, with the hubctl of the tests instead of an installed one."""
    github = yaml.safe_load((made / ".github/workflows/hub.yml").read_text())
    gitlab = yaml.safe_load((made / ".gitlab-ci.yml").read_text())
    assert github["env"] == gitlab["variables"]
    commands = {
        "github": [
            step["run"] for job in github["jobs"].values() for step in job["steps"] if "run" in step
        ],
        "gitlab": [*gitlab["check"]["script"], *gitlab["pages"]["script"]],
    }
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hubctl").symlink_to(HUBCTL)
    (tmp_path / "bin/pip").write_text('#!/bin/sh\nprintf "%s\\n" "$@" >>"$HOME/installed"\n')
    (tmp_path / "bin/pip").chmod(0o755)
    for platform, out in (("github", "site_out"), ("gitlab", "public")):
        work = tmp_path / platform
        subprocess.run(["cp", "-r", str(made), str(work)], check=True)
        done = subprocess.run(
            ["bash", "-euc", "\n".join(commands[platform])], cwd=work, capture_output=True,
            text=True,
            env=clean_environment(
                PATH=f"{tmp_path}/bin:/usr/bin:/bin", HOME=str(tmp_path),
                HUB_BASE_URL="https://ann.example.org/hub", HUB_PACKAGE="a-package",
                CI_PAGES_URL="https://ann.example.org/hub",
            ),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        sitemap = (work / out / "sitemap-1.xml").read_text()
        assert "https://ann.example.org/hub/ann/summarize" in sitemap
        assert (work / out / ".nojekyll").exists()
    assert "a-package" in (tmp_path / "installed").read_text()


def test_later_commands_take_the_owner_of_the_hub(made: Path, tmp_path: Path) -> None:
    hub = shutil.copytree(made, tmp_path / "hub")
    (hub / "hello.md").write_text("Hello.")
    assert hubctl("publish", "hello", "hello.md", cwd=hub).stdout == "ann/hello 1.0.0\n"
    assert hubctl("publish", "bob/hello", "hello.md", cwd=hub).stdout == "bob/hello 1.0.0\n"
    assert "1 unchanged" in hubctl("import", "hello.md", cwd=hub).stdout  # ann/hello
    # Nothing of the hub itself is imported, however often.
    for _ in range(2):
        done = hubctl("import", ".", cwd=hub)
        assert "0 prompts created, 0 updated, 1 unchanged, 0 rejected" in done.stdout
        assert "Left out: content, var: passed over" in done.stderr
    refused = hubctl("import", "content/ann", cwd=hub)
    assert refused.exit_code == 1 and "a folder of this hub" in refused.stderr
    elsewhere = hubctl("publish", "hello", f"{hub}/hello.md", cwd=tmp_path)
    assert elsewhere.exit_code == 2 and "has no slash" in elsewhere.stderr


def test_a_terminal_is_asked_for_the_owner(tmp_path: Path) -> None:
    terminal, other = pty.openpty()
    with open(other) as asked:
        os.write(terminal, b"No One\nada\n")
        done = subprocess.run(
            [HUBCTL, "init", "hub"],
            cwd=tmp_path,
            stdin=asked,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            env=clean_environment(),
        )
    os.close(terminal)
    assert "Invalid owner" in done.stderr and done.returncode == 0
    assert os.listdir(tmp_path / "hub/content") == ["ada"]
