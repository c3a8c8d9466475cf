"""``hubctl publish`` and ``hubctl import``: data on standard output, talk on standard error."""

import json
import os
import re
from pathlib import Path

import pytest

from builder.model.names import Version
from builder.model.version_files import BYTES_HARD_MAX, BYTES_MAX
from builder.store.content import read_version
from tests.cli.command import run
from tests.support.folder_cases import CASES, REFUSED, told


def test_publish(folder: Path):
    (folder / "story.md").write_text("---\ncolour: red\n---\nTell {{what}}.")
    done = run(
        "publish", "ann/story", "story.md", "-m", "New.", "--title", "A story", "--tag", "fun",
        "--tag", "short", "--license", "MIT", "--description", "", "--publisher", "bob",
    )  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "ann/story 1.0.0\n")
    assert "colour" in done.stderr and "hubctl build" not in done.stderr
    record, _ = read_version("content", "ann", "story", Version(1, 0, 0))
    assert (record.title, record.tags, record.license) == ("A story", ["fun", "short"], "MIT")
    assert (record.changelog, record.description, record.publisher) == ("New.", "", "bob")


def test_front_matter_over_a_limit(folder: Path):
    large = f"---\ntitle: {'x' * 16_384}\n---\nTell it."
    (folder / "story.md").write_text(large)
    refused = run("publish", "ann/story", "story.md")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "16,384. Correct it, or start the content with an empty line" in refused.stderr
    # An importer keeps it, as text.
    done = run("import", "story.md", "--owner", "ann")
    assert done.exit_code == 0
    assert "Warning: story.md: The front matter is invalid" in done.stderr
    assert "Front matter: 1 prompt kept as text what cannot be read\n" in done.stderr
    record, text = read_version("content", "ann", "story", Version(1, 0, 0))
    assert (text, record.title, record.front_matter_bytes) == (large, "Story", 0)
    checked = run("check")
    assert checked.exit_code == 0
    assert checked.stdout.startswith("Warning: ann/story/1.0.0.md: the front matter cannot be read")
    assert "No faults" in checked.stderr


def test_front_matter_that_does_not_parse(folder: Path):
    (folder / "story.md").write_bytes(b"---\r\ntitle: A story: part two\r\n---\r\nTell it.")
    refused = run("publish", "ann/story", "story.md")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "line 2, column 15: a second colon" in refused.stderr
    assert not Path("content/ann").exists()
    rules = "---\nTo be said: first: this.\n---\nThen that."
    done = run("publish", "ann/story", "-", stdin=rules)
    assert done.stdout == "ann/story 1.0.0\n"


def test_publish_from_standard_input(folder: Path):
    run("publish", "ann/story", "-", stdin="One.\r\n")
    done = run("publish", "ann/story", "-", "--bump", "minor", stdin="Two.")
    assert done.stdout == "ann/story 1.1.0\n"
    again = run("publish", "ann/story", "-", stdin="Two.")
    assert (again.exit_code, again.stdout) == (0, "ann/story 1.1.0 unchanged\n")
    assert read_version("content", "ann", "story", Version(1, 0, 0))[1] == "One.\r\n"


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["ann", "-"], 2, "OWNER/NAME"),
        (["ann/story", "missing.md"], 2, "missing.md"),
        (["ann/story", "content"], 1, "content has no SKILL.md or PROMPT.md"),
        (["Ann/story", "-"], 1, "Use 'ann'"),
        (["ann/a/b", "-"], 1, "prompt name"),
        (["api/story", "-"], 1, "such as api-team"),
        (["ann/story", "-", "--tag", "No Tag"], 1, "tags[0]"),
        (["ann/story", "-", "--title", ""], 1, "title"),
        (["ann/story", "-", "--base-version", "1.0.0"], 1, "no version yet"),
        (["ann/story", "-", "--bump", "huge"], 2, "--bump"),
        (["ann/story", "-", "--content", "nowhere"], 1, "create a hub with `hubctl init DIR`"),
    ],
)
def test_publish_refuses(folder: Path, args: list[str], status: int, told: str):
    done = run("publish", *args, stdin="Text.")
    assert done.exit_code == status and told in done.stderr and done.stdout == ""
    assert list((folder / "content").iterdir()) == []


@pytest.mark.parametrize("case", CASES)
def test_what_of_a_folder_is_published_and_left_out(folder: Path, case: str):
    one = CASES[case]
    one.write(folder / "x")
    done = run("publish", "ann/x", "x")
    assert done.stdout == "ann/x 1.0.0\n", done.stderr
    assert told(done.stderr.splitlines()) == one.whole
    record, text = read_version("content", "ann", "x", Version(1, 0, 0))
    assert ({file.path for file in record.files or ()}, text) == (one.kept, "x")


@pytest.mark.parametrize("case", REFUSED)
def test_a_folder_is_refused_with_all_its_faults(folder: Path, case: str):
    one = REFUSED[case]
    one.write(folder / "all/x")
    (folder / "all/y").mkdir()
    (folder / "all/y/SKILL.md").write_text("y")
    done = run("publish", "ann/x", "all/x")
    assert (done.exit_code, done.stdout) == (1, "")
    assert one.not_told(done.stderr) == []
    if case == "text behind a link":
        return  # an import counts links: what they name is read where it lies
    for words in (["--dry-run"], []):
        done = run("import", "all", *words)
        assert done.exit_code == 1 and "1 prompt not imported" in done.stderr
        assert re.search("1 prompt (to create|created), .* 1 rejected", done.stdout)
        assert one.not_told(done.stderr) == []


