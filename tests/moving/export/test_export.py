"""`hubctl export`: a folder that git can follow, in which the user's own files stay untouched."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import Result

from builder.store import content
from moving.export.listing import FORMATS, LIST_FILE
from tests.cli.command import run
from tests.support.calls import once, watched
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
    return set(read_tree(folder)) - {LIST_FILE}


def test_a_file_for_each_prompt(root):
    done = export()
    assert done.stdout == "2 files in out: 2 written, 0 unchanged, 0 removed\n"
    assert files() == {"ann/story.md", "bob/chat.md"}
    assert Path("out/ann/story.md").read_text().endswith("Tell ten.")
    output = export("--owner", "bob", to="bob", format="skill").stderr
    assert files("bob") == {"bob/chat/SKILL.md"}
    assert "1 file: skill cannot hold roles of messages: they become headings\n" in output


def test_only_what_has_changed_is_written(root):
    export()
    before = {path: os.stat(path).st_mtime_ns for path in Path("out").rglob("*")}
    assert export().stdout == "2 files in out: 0 written, 2 unchanged, 0 removed\n"
    assert {path: os.stat(path).st_mtime_ns for path in Path("out").rglob("*")} == before
    write_version("content", "ann", "story", "1.11.0", "Tell more.")
    assert export().stdout == "2 files in out: 1 written, 1 unchanged, 0 removed\n"
    fresh = export(to="fresh")
    assert fresh.exit_code == 0 and read_tree("fresh") == read_tree("out")


def test_what_is_gone_is_removed_and_nothing_else(root):
    Path("out").mkdir()
    Path("out/README.md").write_text("Ours.")
    export()
    Path("out/ann/notes.txt").write_text("Mine.")
    shutil.rmtree("content/bob")
    write_withdrawn("content", "ann/story", None)
    assert export().stdout == "0 files in out: 0 written, 0 unchanged, 2 removed\n"
    assert files() == {"README.md", "ann/notes.txt"}
    assert not Path("out/bob").exists()


def test_the_files_of_another_format_or_owner(root):
    export()
    # The others' files stay, since they were not looked at.
    done = export("--owner", "ann", format="skill")
    assert done.stdout == "1 file in out: 1 written, 0 unchanged, 1 removed\n"
    assert files() == {"ann/story/SKILL.md", "bob/chat.md"}
    export(format="skill")
    assert files() == {"ann/story/SKILL.md", "bob/chat/SKILL.md"}


def test_changes_of_ones_own_are_left_alone(root):
    Path("out/bob").mkdir(parents=True)
    Path("out/bob/chat.md").write_text("Mine.")
    done = export()
    assert done.exit_code == 1
    assert "out/bob/chat.md is not as an export wrote it" in done.stderr
    edited = Path("out/ann/story.md")
    edited.write_text(edited.read_text() + "More.")
    write_version("content", "ann", "story", "1.11.0", "Tell more.")
    assert "out/ann/story.md is not" in export().stderr
    assert edited.read_text().endswith("Tell ten.More.")
    shutil.rmtree("content/ann")
    Path("out/bob/chat.md").unlink()
    done = export()
    assert done.stdout == "1 file in out: 1 written, 0 unchanged, 0 removed\n"
    assert edited.exists() and export().stderr == done.stderr


def test_changes_of_ones_own_are_imported_to_their_prompt(root):
    export()
    edited = Path("out/ann/story.md")
    edited.write_text(edited.read_text().replace("Tell ten.", "Tell eleven."))
    assert export().exit_code == 1
    run("import", "out", "--allow-owner", "ann")
    assert not Path("content/imported").exists()
    newest = content.list_versions("content", "ann", "story").versions[-1]
    assert content.read_version("content", "ann", "story", newest)[1].endswith("Tell eleven.")


def test_a_link_leads_nowhere(root):
    Path("elsewhere").mkdir()
    Path("out").mkdir()
    Path("out/bob").symlink_to("../elsewhere")
    done = export()
    assert done.exit_code == 1 and "out/bob/chat.md" in done.stderr
    assert not os.listdir("elsewhere")


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


def test_an_interrupted_export_continues(root):
    def interrupt() -> None:
        raise KeyboardInterrupt

    with watched(once("open", "bob/chat/1.0.0.json", interrupt)):
        assert export().exit_code == 1
    write_version("content", "ann", "story", "1.11.0", "Tell more.")
    assert export().stdout == "2 files in out: 2 written, 0 unchanged, 0 removed\n"


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ("{", "no list of exported files"),
        ('{"files": {"../../x/y.md": "' + "0" * 64 + '"}}', "path"),
        ('{"files": {"a/b.txt": "' + "0" * 64 + '"}}', "path"),
    ],
)
def test_a_list_that_no_export_wrote(root, listed, message):
    export()
    Path("out", LIST_FILE).write_text(listed)
    done = export()
    assert done.exit_code == 1 and message in done.stderr
    imported = run("import", "out", "--owner", "carl")
    # Without the list, the files are like any others: they go to the owner of the import.
    assert f"Rejected: {LIST_FILE}" in imported.stderr and "2 prompts created" in imported.stdout


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
    """Into its own content: what comes back the same is no new version."""
    shutil.rmtree("content")
    shutil.copytree(PROJECT / "content", "content")
    assert export(format=format).exit_code == 0
    owners = content.list_owners("content")
    allowed = [word for owner in owners for word in ("--allow-owner", owner)]
    done = run("import", "out", *allowed)
    assert done.exit_code == 0
    updated = int(re.search(r"(\d+) updated", done.stdout)[1])
    # Prompts with front matter, which is left out now, and one with braces that are escaped as a
    # precaution.
    assert done.stdout.startswith("0 prompts created") and updated <= 8
    # A second import finds nothing new.
    assert " 0 updated" in run("import", "out", *allowed).stdout
    # Into an empty hub, owners and all.
    os.mkdir("empty")
    assert run("import", "out", "--content", "empty").exit_code == 0
    held = ("title", "description")
    for owner in owners:
        for name in content.list_repos("content", owner):
            before = content.list_versions("content", owner, name).versions[-1]
            was, _ = content.read_version("content", owner, name, before)
            (version,) = content.list_versions("empty", owner, name).versions
            now, _ = content.read_version("empty", owner, name, version)
            for field in held if format == "skill" else ():  # Markdown has what its text says.
                assert getattr(now, field) == getattr(was, field), (owner, name, field)
            assert format == "skill" or now.sha256 == was.sha256


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
    assert len([line for line in lines if line[:3] not in ("+++", "---")]) == 4


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
    assert export(format="skill").stdout == "7 files in out: 0 written, 7 unchanged, 0 removed\n"
    # Into another hub, files and all, and again without a new version.
    os.mkdir("other")
    for expected in ("3 prompts created", "0 prompts created, 0 updated, 3 unchanged"):
        assert expected in run("import", "out", "--content", "other").stdout
    (version,) = content.list_versions("other", "ann", "lint").versions
    record, _ = content.read_version("other", "ann", "lint", version)
    assert content.read_files("other", "ann", "lint", version, record) == [*FILES.values()]
    assert [one.path for one in record.files if one.executable] == ["run.sh"]
    # Files that are gone go; one's own stay.
    write_version("content", "ann", "lint", "1.1.0", "Lint.", {"x": b"1"}, title="Lint")
    Path("out/ann/lint/assets/mine.txt").write_text("Mine.")
    assert export(format="skill").stdout == "4 files in out: 1 written, 3 unchanged, 3 removed\n"
    assert files("out/ann/lint") == {"SKILL.md", "assets/mine.txt", "x"}


def test_a_file_becomes_a_folder_and_a_file_again(root):
    for number, path in enumerate(("a", "a/b", "a")):
        write_version("content", "ann", "lint", f"1.{number}.0", "Lint.", {path: b"1"})
        assert export(format="skill").exit_code == 0
        assert files("out/ann/lint") == {"SKILL.md", path}


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
