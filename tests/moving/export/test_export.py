"""`hubctl export`: a folder that git can follow, from which nothing is removed."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import Result

from builder.store import content
from moving.export.run import FORMATS
from tests.cli.command import run
from tests.support.catalogues import read_tree, write_version, write_withdrawn
from tests.support.servers import PROJECT

CHAT = '{{role "system"}}\nBe kind.\n{{role "user"}}\nHi {{name}}.\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; its content has prompts of two owners."""
    monkeypatch.chdir(tmp_path)
    write_version("content", "ann", "story", "1.0.0", "Tell one.", title="A story")
    write_version("content", "ann", "story", "1.10.0", "Tell ten.", title="A story")
    write_version("content", "bob", "chat", "1.0.0", CHAT, tags=["a"])
    return tmp_path


def export(*args: str, to: str = "out", format: str = "markdown") -> Result:
    return run("export", "--as", format, *args, to)


def files(folder: str = "out") -> set[str]:
    return set(read_tree(folder))


def test_a_file_for_each_prompt(root):
    done = export()
    assert done.stdout == "2 files in out: 2 written, 0 unchanged\n"
    assert files() == {"ann/story.md", "bob/chat.md"}
    assert Path("out/ann/story.md").read_text().endswith("Tell ten.")
    output = export("--owner", "bob", to="bob", format="skill").stderr
    assert files("bob") == {"bob/chat/SKILL.md"}
    assert "1 file: skill cannot hold roles of messages: they become headings\n" in output


def test_only_what_has_changed_is_written(root):
    export()
    before = {path: os.stat(path).st_mtime_ns for path in Path("out").rglob("*")}
    assert export().stdout == "2 files in out: 0 written, 2 unchanged\n"
    assert {path: os.stat(path).st_mtime_ns for path in Path("out").rglob("*")} == before
    write_version("content", "ann", "story", "1.11.0", "Tell more.")
    assert export().stdout == "2 files in out: 1 written, 1 unchanged\n"
    fresh = export(to="fresh")
    assert fresh.exit_code == 0 and read_tree("fresh") == read_tree("out")


def test_what_is_of_no_prompt_is_named_and_stays(root):
    Path("out/.git").mkdir(parents=True)
    Path("out/.git/config").write_text("Git's.")
    Path("out/README.md").write_text("Ours.")
    export()
    Path("out/bob/notes.txt").write_text("Mine.")
    edited = Path("out/bob/chat.md")
    edited.write_text("Edited.")
    write_withdrawn("content", "ann/story", None)
    done = export()
    assert done.stdout == "1 file in out: 1 written, 0 unchanged\n" and edited.read_text() == CHAT
    named = ["README.md", "ann/story.md", "bob/notes.txt"]
    assert done.stderr == "".join(f"Of no prompt: {path}\n" for path in named)
    assert files() == {".git/config", "bob/chat.md", *named}
    # Of another owner, nothing is said; of another format, each file.
    assert export("--owner", "bob", format="skill").stderr.splitlines()[:2] == [
        "Of no prompt: bob/chat.md", "Of no prompt: bob/notes.txt",
    ]  # fmt: skip


def test_a_link_leads_nowhere(root):
    Path("elsewhere").mkdir()
    Path("out").mkdir()
    Path("out/bob").symlink_to("../elsewhere")
    done = export()
    assert done.exit_code == 1 and "out/bob is a link, which no export follows" in done.stderr
    assert not os.listdir("elsewhere")
    Path("out/bob").unlink()
    Path("out/ann/story.md").unlink()
    Path("out/ann/story.md").symlink_to("../../mine")
    assert export().exit_code == 0 and not Path("out/ann/story.md").is_symlink()
    assert not Path("mine").exists()


def test_a_link_in_the_place_of_the_unfinished_file_is_not_written_to(root):
    Path("out").mkdir()
    Path("out/.hub-export.tmp").symlink_to("../mine")
    done = export()
    assert done.exit_code == 1 and "Cannot write out/ann/story.md" in done.stderr
    assert not Path("mine").exists()


def test_a_fault_of_a_prompt_stops_no_other_and_removes_nothing(root):
    export()
    Path("content/bob/chat/1.0.0.md").write_text("Changed.")
    done = export()
    assert done.exit_code == 1 and "bob/chat/1.0.0.md" in done.stderr
    assert files() == {"ann/story.md", "bob/chat.md"}


