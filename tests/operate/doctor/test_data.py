"""Faults of the service, databases, caches, content, site and backups."""

import json
import os
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builder.model.records import DAY_SECONDS, format_time
from builder.search.index import index_folder
from builder.stats.database import open_for_writing, pulls_file
from builder.store.site import read_hub
from builder.store.state import State
from operate.backup.take import back_up
from operate.doctor import data
from operate.doctor.findings import Subject
from publisher.sizes import last_backup_file
from tests.operate.doctor.conftest import faults, only
from tests.support.catalogues import write_version


def test_all_is_well(subject: Subject) -> None:
    open_for_writing(pulls_file(subject.settings.state)).close()
    for check in (data.service, data.databases, data.content, data.site):
        assert faults(check(subject)) == []


def test_the_service(subject: Subject) -> None:
    away = only(data.service(subject._replace(service=None)), "problem")
    assert "The service is away" in away and "systemctl start hub" in away
    as_files = subject._replace(service=None, hub=read_hub(f"{subject.settings.out}/none"))
    assert faults(data.service(as_files)) == []
    running = subject.settings._replace(private=True, site_name="Ours")
    apart = only(data.service(subject._replace(service=running)), "problem")
    assert "site-name 'Hub' and 'Ours', private False and True" in apart
    private = subject._replace(settings=running, says_public=True)
    assert "say private = false, but this hub is private" in only(data.service(private), "warning")
    assert faults(data.service(subject._replace(says_public=True))) == []


def test_content_with_faults(subject: Subject) -> None:
    folder = subject.settings.content
    front = "---\nnote: " + "x" * 20_000 + "\n---\nText.\n"
    write_version(folder, "ann", "long", "1.0.0", front)
    write_version(folder, "nul", "index", "1.0.0", "Text.")
    record = Path(folder, "nul", "index", "1.0.0.json")
    ahead = format_time(datetime.now(UTC) + timedelta(days=30, hours=1))
    record.write_text(json.dumps(json.loads(record.read_text()) | {"published_at": ahead}))
    found = only(data.content(subject), "warning")
    assert f"4 warnings in {folder}: nul/index/1.0.0.json: published_at is 30 days ahead" in found
    for version in range(5):
        Path(folder, "ann", "story", f"2.0.{version}.md").write_text("No record.")
    (level, text), _ = faults(data.content(subject))
    assert f"5 faults in {folder}: ann/story/2.0.0.md: " in text and level == "problem"
    assert text.count("text without record") == 3


def overwrite(path: Path, start: int = 0) -> None:
    """Damage a file from ``start`` on."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"x" * 4096)


def test_damage(subject: Subject) -> None:
    state = Path(subject.settings.state)
    with closing(sqlite3.connect(state / "accounts.sqlite3")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    open_for_writing(pulls_file(str(state))).close()
    overwrite(state / "accounts.sqlite3", 8192)
    overwrite(state / "pulls.sqlite3")
    overwrite(Path(State.path_in(str(state))))
    index = Path(index_folder(subject.settings))
    file = next(iter(json.loads((index / "checksums").read_text())))
    (index / file).write_bytes((index / file).read_bytes()[:-1] + b"x")
    found = faults(data.databases(subject))
    assert {level for level, _ in found} == {"problem"}
    named = ("accounts.sqlite3 is damaged", "pulls.sqlite3 is damaged", "A cache in", "checksum")
    assert all(name in text for name, (_, text) in zip(named, found, strict=True)), found
    assert "Restore a backup" in found[0][1] and "Run `hubctl build`" in found[2][1]


def test_accounts_that_are_missing_or_of_a_newer_release(subject: Subject) -> None:
    accounts = Path(subject.settings.state, "accounts.sqlite3")
    with closing(sqlite3.connect(accounts)) as db:
        db.execute("PRAGMA user_version = 99")
    assert "was created by a newer release" in only(data.databases(subject), "problem")
    elsewhere = subject._replace(has_accounts_file=False)
    assert faults(data.databases(elsewhere)) == []
    accounts.unlink()
    assert "The accounts database is missing" in only(data.databases(subject), "problem")
    assert faults(data.databases(elsewhere)) == []


def test_a_site_of_another_release(subject: Subject) -> None:
    with closing(sqlite3.connect(f"{subject.settings.state}/build.sqlite3")) as db:
        db.execute("PRAGMA user_version = 99")
    assert "Another release of hub built" in only(data.site(subject), "warning")


def test_a_full_build_that_did_not_end(subject: Subject) -> None:
    with State(subject.settings.state) as state:
        state.begin(forget=True)
        state.abandon()
    assert "its last build did not end" in only(data.site(subject), "warning")
    found = only(data.site(subject._replace(noted=None)), "warning")
    assert "has no build that can be read" in found


def test_files_that_the_site_has_lost(subject: Subject) -> None:
    lost = ("ann/story.html", "api/v1/repos/ann/story/raw.txt", "assets/style.css")
    for file in lost:
        Path(subject.settings.out, file).unlink()
    found = only(data.site(subject), "problem")
    assert "lacks 3 files: " in found and all(file in found for file in lost)


def test_backups(subject: Subject, tmp_path: Path) -> None:
    settings = subject.settings
    assert "has never backed up" in only(data.backups(subject), "warning")
    here = subject._replace(settings=settings._replace(base_url="http://localhost"))
    assert faults(data.backups(here)) == []
    back_up(settings.content, settings.state, f"{tmp_path}/hub.tar")
    assert faults(data.backups(subject)) == []
    os.utime(last_backup_file(settings.state), (0, time.time() - 9.5 * DAY_SECONDS))
    assert "is 9 days old. Run `hubctl backup`" in only(data.backups(subject), "problem")
