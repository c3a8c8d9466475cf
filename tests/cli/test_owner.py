"""``hubctl owner invite``: a link on standard output, talk on standard error."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from builder.model.errors import RequestError
from publisher.accounts.accounts import Accounts, format_time
from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from tests.cli.test_token import TIME, folder, run  # noqa: F401
from tests.support.servers import HUBCTL, clean_environment

GOOD = "violet otter lamp 7"


def code_of(link: str, base_url: str = "http://127.0.0.1:8000") -> str:
    found = re.fullmatch(rf"{re.escape(base_url)}/account/invitation#(\S+)\n", link)
    assert found, link
    return found[1]


def accept(code: str) -> str:
    with Database("var") as database:
        return Invitations(database).accept(code, GOOD, address="198.51.100.7")


def test_a_link_and_nothing_else_on_standard_output():
    done = run("owner", "invite", "ann")
    code = code_of(done.stdout)
    assert done.exit_code == 0 and code.startswith("ann.") and code[4:] not in done.stderr
    for told in ("lets ann in, once", "to set a password.", "hubctl serve", "--base-url"):
        assert told in done.stderr
    assert re.search(f"until {TIME}", done.stderr)
    assert accept(code) == "ann"


def test_the_time_that_is_told_is_the_end():
    done = run("owner", "invite", "ann")
    with Database("var") as database:
        ((expires_at, noted_at),) = database.execute("SELECT expires_at, at FROM invitation, event")
    assert expires_at - noted_at == 86_400
    assert format_time(expires_at) in done.stderr


@pytest.mark.parametrize(
    ("given", "base_url"),
    [("https://prompts.example.org", "https://prompts.example.org"),
     ("https://example.org/hub/", "https://example.org/hub")],
)  # fmt: skip
def test_where_readers_find_the_site(given: str, base_url: str, monkeypatch: pytest.MonkeyPatch):
    done = run("owner", "invite", "ann", "--base-url", given)
    assert code_of(done.stdout, base_url) and "--base-url" not in done.stderr
    monkeypatch.setenv("HUB_BASE_URL", given)
    assert code_of(run("owner", "invite", "ann").stdout, base_url)


def test_an_owner_who_has_a_password():
    accept(code_of(run("owner", "invite", "ann").stdout))
    first, second = run("owner", "invite", "ann"), run("owner", "invite", "ann")
    assert "a new password; the old one is good until then" in second.stderr
    with Database("var") as database:
        assert Passwords(database).verify("ann", GOOD)
    assert accept(code_of(second.stdout)) == "ann"
    with pytest.raises(RequestError, match="This invitation is not good"):
        accept(code_of(first.stdout))


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["api"], 1, "choose another owner name"),
        (["Ann"], 1, "use 'ann'"),
        ([], 2, "HANDLE"),
        (["ann", "--base-url", "ftp://x"], 1, "cannot be a base URL"),
    ],
)
def test_refusals(args: list[str], status: int, told: str):
    done = run("owner", "invite", *args)
    assert (done.exit_code, done.stdout) == (status, "") and told in done.stderr
    assert run("owner", "list", "--json").stdout == "[]\n"


def test_how_owners_sign_in():
    run("owner", "add", "nobody")
    run("owner", "invite", "eve")
    accept(code_of(run("owner", "invite", "ann").stdout))
    run("owner", "invite", "ann")
    with Database("var") as database:
        Accounts(database).add_owner("bob")
        Identities(database).add("bob", "https://id.example.org", "1", address="")
    rows = [line.split("\t") for line in run("owner", "list").stdout.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [
        ("ann", "password, invited"), ("bob", "openid"), ("eve", "invited"), ("nobody", "none"),
    ]  # fmt: skip
    shown = json.loads(run("owner", "list", "--json").stdout)
    assert [each["signs_in_with"] for each in shown] == [
        ["password", "invited"], ["openid"], ["invited"], [],
    ]  # fmt: skip


def test_the_real_command(folder: Path):  # noqa: F811
    done = subprocess.run(
        [HUBCTL, "owner", "invite", "ann", "--state", "elsewhere"],
        capture_output=True, text=True, env=clean_environment(), check=True,
    )  # fmt: skip
    code = code_of(done.stdout)
    with Database("elsewhere") as database:
        assert Invitations(database).look(code) == "ann"
    kept = b"".join(path.read_bytes() for path in (folder / "elsewhere").iterdir())
    assert code[4:].encode() not in kept


def test_no_link_to_where_nobody_can_sign_in():
    done = run("owner", "invite", "ann", "--base-url", "http://hub.example")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "https" in done.stderr
    assert run("owner", "list").stdout == ""
