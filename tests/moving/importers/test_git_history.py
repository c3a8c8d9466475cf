"""The past of files in repositories of git: real ones, and those that strangers have prepared."""

import os
import subprocess
from pathlib import Path

import pytest

from moving.importers import git_history
from moving.importers.git_history import Past, Repository, find_repository
from publisher.outside.git_program import GitError

START = 1_750_000_000


class Work:
    """A work tree; ``commit`` writes files, or removes those that are None, and commits all."""

    def __init__(self, folder: Path, kind: str = "sha1") -> None:
        self.folder = folder
        self.commits = 0
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main", f"--object-format={kind}")

    def git(self, *arguments: str, **environ: str) -> str:
        who = {f"GIT_{one}_{key}": "x@example.com" for one in ("AUTHOR", "COMMITTER")
               for key in ("NAME", "EMAIL")}  # fmt: skip
        time = {"GIT_COMMITTER_DATE": f"{START + self.commits} +0200"}
        return subprocess.run(
            ["git", "-C", str(self.folder), *arguments], check=True, capture_output=True, text=True,
            env=os.environ | who | time | environ,
        ).stdout.strip()  # fmt: skip

    def write(self, **files: str | bytes | None) -> None:
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, subject: str, **files: str | bytes | None) -> str:
        self.write(**files)
        self.commits += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


def past_of(work: Work) -> Past:
    with Repository(work.folder / ".git") as repository:
        return repository.read_past((".md",))


def read_states(work: Work) -> dict[str, list[tuple[int, str, str]]]:
    """By file: second, subject and text of each state."""
    with Repository(work.folder / ".git") as repository:
        files = repository.read_past((".md",)).files
        blobs = repository.read_blobs(
            (one.blob for states in files.values() for one in states), 1000
        )
    return {
        path: [(one.at - START, one.subject, blobs[one.blob].decode()) for one in states]
        for path, states in files.items()
    }


def test_states_come_in_order_with_times_and_subjects(work):
    work.commit("Add a", **{"docs/a.md": "1", "b.txt": "no"})
    work.commit("Touch nothing of it", **{"b.txt": "still no"})
    work.commit("Ändere\tsie\n\nbody", **{"docs/a.md": "2", "C.MD": "c\n\0"})
    work.commit("", **{"docs/a.md": "1"})
    assert read_states(work) == {
        "C.MD": [(3, "Ändere\tsie", "c\n\0")],
        "docs/a.md": [(1, "Add a", "1"), (3, "Ändere\tsie", "2"), (4, "", "1")],
    }


def test_names_of_sha256(tmp_path):
    work = Work(tmp_path / "work", "sha256")
    work.commit("one", **{"a.md": "1"})
    assert read_states(work) == {"a.md": [(1, "one", "1")]}


def test_renamed_removed_and_returned(work):
    text = "A text that is long enough to be known again.\n" * 5
    work.commit("one", **{"a.md": text, "gone.md": "x", "back.md": "before"})
    work.commit("two", **{"a.md": None, "new/b.md": text + "More.", "gone.md": None})
    work.commit("three", **{"back.md": None})
    work.commit("four", **{"back.md": "after"})
    assert read_states(work) == {
        "back.md": [(1, "one", "before"), (4, "four", "after")],
        "new/b.md": [(1, "one", text), (2, "two", text + "More.")],
    }


def test_what_was_merged_ends_in_the_state_at_head(work):
    work.commit("base", **{"a.md": "1\n\n\n2\n", "b.md": "b"})
    work.git("checkout", "--quiet", "-b", "side")
    work.commit("side", **{"a.md": "1\n\n\nside\n", "b.md": "side"})
    work.git("checkout", "--quiet", "main")
    work.commit("main", **{"a.md": "main\n\n\n2\n"})
    work.commits += 1
    work.git("merge", "--quiet", "--no-ff", "-m", "both", "side")
    found = read_states(work)
    assert found["a.md"][0] == (1, "base", "1\n\n\n2\n")
    assert found["a.md"][-1] == (4, "both", "main\n\n\nside\n")
    assert {subject for _, subject, _ in found["a.md"]} == {"base", "side", "main", "both"}
    assert found["b.md"] == [(1, "base", "b"), (2, "side", "side")]


def test_a_rename_that_is_merged_keeps_both_pasts(work):
    text = "A text that is long enough to be known again.\n" * 5
    work.commit("base", **{"a.md": text, "c.md": "1\n\n\n2\n"})
    work.git("checkout", "--quiet", "-b", "side")
    work.commit("renamed", **{"a.md": None, "b.md": text + "Side.\n", "c.md": "1\n\n\nside\n"})
    work.git("checkout", "--quiet", "main")
    work.commit("main", **{"a.md": "Main.\n" + text, "c.md": "main\n\n\n2\n"})
    work.commits += 1
    work.git("merge", "--quiet", "--no-ff", "-m", "both", "side")
    found = read_states(work)
    assert [*found] == ["b.md", "c.md"]
    assert [subject for _, subject, _ in found["b.md"]] == ["base", "renamed", "main", "both"]
    assert found["b.md"][-1][2] == f"Main.\n{text}Side.\n"


def test_what_is_no_file_or_too_large_is_left_out(work):
    (work.folder / "link.md").symlink_to("a.md")
    work.commit("one", **{"a.md": "x" * 1001, "b.md": "b"})
    past = past_of(work)
    assert list(past.files) == ["a.md", "b.md"]
    with Repository(work.folder / ".git") as repository:
        names = [past.files[path][0].blob for path in past.files]
        assert repository.read_blobs([*names, "0" * 40, past.files["b.md"][0].commit], 1000) == {
            names[1]: b"b"
        }


