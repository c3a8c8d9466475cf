"""A publication cut off at any system call leaves nothing broken, and nothing in the way."""

import os
from pathlib import Path

import pytest

from builder.model.names import Version
from builder.store import content
from operate.content_check import check
from publisher.write.durable import FolderStore, NewVersion
from tests.publisher.write.acts import REPO, code_of, put, refusal, texts_of
from tests.support.calls import at, noted_writes, watched


def leftovers(root: str) -> list[str]:
    return [path.name for path in Path(root).rglob(".*")]


def test_the_lock_is_of_the_folder_that_is_there(tmp_path: Path):
    """The holder that a publication waited for may have failed, and removed its empty folder."""
    folder = tmp_path / "/".join(REPO)
    locked = []

    def remove_first(call: str, args: tuple) -> None:
        if call == "flock":
            locked.append(args[0])
            if len(locked) == 1:
                folder.rmdir()

    with watched(remove_first):
        put(tmp_path, "One.")
    assert len(locked) == 2 and texts_of(tmp_path) == ["One."]


@pytest.fixture(params=["first", "second"])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[str]]:
    """A content folder in which a publication is the repo's first, or its second."""
    if request.param == "first":
        return str(tmp_path), []
    put(tmp_path, "One.")
    return str(tmp_path), ["One."]


def restore(root: str, old: list[str]) -> None:
    """Take the test's version away, as if it had never been."""
    number = len(old)
    for path in Path(root, *REPO).iterdir():
        if path.name.startswith((f"1.0.{number}.", ".")):
            path.unlink()
    if not old:
        Path(root, *REPO).rmdir()
        Path(root, "ann", "owner.json").unlink(missing_ok=True)
        Path(root, "ann").rmdir()


def test_an_interrupt_at_any_call(before: tuple[str, list[str]]):
    root, old = before
    new = [*old, "Two."]

    def interrupt() -> None:
        raise KeyboardInterrupt

    for number in range(1, 200):
        with watched(at(number, interrupt)):
            try:
                put(root, "Two.")
                break
            except KeyboardInterrupt:
                pass
        assert texts_of(root) in (old, new)
        put(root, "Two.")
        assert list(check(root)) == [] and texts_of(root) == new
        restore(root, old)
    assert number > 20


def test_another_text_after_a_crash(tmp_path: Path):
    # Killed between link and unlink: the temporary name is a second name of what is published.
    root = str(tmp_path)
    put(root, "One.")
    folder = Path(root, *REPO)
    os.link(folder / "1.0.0.md", folder / ".publish.tmp")
    (folder / "1.0.1.md").write_text("Half")
    put(root, "Two.")
    assert texts_of(root) == ["One.", "Two."] and leftovers(root) == []


def test_the_order_of_writing(tmp_path: Path):
    with noted_writes(tmp_path) as writes:
        put(tmp_path, "One.")
    temporary = "fsync ann/story/.publish.tmp"
    assert writes == [
        "mkdir ann", "mkdir ann/story", temporary, "link ann/owner.json", "fsync ann", "fsync .",
        temporary, "link ann/story/1.0.0.md",
        temporary, "link ann/story/1.0.0.json", "fsync ann/story",
    ]  # fmt: skip
    with noted_writes(tmp_path) as writes:
        put(tmp_path, "Two.")
    assert writes == [
        temporary, "link ann/story/1.0.1.md",
        temporary, "link ann/story/1.0.1.json", "fsync ann/story",
    ]  # fmt: skip
    with noted_writes(tmp_path) as writes:
        assert put(tmp_path, "Two.").unchanged
    # The writer may have died before the version was durable.
    assert writes == ["fsync ann/story"]


def test_without_sync_nothing_waits(tmp_path: Path):
    calls = []
    with watched(lambda name, _: calls.append(name)):
        put(tmp_path, "x", sync=False)
    assert "link" in calls and "fsync" not in calls


def test_short_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:1]))
    put(tmp_path, "One.")
    assert list(check(str(tmp_path))) == []


def test_nothing_published_is_overwritten(tmp_path: Path):
    root = str(tmp_path)
    put(root, "One.")
    again = NewVersion(b"Other.", b"{}")
    assert code_of(FolderStore(root).write_version, *REPO, "1.0.0", again) == "version_conflict"
    assert texts_of(root) == ["One."] and list(check(root)) == []


def test_the_message_says_what_to_do(tmp_path: Path):
    error = refusal(put, tmp_path / "missing", "One.")
    assert error.code == "storage_unavailable" and "Create the content folder" in str(error)
    assert not (tmp_path / "missing").exists()


def test_a_refused_first_publication_leaves_no_folder(tmp_path: Path):
    assert refusal(put, tmp_path, "One.", base_version="1.0.0")
    assert list(tmp_path.iterdir()) == []


def test_a_profile_only_for_a_new_owner(tmp_path: Path):
    root = str(tmp_path)
    put(root, "x", "ann/one")
    profile = content.read_owner(root, "ann")
    assert profile.name == "ann"
    (tmp_path / "ann" / "owner.json").unlink()
    put(root, "x", "ann/two")
    # An owner who already has repos did not join just now, so no profile is written.
    assert content.read_owner(root, "ann") is None
    assert content.list_versions(root, "ann", "two").versions == [Version(1, 0, 0)]


def test_a_link_is_no_repo(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "content" / "ann").mkdir(parents=True)
    (tmp_path / "content" / "ann" / "story").symlink_to(tmp_path / "elsewhere")
    assert refusal(put, tmp_path / "content", "One.")
    assert list((tmp_path / "elsewhere").iterdir()) == []
