"""Commands whose accounts are in PostgreSQL, and a URL that never shows."""

import os
import signal
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result

from builder.model.settings import Settings
from cli.hubctl import main
from publisher.accounts.database import TABLES, Database
from publisher.accounts.events import Events
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.saved_drafts import SavedDrafts
from publisher.accounts.teams import Teams
from publisher.accounts.token import Grant
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublishers
from publisher.write.idempotency import IdempotencyKey, KeptAnswer
from tests.support.catalogues import settings_in
from tests.support.events import latest
from tests.support.postgres import PASSWORD, QUOTED_PASSWORD, Postgres
from tests.support.servers import Process, Server, clean_environment, serve_command


@pytest.fixture
def url(postgres: Postgres, small: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new database, which the commands know of; so they know a small hub's folders."""
    made = postgres.new_database()
    variables = {
        "HUB_DATABASE": made, "HUB_CONTENT": small.content, "HUB_OUT": small.out,
        "HUB_STATE": small.state,
    }  # fmt: skip
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    return made


def hubctl(*args: object, status: int = 0) -> Result:
    done = CliRunner().invoke(main, [*map(str, args)])
    assert done.exit_code == status, done.output
    assert QUOTED_PASSWORD not in done.output and PASSWORD not in done.output
    return done


def test_owners_tokens_and_labels(url: str, small: Settings):
    hubctl("owner", "add", "ann")
    link = hubctl("owner", "invite", "bob", "--base-url", "https://prompts.example.org")
    assert link.stdout.startswith("https://prompts.example.org/account/invitation#bob.")
    text = hubctl("token", "create", "ann", "--name", "ci").stdout.strip()
    hubctl("label", "protect", "ann", "production")
    hubctl("label", "unprotect", "ann", "production")
    assert hubctl("token", "list").stdout.split("\t")[1:3] == ["ann", "ci"]
    with Database(url) as database:
        assert Accounts(database).authenticate(text).owner == "ann"
    hubctl("token", "revoke", "ann", "ci")
    hubctl("owner", "lock", "bob")
    hubctl("owner", "unlock", "bob")
    rows = hubctl("owner", "list").stdout.splitlines()
    assert [row.split("\t")[0] for row in rows] == ["ann", "bob"]
    assert not os.path.exists(small.state)


def test_the_url_shows_nowhere(url: str, tmp_path: Path):
    for command in ("serve", "owner add", "token create", "label protect", "backup", "doctor"):
        assert "HUB_DATABASE" in hubctl(*command.split(), "--help").stdout
    hubctl("init", tmp_path / "new")
    settings = (tmp_path / "new" / "hub.toml").read_text()
    assert '# database = "postgresql://hub@db.example.org/hub"' in settings
    wrong = url.replace(QUOTED_PASSWORD, "hunter2")
    for option in (wrong, wrong.replace("127.0.0.1", "host@127.0.0.1")):
        done = hubctl("owner", "list", "--database", option, status=1)
        assert "Error: " in done.stderr and "hunter2" not in done.output
    (tmp_path / "hub.toml").write_text('database = "postgresql://hub:hunter/2@db/hub"\n')
    done = hubctl("--config", tmp_path / "hub.toml", "owner", "list", status=1)
    assert "hub.toml, line 1: `database`: Invalid address" in done.stderr
    assert "hunter" not in done.output


def test_two_nodes(url: str, tmp_path: Path):
    """A token holds on both, and its revocation at the next request of each."""
    hubctl("owner", "add", "ann")
    text = hubctl("token", "create", "ann", "--name", "ci").stdout.strip()
    environment = clean_environment(HUB_DATABASE=url)
    settings = [settings_in(tmp_path / name) for name in ("one", "two")]
    processes = [Process(*serve_command(one), env=environment) for one in settings]
    try:
        nodes = [*map(Server, processes, settings)]

        def publish(number: int) -> list[requests.Response]:
            body = {"content": f"Tell story {number}."}
            headers = {"Authorization": f"Bearer {text}", "Idempotency-Key": f"{number}"}
            return [
                node.request(
                    "POST", f"/api/v1/repos/ann/new-{at}/versions", json=body, headers=headers
                )
                for at, node in enumerate(nodes)
            ]

        # The second says that the key was used, which the first has stored.
        stored, again = publish(1)
        assert stored.status_code == 201
        assert again.json()["error"]["code"] == "idempotency_key_reused"
        assert [node.get("/readyz").status_code for node in nodes] == [200, 200]
        hubctl("token", "revoke", "ann", "ci")
        assert [answer.json()["error"]["code"] for answer in publish(2)] == ["invalid_token"] * 2
    finally:
        for process in processes:
            process.stop(signal.SIGTERM)
    for process in processes:
        assert QUOTED_PASSWORD not in process.text and PASSWORD not in process.text
    assert not os.path.exists(f"{settings[0].state}/accounts.sqlite3")


def test_moving_from_the_state_folder(url: str, small: Settings):
    with Database(small.state) as old:
        accounts = Accounts(old)
        for owner in ("bob", "ann"):
            accounts.add_owner(owner)
            Passwords(old).put_hash(owner, "$argon2id$")
            Sessions(old).begin(owner, f"secret of {owner}", address="192.0.2.1", agent="Firefox")
            Invitations(old).invite(owner)
            Identities(old).add(owner, "https://id.example", owner)
            ProtectedLabels(old).set(owner, "", "production", True)
            accounts.set_trusted_only(owner, "story", True)
        Teams(old).create("support", "ann")
        Teams(old).invite("support", "writer", "ann")
        text, token = accounts.create_token("ann", "ci", Grant(["story"], rights=["publish"]))
        draft = SavedDrafts(old).save("ann", ("ann", "story"), "A \0 title", b"{\0}")
        issuer = Issuer("github", "https://token.example")
        TrustedPublishers(old).add("ann", issuer, Entered("octo/prompts", "publish.yml"))
        IdempotencyKey(old, "ann", "key", b"\0\1").store(KeptAnswer("1.0.0", None, b"\2"))
        old.execute("INSERT INTO exchanged VALUES (?, 9)", (b"\3",))
        rows = {table: old.execute(f"SELECT {of} FROM {table}") for table, of in TABLES.items()}
        there = old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert {name for (name,) in there} == rows.keys() and all(rows.values())
    copy = ("store", "copy", "--to", "database")
    assert "--database" in hubctl(*copy, "--database", "", status=2).stderr
    assert "Copied and verified" in hubctl(*copy).stderr
    with Database(url) as database:
        for table, of in TABLES.items():
            copied = database.execute(f"SELECT {of} FROM {table}")
            assert sorted(copied) == sorted(rows[table]) or table == "draft"
        assert Accounts(database).authenticate(text) == token
        assert SavedDrafts(database).of("ann") == [draft._replace(title="A \ufffd title")]
        assert Sessions(database).find("secret of ann")
        with Database(small.state) as old:
            assert latest(database, "ann", 99) == latest(old, "ann", 99)
        Events(database).note("ann", "signed_in", address="192.0.2.9")
        assert latest(database, "ann", 1)[0].address == "192.0.2.9"
    assert "Copied and verified" in hubctl(*copy).stderr  # which changes nothing


def test_a_backup_has_them(url: str, small: Settings, tmp_path: Path):
    """And not those in a file of accounts, which is an old one."""
    with Database(small.state) as old:
        Accounts(old).add_owner("old")
    hubctl("owner", "add", "ann")
    text = hubctl("token", "create", "ann", "--name", "ci").stdout.strip()
    hubctl("backup", tmp_path / "hub.tar")
    other = settings_in(tmp_path / "other")
    folders = ["--content", other.content, "--state", other.state]
    hubctl("restore", tmp_path / "hub.tar", *folders, "--complete")
    with Database(other.state) as restored:
        assert Accounts(restored).authenticate(text).name == "ci"
        assert [owner.handle for owner in Accounts(restored).owners()] == ["ann"]