def test_where_nothing_can_be_exported_to(root):
    assert "in the content folder" in export(to="content/out").stderr
    assert "in the content folder" in export(to="content").stderr
    assert "No owner carl" in export("--owner", "carl").stderr
    Path("out").mkdir()
    descriptor = os.open("out", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert "Another export" in export().stderr
    finally:
        os.close(descriptor)
    assert not os.listdir("out")


@pytest.mark.parametrize("format", FORMATS)
def test_the_sample_catalogue_comes_back(root, format):
    shutil.rmtree("content")
    shutil.copytree(PROJECT / "content", "content")
    assert export(format=format).exit_code == 0
    os.mkdir("empty")
    for owner in content.list_owners("content"):
        args = ("import", f"out/{owner}", "--content", "empty", "--owner", owner)
        assert run(*args, "--placeholders", "none").exit_code == 0
        assert " created, 0 updated" in run(*args, "--placeholders", "none").stdout
        for name in content.list_repos("content", owner):
            before = content.list_versions("content", owner, name).versions[-1]
            was, text = content.read_version("content", owner, name, before)
            (version,) = content.list_versions("empty", owner, name).versions
            now, back = content.read_version("empty", owner, name, version)
            if format == "skill":  # Markdown has what its text says.
                assert (now.title, now.description) == (was.title, was.description)
            else:
                assert back == text


def test_git_sees_each_version_as_a_change(root):
    export()
    git = ["git", "-C", "out", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "One"], check=True)
    write_version("content", "ann", "story", "1.11.0", "Tell eleven.", title="A story")
    export()
    changed = subprocess.run([*git, "diff", "-U0"], check=True, capture_output=True, text=True)
    lines = [line for line in changed.stdout.splitlines() if line[:1] in "+-"]
    assert "-Tell ten." in lines and "+Tell eleven." in lines
    assert len([line for line in lines if line[:3] not in ("+++", "---")]) == 2


FILES = {"assets/logo.png": b"\x89\0\xff", "examples/a.md": b"Hi", "run.sh": b"", "x": b"1"}


def executables(folder: str) -> set[str]:
    return {path for path in files(folder) if os.access(Path(folder, path), os.X_OK)}


def test_a_skill_has_its_files_beside_it(root):
    write_version("content", "ann", "lint", "1.0.0", "Lint.", FILES, title="Lint")
    assert export(format="skill").stdout.startswith("7 files in out: 7 written")
    assert {
        path: data for path, data in read_tree("out/ann/lint").items() if path in FILES
    } == FILES
    assert executables("out") == {"ann/lint/run.sh"}
    assert export(format="skill").stdout == "7 files in out: 0 written, 7 unchanged\n"
    os.mkdir("other")
    for expected in ("1 prompt created", "0 prompts created, 0 updated, 1 unchanged"):
        args = ("out/ann/lint", "--content", "other", "--owner", "ann")
        assert expected in run("import", *args).stdout
    (version,) = content.list_versions("other", "ann", "lint").versions
    record, _ = content.read_version("other", "ann", "lint", version)
    assert content.read_files("other", "ann", "lint", version, record) == [*FILES.values()]
    assert [one.path for one in record.files if one.executable] == ["run.sh"]


def test_a_mode_alone_is_a_change(root):
    write_version("content", "ann", "lint", "1.0.0", "Lint.", {"run.sh": b"x", "x": b"1"})
    export(format="skill")
    os.chmod("out/ann/lint/x", 0o777)
    os.chmod("out/ann/lint/run.sh", 0o600)
    assert "2 written" in export(format="skill").stdout
    assert executables("out") == {"ann/lint/run.sh"}


def test_markdown_with_files_is_a_folder(root):
    write_version("content", "ann", "lint", "1.0.0", "Lint.", FILES)
    assert export().exit_code == 0
    assert files() >= {"ann/lint/PROMPT.md", *(f"ann/lint/{path}" for path in FILES)}


def test_a_damaged_file_is_a_fault(root):
    write_version("content", "ann", "lint", "1.0.0", "Lint.", FILES)
    export(format="skill")
    Path("content/ann/lint/1.0.0.files/x").write_text("2")
    done = export(format="skill")
    assert done.exit_code == 1 and "ann/lint/1.0.0.files/x: changed after" in done.stderr
    assert Path("out/ann/lint/x").read_text() == "1"
