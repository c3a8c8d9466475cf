"""Commands that write to a database which many nodes share."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from builder.store.privacy import is_marked
from cli.hubctl import main
from cli.stores import settle_shared
from tests.support.postgres import Postgres


class Hub:
    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self.copies = folder / "copies"

    def run(self, *args: str, copy: str = "scratch", **more) -> Result:
        content = str(self.copies / copy)
        return CliRunner().invoke(
            main, [*args, "--database", self.url, "--content", content], **more
        )

    def text(self, path: str, copy: str = "scratch") -> str:
        return (self.copies / copy / path).read_text()


@pytest.fixture
def hub(tmp_path: Path, postgres: Postgres) -> Hub:
    (tmp_path / "story.md").write_text("Tell {{what}}.\n")
    return Hub(tmp_path, postgres.new_database())


def test_commands_publish_label_and_withdraw(hub: Hub, tmp_path: Path, postgres: Postgres):
    story = str(tmp_path / "story.md")
    done = hub.run("publish", "ann/story", story)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "ann/story 1.0.0\n", "")
    done = hub.run("label", "set", "ann/story", "live", "1.0.0", copy="other")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "ann/story live names 1.0.0\n", "")
    assert hub.text("ann/story/1.0.0.md", "other") == "Tell {{what}}.\n"
    assert hub.run("label", "remove", "ann/story", "live").exit_code == 0
    done = hub.run("withdraw", "ann/story@1.0.0", "--reason", "secret", "--yes", copy="third")
    assert (done.exit_code, done.stdout) == (0, "ann/story@1.0.0 withdrawn\n")
    assert "Each node takes it off its site" in done.stderr
    name = hub.url.rpartition("/")[2]
    assert postgres.execute(name, "SELECT count(text) FROM change") == [(0,)]


def test_an_import_goes_to_the_database(hub: Hub, tmp_path: Path):
    table = tmp_path / "prompts.csv"
    table.write_text("act,prompt\nPoet,Write a poem.\nCook,Cook a meal.\n")
    assert hub.run("import", str(table)).exit_code == 0
    assert hub.run("label", "set", "imported/poet", "live", "1.0.0", copy="other").exit_code == 0
    assert hub.text("imported/cook/1.0.0.md", "other") == "Cook a meal."


def test_a_copy_is_not_written_to_directly(hub: Hub, tmp_path: Path):
    story = str(tmp_path / "story.md")
    assert hub.run("publish", "ann/story", story).exit_code == 0
    copy = str(hub.copies / "scratch")
    done = CliRunner().invoke(main, ["publish", "ann/story", story, "--content", copy])
    assert done.exit_code == 1
    assert "is a copy of a database that many nodes share" in done.stderr


def test_a_copy_of_another_history_writes_nothing(hub: Hub, tmp_path: Path, postgres: Postgres):
    story = str(tmp_path / "story.md")
    assert hub.run("publish", "ann/story", story).exit_code == 0
    name = hub.url.rpartition("/")[2]
    # As a restore to an earlier moment leaves it.
    postgres.execute(name, "DELETE FROM change WHERE kind = 'version'", "UPDATE hub SET serial = 1")
    done = hub.run("publish", "ann/other", story)
    assert done.exit_code == 1 and "move its content folder away" in done.stderr
    (hub.copies / "scratch").rename(hub.copies / "lost")
    assert hub.run("publish", "ann/other", story).exit_code == 0


def test_a_node_takes_no_other_source_of_changes(hub: Hub, tmp_path: Path):
    folders = ["--out", str(tmp_path / "out"), "--state", str(tmp_path / "var"), "--port", "0"]
    done = hub.run("serve", *folders, "--watch")
    assert done.exit_code == 1
    assert "--watch and --database exclude each other" in done.stderr


def test_nodes_know_that_their_hub_is_private(hub: Hub, tmp_path: Path):
    story = str(tmp_path / "story.md")

    def of_copy() -> bool:
        assert hub.run("publish", "ann/story", story).exit_code == 0
        return is_marked(str(hub.copies / "scratch"))

    assert not settle_shared(hub.url, None, False) and not of_copy()
    assert settle_shared(hub.url, True, False)
    assert settle_shared(hub.url, None, False) and of_copy()
    assert not settle_shared(hub.url, False, True)
    assert not settle_shared(hub.url, None, True) and not of_copy()


def test_a_node_that_was_private_before_there_were_marks(hub: Hub):
    assert settle_shared(hub.url, None, True)
    assert settle_shared(hub.url, None, False)
