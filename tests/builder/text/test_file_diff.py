"""Differences between the files of two versions: whole, in bounded time, and as git reads them."""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from builder.model.records import StoredFile
from builder.text import file_diff
from builder.text.file_diff import FileChange, compare_files, unified
from builder.text.hunks import ROWS_MAX, file_hunks
from builder.text.line_diff import STEPS_MAX
from tests.builder.text.test_line_diff import limited_work, slow_pair

Files = Mapping[str, bytes]


def stored(files: Files) -> list[StoredFile]:
    """The entries of records; ``+`` before a path makes an executable."""
    return [
        StoredFile(
            path.lstrip("+"), len(data), hashlib.sha256(data).hexdigest(), "", path[0] == "+"
        )
        for path, data in files.items()
    ]


def changes_of(old: Files, new: Files) -> list[FileChange[StoredFile]]:
    def reader(files: Files):
        return lambda one: files.get(one.path, files.get(f"+{one.path}"))

    return compare_files(stored(old), stored(new), reader(old), reader(new))


OLD = {"a.txt": b"one\ntwo\n", "gone/b.md": b"x", "+run.sh": b"echo\n", "same": b"s", "img": b"\0"}
NEW = {"a.txt": b"one\n2\n", "new/c.md": b"c\n", "run.sh": b"echo\n", "same": b"s", "img": b"\1\0"}


def test_each_change_has_its_kind():
    found = changes_of(OLD, NEW)
    assert [(one.path, one.kind, one.reason) for one in found] == [
        ("a.txt", "changed", ""),
        ("gone/b.md", "removed", ""),
        ("img", "changed", "bytes"),
        ("new/c.md", "added", ""),
        ("run.sh", "mode", "mode"),
    ]
    assert (
        unified(found)
        == """\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+2
diff --git a/gone/b.md b/gone/b.md
deleted file mode 100644
--- a/gone/b.md
+++ /dev/null
@@ -1 +0,0 @@
-x
\\ No newline at end of file
diff --git a/img b/img
Binary files a/img and b/img differ
diff --git a/new/c.md b/new/c.md
new file mode 100644
--- /dev/null
+++ b/new/c.md
@@ -0,0 +1 @@
+c
diff --git a/run.sh b/run.sh
old mode 100755
new mode 100644
"""
    )
    assert changes_of(OLD, OLD) == [] and unified([]) == ""


def test_files_of_no_text_are_not_shown():
    for data in (b"\xff", b"a\0b", b"\xed\xa0\x80"):
        (one,) = changes_of({}, {"x.txt": data})
        assert (one.lines, one.reason, one.kind) == (None, "bytes", "added")
        assert "Binary files /dev/null and b/x.txt differ" in unified([one])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, NEW), (NEW, OLD), ({}, {"+d/e/run.sh": b"#!/bin/sh\necho\n", "empty": b""}),
        ({"+d/e/run.sh": b"no end", "empty": b""}, {}),
        ({"a": b"1\n" * 9}, {"+a": b"1\n" * 4 + b"2\r\n" + b"1\n" * 5}),
    ],
)  # fmt: skip
def test_git_applies_them(tmp_path: Path, old: Files, new: Files):
    old, new = ({path: data for path, data in one.items() if path != "img"} for one in (old, new))
    for path, data in old.items():
        place = tmp_path / path.lstrip("+")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if path[0] == "+" else 0o644)
    patch = unified(changes_of(old, new)).encode()
    git = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(git, cwd=tmp_path, input=patch, check=True)
    found = {
        "+" * bool(path.stat().st_mode & 0o100) + str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == new


def test_only_changed_files_are_read():
    def read(one: StoredFile) -> bytes:
        return pytest.fail(f"{one.path} is the same")

    same = stored({"a": b"a", "+b": b"b"})
    assert compare_files(same, same, read, read) == []
    (one,) = compare_files(same, stored({"a": b"a", "b": b"b"}), read, read)
    assert one.kind == "mode"


def test_all_files_together_have_the_limits_of_one():
    texts = slow_pair(20, 10)
    pairs = [{f"{number}": text.encode() for number in range(10)} for text in texts]
    with limited_work(STEPS_MAX, sum(text.count("\n") for text in texts) * 10):
        found = changes_of(*pairs)
    assert [one.lines.is_coarse for one in (found[0], found[-1])] == [False, True]
    rows = file_hunks(found)
    assert sum(map(len, rows)) <= ROWS_MAX + len(found)


def test_texts_beyond_the_limit_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_diff, "COMPARED_BYTES_MAX", 10)
    found = changes_of({"a": b"12345"}, {"a": b"1234", "b": b"ab", "c": b"a"})
    assert [(one.path, one.reason) for one in found] == [("a", ""), ("b", "long"), ("c", "")]
    assert "Files /dev/null and b/b differ\n" in unified(found)
