"""A whole hub from its folders into a database and back, and a look at what the database has."""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from builder.model.errors import RequestError
from builder.model.request_bodies import Draft, DraftFile
from cli.hubctl import main
from publisher.accounts.database import Database, open_postgres
from publisher.accounts.tokens import Accounts
from publisher.nodes.store import Shared
from publisher.write.decision import Terms
from publisher.write.durable import FolderStore
from publisher.write.publish import publish
from tests.support.postgres import Postgres
from tests.support.servers import HUBCTL, wait_until


class Hub:
    """A hub in a folder with all that one can have, and an empty database."""

    def __init__(self, folder: Path, postgres: Postgres) -> None:
        self.folder = folder
        self.url = postgres.new_database()
        self._postgres = postgres

    def run(self, *args: str, place: str = "old", status: int = 0) -> Result:
        root = self.folder / place
        variables = {
            "HUB_CONTENT": str(root / "content"), "HUB_STATE": str(root / "var"),
            "HUB_OUT": str(root / "out"), "HUB_DATABASE": "",
        }  # fmt: skip
        done = CliRunner(env=variables).invoke(main, args)
        assert done.exit_code == status, done.output
        return done

    def store(self, *args: str, place: str = "old", status: int = 0) -> str:
        done = self.run("store", *args, "--database", self.url, place=place, status=status)
        return done.stdout + done.stderr

    def files(self, place: str) -> dict[str, bytes]:
        content = self.folder / place / "content"
        return {
            str(path.relative_to(content)): path.read_bytes()
            for path in content.rglob("*")
            if path.is_file()
        }

    def execute(self, *statements: str) -> list[tuple]:
        return self._postgres.execute(self.url.rpartition("/")[2], *statements)

    def begin(self, *args: str) -> subprocess.Popen:
        """A process that runs ``hubctl store``."""
        root = self.folder / "old"
        places = ["--content", root / "content", "--state", root / "var", "--out", root / "out"]
        return subprocess.Popen(
            [HUBCTL, "store", *args, "--database", self.url, *places], stderr=subprocess.DEVNULL
        )

    @contextlib.contextmanager
    def holding(self, repo: str, name: str) -> Iterator[None]:
        """A process that inserts a certain change waits until this ends."""
        self.execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$",
            "CREATE TRIGGER wait BEFORE INSERT ON change FOR EACH ROW "
            f"WHEN (NEW.repo = '{repo}' AND NEW.name = '{name}') EXECUTE FUNCTION wait()",
        )
        with psycopg.connect(self.url) as held:
            held.execute("SELECT pg_advisory_xact_lock(1)")
            yield
            # Otherwise the server continues the statement of a killed process.
            held.execute("SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE NOT granted")
        self.execute("DROP TRIGGER wait ON change")

    def write(self, text: str, name: str) -> None:
        """Publish without a command."""
        root = FolderStore(str(self.folder / "old" / "content"))
        owner, _, repo = name.partition("/")
        publish(root, owner, repo, Draft(content=text), publisher=owner, terms=Terms(sync=False))

    def publish(self, text: str, name: str = "ann/story", *more: str, **place: str) -> None:
        (self.folder / "text.md").write_text(text)
        self.run("publish", name, str(self.folder / "text.md"), *more, **place)


@pytest.fixture
def hub(tmp_path: Path, postgres: Postgres) -> Hub:
    hub = Hub(tmp_path, postgres)
    content = tmp_path / "old" / "content"
    content.mkdir(parents=True)
    for text in ("one\n", "two\n", "hidden\n"):
        hub.publish(text)
    files = [DraftFile(path="a/run.sh", content="hi"), DraftFile(path="b", base64="AP8=")]
    draft = Draft(content="With files.\n", files=files)
    publish(
        FolderStore(str(content)), "ann", "folder", draft, publisher="ann", terms=Terms(sync=False)
    )
    hub.publish("gone\n", "ann/gone")
    hub.publish("empty profile\n", "bob/other")
    hub.run("label", "set", "ann/story", "live", "1.0.1")
    hub.run("withdraw", "ann/story@1.0.2", "--reason", "secret", "--yes")
    hub.run("withdraw", "ann/gone", "--reason", "legal", "--yes")
    (content / "home.md").write_text("# A hub\n\nFor tests.\n")
    restored = {"floor": 20_000, "serial": 7_000, "at": "2026-01-01T00:00:00Z"}
    (content / "restored.json").write_text(json.dumps(restored))
    with Database(str(tmp_path / "old" / "var")) as database:
        Accounts(database).add_owner("ann")
    return hub


