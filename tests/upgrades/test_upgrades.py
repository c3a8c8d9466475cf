"""Hubs that older releases have left are taken over whole; those of newer ones are left alone."""

import contextlib
import hashlib
import json
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builder.model.content_tree import FORMAT_FILE
from builder.model.errors import RequestError
from builder.model.settings import Settings
from builder.store import content
from operate.content_check import check
from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.saved_drafts import SavedDrafts
from publisher.accounts.tokens import Accounts
from publisher.trusted.publishers import TrustedPublishers
from tests.support.catalogues import read_tree
from tests.support.servers import HUBCTL, Server, clean_environment, serving
from tests.upgrades.make_fixture import BODY, HUBS, KEY

RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in HUBS.glob("*.tar.xz"))


class Hub(NamedTuple):
    """A hub as an older release left it; ``known`` has the answers of that release."""

    settings: Settings
    known: dict[str, Any]


@pytest.fixture(params=RELEASES)
def hub(tmp_path: Path, request: pytest.FixtureRequest) -> Hub:
    """The hub, with dates moved to a moment ago, so that nothing of it has expired."""
    with tarfile.open(HUBS / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    known = json.loads((tmp_path / "known.json").read_text())
    settings = Settings(f"{tmp_path}/content", f"{tmp_path}/site", f"{tmp_path}/state")
    with changing(settings) as db:
        seconds = int(time.time()) - known["made_at"]
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for _, column, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
                if column.endswith(("_at", "until")) or column == "at":
                    db.execute(f"UPDATE {table} SET {column} = {column} + ?", (seconds,))
    return Hub(settings, known)


@contextlib.contextmanager
def changing(settings: Settings, file: str = "accounts") -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"{settings.state}/{file}.sqlite3")) as db, db:
        yield db


def publish(server: Server, token: str, body: dict[str, Any], **headers: str) -> Any:
    return server.request(
        "POST", "/api/v1/repos/ann/hello/versions", json=body,
        headers={"Authorization": f"Bearer {token}", **headers},
    )  # fmt: skip


def test_there_is_a_hub_of_a_release() -> None:
    assert RELEASES


def test_a_service_takes_it_over(hub: Hub) -> None:
    settings, known = hub
    assert [*check(settings.content)] == []
    assert {
        path: hashlib.sha256(data).hexdigest() for path, data in read_tree(settings.content).items()
    } == known["sha256"]
    with serving(settings) as server:
        assert f"release of hub made the build state {settings.state}" in server.process.text
        assert "damaged" not in server.process.text
        again = publish(server, known["token"], BODY, **{"Idempotency-Key": KEY})
        keys = ("version", "sha256", "published_at", "changelog", "labels")
        assert again.status_code == 201
        assert [again.json()["data"][key] for key in keys] == [
            known["first"]["data"][key] for key in keys
        ]
        refused = publish(server, known["token"], {**BODY, "changelog": ""},
                          **{"Idempotency-Key": KEY})  # fmt: skip
        assert refused.json()["error"]["code"] == "idempotency_key_reused"
        assert publish(server, known["revoked"], BODY).status_code == 401
        assert publish(server, known["narrow"], BODY).status_code == 403
        new = publish(server, known["token"], {"content": "Anew.\n"})
        assert (new.status_code, new.json()["data"]["version"]) == (201, "1.2.1")
        read = "/api/v1/repos/ann/hello/versions"
        ordinals = [one["ordinal"] for one in server.get(read).json()["data"]]
        assert sorted(ordinals) == [1, 2, 3, 4]
        assert server.get(f"{read}/1.2.0").status_code == 410
        labels = "/api/v1/repos/ann/hello/labels/{}/history"
        moved = server.get(labels.format("stable")).json()["data"]
        assert [(one["version"], one["note"]) for one in moved] == [("1.1.0", "Passed.")]
        assert server.get("/api/v1/repos/ann/hello/raw?label=production").text == BODY["content"]
        assert server.get("/api/v1/repos/bob/by-hand").json()["data"]["pulls"] == 3
        assert [one["name"] for one in server.get("/api/v1/repos?q=hand").json()["data"]] == [
            "by-hand"
        ]
        cookies = {"hub-account": known["session"]}
        assert "A draft" in server.get("/account/prompts", cookies=cookies).text


def test_its_accounts_are_taken_over(hub: Hub) -> None:
    settings, known = hub
    with Database(settings.state) as database:
        accounts = Accounts(database)
        assert [one.handle for one in accounts.owners()] == ["ann", "bob", "eve", "mia"]
        assert accounts.locked_at("eve") is not None
        assert accounts.trusted_only("ann") == {"from-ci"}
        narrow = accounts.authenticate(known["narrow"])
        assert (narrow.name, narrow.repos, narrow.labels) == ("release", ("hello",), ("stable",))
        with pytest.raises(RequestError, match="revoked"):
            accounts.authenticate(known["revoked"])
        assert Passwords(database).verify("ann", known["password"])
        assert not Passwords(database).verify("ann", "another")
        assert Sessions(database).find(known["session"]).owner == "ann"
        assert Invitations(database).look(known["invitation"]) == "mia"
        assert Identities(database).find("https://id.example", "bob-1") == "bob"
        assert ProtectedLabels(database).of("ann") == [("hello", "stable")]
        assert [one.title for one in SavedDrafts(database).of("ann")] == ["A draft"]
        (trusted,) = TrustedPublishers(database).of("ann")
        assert (trusted.project, trusted.workflow, trusted.labels) == (
            "ann/prompts", "publish.yml", "stable",
        )  # fmt: skip


COMMANDS = (
    ("serve", "--port", "0"), ("build",), ("check",), ("publish", "ann/hello", "text.md"),
    ("withdraw", "ann/hello", "--reason", "error", "--yes"),
    ("label", "set", "ann/hello", "x", "1.0.0"),
)  # fmt: skip


@pytest.mark.parametrize("part", ["accounts", "content"])
def test_what_a_newer_release_has_written_is_left_alone(hub: Hub, part: str) -> None:
    settings = hub.settings
    if part == "accounts":
        with Database(settings.state):
            pass  # so that it is as this release has it
        with changing(settings) as db:
            ((version,),) = db.execute("PRAGMA user_version")
            db.execute(f"PRAGMA user_version = {version + 1}")
    else:
        Path(settings.content, FORMAT_FILE).write_text(f"{content.FORMAT_NUMBER + 1}\n")
    folder = Path(settings.content).parent
    (folder / "text.md").write_text("Hi.\n")
    before = read_tree(folder)
    for command in COMMANDS[:1] if part == "accounts" else COMMANDS:
        done = subprocess.run(
            [HUBCTL, *command], cwd=folder, capture_output=True, text=True,
            env=clean_environment(HUB_CONTENT=settings.content, HUB_OUT=settings.out,
                                  HUB_STATE=settings.state),
        )  # fmt: skip
        assert done.returncode == 1, command
        assert "newer release of hub" in done.stderr, command
    after = {path: data for path, data in read_tree(folder).items() if path in before}
    assert after == before
    assert not Path(settings.out).exists()
