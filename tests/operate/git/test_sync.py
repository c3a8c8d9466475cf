"""Changes of others on the branch reach the content, and neither side loses anything."""

import shutil
from pathlib import Path

import pytest

from builder.store.check import check
from operate.git.branch import Moved
from operate.git.commits import ContentChanged
from operate.git.files import Place as FilesPlace
from tests.operate.git.places import PERSON, Place, before_git, git, watched_git
from tests.support.calls import watched
from tests.support.catalogues import (
    edit_record,
    read_tree,
    write_label,
    write_owner,
    write_version,
    write_withdrawn,
)
from tests.support.depth import some

REVIEW = FilesPlace("ann", "review")


def test_what_others_merge_is_taken_in(place: Place) -> None:
    place.run()
    clone = place.clone()
    write_version(clone, "ann", "review", "2.0.0", "New: {{code}}\n", labels=["production"],
                  label_number=1)  # fmt: skip
    write_version(clone, "eve", "new", "1.0.0", "New.\n")
    write_owner(clone, "eve")
    (clone / "home.md").write_text("Welcome.\n")
    (clone / "notes.txt").write_text("No content.\n")
    place.merge()
    done = place.run()
    assert (done.commits, done.problems) == (0, {})
    assert {**read_tree(place.content), "notes.txt": b"No content.\n"} == place.files()
    assert [*check(str(place.content))] == []
    assert place.builds == [None]
    write_version(place.clone(), "eve", "new", "1.1.0", "Newer.\n")
    place.merge()
    assert place.sync().run(set()).taken == [FilesPlace("eve", "new")]
    assert place.builds[1:] == [[("eve", "new")]]


def test_what_is_lost_comes_back_from_the_branch(place: Place) -> None:
    write_withdrawn(place.content, "bob/sql")
    write_label(place.content, "ann/review", 7, "production", "1.1.0")
    before = read_tree(place.content)
    place.run()
    shutil.rmtree(place.content / "ann")
    assert place.run().commits == 0
    assert read_tree(place.content) == before
    for folder in (place.content, Path(place.settings.state)):
        shutil.rmtree(folder)
        folder.mkdir()
    assert place.run().commits == 0
    assert read_tree(place.content) == before


def test_a_withdrawal_on_the_branch_counts_here(place: Place) -> None:
    place.run()
    write_withdrawn(place.clone(), "ann/review", "1.1.0")
    place.merge()
    assert place.run().problems == {}
    assert not (place.content / "ann/review/1.1.0.md").exists()
    assert place.is_same()


@pytest.mark.parametrize(
    "fault", ["hash", "field", "no record", "no text", "link", "size", "ordinal", "withdrawal"]
)
def test_what_is_faulty_stays_outside(place: Place, fault: str) -> None:
    edit_record(place.content / "ann/review/1.1.0.json", ordinal=2)
    place.run()
    before = read_tree(place.content)
    clone = place.clone()
    record = write_version(clone, "ann", "review", "2.0.0", "New: {{code}}\n")
    text = record.with_suffix(".md")
    match fault:
        case "hash":
            text.write_text("Otherwise.\n")
        case "field":
            edit_record(record, colour="red")
        case "no record":
            record.unlink()
        case "no text":
            text.unlink()
        case "link":
            text.unlink()
            text.symlink_to("/etc/passwd")
        case "size":
            text.write_bytes(b"a" * (256 * 1024 + 1))
        case "ordinal":
            edit_record(record, ordinal=2)
        case "withdrawal":
            write_withdrawn(clone, "ann/review", "1.1.0").write_text("{}")
    write_version(clone, "bob", "good", "1.0.0", "Good.\n")
    place.merge()
    done = place.run()
    assert done.problems.keys() == {REVIEW}
    assert done.problems[REVIEW].startswith("not taken in: ann/review/")
    taken = {path: data for path, data in read_tree(place.content).items() if "good" in path}
    assert len(taken) == 2
    assert read_tree(place.content) == {**before, **taken}
    # It is tried again after its correction; meanwhile, publications here reach the branch.
    write_version(place.content, "ann", "review", "1.2.0", "Third {{code}}\n")
    place.sync().run({REVIEW})
    assert "ann/review/1.2.0.md" in place.files()
    assert ("ann/review/1.1.0.md" in place.files()) == (fault != "withdrawal")
    clone = place.clone()
    for path in ("2.0.0.md", "2.0.0.json", "withdrawn/1.1.0.json"):
        (clone / "ann/review" / path).unlink(missing_ok=True)
    write_version(clone, "ann", "review", "2.0.0", "New: {{code}}\n")
    place.merge()
    assert place.sync().run({REVIEW}).problems == {}
    assert place.is_same()