def test_there_and_back_nothing_differs(hub: Hub):
    before = hub.files("old")
    hub.run("build")
    assert "Copied and verified" in hub.store("copy", "--to", "database")
    assert "Copied and verified" in hub.store("copy", "--to", "folder", place="new")
    assert hub.files("new") == before
    assert {name: data for name, data in hub.files("old").items() if name != ".hub-store"} == before
    with Database(str(hub.folder / "new" / "var")) as database:
        assert [one.handle for one in Accounts(database).owners()] == ["ann"]
    # In both hubs, numbers continue above the floor of the restore.
    hub.publish("more\n", place="new")
    assert (hub.folder / "new/content/ann/story/1.0.20000.md").read_text() == "more\n"
    hub.publish("more\n", "ann/story", "--database", hub.url)
    assert (hub.folder / "old/content/ann/story/1.0.20000.md").read_text() == "more\n"
    ((first,),) = hub.execute("SELECT min(serial) FROM change")
    assert first > 7_000  # earlier notices to readers are not repeated


def test_numbers_that_the_database_lost_are_not_given_again(hub: Hub):
    def skip_numbers(*options: str) -> int:
        found = re.search(r"get numbers from ([\d,]+) on", hub.store("skip-numbers", *options))
        return int(found[1].replace(",", ""))

    hub.store("copy", "--to", "database")
    with Database(hub.url) as database:
        token, _ = Accounts(database).create_token("ann", "ci")
    first = skip_numbers()
    assert first >= 40_000
    hub.publish("more\n", "ann/story", "--database", hub.url)
    assert (hub.folder / f"old/content/ann/story/1.0.{first}.md").read_text() == "more\n"
    # Restored again, to before all of that.
    assert skip_numbers("--above", str(first)) >= first + 20_000
    last = skip_numbers("--above", str(first + 99_999), "--end-access")
    assert last >= first + 110_000
    hub.publish("a new node\n", "ann/story", "--database", hub.url, place="node")
    assert (hub.folder / f"node/content/ann/story/1.0.{last}.md").exists()
    with Database(hub.url) as database, pytest.raises(RequestError, match="does not know"):
        Accounts(database).authenticate(token)


def test_the_copied_folder_is_that_of_a_node(hub: Hub):
    hub.store("copy", "--to", "database")
    hub.publish("third\n", "ann/story", "--database", hub.url)
    done = hub.run("publish", "ann/story", str(hub.folder / "text.md"), status=1)
    assert "is a copy of a database" in done.stderr


def test_an_answer_that_was_lost_is_found_by_copying_again(hub: Hub):
    hub.store("copy", "--to", "database")
    (hub.folder / "old/content/.hub-store").unlink()
    before = hub.execute("SELECT count(*), max(serial) FROM change")
    assert "Copied and verified" in hub.store("copy", "--to", "database")
    assert hub.execute("SELECT count(*), max(serial) FROM change") == before
    assert (hub.folder / "old/content/.hub-store").exists()


def test_a_database_with_other_content_is_left_alone(hub: Hub):
    hub.publish("other\n", "eve/story", "--database", hub.url, place="node")
    before = hub.execute("SELECT request FROM change ORDER BY serial")
    told = hub.store("copy", "--to", "database", status=1)
    assert "differs" in told and "empty database" in told
    assert hub.execute("SELECT request FROM change ORDER BY serial") == before


