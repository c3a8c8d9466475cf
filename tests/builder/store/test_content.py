"""Reading the content tree, and naming what is wrong in it."""

import hashlib
import os
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builder.model.content_tree import HOME
from builder.model.content_tree import RECORD as RECORD_KIND
from builder.model.errors import ContentError, OperatorError
from builder.model.names import Version
from builder.model.records import CONTENT_BYTES_MAX, format_time
from builder.store import content
from builder.store.content import (
    RepoListing,
    list_owners,
    list_repos,
    list_versions,
    read_home,
    read_owner,
    read_version,
)
from operate.content_check import check, stray_texts
from tests.support.calls import once, watched
from tests.support.catalogues import edit_record, moment, write_small_catalogue, write_version


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sound tree."""
    write_small_catalogue(tmp_path)
    return tmp_path


def faults_of(function, *args) -> dict[str, str]:
    """The faults that a function raises: reasons by path."""
    with pytest.raises(ContentError) as caught:
        function(*args)
    assert all(fault.path in str(caught.value) for fault in caught.value.faults)
    return {fault.path: fault.reason for fault in caught.value.faults}


def checked(root: Path) -> dict[str, str]:
    return {fault.path: fault.reason for fault in check(str(root))}


def read(root: Path, owner: str = "ann", name: str = "review", version: str = "1.0.0"):
    return read_version(str(root), owner, name, Version.parse(version))


def listed(root: Path, owner: str = "ann", name: str = "review") -> list[str]:
    return [str(version) for version in list_versions(str(root), owner, name).versions]


def test_a_sound_tree_is_listed_and_read(root):
    assert checked(root) == {}
    assert list_owners(str(root)) == ["ann", "bob"]
    assert list_repos(str(root), "ann") == ["review", "story"]
    assert listed(root) == ["1.0.0", "1.1.0"]
    record, text = read(root)
    assert text == "Review {{code}}.\n"
    assert record.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert [variable.name for variable in record.variables] == ["code"]
    assert read_owner(str(root), "ann").bio == "Writes prompts."
    assert read_owner(str(root), "bob") is None


def test_a_profile_that_appears_during_the_read_is_read(root):
    file = root / "bob" / "owner.json"
    file.parent.mkdir(exist_ok=True)

    def appear() -> None:  # after the read has found no file
        file.write_bytes((root / "ann" / "owner.json").read_bytes())

    with watched(once("lstat", "bob/owner.json", appear)):
        assert read_owner(str(root), "bob") == read_owner(str(root), "ann")


def test_a_repo_that_is_not_there_has_no_versions(root):
    assert list_versions(str(root), "ann", "nothing") == RepoListing([], {})
    assert list_versions(str(root), "nobody", "nothing") == RepoListing([], {})


def test_names_with_a_dot_and_files_beside_the_owners_are_nobodys_business(root):
    for path in (".git/config", "ann/.DS_Store", "ann/review/.1.2.0.md.tmp", "ann/.x/y", "notes"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x")
    (root / ".link").symlink_to(root / "ann")
    assert checked(root) == {}
    assert list_owners(str(root)) == ["ann", "bob"]
    assert list_repos(str(root), "ann") == ["review", "story"]


def test_a_name_that_is_not_utf8_can_be_printed(root):
    os.mkdir(os.fsencode(root) + b"/bad\xff")
    with pytest.raises(ContentError) as caught:
        list_owners(str(root))
    str(caught.value).encode()


def test_words_of_the_operator(root):
    (root / "home.md").write_text("字" * (HOME.bytes_max // 3))
    assert read_home(str(root)) == "字" * (HOME.bytes_max // 3)
    assert checked(root) == {}


BAD_JSON = {
    "empty": b"",
    "cut off": b'{"publisher": "ann"',
    "no object": b"[]",
    "null": b"null",
    "unknown field": b'{"extra": 1}',
    "two values": b"{} {}",
    "not utf-8": b'{"title": "\xff"}',
    "not utf-8 in data": b'{"parameters": {"a": "\xff"}}',
    "utf-16": '{"title": "x"}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "lone surrogate": b'{"title": "\\ud800"}',
    "not a number": b'{"parameters": {"a": NaN}}',
    "huge number": b'{"parameters": {"a": 1e999}}',
    "deep": b'{"parameters": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
}


RECORD, TEXT, PROFILE = "ann/review/1.0.0.json", "ann/review/1.0.0.md", "ann/owner.json"


def owners(root: Path) -> object:
    return list_owners(str(root))


def repos(root: Path) -> object:
    return list_repos(str(root), "ann")


def profile(root: Path) -> object:
    return read_owner(str(root), "ann")


def home(root: Path) -> object:
    return read_home(str(root))


def make_link(path: Path) -> None:
    """Put a link to a file in the place of the file."""
    path.rename(path.with_name(".moved"))
    path.symlink_to(".moved")


# The function that reads a path, the act that makes the path faulty, and a part of the reason.
Fault = tuple[Callable[[Path], object], str, Callable[[Path], object], str]
FAULTS: list[Fault] = [
    *((owners, name, Path.mkdir, "") for name in ("Ann", "a_b", "-a", "a" * 40, "a b", "é", "a.b")),
    *((owners, name, Path.mkdir, "reserved") for name in ("api", "tags", "404", "new", "assets")),
    *((repos, f"ann/{name}", Path.mkdir, "") for name in ("Review", "a_b", "a" * 65, "x--y")),
    (owners, "mia", lambda path: path.symlink_to("bob"), "link"),
    (repos, "ann/other", lambda path: path.symlink_to("review"), "link"),
    (listed, RECORD, lambda path: path.with_suffix(".md").unlink(), ""),
    (listed, "ann/review/2.0.0.md", Path.mkdir, ""),
    *((listed, path, make_link, "not a plain file") for path in (RECORD, TEXT)),
    *((read, path, make_link, "") for path in (RECORD, TEXT)),
    (profile, PROFILE, make_link, ""),
    (home, "home.md", lambda path: path.write_bytes(b"\xff"), ""),
    (home, "home.md", lambda path: path.write_text("x" * (HOME.bytes_max + 1)), ""),
    (home, "home.md", Path.mkdir, ""),
    (home, "home.md", lambda path: path.symlink_to(PROFILE), ""),
    (read, TEXT, lambda path: path.write_text("Edited {{code}}.\n"), "hash differs"),
    (read, RECORD, lambda path: edit_record(path, tags=["Upper"]), "tags"),
    *((look, path, lambda path, data=data: path.write_bytes(data), "")
      for look, path in ((read, RECORD), (profile, PROFILE)) for data in BAD_JSON.values()),
    *((read, TEXT, lambda path, data=data: write_version(
        path.parents[2], "ann", "review", "1.0.0", data), "not UTF-8 at byte")
      for data in (b"caf\xe9", b"\xed\xa0\x80", b"ok\xff")),
]  # fmt: skip


@pytest.mark.parametrize(("look", "path", "spoil", "reason"), FAULTS)
def test_a_fault_is_named(root, look, path, spoil, reason):
    spoil(root / path)
    found = faults_of(look, root)
    assert list(found) == list(checked(root)) == [path]
    assert reason in found[path]


def write(text: str) -> Callable[[Path], object]:
    """Writes a version with this text."""
    return lambda path: write_version(path.parents[2], "ann", "review", path.stem, text)


# Faults that only a check of the tree reports: the path, the act, and a part of the reason.
REPORTED = [
    *((path, lambda path: path.write_text("x"), "") for path in (
        "ann/notes.txt", "ann/1.0.0.md", "ann/review/notes.txt", "ann/review/1.2.md",
        "ann/review/1.0.0.MD", "ann/review/01.0.0.md", "ann/review/1.0.0.md.orig",
        "ann/review/owner.json", "ann/review/1.2.0.md",
    )),
    ("ann/review/drafts", Path.mkdir, ""),
    *((TEXT, write(text), "") for text in ("", " \n\t\n", "x\0y")),
    ("ann/review/1.1.0.json", lambda path: edit_record(path, published_at=moment(-1)), ""),
    (RECORD, lambda path: edit_record(path, variables=[{"name": "other"}]), "code"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "make", "reason"), REPORTED)
def test_the_check_reports_what_readers_ignore(root, path, make, reason):
    make(root / path)
    assert list_repos(str(root), "ann") == ["review", "story"]
    assert listed(root) == ["1.0.0", "1.1.0"]
    read(root)
    faults = checked(root)
    assert list(faults) == [path] and reason in faults[path]


def test_a_repo_without_versions(root):
    (root / "ann/empty").mkdir()
    assert checked(root) == {"ann/empty": "no versions"}


@pytest.mark.parametrize("size", [0, 13, 15, 17])
def test_where_front_matter_ends(root, size):
    write_version(root, "ann", "n", "1.0.0", "---\na: 1\n---\n\r\né", front_matter_bytes=size)
    assert read(root, name="n")[0].front_matter_bytes == size
    assert checked(root) == {}


@pytest.mark.parametrize("size", [-1, 16, 18, 16 * 1024 + 1, 1.5, "16", None])
def test_front_matter_that_ends_where_it_cannot(root, size):
    write_version(root, "ann", "n", "1.0.0", "---\na: 1\n---\n\r\né", front_matter_bytes=size)
    assert "front_matter_bytes" in faults_of(read, root, "ann", "n")["ann/n/1.0.0.json"]
    assert list(checked(root)) == ["ann/n/1.0.0.json"]


def test_front_matter_that_cannot_be_read_is_a_warning(root):
    large = "---\na: " + "x" * 16 * 1024 + "\n---\nBody."
    write_version(root, "ann", "n", "1.0.0", large)
    write_version(root, "ann", "n", "1.0.1", large, front_matter_bytes=0)
    write_version(root, "ann", "n", "1.0.2", "---\na: [" + "1," * 2000 + "]\n---\nBody.")
    write_version(root, "ann", "n", "1.0.3", "---\na: b: c\n---\nBody.")
    write_version(root, "ann", "n", "1.0.4", "---\na: b: c\n---\nBody.", front_matter_bytes=16)
    found = list(check(str(root)))
    assert [fault.path for fault in found if fault.is_warning] == [
        "ann/n/1.0.0.md", "ann/n/1.0.1.md", "ann/n/1.0.2.md", "ann/n/1.0.3.md",
    ]  # fmt: skip
    assert all(fault.is_warning for fault in found)
    assert "16,396 bytes; the limit is 16,384" in found[0].reason
    assert "2,000 values" in found[2].reason


def test_files_that_are_too_large(root):
    write_version(root, "ann", "large", "1.0.0", "x" * CONTENT_BYTES_MAX)
    assert len(read(root, name="large")[1]) == 256 * 1024
    write_version(root, "ann", "large", "1.0.0", "x" * (CONTENT_BYTES_MAX + 1))
    assert "larger than" in faults_of(read, root, "ann", "large")["ann/large/1.0.0.md"]
    record = root / "ann/story/1.0.0.json"
    record.write_bytes(b" " * RECORD_KIND.bytes_max + record.read_bytes())
    assert "larger than" in faults_of(read, root, "ann", "story")["ann/story/1.0.0.json"]
    (root / "ann/owner.json").write_bytes(b" " * (RECORD_KIND.bytes_max + 1))
    assert "larger than" in faults_of(read_owner, str(root), "ann")["ann/owner.json"]
    assert list(checked(root)) == ["ann/owner.json", "ann/large/1.0.0.md", "ann/story/1.0.0.json"]


def test_too_many_versions(root, monkeypatch):
    monkeypatch.setattr("builder.model.names.VERSIONS_PER_REPO_MAX", 1)
    assert list(faults_of(list_versions, str(root), "ann", "review")) == ["ann/review"]
    assert list(checked(root)) == ["ann/review"]


def test_a_long_list_of_faults_is_cut_in_the_message_only(root):
    for number in range(30):
        (root / f"Bad{number}").mkdir()
    with pytest.raises(ContentError, match="… and 10 more") as caught:
        list_owners(str(root))
    assert len(caught.value.faults) == 30


def test_no_content_folder(tmp_path):
    with pytest.raises(OperatorError, match="--content"):
        list_owners(f"{tmp_path}/nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OperatorError, match="Cannot read"):
        list_owners(f"{tmp_path}/file")


def marks(root: Path) -> list[str]:
    where = (str(root), "ann", "review")
    return [content.version_mark(*where, version) for version in list_versions(*where).versions]


def test_a_version_that_is_gone_has_no_mark(root):
    assert content.version_mark(str(root), "ann", "review", Version(9, 0, 0)) == ""


def test_marks_tell_that_a_file_was_touched(root, monkeypatch):
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", -(10**18))  # every file has settled
    before = marks(root)
    assert marks(root) == before
    write_version(root, "ann", "review", "1.1.0", "Longer than before.\n")
    after = marks(root)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert content.owner_mark(str(root), "bob") == "none"
    assert content.owner_mark(str(root), "ann") not in ("", "none")


def test_a_young_file_has_no_mark(root, monkeypatch):
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 10**18)  # every file is young
    assert marks(root) == ["", ""]
    assert content.owner_mark(str(root), "ann") == ""


def test_texts_that_are_no_prompts_are_named_with_the_command_that_publishes_them(root):
    strays = {
        "Draft one.MD": "OWNER/NAME",
        "poem.md": "OWNER/poem",
        "ann/idea.md": "ann/idea",
        "ann/review/next.md": "ann/review",
    }
    for file in (*strays, "README.md", ".hidden.md", "notes.txt", "home.md", "ann/review/.b.md"):
        (root / file).write_text("x")
    found = {fault.path: fault for fault in stray_texts(str(root))}
    assert {*found} == {*strays} and all(fault.is_warning for fault in found.values())
    for file, prompt in strays.items():
        assert f"`hubctl publish {prompt} {shlex.quote(f'{root}/{file}')}`" in found[file].reason
    # Beside the owners' folders a file does no harm; elsewhere it is a fault.
    faults = {fault.path: fault.is_warning for fault in check(str(root))}
    assert {file: faults[file] for file in strays} == {file: "/" not in file for file in strays}


@pytest.mark.parametrize(("days", "is_told"), [(30, True), (0.5, False), (-1, False)])
def test_a_version_ahead_of_the_clock_is_a_warning(root: Path, days: float, is_told: bool):
    at = format_time(datetime.now(UTC) + timedelta(days=days, minutes=5))
    write_version(root, "ann", "review", "9.0.0", "Later.\n", published_at=at)
    found = [fault for fault in check(str(root)) if "ahead of this machine's clock" in str(fault)]
    assert [(fault.path, fault.is_warning) for fault in found] == (
        [("ann/review/9.0.0.json", True)] if is_told else []
    )
    assert not found or f"{days} days ahead" in found[0].reason
