"""``hubctl label`` and the labels of ``hubctl publish`` and ``hubctl token``."""

from pathlib import Path

import pytest

from publisher.accounts.database import Database
from publisher.accounts.rights import ProtectedLabels
from publisher.write.moves import read_labels
from tests.cli.command import run


@pytest.fixture(autouse=True)
def story(folder: Path) -> None:
    """Two versions of ann/story."""
    for text in ("One.", "Two."):
        assert run("publish", "ann/story", "-", stdin=text).exit_code == 0


def test_set_and_remove():
    done = run("label", "set", "ann/story", "production", "1.0.0", "-m", "Passed.\nTwice.")
    assert (done.exit_code, done.stdout) == (0, "ann/story production names 1.0.0\n")
    run("label", "set", "ann/story", "production", "1.0.1", "--by", "bob", "--expected", "1.0.0")
    again = run("label", "set", "ann/story", "production", "1.0.1")
    assert again.stdout == "ann/story production names 1.0.1 already\n" and not again.stderr
    assert run("label", "remove", "ann/story", "production").stdout == (
        "ann/story production is removed\n"
    )
    moves = read_labels("content", "ann", "story").history["production"]
    assert [(move.version, move.moved_by, move.note) for move in moves] == [
        (None, "ann", ""), ("1.0.1", "bob", ""), ("1.0.0", "ann", "Passed.\nTwice."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["set", "ann/story", "production", "9.9.9"], 1, "no version 9.9.9"),
        (["set", "ann/story", "production", "1"], 1, "x.y.z"),
        (["set", "ann/story", "latest", "1.0.0"], 1, "reserved"),
        (["set", "ann/story", "Production", "1.0.0"], 1, "'production'"),
        (["set", "ann/story", "production", "1.0.0", "--expected", "1.0.1"], 1, "no such label"),
        (["set", "ann/nothing", "production", "1.0.0"], 1, "No prompt ann/nothing"),
        (["set", "story", "production", "1.0.0"], 2, "OWNER/NAME"),
        (["remove", "ann/story", "production"], 1, "no label production"),
        (["remove", "ann/../..", "production"], 1, "Invalid prompt name"),
        (["protect", "nobody", "production"], 1, "hubctl owner add"),
        (["protect", "Ann", "production"], 1, "'ann'"),
    ],
)
def test_what_is_refused(args: list[str], status: int, told: str):
    done = run("label", *args)
    assert done.exit_code == status and told in done.stderr and not done.stdout


def test_publish_with_labels():
    done = run(
        "publish", "ann/story", "-", "--label", "production", "--label", "canary", stdin="Three."
    )
    assert done.stdout == "ann/story 1.0.2\n"
    names = read_labels("content", "ann", "story").versions()
    assert names == {"canary": "1.0.2", "production": "1.0.2"}


def test_protect(folder: Path):
    run("owner", "add", "ann")
    assert "The label production of ann/* is protected" in (
        run("label", "protect", "ann", "production").stderr
    )
    assert "was already protected" in run("label", "protect", "ann", "production").stderr
    run("label", "protect", "ann/story", "canary")
    with Database("var") as database:
        assert ProtectedLabels(database).of("ann") == [("", "production"), ("story", "canary")]
    assert "is not protected" in run("label", "unprotect", "ann", "production").stderr
    # A user with access to the folder needs no token.
    assert run("label", "set", "ann/story", "canary", "1.0.0").exit_code == 0


def test_tokens_with_rights():
    run("owner", "add", "ann")
    done = run(
        "token", "create", "ann", "--name", "ci", "--right", "label", "--label", "production"
    )
    assert "moves production in ann/* until" in done.stderr
    assert run("token", "list").stdout.rstrip().endswith("\tmoves production")
    wrong = run("token", "create", "ann", "--name", "x", "--right", "publish", "--label", "a")
    assert wrong.exit_code == 1 and "needs the right `label`" in wrong.stderr