def test_a_folder_with_faults_is_not_copied(hub: Hub):
    (hub.folder / "old/content/ann/story/1.0.0.md").write_text("another\n")
    told = hub.store("copy", "--to", "database", status=1)
    assert "ann/story/1.0.0.md" in told and "hubctl check" in told
    assert hub.execute("SELECT count(*) FROM change") == [(0,)]


def test_a_hub_that_runs_is_not_copied(hub: Hub, tmp_path: Path):
    with Database(str(tmp_path / "old" / "var")) as database:
        Accounts(database).add_owner("eve")
        assert "Stop `hubctl serve`" in hub.store("copy", "--to", "database", status=1)
    hub.store("copy", "--to", "database")
    with (
        contextlib.closing(open_postgres(hub.url)) as engine,
        Shared(str(tmp_path / "old" / "content"), engine.connections) as store,
    ):
        assert store.wait_ready(300)
        for target in ("database", "folder"):
            assert "Another process has" in hub.store("copy", "--to", target, status=1)


def test_beside_other_accounts_nothing_is_copied(hub: Hub):
    with Database(hub.url) as database:
        Accounts(database).add_owner("eve")
    told = hub.store("copy", "--to", "database", status=1)
    assert "other accounts" in told
    assert hub.execute("SELECT count(*) FROM change") == [(0,)]
    hub.execute("DELETE FROM owner")
    hub.store("copy", "--to", "database")


def test_a_folder_with_other_prompts_is_left_alone(hub: Hub):
    hub.store("copy", "--to", "database")
    (hub.folder / "new/content").mkdir(parents=True)
    hub.publish("mine\n", "eve/story", place="new")
    before = hub.files("new")
    assert "has prompts" in hub.store("copy", "--to", "folder", place="new", status=1)
    assert hub.files("new") == before


def test_a_copy_into_a_folder_goes_on_where_it_was_interrupted(hub: Hub):
    hub.store("copy", "--to", "database")
    # As a command leaves it that was killed after it had read everything.
    hub.publish("third\n", "ann/story", "--database", hub.url, place="new")
    assert (hub.folder / "new/content/.hub-store").exists()
    hub.store("copy", "--to", "folder", place="new")
    assert "ann/story/1.0.20000.md" in hub.files("new")
    assert ".hub-store" not in hub.files("new")


def test_nothing_is_copied_from_an_empty_database(hub: Hub):
    Database(hub.url).close()
    assert "has no prompts" in hub.store("copy", "--to", "folder", place="new", status=1)


def test_a_copy_that_was_killed_continues_after_what_it_has_copied(hub: Hub):
    for number in range(250):
        hub.write(f"{number}\n", "cleo/long")
    before = hub.files("old")
    Database(hub.url).close()
    with hub.holding("cleo/long", "1.0.20100"):
        process = hub.begin("copy", "--to", "database")
        wait_until(lambda: hub.execute("SELECT 1 FROM pg_locks WHERE NOT granted"), "the stop")
        process.kill()
        process.wait()
    done = hub.execute("SELECT serial, request FROM change ORDER BY serial")
    assert 100 <= len(done) < len(before) / 2
    assert not (hub.folder / "old/content/.hub-store").exists()
    hub.store("copy", "--to", "database")
    assert hub.execute("SELECT serial, request FROM change ORDER BY serial")[: len(done)] == done
    hub.store("copy", "--to", "folder", place="new")
    assert hub.files("new") == before


def test_a_copy_does_not_continue_another(hub: Hub):
    hub.store("copy", "--to", "database")
    (hub.folder / "old/content/.hub-store").unlink()
    hub.execute("DELETE FROM change WHERE serial = (SELECT max(serial) FROM change)")
    hub.publish("before all that was copied\n", "ann/early")
    told = hub.store("copy", "--to", "database", status=1)
    assert "differs" in told and "empty database" in told
