"""Commands that write to a store which many nodes share."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.hubctl import main
from publisher.nodes.objects import Objects


class Hub:
    def __init__(self, folder: Path) -> None:
        self.url = f"file://{folder}/store"
        self.copies = folder / "copies"

    def run(self, *args: str, copy: str = "scratch", **more) -> Result:
        content = str(self.copies / copy)
        return CliRunner().invoke(main, [*args, "--store", self.url, "--content", content], **more)

    def text(self, path: str, copy: str = "scratch") -> str:
        return (self.copies / copy / path).read_text()


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    (tmp_path / "story.md").write_text("Tell {{what}}.\n")
    return Hub(tmp_path)


def test_commands_publish_label_and_withdraw(hub: Hub, tmp_path: Path):
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
    assert [*Objects(hub.url).keys("blobs/")] == []


def test_an_import_goes_to_the_store(hub: Hub, tmp_path: Path):
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
    assert "is a copy of a store that many nodes share" in done.stderr


def test_what_is_no_store_is_refused(hub: Hub, tmp_path: Path):
    story = str(tmp_path / "story.md")
    for url in ("http://example.org/x", "s3://", "bucket", "s3://a b", "s3://key:secret@bucket"):
        hub.url = url
        done = hub.run("publish", "ann/story", story)
        assert (done.exit_code, "no address of a store" in done.stderr) == (1, True), done.output


@pytest.mark.parametrize("option", ["--git", "--watch"])
def test_a_node_takes_no_other_source_of_changes(hub: Hub, option: str, tmp_path: Path):
    more = [option, "origin"] if option == "--git" else [option]
    folders = ["--out", str(tmp_path / "out"), "--state", str(tmp_path / "var"), "--port", "0"]
    done = hub.run("serve", *folders, *more)
    assert done.exit_code == 1
    assert f"{option} and --store exclude each other" in done.stderr
