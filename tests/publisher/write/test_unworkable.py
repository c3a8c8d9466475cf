"""What will not work for those who install a version."""

import pytest

from publisher.write.unworkable import tell_unworkable

SKILL = {"name": "rich", "description": "Does it.", "allowed-tools": "Bash", "metadata": {}}


@pytest.mark.parametrize(
    ("data", "executable", "told"),
    [
        (b"#!/bin/sh\nx\r\n", True, ""),
        (b"#!/bin/sh\r\nx\r\n", False, "run: the first line ends with CR LF"),
        (b"\xef\xbb\xbf#!/bin/sh\n", False, "run: a byte order mark stands before “#!”"),
        (b"echo hi\n", True, "run: executable, but its first line names no program"),
        (b"echo hi\n", False, ""), (b"", True, ""), (b"\x7fELF\x02", True, ""),
        (b"MZ\x90", True, ""),
    ],
)  # fmt: skip
def test_files(data: bytes, executable: bool, told: str):
    found = [*tell_unworkable("rich", {}, [("run", data, executable)])]
    assert len(found) == bool(told) and all(one.startswith(told) for one in found)


def test_many_files_give_one_warning():
    (told,) = tell_unworkable("rich", {}, [(f"{n}.py", b"x", True) for n in range(9)])
    assert told.startswith("0.py, 1.py, 2.py and 6 more: executable, but")


@pytest.mark.parametrize(
    ("front", "told"),
    [
        (SKILL, ""),
        (
            SKILL | {"name": "rich-skill"},
            "The front matter's name is 'rich-skill', and the prompt is 'rich': agents get it as "
            "'rich' without allowed-tools, metadata. Publish it as OWNER/rich-skill",
        ),
        ({"name": "x", "description": "Does."}, "agents get it as 'rich'. Publish it as OWNER/x"),
        (SKILL | {"variables": []}, "so the hub writes the skill: agents get it without allowed-"),
        ({"name": "x"}, ""),
        ({"description": "é" * 1025}, "The description has 1,025 characters. Agents read 1,024"),
        ({"description": "é" * 2001}, ""),
        ({"description": "é" * 1024 + "\n"}, ""),
        ({"description": ["x"], "name": 1}, ""),
    ],
)
def test_front_matter(front: dict[str, object], told: str):
    found = [*tell_unworkable("rich", front, [])]
    assert len(found) == bool(told) and all(told in one for one in found)
