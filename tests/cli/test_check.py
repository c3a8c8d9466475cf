"""`hubctl check` names every fault of the content."""

from pathlib import Path

from builder.model.settings import Settings
from tests.cli.test_hubctl import hubctl
from tests.support.catalogues import edit_record, read_tree
from tests.support.servers import SAMPLE


def test_check_of_the_sample() -> None:
    done = hubctl("check", "--content", str(SAMPLE))
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "33 prompts, 13 owners" in done.stderr


def test_check_names_every_fault(small: Settings) -> None:
    content = Path(small.content)
    (content / "bob/sql/1.0.0.md").write_text("Changed after it was published.\n")
    (content / "ann/owner.json").write_text("{")
    (content / "ann/story/notes.txt").write_text("left here")
    (content / "ann/story/1.0.9.md").write_text("no record")
    (content / "Bad_Name").mkdir()
    (content / "api").mkdir()
    edit_record(content / "ann/review/1.1.0.json", tags=["Not A Tag"])
    before = read_tree(content)
    done = hubctl("check", "--content", str(content))
    assert done.exit_code == 1
    named = [line.partition(": ")[0] for line in done.stdout.splitlines()]
    assert sorted(named) == [
        "Bad_Name", "ann/owner.json", "ann/review/1.1.0.json", "ann/story/1.0.9.md",
        "ann/story/notes.txt", "api", "bob/sql/1.0.0.md",
    ]  # fmt: skip
    assert "7 faults" in done.stderr
    assert read_tree(content) == before


def test_check_without_content(tmp_path: Path) -> None:
    done = hubctl("check", "--content", str(tmp_path / "nowhere"))
    assert done.exit_code == 1
    assert "--content" in done.stderr
