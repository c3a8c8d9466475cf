"""Keeps a hub as this release leaves it, for the releases to come: each must take it over.

    python -m tests.upgrades.make_fixture NAME

Writes ``hubs/NAME.tar.xz``: ``content``, ``state``, and ``known.json``, which says what a test can
expect. Run it once for a release, from its commit, and commit the file. Uses what is public of a
release, the service and the commands, as far as that goes.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import argon2

from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.people import passwords
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.saved_drafts import SavedDrafts
from publisher.accounts.token import Grant
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import DEFAULT_ISSUERS
from publisher.trusted.publishers import Entered, TrustedPublishers
from tests.support.catalogues import settings_in, write_version
from tests.support.servers import HUBCTL, Server, clean_environment, serving

HUBS = Path(__file__).with_name("hubs")
PASSWORD = "a fixture of long standing"
SESSION = "s" * 43
KEY = "fixture-1"
BODY = {"content": "Say hello to {{name}}.\n", "changelog": "First.", "labels": ["production"]}


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_in(folder, "http://127.0.0.1:8000")
        write_version(settings.content, "bob", "by-hand", "2.0.0", "---\ntitle: T\n---\nBy hand.\n")
        known = {"made_at": int(time.time()), "password": PASSWORD, "session": SESSION}
        known |= _add_people(settings)
        _count(settings)
        with serving(settings, "--base-url", settings.base_url) as server:
            known |= _publish(server, known)
        folders = ("--content", settings.content, "--state", settings.state, "--out", settings.out)
        _hubctl("withdraw", "ann/hello@1.2.0", "--reason", "secret", "--yes", *folders)
        known["sha256"] = {
            path.relative_to(settings.content).as_posix(): hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
            for path in sorted(Path(settings.content).rglob("*.*"))
        }
        Path(folder, "known.json").write_text(json.dumps(known, indent=1))
        shutil.rmtree(settings.out)
        HUBS.mkdir(exist_ok=True)
        with tarfile.open(HUBS / f"{name}.tar.xz", "w:xz", preset=9) as archive:
            for part in ("content", "state", "known.json"):
                archive.add(Path(folder, part), part, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uname = member.gname = ""
    return member


def _add_people(settings: Settings) -> dict[str, Any]:
    # Its cost is stored beside a hash, so that of this one is small for good.
    passwords._hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with Database(settings.state) as database:
        accounts = Accounts(database)
        for owner in ("ann", "bob", "eve"):
            accounts.add_owner(owner)
        token, _ = accounts.create_token("ann", "laptop")
        narrow, _ = accounts.create_token(
            "ann", "release", Grant(["hello"], rights=["label"], labels=["stable"])
        )
        revoked, record = accounts.create_token("ann", "lost")
        accounts.revoke("ann", record.id)
        accounts.set_locked("eve", True)
        accounts.set_trusted_only("ann", "from-ci", True)
        Passwords(database).put("ann", PASSWORD)
        Sessions(database).begin("ann", SESSION, address="192.0.2.7", agent="A browser")
        invitation = Invitations(database).invite("mia")
        Identities(database).add("bob", "https://id.example", "bob-1")
        ProtectedLabels(database).set("ann", "hello", "stable", True)
        SavedDrafts(database).save("ann", ("ann", "hello"), "A draft", b"{}")
        TrustedPublishers(database).add(
            "ann",
            DEFAULT_ISSUERS[0],
            Entered("Ann/Prompts", "publish.yml", "from-ci", labels="stable"),
        )
    return {"token": token, "narrow": narrow, "revoked": revoked, "invitation": invitation}


def _publish(server: Server, known: dict[str, Any]) -> dict[str, Any]:
    def ask(method: str, path: str, token: str, body: dict[str, Any], **headers: str) -> Any:
        answer = server.request(
            method, f"/api/v1/repos/ann/hello/{path}", json=body,
            headers={"Authorization": f"Bearer {token}", **headers},
        )  # fmt: skip
        assert answer.ok, answer.text
        return answer.json()

    first = ask("POST", "versions", known["token"], BODY, **{"Idempotency-Key": KEY})
    for text in ("Greet {{name}}.\n", "Greet {{name}}; the key is hunter2.\n"):
        ask("POST", "versions", known["token"], {"content": text, "bump": "minor"})
    moved = {"version": "1.1.0", "note": "Passed."}
    ask("PUT", "labels/stable", known["narrow"], moved)
    return {"first": first}


def _count(settings: Settings) -> None:
    """Some pulls of yesterday."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    line = (
        '192.0.2.{} - - [{:%d/%b/%Y:%H:%M:%S +0000}] "GET /api/v1/repos/bob/by-hand/raw HTTP/1.1" '
        '200 9 "-" "hub/1.0.0"\n'
    )
    log = Path(settings.state, "access.log")
    log.write_text("".join(line.format(number, yesterday) for number in range(3)))
    _hubctl("stats", "ingest", str(log), "--state", settings.state, "--base-url",
            settings.base_url)  # fmt: skip
    log.unlink()


def _hubctl(*arguments: str) -> None:
    subprocess.run([HUBCTL, *arguments], check=True, env=clean_environment(), capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1])
