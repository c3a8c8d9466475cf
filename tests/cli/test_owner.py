"""``hubctl owner invite``: a link on standard output, talk on standard error."""

import re
import subprocess
from pathlib import Path

import pytest
import requests
from click.testing import Result

from builder.model.errors import RequestError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.state import State
from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.tokens import Accounts, format_time
from tests.cli.command import run
from tests.cli.test_token import TIME
from tests.support.servers import DEADLINE_SECONDS, HUBCTL, clean_environment, serving

pytestmark = pytest.mark.usefixtures("folder")

GOOD = "violet otter lamp 7"
BASE_URL = "http://127.0.0.1:8000"


def invite(*args: str) -> Result:
    """An invitation whose address is given."""
    return run("owner", "invite", *args, "--base-url", BASE_URL)


def code_of(link: str, base_url: str = BASE_URL) -> str:
    found = re.fullmatch(rf"{re.escape(base_url)}/account/invitation#(\S+)\n", link)
    assert found, link
    return found[1]


def accept(code: str) -> str:
    with Database("var") as database:
        return Invitations(database).accept(code, GOOD)


def test_a_link_and_nothing_else_on_standard_output():
    done = invite("ann")
    code = code_of(done.stdout)
    assert done.exit_code == 0 and code.startswith("ann.") and code[4:] not in done.stderr
    for told in ("ann can set a password", "It works once", "send it only to them"):
        assert told in done.stderr
    assert re.search(f"until {TIME}", done.stderr)
    assert accept(code) == "ann"


def test_the_printed_time_is_the_end():
    done = invite("ann")
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
    assert code_of(done.stdout, base_url)
    monkeypatch.setenv("HUB_BASE_URL", given)
    assert code_of(run("owner", "invite", "ann").stdout, base_url)


def test_without_an_address_it_is_that_of_the_running_hub(small: Settings):
    args = ("owner", "invite", "ann", "--state", small.state)
    unknown = run(*args)
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert f"no site was built with the state folder {small.state}" in unknown.stderr
    assert "--state" in unknown.stderr and "--base-url" in unknown.stderr
    with serving(small) as server:
        link = run(*args).stdout
        page = requests.get(link, timeout=DEADLINE_SECONDS)
        assert page.status_code == 200 and 'action="/account/invitation"' in page.text
        assert code_of(link, server.url).startswith("ann.")


def test_without_an_address_it_is_that_of_the_last_build(small: Settings):
    build(small._replace(base_url="https://prompts.example.org/a"), index=False)
    done = run("owner", "invite", "ann", "--state", small.state)
    assert code_of(done.stdout, "https://prompts.example.org/a")
    Path(State.path_in(small.state)).write_bytes(b"no database" * 1000)
    unknown = run("owner", "invite", "ann", "--state", small.state)
    assert unknown.exit_code == 1 and "address of the hub is unknown" in unknown.stderr


def test_an_owner_who_has_a_password():
    accept(code_of(invite("ann").stdout))
    first, second = invite("ann"), invite("ann")
    assert "the old one works until then" in second.stderr
    with Database("var") as database:
        assert Passwords(database).verify("ann", GOOD)
    assert accept(code_of(second.stdout)) == "ann"
    with pytest.raises(RequestError, match="This invitation is not valid"):
        accept(code_of(first.stdout))


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["api", "--base-url", BASE_URL], 1, "such as api-team"),
        (["Ann", "--base-url", BASE_URL], 1, "Use 'ann'"),
        ([], 2, "HANDLE"),
        (["ann", "--base-url", "ftp://x"], 1, "Invalid base URL"),
    ],
)
def test_refusals(args: list[str], status: int, told: str):
    done = run("owner", "invite", *args)
    assert (done.exit_code, done.stdout) == (status, "") and told in done.stderr
    assert run("owner", "list").stdout == ""


def test_how_owners_sign_in():
    run("owner", "add", "nobody")
    invite("eve")
    accept(code_of(invite("ann").stdout))
    invite("ann")
    with Database("var") as database:
        Accounts(database).add_owner("bob")
        Identities(database).add("bob", "https://id.example.org", "1")
    rows = [line.split("\t") for line in run("owner", "list").stdout.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [
        ("ann", "password, invited"), ("bob", "openid"), ("eve", "invited"), ("nobody", "none"),
    ]  # fmt: skip


def test_the_real_command(folder: Path):
    done = subprocess.run(
        [HUBCTL, "owner", "invite", "ann", "--state", "elsewhere", "--base-url", BASE_URL],
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