def test_a_number_that_both_have_given(place: Place) -> None:
    place.run()
    write_version(place.clone(), "ann", "review", "1.2.0", "Theirs {{code}}\n")
    place.merge()
    write_version(place.content, "ann", "review", "1.2.0", "Ours {{code}}\n")
    done = place.run()
    assert place.is_same()
    (kept,) = {*done.conflicts.values()}
    assert done.conflicts.keys() == {"ann/review/1.2.0.md", "ann/review/1.2.0.json"}
    assert place.files(kept)["ann/review/1.2.0.md"] == b"Theirs {{code}}\n"
    assert place.log("%s")[-1] == "ann/review: restored"
    assert place.run().conflicts == {}


def test_a_published_version_comes_back(place: Place) -> None:
    place.run()
    clone = place.clone()
    shutil.rmtree(clone / "bob")
    text = clone / "ann/review/1.0.0.md"
    text.write_text("Changed\n")
    text.chmod(0o755)
    place.merge()
    before = read_tree(place.content)
    done = place.run()
    assert done.conflicts.keys() == {"ann/review/1.0.0.md"}
    assert read_tree(place.content) == before
    assert place.is_same()
    assert sorted(place.log("%s")[-2:]) == ["ann/review: restored", "bob/sql: restored"]


def test_a_text_that_was_damaged_here_does_not_get_there(place: Place) -> None:
    place.run()
    before = place.files()
    (place.content / "ann/review/1.0.0.md").write_text("Changed\n")
    done = place.sync().run({REVIEW})
    assert done.problems[REVIEW].startswith("not pushed: ann/review/1.0.0.md")
    assert place.files() == before


def test_a_file_that_cannot_be_read_stops_no_other(place: Place) -> None:
    (place.content / "home.md").symlink_to("/etc/passwd")
    (place.content / "ann/story/1.0.0.md").unlink()
    done = place.run()
    assert {where.path: text.partition(":")[0] for where, text in done.problems.items()} == {
        "home.md": "not pushed", "ann/story": "not pushed",
    }  # fmt: skip
    assert {path.split("/")[1] for path in place.files()} == {"owner.json", "review", "sql"}


@pytest.mark.parametrize("path", ["ann/owner.json", "home.md"])
def test_profiles_and_the_home_page_follow_who_changes_them(place: Place, path: str) -> None:
    def text(bio: str) -> bytes:
        made = write_owner(place.settings.state, "ann", bio=bio) if "/" in path else None
        return made.read_bytes() if made else bio.encode()

    def are_both(bio: str) -> bool:
        return (place.content / path).read_bytes() == text(bio) == place.files()[path]

    (place.content / path).write_bytes(text("A"))
    place.run()
    (place.clone() / path).write_bytes(text("B"))
    place.merge()
    place.run()
    assert are_both("B")
    (place.content / path).write_bytes(text("A"))  # deliberately reverted to the first text
    assert place.run().conflicts == {}
    assert are_both("A")
    (place.clone() / path).write_bytes(text("C"))
    place.merge()
    (place.content / path).write_bytes(text("D"))
    done = place.run()
    assert are_both("D")
    assert place.files(done.conflicts[path])[path] == text("C")


def test_a_hub_that_does_not_know_what_both_had_keeps_its_profile(place: Place) -> None:
    place.run()
    write_owner(place.clone(), "ann", bio="Newer.")
    place.merge()
    shutil.rmtree(place.settings.state)
    Path(place.settings.state).mkdir()
    ((path, kept),) = place.run().conflicts.items()
    assert place.is_same()
    assert b"Newer." in place.files(kept)[path]


def test_a_faulty_profile_is_replaced(place: Place) -> None:
    place.run()
    before = read_tree(place.content)
    clone = place.clone()
    (clone / "eve").mkdir()
    for owner in ("ann", "eve"):
        (clone / owner / "owner.json").write_text("{")
    place.merge()
    done = place.run()
    assert done.problems.keys() == {FilesPlace("ann"), FilesPlace("eve")}
    assert read_tree(place.content) == before
    assert place.files() == before | {"eve/owner.json": b"{"}
    assert place.run().problems.keys() == {FilesPlace("eve")}
    write_owner(place.clone(), "eve")
    place.merge()
    assert place.run().problems == {}
    assert place.is_same()


def test_who_pushes_at_the_same_time(place: Place) -> None:
    place.run()
    write_version(place.content, "ann", "story", "1.1.0", "Ours.\n")
    one = place.sync()
    write_version(place.clone(), "eve", "new", "1.0.0", "Theirs.\n")
    with before_git("push", place.merge), pytest.raises(Moved):
        one.run({FilesPlace("ann", "story")})
    one.run({FilesPlace("ann", "story")})
    assert place.is_same()
    assert {"ann/story/1.1.0.md", "eve/new/1.0.0.md"} <= place.files().keys()


