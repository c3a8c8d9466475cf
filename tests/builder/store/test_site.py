"""Writing the site's files: whole, only where they differ, with honest times."""

import errno
import os
from itertools import pairwise
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.store.site import ONE_SECOND_NS, Site, Tally

OLD_NS = 1_700_000_000_123_456_789


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A site with one file, written long ago."""
    write_old(tmp_path / "a/x.json", b"old")
    return tmp_path


def write_old(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(OLD_NS, OLD_NS))


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_new_file_and_its_folders_are_made(root):
    site = Site(str(root))
    site.write("b/c/y.json", b"new")
    assert (root / "b/c/y.json").read_bytes() == b"new"
    assert names_in(root / "b/c") == ["y.json"]
    assert site.tally == Tally(written=1)


def test_readers_may_read_the_files(root):
    Site(str(root)).write("b/y.json", b"new")
    assert (root / "b/y.json").stat().st_mode & 0o444 == 0o444 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_with_the_same_bytes_keeps_its_time_and_place(root):
    before = (root / "a/x.json").stat()
    site = Site(str(root))
    site.write("a/x.json", b"old")
    after = (root / "a/x.json").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert site.tally == Tally(unchanged=1)


def test_a_changed_file_is_put_in_place_of_the_old_one(root):
    with open(root / "a/x.json", "rb") as reader:
        Site(str(root)).write("a/x.json", b"new")
        assert reader.read() == b"old"
    assert (root / "a/x.json").read_bytes() == b"new"
    assert names_in(root / "a") == ["x.json"]


def test_each_change_is_a_second_later_at_least(root):
    path = root / "a/x.json"
    site = Site(str(root))
    times = [path.stat().st_mtime_ns]
    for number in range(5):
        site.write("a/x.json", b"%3d" % number)
        times.append(path.stat().st_mtime_ns)
    assert all(b - a >= ONE_SECOND_NS for a, b in pairwise(times))
    assert len({time // ONE_SECOND_NS for time in times}) == len(times)


def test_a_file_from_the_future_gets_a_later_time_too(root):
    future_ns = 4_000_000_000 * ONE_SECOND_NS
    os.utime(root / "a/x.json", ns=(future_ns, future_ns))
    Site(str(root)).write("a/x.json", b"new")
    assert (root / "a/x.json").stat().st_mtime_ns == future_ns + ONE_SECOND_NS


def test_short_writes_are_continued(root, monkeypatch):
    write = os.write
    monkeypatch.setattr("os.write", lambda descriptor, data: write(descriptor, data[:3]))
    Site(str(root)).write("a/x.json", b"0123456789")
    monkeypatch.undo()
    assert (root / "a/x.json").read_bytes() == b"0123456789"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES])
@pytest.mark.parametrize("call", ["write", "rename", "open", "utime"])
def test_a_disk_that_refuses_is_reported_and_leaves_the_old_file(root, monkeypatch, call, number):
    real_open = os.open

    def fail(*args, **kwargs):
        if call == "open" and args[1] == os.O_RDONLY:
            return real_open(*args, **kwargs)
        raise OSError(number, os.strerror(number))

    site = Site(str(root))
    monkeypatch.setattr(f"os.{call}", fail)
    with pytest.raises(OperatorError, match="old file is still there") as caught:
        site.write("a/x.json", b"new")
    monkeypatch.undo()
    assert os.strerror(number) in str(caught.value)
    assert str(root / "a/x.json") in str(caught.value)
    assert (root / "a/x.json").read_bytes() == b"old"
    assert names_in(root / "a") == ["x.json"]
    assert site.tally.written == 0


def test_a_folder_in_the_place_of_a_file_is_reported(root):
    (root / "b.json").mkdir()
    with pytest.raises(OperatorError, match=r"b\.json"):
        Site(str(root)).write("b.json", b"new")


@pytest.mark.parametrize("path", ["gone/y.json", "gone/b/y.json"])
def test_a_folder_that_is_not_mounted_is_reported(root, path):
    (root / "gone").symlink_to(root / "volume")
    with pytest.raises(OperatorError, match="gone"):
        Site(str(root)).write(path, b"new")


def test_a_stop_in_the_middle_of_a_write_leaves_the_old_file(root, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.rename", stop)
    with pytest.raises(KeyboardInterrupt):
        Site(str(root)).write("a/x.json", b"new")
    assert (root / "a/x.json").read_bytes() == b"old"
    assert names_in(root / "a") == ["x.json"]


def test_what_a_killed_build_left_is_cleared(root):
    for path in (".x.json.tmp", "a/.x.json.tmp", "a/b/.y.html.tmp"):
        write_old(root / path, b"part")
    write_old(root / ".gitkeep", b"")
    write_old(root / "a/keep.tmp", b"")
    site = Site(str(root))
    site.remove_temporary_files()
    assert sorted(site.files()) == ["a/keep.tmp", "a/x.json"]
    assert names_in(root) == [".gitkeep", "a"]
    assert names_in(root / "a/b") == []


def test_files_leave_out_what_starts_with_a_dot(root):
    write_old(root / ".well-known/x", b"")
    write_old(root / "a/.hidden", b"")
    assert list(Site(str(root)).files()) == ["a/x.json"]


def test_a_left_over_temporary_file_is_no_hindrance(root):
    write_old(root / "a/.x.json.tmp", b"something longer than the new bytes")
    Site(str(root)).write("a/x.json", b"new")
    assert (root / "a/x.json").read_bytes() == b"new"
    assert names_in(root / "a") == ["x.json"]


def test_a_dry_site_takes_note_and_writes_nothing(root):
    site = Site(str(root), dry=True)
    site.write("a/x.json", b"old")
    site.write("a/x.json", b"new")
    site.write("b/y.json", b"new")
    assert site.tally == Tally(unchanged=1, missing=["b/y.json"], differing=["a/x.json"])
    assert (root / "a/x.json").read_bytes() == b"old"
    assert names_in(root) == ["a"]


def test_removing_a_file_removes_the_folders_that_are_empty_then(root):
    write_old(root / "a/b/c/y", b"")
    write_old(root / "a/b/z", b"")
    site = Site(str(root))
    site.remove("a/b/c/y")
    assert names_in(root / "a/b") == ["z"]
    site.remove("a/b/z")
    assert names_in(root / "a") == ["x.json"]
    site.remove("a/x.json")
    assert names_in(root) == []
    site.remove("a/x.json")
    assert root.is_dir()


def test_removing_the_last_file_keeps_the_site_however_it_is_spelled(tmp_path):
    write_old(tmp_path / "site/a/x", b"")
    Site(f"{tmp_path}/site/").remove("a/x")
    assert names_in(tmp_path) == ["site"]


def test_the_mark_tells_that_the_site_is_another(root):
    site = Site(str(root))
    assert site.mark() == "none"
    site.write("api/v1/hub.json", b"{}")
    first = site.mark()
    assert first == Site(str(root)).mark() != "none"
    # Another file in its place while the first is still there cannot have its number.
    (root / "api/v1/other.json").write_bytes(b"{}")
    (root / "api/v1/other.json").rename(root / "api/v1/hub.json")
    assert site.mark() not in (first, "none")


def test_what_was_touched_is_known_as_long_as_it_is_little(root, monkeypatch):
    monkeypatch.setattr("builder.store.site.TOUCHED_MAX", 3)
    site = Site(str(root))
    site.write("a.json", b"1")
    site.write("a.json", b"1")
    site.remove("gone.json")  # not there, and who follows has to remove it all the same
    assert site.tally.touched == {"a.json", "gone.json"}
    site.tally.add(Tally(touched={"b.json"}))
    assert site.tally.touched == {"a.json", "b.json", "gone.json"}
    site.write("c.json", b"1")
    assert site.tally.touched is None
    site.tally.add(Tally(3, 4, ["c"], ["d"], {"d.json"}))
    assert site.tally == Tally(5, 5, ["c"], ["d"]) and site.tally.touched is None


def test_equal_files_of_a_repo_are_links_and_a_replaced_one_is_a_second_newer(tmp_path):
    repo = {"owner": "ann", "name": "x"}
    folder = tmp_path / "api/v1/repos/ann/x"
    first, second, latest = (
        folder / file for file in ("versions/1.0.0.txt", "versions/1.1.0.txt", "raw.txt")
    )

    def put(version: str, data: bytes) -> None:
        site = Site(str(tmp_path))
        site.put(repo | {"version": version}, [("version_raw", data), ("version_body", data)])
        site.put(repo, [("raw", data)])

    put("1.0.0", b"One.")
    assert first.samefile(latest) and first.samefile(first.with_suffix(".body.txt"))
    before = latest.stat().st_mtime_ns
    # The rest of a killed build is another name of a file that readers have.
    os.link(first, latest.with_name(f".{latest.name}.tmp"))
    put("1.1.0", b"Two.")
    assert latest.stat().st_mtime_ns >= before + 1_000_000_000
    assert (first.read_bytes(), second.read_bytes(), latest.read_bytes()) == (
        b"One.",
        b"Two.",
        b"Two.",
    )
    # A version that is new enough is linked in place of the old one.
    os.utime(latest, ns=(0, 0))
    put("1.2.0", b"Three.")
    assert latest.samefile(folder / "versions/1.2.0.txt")


@pytest.mark.parametrize("is_there", [False, True])
def test_a_file_system_without_links_gets_files_of_equal_bytes(root, monkeypatch, is_there):
    def refuse(*paths: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    if is_there:
        write_old(root / "api/v1/repos/ann/x/raw.txt", b"Old.")
    site = Site(str(root))
    site.put({"owner": "ann", "name": "x", "version": "1.0.0"}, [("version_raw", b"One.")])
    site.put({"owner": "ann", "name": "x"}, [("raw", b"One.")])
    folder = root / "api/v1/repos/ann/x"
    assert names_in(folder) == ["raw.txt", "versions"]
    latest, first = folder / "raw.txt", folder / "versions/1.0.0.txt"
    assert latest.read_bytes() == first.read_bytes() == b"One." and not latest.samefile(first)
