"""The file of a profile: whole, on the disk, whatever happens."""

import errno
import os
import threading
from pathlib import Path

import pytest

from builder.model.content_tree import OWNER_FILE
from builder.model.errors import RequestError
from builder.model.records import OwnerFile
from publisher.write.durable import FolderStore
from publisher.write.profile import parse_profile, read_profile, write_profile
from tests.support.calls import watched
from tests.support.catalogues import moment


def profile_of(bio: str) -> OwnerFile:
    return parse_profile("Ann", bio, "", moment(0))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_that_fails_leaves_the_one_or_the_other(tmp_path: Path, is_first: bool) -> None:
    old, new = None if is_first else profile_of("Old."), profile_of("New.")
    root = str(tmp_path)
    failures, made = 0, []

    def fail(call: str, args: tuple) -> None:
        made.append(call)
        if len(made) == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for number in range(1, 100):
        if old:
            write_profile(FolderStore(root), "ann", old)
        else:
            (tmp_path / "ann" / OWNER_FILE).unlink(missing_ok=True)
            if (tmp_path / "ann").exists():
                (tmp_path / "ann").rmdir()
        failed = None
        made.clear()
        with watched(fail):
            try:
                write_profile(FolderStore(root), "ann", new)
            except RequestError as error:
                failed = error
        if failed:
            assert failed.code == "storage_unavailable" and "Free disk space" in str(failed)
            assert root not in str(failed)
            failures += 1
        assert read_profile(root, "ann") in ((old, new) if failed else (new,))
        if len(made) < number:
            break
        write_profile(FolderStore(root), "ann", new)
        assert os.listdir(tmp_path / "ann") == [OWNER_FILE]
    assert failures > 8


def test_it_is_on_the_disk_before_it_is_said(tmp_path: Path) -> None:
    made: list[str] = []
    with watched(lambda call, _: made.append(call)):
        write_profile(FolderStore(str(tmp_path)), "ann", profile_of("Hi."))
    kept = [call for call in made if call in ("write", "fsync", "rename")]
    # The text; then its name, in the owner's folder; then the folder's.
    assert kept == ["write", "fsync", "rename", "fsync", "fsync"]


def test_many_at_once_leave_one_of_them(tmp_path: Path) -> None:
    root = str(tmp_path)
    texts = [f"{number} " * 500 for number in range(8)]
    seen: set[str] = set()

    def write(text: str) -> None:
        for _ in range(20):
            write_profile(FolderStore(root), "ann", profile_of(text))
            seen.add(read_profile(root, "ann").bio)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= {text.strip() for text in texts} and len(seen) > 1
    assert os.listdir(tmp_path / "ann") == [OWNER_FILE]


def test_a_rest_of_a_crash_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / ".owner.tmp").write_text("half", encoding="utf-8")
    write_profile(FolderStore(str(tmp_path)), "ann", profile_of("Hi."))
    assert os.listdir(tmp_path / "ann") == [OWNER_FILE]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_is_not_written_to(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "content" / "ann"
    place.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere") if kind == "link" else place.touch()
    with pytest.raises(RequestError) as raised:
        write_profile(FolderStore(str(place.parent)), "ann", profile_of("Hi."))
    assert raised.value.code == "storage_unavailable"
    assert os.listdir(tmp_path / "elsewhere") == []
