"""hubctl team, and the commands of operators."""

import json
from pathlib import Path

import pytest

from builder.model.errors import RequestError
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.tokens import Accounts
from tests.cli.command import run
from tests.support.events import latest


@pytest.fixture
def folder(small: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(small.content).parent
    monkeypatch.chdir(folder)
    with Database("var") as database:
        for handle in ("ann", "bob", "sales"):
            Accounts(database).add_owner(handle)
        Passwords(database).put_hash("bob", "$argon2id$")
    return folder


def test_a_team_from_its_creation_to_its_end(folder: Path):
    made = run("team", "create", "support", "--maintainer", "ann")
    assert made.exit_code == 0 and "Created the team support" in made.stderr, made.output
    assert json.loads((folder / "content/support/owner.json").read_text())["kind"] == "team"
    assert "bob is now a writer of support" in run("team", "add", "support", "bob").stderr
    assert "already a writer" in run("team", "add", "support", "bob").stderr
    run("team", "add", "support", "bob", "--role", "maintainer")
    assert run("team", "list").stdout.startswith("support\t2\tann bob\t")
    members = [row.split("\t")[:2] for row in run("team", "list", "support").stdout.splitlines()]
    assert members == [["ann", "maintainer"], ["bob", "maintainer"]]
    assert "no longer a member" in run("team", "remove", "support", "bob").stderr
    assert "\tteam\n" in run("owner", "list").stdout


def test_an_owner_without_a_sign_in_becomes_a_team_and_keeps_its_profile(folder: Path):
    profile = folder / "content/sales/owner.json"
    profile.parent.mkdir()
    profile.write_text('{"name": "The sales", "joined_at": "2025-01-01T00:00:00Z"}')
    assert run("team", "create", "sales", "--maintainer", "ann").exit_code == 0
    kept = json.loads(profile.read_text())
    assert (kept["name"], kept["kind"]) == ("The sales", "team")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["team", "create", "bob", "--maintainer", "ann"], "who has a password"),
        (["team", "create", "docs", "--maintainer", "ann"], "such as docs-team"),
        (["team", "create", "support", "--maintainer", "nobody"], "No account named nobody"),
        (["team", "add", "ann", "bob"], "No team ann"),
        (["team", "add", "crew", "nobody"], "No account named nobody"),
        (["team", "add", "crew", "crew"], "No account named crew"),
        (["team", "remove", "crew", "bob"], "not a member of crew"),
        (["team", "remove", "crew", "ann"], "would have no maintainer"),
        (["team", "add", "crew", "ann"], "would have no maintainer"),
        (["owner", "operator", "crew"], "Name a person"),
        (["owner", "operator", "nobody"], "No owner nobody"),
        (["owner", "invite", "crew", "--base-url", "https://h.example"], "no one signs in as it"),
        (["owner", "invite", "ann", "--base-url", "https://h.x", "--expires", "31d"], "1 to 30"),
    ],
)  # fmt: skip
def test_refusals(folder: Path, args: list[str], words: str):
    run("team", "create", "crew", "--maintainer", "ann")
    result = run(*args)
    assert result.exit_code == 1 and words in result.stderr, result.output
    with Database("var") as database:
        known = [one.handle for one in Accounts(database).owners()]
    assert known == ["ann", "bob", "crew", "sales"]


def test_several_people_are_invited_at_once(folder: Path):
    args = ("--base-url", "https://h.example", "--expires", "2w")
    lines = run("owner", "invite", "dan", "eve", "dan", *args).stdout.splitlines()
    assert [line.partition("\thttps://h.example/account/invitation#")[0] for line in lines] == [
        "dan", "eve",
    ]  # fmt: skip
    refused = run("owner", "invite", "fay", "docs", *args)
    assert (refused.exit_code, refused.stdout) == (1, "")
    with Database("var") as database:
        assert not Accounts(database).is_known("fay")


def test_operators(folder: Path):
    assert "bob is an operator" in run("owner", "operator", "bob").stderr
    ways = dict(row.split("\t")[::3] for row in run("owner", "list").stdout.splitlines())
    assert ways["bob"] == "password, operator" and ways["ann"] == "none"
    assert "no longer an operator" in run("owner", "operator", "bob", "--remove").stderr


def test_the_activity_has_what_the_operators_shell_changed(folder: Path):
    (folder / "one.md").write_text("Sort this: {{ticket}}")
    (folder / "many").mkdir()
    for name in ("a", "b"):
        (folder / f"many/{name}.md").write_text(f"---\ntitle: {name}\n---\nText {name}.")
    for line in (
        "owner add dan",
        "team create support --maintainer ann",
        "team add support bob",
        "publish support/triage one.md --label staging",
        "publish support/triage one.md",
        "label set support/triage production 1.0.0 --by bob",
        "label remove support/triage production",
        "label protect support production",
        "import many --owner support --markdown",
        "withdraw support/triage@1.0.0 --reason error --yes",
        "token create support --name ci",
        "token revoke support ci",
        "team remove support bob",
        "owner lock bob",
        "publish stranger/story one.md",
    ):
        assert run(*line.split()).exit_code == 0, line
    with Database("var") as database:
        events = {who: latest(database, who, 99) for who in ("support", "bob", "dan")}
        assert not Accounts(database).is_known("stranger")
    assert {(one.author, one.address) for each in events.values() for one in each} == {("", "")}
    assert [(one.kind, one.note) for one in reversed(events["support"])] == [
        ("team_made", "ann"),
        ("member_added", "bob as writer"),
        ("published", "support/triage 1.0.0 with staging"),
        ("label_moved", "support/triage production to 1.0.0"),
        ("label_moved", "support/triage production, removed"),
        ("label_protected", "production of support/*"),
        ("published", "support/*, 2 prompts"),
        ("withdrawn", "support/triage 1.0.0"),
        ("token_made", "ci"),
        ("token_revoked", "ci"),
        ("member_removed", "bob"),
    ]
    assert [one.kind for one in (*events["bob"], *events["dan"])] == ["locked", "signed_up"]


def test_a_change_stands_where_its_activity_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "one.md").write_text("Sort this.")
    monkeypatch.setattr(Events, "note", lambda *_, **__: refuse())
    done = run("publish", "ann/new", "one.md")
    assert (done.exit_code, done.stdout) == (0, "ann/new 1.0.0\n")
    assert "Warning: the activity of ann does not have this change. Full." in done.stderr


def refuse() -> None:
    raise RequestError("storage_unavailable", "Full.")