@pytest.mark.parametrize("limit", [10, BYTES_MAX + 1])
def test_an_operator_sets_the_bytes_of_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: int
):
    monkeypatch.setenv("HUB_FILE_BYTES", f"{limit}")
    (folder / "x").mkdir()
    (folder / "x/SKILL.md").write_text("x")
    (folder / "x/a").write_bytes(bytes(limit + 1))
    for words in (["publish", "ann/x", "x"], ["import", "x", "--dry-run"], ["import", "x"]):
        done = run(*words)
        assert done.exit_code == 1 and f"{limit + 1:,} bytes, {limit:,} at most" in done.stderr
    os.truncate(folder / "x/a", limit)
    assert run("import", "x", "--owner", "bob").stdout.startswith("1 prompt created")
    assert run("publish", "ann/x", "x").stdout == "ann/x 1.0.0\n"
    run("build")
    about = json.loads((folder / "site_out/api/v1/hub.json").read_text())["data"]
    assert about["file_bytes"] == limit
    monkeypatch.setenv("HUB_FILE_BYTES", f"{BYTES_HARD_MAX + 1}")
    assert run("build").exit_code == 2


def test_publish_only_text(folder: Path):
    done = run("publish", "ann/story", "-", stdin=b"\xff")
    assert done.exit_code == 1 and "UTF-8" in done.stderr


def test_import(folder: Path):
    (folder / "some.csv").write_text("title,prompt,by\nA,one,ann\nB,two,bob\n")
    args = ("import", "some.csv", "--contributor-column", "by", "--tag", "shared")
    planned = run(*args, "--dry-run")
    assert planned.stdout == (
        "ann/a\t1.0.0\tnew\tA\nbob/b\t1.0.0\tnew\tB\n"
        "2 prompts to create, 0 to update, 0 unchanged, 0 rejected, 0 refused\n"
    )
    done = run(*args)
    assert done.stdout == "2 prompts created, 0 updated, 0 unchanged, 0 rejected, 0 refused\n"
    assert done.exit_code == 0
    again = run(*args)
    assert again.stdout == "0 prompts created, 0 updated, 2 unchanged, 0 rejected, 0 refused\n"
    assert run("check").exit_code == 0
    one_owner = run("import", "some.csv", "--contributor-column", "", "--owner", "team")
    assert one_owner.stdout.startswith("2 prompts created")
    assert read_version("content", "team", "a", Version(1, 0, 0))[0].tags == []


def test_import_sums_up_placeholders(folder: Path):
    (folder / "some.csv").write_text("title,prompt\nA,${x:1}\nB,{{#b}}\n")
    told = "Placeholders: ${name} would become {{name}} in 1 prompt (dollar); 1 prompt would keep "
    assert told in run("import", "some.csv", "--dry-run").stderr
    done = run("import", "some.csv")
    assert (
        "\nPlaceholders: ${name} became {{name}} in 1 prompt (dollar); 1 prompt kept "
        in done.stderr
    )


def test_import_refuses_changes_to_other_owners_prompts(folder: Path):
    table = folder / "some.csv"
    table.write_text("title,prompt,owner\nA,one,ann\nB,two,ann\nC,three,bob\nD,four,\n")
    done = run("import", "some.csv")
    assert done.exit_code == 0
    table.write_text("title,prompt,owner\nA,1,ann\nB,2,ann\nC,3,bob\nD,4,\n")
    for mode, updated in ((["--dry-run"], "1 to update"), ([], "1 updated")):
        refused = run("import", "some.csv", *mode)
        assert refused.exit_code == 1
        assert refused.stdout.endswith(f"{updated}, 0 unchanged, 0 rejected, 3 refused\n")
        assert (
            "Refused: 3 changes to prompts of other owners. To update these prompts, add "
            "--allow-owner ann --allow-owner bob\n"
        ) in refused.stderr
        assert "3 prompts not imported" in refused.stderr
    allowed = run("import", "some.csv", "--allow-owner", "ann", "--allow-owner", "bob")
    assert allowed.exit_code == 0
    assert allowed.stdout == "0 prompts created, 3 updated, 1 unchanged, 0 rejected, 0 refused\n"


def test_import_names_a_bounded_number_of_owners(folder: Path):
    rows = [f"A,one,owner-{number}\n" for number in range(50)]
    (folder / "some.csv").write_text("title,prompt,owner\n" + "".join(rows))
    run("import", "some.csv")
    (folder / "some.csv").write_text("title,prompt,owner\n" + "".join(rows).replace("one", "two"))
    refused = run("import", "some.csv")
    assert "Refused: 50 changes" in refused.stderr and "for 30 more owners" in refused.stderr
    assert refused.stderr.count("--allow-owner") == 20


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["nowhere.csv"], 2, "nowhere.csv"),
        (["some.csv", "--tag", "Not OK"], 2, "a tag has only"),
        (["some.csv", "--owner", "api"], 1, "such as api-team"),
        (["some.csv", "--allow-owner", "No One"], 1, "owner"),
        (["some.csv", "--title-column", "name"], 1, "The columns are: title, prompt."),
    ],
)
def test_import_refuses(folder: Path, args: list[str], status: int, told: str):
    (folder / "some.csv").write_text("title,prompt\nA,one\n")
    done = run("import", *args)
    assert done.exit_code == status and told in done.stderr
    assert list((folder / "content").iterdir()) == []