def test_a_shallow_clone_says_that_it_is_one(work, tmp_path):
    for number in range(3):
        work.commit(f"{number}", **{"a.md": str(number)})
    assert past_of(work).missing == ""
    work.git("clone", "--quiet", "--depth=2", f"file://{work.folder}", str(tmp_path / "clone"))
    with Repository(tmp_path / "clone/.git") as repository:
        past = repository.read_past((".md",))
    assert "--unshallow" in past.missing
    assert [one.subject for one in past.files["a.md"]] == ["1", "2"]


def test_work_trees_and_names_with_quotes(work, tmp_path):
    work.commit("one", **{'a "b\\\n.md': "text"})
    linked = tmp_path / "linked"
    work.git("worktree", "add", "--quiet", str(linked))
    inside = linked / "folder"
    inside.mkdir()
    found = find_repository(str(inside))
    assert found and found[0] == linked
    with Repository(found[1]) as repository:
        assert [*repository.read_past((".md",)).files] == ['a "b\\\n.md']
    assert find_repository(str(tmp_path)) is None
    os.rename(work.folder, tmp_path / 'moved "tree\\')
    with Repository(tmp_path / 'moved "tree\\' / ".git") as repository:
        past = repository.read_past((".md",))
        [state] = past.files['a "b\\\n.md']
        assert repository.read_blobs([state.blob], 1000) == {state.blob: b"text"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda git: (git / "HEAD").write_text("ref: refs/heads/nowhere\n"),
        lambda git: (git / "HEAD").write_text("rubbish\n"),
        lambda git: (git / "config").write_text("[core"),
        lambda git: [path.unlink() for path in (git / "objects").rglob("??????????*")],
    ],
)
def test_broken_repositories(work, spoil):
    work.commit("one", **{"a.md": "1"})
    spoil(work.folder / ".git")
    with pytest.raises(GitError):
        past_of(work)


def test_nothing_of_a_stranger_is_run(work, tmp_path):
    """Every program that a repository can name would write a file."""
    first = work.commit("one", **{"a.md": "1", ".gitattributes": "*.md diff=evil filter=evil\n"})
    work.commit("two", **{"a.md": "2"})
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{tmp_path}/was-run'\nexit 1\n")
    program.chmod(0o755)
    git = work.folder / ".git"
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        (git / "hooks").mkdir(exist_ok=True)
        (git / "hooks" / hook).symlink_to(program)
    settings = {
        "core.fsmonitor": program, "core.pager": program, "core.sshCommand": program,
        "core.editor": program, "core.askPass": program, "core.alternateRefsCommand": program,
        "core.gitProxy": program, "gpg.program": program, "log.showSignature": "true",
        "diff.external": program, "diff.evil.textconv": program, "diff.evil.command": program,
        "filter.evil.smudge": program, "filter.evil.clean": program, "pager.log": program,
        "pager.rev-parse": program, "alias.log": f"!{program}", "credential.helper": program,
        "extensions.partialClone": "evil", "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::{program}", "protocol.ext.allow": "always",
        "remote.evil.uploadpack": program, "core.repositoryFormatVersion": "1",
        "uploadpack.packObjectsHook": program, "core.hooksPath": git / "hooks",
    }  # fmt: skip
    lines = "".join(
        f"[{name.rpartition('.')[0].partition('.')[0]}"
        + (f' "{name.split(".")[1]}"' if name.count(".") == 2 else "")
        + f']\n\t{name.rpartition(".")[2]} = "{value}"\n'
        for name, value in settings.items()
    )
    with open(git / "config", "a") as config:
        config.write(lines)
    # An object that is missing would be fetched.
    (git / "objects" / first[:2] / first[2:]).unlink()
    assert subprocess.run(["git", "-C", str(work.folder), "log"], capture_output=True).returncode
    assert (tmp_path / "was-run").exists()  # by the plain call: the trap works
    (tmp_path / "was-run").unlink()
    with pytest.raises(GitError):
        past_of(work)
    assert not (tmp_path / "was-run").exists()


def test_limits(work, monkeypatch):
    for number in range(3):
        work.commit(f"{number}", **{"a.md": str(number), "b.md": "b" * number})
    with monkeypatch.context() as patch:
        patch.setattr(git_history, "COMMITS_MAX", 2)
        past = past_of(work)
        assert [one.subject for one in past.files["a.md"]] == ["1", "2"]
        assert past.missing == "more than 2 commits change such files"
    with monkeypatch.context() as patch:
        patch.setattr(git_history, "CHANGES_MAX", 5)
        with pytest.raises(GitError, match="more than 5 files"):
            past_of(work)
    monkeypatch.setattr(git_history, "TOTAL_BYTES_MAX", 2)
    with pytest.raises(GitError, match="more than 2 bytes"):
        read_states(work)
    monkeypatch.setattr(git_history, "TOKEN_BYTES_MAX", 100)
    work.commit("x" * 100_000, **{"a.md": "!"})
    with pytest.raises(GitError, match="more than 100 bytes"):
        past_of(work)


def test_nothing_is_left_behind(work, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    work.commit("one", **{"a.md": "1"})
    before = sorted(work.folder.rglob("*"))
    read_states(work)
    (work.folder / ".git/HEAD").write_text("ref: refs/heads/nowhere\n")
    with pytest.raises(GitError):
        past_of(work)
    assert sorted(work.folder.rglob("*")) == before
    assert not list(temporary.iterdir())