def test_who_publishes_at_the_same_time(place: Place) -> None:
    place.run()
    clone = place.clone()
    write_version(clone, "ann", "story", "1.1.0", "Theirs.\n")
    write_version(clone, "ann", "new", "1.0.0", "New.\n")
    place.merge()
    one = place.sync()

    def publish() -> None:
        write_version(place.content, "ann", "story", "1.1.0", "Ours.\n")

    with before_git("cat-file", publish), pytest.raises(ContentChanged):
        one.run(None)
    assert place.builds == [[("ann", "new")]]  # which came before
    assert one.run(None).conflicts
    assert (place.content / "ann/story/1.1.0.md").read_text() == "Ours.\n"
    assert place.is_same()


def test_a_file_that_goes_while_it_is_pushed(place: Place) -> None:
    one = place.sync()

    def withdraw() -> None:
        write_withdrawn(place.content, "bob/sql", "1.0.0")

    with before_git("fast-import", withdraw), pytest.raises(ContentChanged):
        one.run(None)
    one.run(None)
    assert place.is_same()


def test_only_profiles_and_the_home_page_are_read(place: Place) -> None:
    place.run()
    opened: list[str] = []
    with watched(lambda call, args: opened.append(str(args[0])) if call == "open" else None):
        place.run()
    inside = [path for path in opened if Path(path).is_relative_to(place.content)]
    assert inside == [f"{place.content}/ann/owner.json"]


def test_a_branch_of_files_without_a_folder(place: Place) -> None:
    place.prefix = ""
    place.run()
    write_version(place.clone(), "eve", "new", "1.0.0", "New.\n")
    place.merge()
    place.run()
    assert place.is_same()


def test_the_rest_of_the_branch_stays_as_it_is(place: Place, tmp_path: Path) -> None:
    clone = tmp_path / "own"
    git(tmp_path, "clone", "--quiet", str(place.remote), str(clone))
    (clone / "hub.toml").write_text("site-name = 'Ours'\n")
    shutil.copytree(place.content / "ann", clone / "content/ann")
    git(clone, "add", "--all")
    git(clone, *PERSON, "commit", "--quiet", "--message", "Start")
    git(clone, "push", "--quiet", "origin", "HEAD:main")
    place.run()
    assert place.log("%s") == ["Start", "bob/sql 1.0.0"]
    assert place.files() == {**read_tree(place.content), "hub.toml": b"site-name = 'Ours'\n"}


def test_a_branch_that_was_removed_or_rewritten(place: Place) -> None:
    place.run()
    before = place.log("%H")
    git(place.remote, "update-ref", "-d", "refs/heads/main")
    write_version(place.content, "ann", "story", "1.1.0", "More.\n")
    place.run()
    assert place.log("%H")[:-1] == before
    tree = git(place.remote, "rev-parse", "main^{tree}").strip()
    new = git(place.remote, *PERSON, "commit-tree", tree, "-m", "New").strip()
    git(place.remote, "update-ref", "refs/heads/main", new)
    write_version(place.content, "ann", "story", "1.2.0", "More.\n")
    place.run()
    assert place.log("%s") == ["New", "ann/story 1.2.0"]
    assert place.is_same()


class Killed(BaseException):
    """The process ends here."""


def test_cut_off_at_any_step_nothing_is_lost_or_done_twice(place: Place) -> None:
    place.run()
    clone = place.clone()
    write_version(clone, "eve", "new", "1.0.0", "New.\n")
    write_version(clone, "ann", "story", "1.1.0", "Theirs.\n")
    place.merge()
    write_version(place.content, "ann", "story", "1.1.0", "Ours.\n")
    write_version(place.content, "ann", "review", "1.2.0", "Ours.\n")
    folder = place.remote.parent
    shutil.copytree(folder, f"{folder}-start")
    calls, cut_at = 0, None

    def count(arguments: list[str]) -> None:
        nonlocal calls
        calls += 1
        if calls == cut_at:
            raise Killed

    with watched_git(count):
        place.run()
    assert calls > 10
    for cut_at in some(range(1, calls + 1)):
        shutil.rmtree(folder)
        shutil.copytree(f"{folder}-start", folder)
        calls = 0
        with watched_git(count), pytest.raises(Killed):
            place.run()
        place.run()
        assert place.is_same(), cut_at
        assert (place.content / "ann/story/1.1.0.md").read_text() == "Ours.\n"
        subjects = place.log("%s")
        assert len(subjects) == len({*subjects}), cut_at
