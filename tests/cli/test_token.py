"""``hubctl owner`` and ``hubctl token``: a token on standard output, talk on standard error."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.accounts.token import is_token
from publisher.accounts.tokens import Accounts
from tests.cli.command import run
from tests.support.servers import HUBCTL, clean_environment

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


pytestmark = pytest.mark.usefixtures("folder")


def made(*args: str) -> str:
    """The text of a token made for ann, who is added."""
    run("owner", "add", "ann")
    return run("token", "create", "ann", "--name", "ci", *args).stdout.removesuffix("\n")


def test_owners(folder: Path):
    empty = run("owner", "list")
    assert (empty.exit_code, empty.stdout) == (0, "") and "hubctl owner invite" in empty.stderr
    added = run("owner", "add", "ann", "--state", "elsewhere")
    assert (added.exit_code, added.stdout) == (0, "") and "hubctl token create ann" in added.stderr
    assert (folder / "elsewhere" / ACCOUNTS_FILE).exists()
    # A user in the wrong folder gets this message.
    assert f"Created the state folder {folder / 'elsewhere'}" in added.stderr
    assert "Created" not in run("owner", "add", "bob", "--state", "elsewhere").stderr
    made()
    assert re.fullmatch(f"ann\t{TIME}\t1\tnone\n", run("owner", "list").stdout)


def test_locking():
    text = made()
    done = run("owner", "lock", "ann")
    assert (done.exit_code, done.stdout) == (0, "") and "hubctl owner unlock ann" in done.stderr
    assert "was already locked" in run("owner", "lock", "ann").stderr
    assert re.fullmatch(f"ann\t{TIME}\t1\tlocked\n", run("owner", "list").stdout)
    with Database("var") as database, pytest.raises(RequestError, match="is locked"):
        Accounts(database).authenticate(text)
    refused = run("owner", "invite", "ann", "--base-url", "https://prompts.example.org")
    assert (refused.exit_code, refused.stdout) == (1, "") and "owner unlock ann" in refused.stderr
    assert "ann is unlocked" in run("owner", "unlock", "ann").stderr
    assert "ann was not locked" in run("owner", "unlock", "ann").stderr
    assert re.fullmatch(f"ann\t{TIME}\t1\tnone\n", run("owner", "list").stdout)
    with Database("var") as database:
        assert Accounts(database).authenticate(text).owner == "ann"


def test_a_token_and_nothing_else_on_standard_output():
    run("owner", "add", "ann")
    args = ("--name", "ci", "--repo", "story", "--repo", "ann/review", "--expires", "2w")
    done = run("token", "create", "ann", *args)
    text = done.stdout.removesuffix("\n")
    assert done.exit_code == 0 and is_token(text)
    for told in ("ann/story, ann/review", "shown only once", "secret", "HUB_TOKEN", "Bearer"):
        assert told in done.stderr
    assert re.search(f"until {TIME}", done.stderr) and text not in done.stderr
    with Database("var") as database:
        token = Accounts(database).authenticate(text)
    assert token.expires_at - token.created_at == 14 * 86_400 and token.id in done.stderr


@pytest.mark.parametrize(
    ("expires", "days"), [(None, 90), ("1d", 1), ("90d", 90), ("52w", 364), ("1y", 365)]
)
def test_expiry(expires: str | None, days: int):
    made(*(["--expires", expires] if expires else []))
    with Database("var") as database:
        (token,) = Accounts(database).tokens()
    assert token.expires_at - token.created_at == days * 86_400


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["owner", "add", "api"], 1, "such as api-team"),
        (["owner", "add", "Ann"], 1, "Use 'ann'"),
        (["owner", "add", "ann"], 1, "already"),
        (["owner", "add"], 2, "HANDLE"),
        (["token", "create", "bob", "--name", "x"], 1, "hubctl owner add bob"),
        (["token", "create", "Ann", "--name", "x"], 1, "Use 'ann'"),
        (["token", "create", "ann", "--name", "ci"], 1, "already"),
        (["token", "create", "ann", "--name", " "], 1, "1 to 64 printable"),
        (
            ["token", "create", "ann", "--name", "x", "--repo", "bob/x"],
            1,
            "no member of a team bob",
        ),
        (["token", "create", "ann", "--name", "x", "--repo", "X"], 1, "Use 'x'"),
        (["token", "create", "ann", "--name", "x", "--expires", "12h"], 2, "90d, 12w or 1y"),
        (["token", "create", "ann", "--name", "x", "--expires", "90"], 2, "90d, 12w or 1y"),
        (["token", "create", "ann", "--name", "x", "--expires", "-1d"], 2, "90d, 12w or 1y"),
        (["token", "create", "ann", "--name", "x", "--expires", "²d"], 2, "90d, 12w or 1y"),
        (["token", "create", "ann", "--name", "x", "--expires", "0d"], 1, "1 to 365 days"),
        (["token", "create", "ann", "--name", "x", "--expires", "2y"], 1, "not 730"),
        (["owner", "lock", "bob"], 1, "hubctl owner add bob"),
        (["owner", "unlock", "bob"], 1, "hubctl owner add bob"),
        (["owner", "lock", "Ann"], 1, "Use 'ann'"),
        (["token", "list", "bob"], 1, "hubctl owner add bob"),
        (["token", "revoke", "bob", "ci"], 1, "hubctl owner add bob"),
        (["token", "revoke", "ann", "other"], 1, "hubctl token list ann"),
        (["token", "revoke", "ann"], 2, "NAME-OR-ID"),
    ],
)
def test_refusals(args: list[str], status: int, told: str):
    made()
    before = run("token", "list").stdout
    done = run(*args)
    assert (done.exit_code, done.stdout) == (status, "") and told in done.stderr
    assert run("token", "list").stdout == before


def test_a_token_that_only_reads():
    run("owner", "add", "ann")
    done = run("token", "create", "ann", "--name", "app", "--right", "read")
    assert done.exit_code == 0 and "(app) reads until" in done.stderr
    (row,) = run("token", "list").stdout.splitlines()
    assert row.split("\t")[4] == "nothing" and row.split("\t")[7] == "reads"
    done = run("token", "create", "ann", "--name", "x", "--right", "read", "--repo", "story")
    assert done.exit_code == 1 and "Leave the prompts out" in done.stderr


def test_list_of_tokens():
    run("owner", "add", "bob")
    empty = run("token", "list", "bob")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "hubctl token create bob" in empty.stderr
    text = made("--repo", "story")
    run("token", "create", "bob", "--name", "my laptop")
    run("token", "revoke", "bob", "my laptop")
    with Database("var") as database:
        accounts = Accounts(database)
        accounts.note_use(accounts.authenticate(text))
    rows = [line.split("\t") for line in run("token", "list").stdout.splitlines()]
    assert [row[1:5] for row in rows] == [
        ["ann", "ci", "active", "ann/story"], ["bob", "my laptop", "revoked", "bob/*"],
    ]  # fmt: skip
    assert re.fullmatch(TIME, rows[0][6]) and rows[1][6] == "never"
    assert text[4:36] not in run("token", "list").stdout


def test_a_list_on_a_terminal_is_aligned(folder: Path):
    run("owner", "add", "a-long-handle")
    made()
    ours, theirs = pty.openpty()
    done = subprocess.run([HUBCTL, "owner", "list"], stdout=theirs, env=clean_environment())
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        lines = terminal.read1().decode().splitlines()
    assert done.returncode == 0
    assert lines[0] == "HANDLE         CREATED               ACTIVE TOKENS  SIGNS IN WITH"
    assert re.fullmatch(rf"a-long-handle  {TIME}  0              none", lines[1])
    assert re.fullmatch(rf"ann            {TIME}  1              none", lines[2])


def test_revoke():
    text = made()
    done = run("token", "revoke", "ann", "ci")
    assert (done.exit_code, done.stdout) == (0, "") and "is revoked" in done.stderr
    again = run("token", "revoke", "ann", run("token", "list").stdout.split("\t")[0])
    assert again.exit_code == 0 and re.search(f"already revoked at {TIME}", again.stderr)
    assert made() != text
    with Database("var") as database:
        states = [token.state() for token in Accounts(database).tokens("ann")]
    assert sorted(states) == ["active", "revoked"]


def test_a_damaged_database(folder: Path):
    (folder / "var").mkdir()
    (folder / "var" / ACCOUNTS_FILE).write_bytes(b"no database" * 100)
    done = run("token", "list")
    assert done.exit_code == 1 and f"var/{ACCOUNTS_FILE} is damaged" in done.stderr
