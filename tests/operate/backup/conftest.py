"""A hub with prompts, labels, a withdrawal and accounts, and work that is killed."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builder.model.request_bodies import LabelDraft, WithdrawalDraft
from builder.model.settings import Settings
from operate.backup.restore import restore
from operate.backup.take import back_up
from publisher.accounts.database import Database
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from publisher.write.decision import Terms
from publisher.write.drafts import make_change, make_draft
from publisher.write.durable import FolderStore
from publisher.write.labels import change_label
from publisher.write.publish import Published, publish
from publisher.write.withdraw import withdraw
from tests.support.catalogues import read_tree, settings_in

SECRET = "s" * 32
UNSYNCED = Terms(sync=False)


class Hub(NamedTuple):
    """The three folders of a hub, and what is done there, as its owner Ann does it."""

    settings: Settings

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.settings.content)

    def publish(self, name: str, text: str, **fields: Any) -> Published:
        draft = make_draft({"content": text, **fields})
        return publish(self.store, "ann", name, draft, publisher="ann", terms=UNSYNCED)

    def label(self, name: str, label: str, version: str) -> None:
        draft = make_change(LabelDraft, {"version": version})
        change_label(self.store, "ann", name, label, draft, by="ann", terms=UNSYNCED)

    def withdraw(self, name: str, version: str | None) -> None:
        draft = make_change(WithdrawalDraft, {"reason": "secret", "note": "Use another."})
        withdraw(self.store, "ann", name, version, draft, by="ann", terms=UNSYNCED)

    def back_up(self, destination: str | Path, **options: Any) -> str:
        """Returns the path of the backup."""
        line = back_up(self.settings.content, self.settings.state, str(destination), **options)
        return re.fullmatch(r"(.*): \d+ prompts?", line)[1]

    def restore(self, source: str | Path, **options: Any) -> list[str]:
        return restore(str(source), self.settings.content, self.settings.state, **options)

    def shown(self) -> dict[str, bytes]:
        """The content as a backup has it, without what a restore adds to it."""
        tree = read_tree(self.settings.content)
        return {file: data for file, data in tree.items() if file != "restored.json"}

    def database(self) -> Database:
        return Database(self.settings.state)


# The files of a version: text, bytes, an empty file and an executable, in folders.
FILES = [
    {"path": "scripts/lint/run.sh", "content": "#!/bin/sh\nexec true\n", "executable": True},
    {"path": "assets/logo.png", "base64": "iVBORw0KGgoAAP//"},
    {"path": "scripts/lint/__init__.py", "content": ""},
    {"path": "schema.json", "content": '{"ordinal": 4000}'},
]


def fill(hub: Hub) -> None:
    """Publications, one with files, labels, withdrawals, and Ann's account with a session and a
    token.
    """
    hub.publish("lint", "Lint {{code}}.", files=FILES)
    hub.publish("lint", "Lint {{code}} and a secret.", files=FILES[:1])
    hub.withdraw("lint", "1.0.1")
    hub.publish("story", "Tell a story.", labels=["production"])
    hub.publish("story", "Tell a long story.", labels=["production", "canary"])
    hub.publish("story", "Tell a secret.")
    hub.label("story", "canary", "1.0.2")
    hub.withdraw("story", "1.0.2")
    hub.publish("poem", "---\ntitle: A poem\ntags: [verse]\n---\nWrite {{lines}} lines.\n")
    Path(hub.settings.content, "home.md").write_text("Welcome.\n")
    with hub.database() as database:
        accounts = Accounts(database)
        accounts.add_owner("ann")
        accounts.create_token("ann", "laptop")
        Sessions(database).begin("ann", SECRET, address="192.0.2.1", agent="Firefox")


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here cuts the power, and a sync waits for all that the machine writes."""
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    hub = Hub(settings_in(tmp_path / "hub"))
    fill(hub)
    return hub


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    """The path of a backup."""
    return tmp_path / "hub.tar"


@pytest.fixture
def other(tmp_path: Path) -> Hub:
    """Empty folders for another hub."""
    return Hub(settings_in(tmp_path / "other"))


# All calls that change files. Changes before a call have reached the disk.
CHANGING = ("open", "rename", "makedirs", "mkdir", "unlink", "rmdir", "sync", "fsync", "chmod")


def kill_at(number: int, work: Callable[[], object]) -> bool:
    """Do work in a process that dies at the given change of a file; False if there are fewer."""
    pid = os.fork()
    if pid == 0:
        calls = iter(range(1, 1_000_000))

        def dying(real: Callable) -> Callable:
            def call(*args: Any, **options: Any) -> Any:
                if next(calls) == number:
                    os._exit(9)
                return real(*args, **options)

            return call

        try:
            for name in CHANGING:
                setattr(os, name, dying(getattr(os, name)))
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9), "the work has failed"
    return code == 9


def killings(work: Callable[[], object]) -> Iterator[int]:
    """Kill work at each of its changes of files in turn; the number of each."""
    number = 1
    while kill_at(number, work):
        yield number
        number += 1
