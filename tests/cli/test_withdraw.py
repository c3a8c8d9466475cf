"""``hubctl withdraw``."""

import errno
import io
import os
import re
from pathlib import Path

import pytest

from builder.store.site import Site
from tests.cli.command import run
from tests.support.calls import once, watched
from tests.support.catalogues import read_tree


@pytest.fixture(autouse=True)
def folder(folder: Path) -> Path:
    """The working folder, whose content has two versions of ann/story, and another prompt."""
    for repo, text in (("story", "Leak-1."), ("story", "Leak-2."), ("poem", "Roses.")):
        assert run("publish", f"ann/{repo}", "-", stdin=text).exit_code == 0
    run("label", "set", "ann/story", "production", "1.0.1")
    return folder


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def shown(text: str, where: str = "site_out") -> list[str]:
    """The files that have a text in them; of compressed ones only the plain form is looked at."""
    return [file for file, data in read_tree(where).items() if text.encode() in data]


@pytest.mark.parametrize("repo", ["ann/story@1.0.1", "ann/story"])
def test_the_site_has_nothing_of_it_when_the_command_ends(repo: str):
    run("build", "--base-url", "https://hub.example", "--site-name", "Ours")
    assert shown("Leak-2") and shown("Leak-2", "content")
    done = run("withdraw", repo, "--reason", "secret", "--note", "Key revoked", "--yes")
    assert (done.exit_code, done.stdout) == (0, f"{repo} withdrawn\n")
    assert "up to date" in done.stderr and "purge your CDN" in done.stderr
    assert "The label production names no version any more." in done.stderr
    assert not shown("Leak-2") and not shown("Leak-2", "content")
    # As it was built before: with its name and address.
    checked = run("build", "--check", "--base-url", "https://hub.example", "--site-name", "Ours")
    assert checked.exit_code == 0, checked.output
    again = run("withdraw", repo, "--reason", "error")
    assert again.exit_code == 0 and "Already withdrawn" in again.stdout
    assert "production" not in again.stderr
    assert "contained a secret" in again.stdout
    assert run("check").exit_code == 0


def test_labels_that_name_other_versions_are_not_named():
    run("label", "set", "ann/story", "beta", "1.0.0")
    run("label", "set", "ann/story", "canary", "1.0.0")
    done = run("withdraw", "ann/story@1.0.0", "--reason", "error", "--yes")
    assert "The labels beta, canary name no version any more." in done.stderr
    assert "production" not in done.stderr
    done = run("withdraw", "ann/poem@1.0.0", "--reason", "error", "--yes")
    assert done.exit_code == 0 and "label" not in done.stderr


LABEL = Path("site_out/api/v1/repos/ann/story/labels/production.txt")
MOVING = ("withdraw", "ann/story@1.0.1", "--reason", "secret", "--move-labels", "1.0.0", "--yes")


def test_labels_that_move_are_on_the_site_throughout(monkeypatch: pytest.MonkeyPatch):
    run("build")
    seen = []
    remove = Site.remove
    monkeypatch.setattr(
        Site, "remove", lambda *files: seen.append(LABEL.read_text()) or remove(*files)
    )
    done = run(*MOVING)
    assert done.exit_code == 0 and "The label production names 1.0.0 now." in done.stderr
    assert "label set" not in done.stderr
    assert seen[0] == "Leak-2." and LABEL.read_text() == "Leak-1."
    assert not shown("Leak-2") and run("build", "--check").exit_code == 0


def test_labels_that_move_show_no_secret_where_nothing_can_be_built():
    run("build")
    assert run(*MOVING, "--state", "other").exit_code == 0
    assert not LABEL.exists() and not [file for file in shown("Leak-2") if "story" in file]
    assert run("build").exit_code == 0 and LABEL.read_text() == "Leak-1."


def test_a_file_lists_what_was_withdrawn():
    run("build")
    run("withdraw", "ann/story@1.0.1", "--reason", "error", "--yes")
    run("withdraw", "ann/story", "--reason", "owner", "--yes")
    run("withdraw", "ann/poem", "--reason", "legal", "--note", "Ask us.", "--yes")
    lines = Path("site_out/api/v1/withdrawn.jsonl").read_text().splitlines()
    assert [re.sub('"at":"[^"]+"', "", line) for line in lines] == [
        f'{{"owner":"ann","name":"{name}","version":{version},,"reason":"{reason}","note":"{note}"}}'
        for name, version, reason, note in (
            ("poem", "null", "legal", "Ask us."),
            ("story", '"1.0.1"', "error", ""),
            ("story", "null", "owner", ""),
        )
    ]
    assert run("build", "--check").exit_code == 0


def test_a_site_of_which_nothing_is_known_loses_the_files():
    run("build")
    done = run("withdraw", "ann/story@1.0.1", "--reason", "error", "--yes", "--state", "other")
    assert done.exit_code == 0 and "Run `hubctl build`" in done.stderr
    left = shown("Leak-2")
    assert not [file for file in left if "story" in file]
    assert run("build").exit_code == 0 and run("build", "--check").exit_code == 0
    assert not shown("Leak-2")


def test_without_a_site():
    done = run("withdraw", "ann/story", "--reason", "error", "--yes")
    assert done.exit_code == 0 and "Removed 0 files" in done.stderr


def test_a_build_that_fails_is_reported():
    run("build")

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watched(once("rename", "site_out/ann/story.html", full)):
        done = run("withdraw", "ann/story@1.0.1", "--reason", "error", "--yes")
    assert done.exit_code == 1 and "is withdrawn, but the site" in done.stderr
    assert "No space left" in done.stderr and not shown("Leak-2", "content")


def test_nobody_to_ask():
    before = read_tree("content")
    done = run("withdraw", "ann/story", "--reason", "error")
    assert done.exit_code == 2 and "--yes" in done.stderr
    assert read_tree("content") == before


@pytest.mark.parametrize(("answer", "is_done"), [("y\n", True), ("n\n", False), ("", False)])
@pytest.mark.parametrize(
    ("repo", "told"),
    [
        ("ann/story@1.0.1", ["label production", "Its latest version is 1.0.1, and will be 1.0.0"]),
        ("ann/story", ["2 versions", "under its name", "will be none"]),
    ],
)
def test_at_a_terminal(repo: str, told: list[str], answer: str, is_done: bool):
    done = run("withdraw", repo, "--reason", "owner", stdin=Terminal(answer.encode()))
    assert all(text in done.stdout for text in told)
    assert done.exit_code == (0 if is_done else 1)
    assert bool(shown("Leak-2", "content")) != is_done


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["ann/story@"], 2, "no version after the @"),
        (["ann"], 2, "no slash"),
        (["ann/story@1"], 1, "x.y.z"),
        (["ann/story@9.9.9"], 1, "no version 9.9.9"),
        (["ann/tale"], 1, "No prompt ann/tale"),
        (["ann/story", "--by", "Bob"], 1, "'bob'"),
        (["ann/story", "--note", "x" * 2000], 1, "longer than 1,024 bytes"),
    ],
)
def test_what_is_wrong(args: list[str], status: int, told: str):
    done = run("withdraw", *args, "--reason", "error", "--yes")
    assert done.exit_code == status and told in done.stderr
    assert run("withdraw", "ann/story", "--yes").exit_code == 2
