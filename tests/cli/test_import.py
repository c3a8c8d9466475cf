"""``hubctl import`` of files: what it prints of a large collection, and how it ends."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.hubctl import main

LINES_MAX = 40
COUNT = 1_000
SKILL = "---\nname: skill-{0}\ncolor{1}: red\nauthor: A{0} - https://a.example\n---\nDo {0}."
ASSISTANT = "---\ndescription: Plan ${{input:a:what}}\nhooks{1}: x\n---\nPlan ${{input:a}} {0}."


@pytest.fixture
def folder(folder: Path) -> Path:
    """A source, beside an empty content folder."""
    source = folder / "source"
    source.mkdir()
    return source


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["import", "source", "--owner", "ada", *args])


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def patterns(folder: Path, number: int) -> None:
    write(folder / f"weigh_{number}/system.md", f"# IDENTITY\n\nYou weigh claim {number}.")
    write(folder / f"weigh_{number}/user.md", "")


def assistants(folder: Path, number: int) -> None:
    write(folder / f"do-{number}.prompt.md", ASSISTANT.format(number, number % 7))
    write(folder / f"docs/{number}.md", "A guide.")


def skills(folder: Path, number: int) -> None:
    write(folder / f"{number}/SKILL.md", SKILL.format(number, number % 30))
    write(folder / f"{number}/run.sh", "x")
    write(folder / f"{number}/.state", "x")


def copies(folder: Path, number: int) -> None:
    write(folder / f"packages/{number}/chat.prompty", "---\nname: Chat\n---\nsystem:\nHelp.\n")


def faults(folder: Path, number: int) -> None:
    write(folder / f"{number}.prompt.yml", f"messages: {number}")


@pytest.mark.parametrize(
    ("make", "created", "told"),
    [
        (patterns, COUNT, "Left out: weigh_0/user.md: empty (999 more like this)"),
        (assistants, COUNT, "Add --markdown to import it, too (999 more like this)"),
        (skills, COUNT, "; files of 1,000 prompts left out"),
        (copies, 1, "the same as packages/0/chat.prompty (998 more like this)"),
        (faults, 0, "Rejected: 0.prompt.yml: has no list of messages (999 more like this)"),
    ],
)
def test_a_large_collection(
    folder: Path, make: Callable[[Path, int], None], created: int, told: str
):
    for number in range(COUNT):
        make(folder, number)
    first, second = run(), run()
    is_lost = make is faults
    for done in (first, second):
        assert done.exit_code == is_lost, done.output
        assert told in done.output
        assert len(done.output.splitlines()) <= LINES_MAX
        assert ("1,000 prompts not imported." in done.stderr) == is_lost
    assert re.search(rf"^{created:,} prompts? created, 0 updated, 0 unchanged", first.stdout)
    assert second.stdout.startswith(f"0 prompts created, 0 updated, {created:,} unchanged")
    owners = [one.name for one in Path("content").iterdir() if one.name != ".hub-format"]
    assert owners == ["ada"] * bool(created)


def test_all_messages_are_listed_on_demand(folder: Path):
    for number in range(30):
        skills(folder, number)
    (folder / "out.md").symlink_to("/")
    short, full = run("--dry-run"), run("--dry-run", "--verbose")
    warnings = [line for line in full.stderr.splitlines() if line.startswith("Warning: ")]
    assert len(warnings) == 60
    assert "Warning: 3/SKILL.md: Left out .state: hidden." in warnings
    assert "Add --verbose to list 58 more messages.\n" in short.stderr
    assert "Add --verbose" not in full.stderr
    assert short.exit_code == full.exit_code == 1


def test_a_dry_run_shows_a_table_and_what_is_left_out(folder: Path):
    write(folder / "tidy-up.prompt.md", "Tidy.")
    write(folder / "plan/SKILL.md", "# Plan a trip\nPlan.")
    write(folder / "guide.md", "A guide.")
    told = "guide.md: plain Markdown in a folder that has prompts in formats of their own."
    planned = run("--dry-run")
    assert planned.stdout == (
        "ada/plan\t1.0.0\tnew\tPlan a trip\n"
        "ada/tidy-up\t1.0.0\tnew\tTidy up\n"
        f"Left out: {told} Add --markdown to import it, too\n"
        "2 prompts to create, 0 to update, 0 unchanged, 0 rejected, 0 refused, 1 left out\n"
    )
    assert list(Path("content").iterdir()) == []
    done = run()
    assert (done.exit_code, told in done.stderr) == (0, True)
    write(folder / "tidy-up.prompt.md", "Tidy up.")
    changed = run("--dry-run", "--markdown")
    assert changed.stdout.startswith(
        "ada/guide\t1.0.0\tnew\tGuide\nada/tidy-up\t1.0.1\tupdate\tTidy up\n"
    )
