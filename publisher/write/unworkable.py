"""Parts of a version that will not work where it is installed as a skill. Pure.

The rules of skills: https://agentskills.io/specification. A system that runs a script reads the
program from its first line, up to the line feed (execve(2)).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from builder.model import records
from builder.model.plural import some_of
from builder.text.skill_texts import KEYS, looks_like_skill

DESCRIPTION_CHARS_MAX = 1024
# A warning names so many paths.
PATHS_MAX = 3
_BOM = b"\xef\xbb\xbf"
# The first bytes of programs in machine code: ELF, Mach-O, Windows, WebAssembly.
_PROGRAMS = (b"\x7fELF", b"MZ", b"\0asm", *(bytes.fromhex(one) for one in (
    "feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe",
)))  # fmt: skip
_skill_name = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
# A file, as in ``abilities``.
File = tuple[str, bytes, bool]


def tell_unworkable(name: str, front: Mapping[str, Any], files: Sequence[File]) -> Iterator[str]:
    """A warning for each part of a version of prompt ``name`` that will not work."""
    description, own = front.get("description"), front.get("name")
    size = len(description.strip()) if isinstance(description, str) else 0
    # A longer one is no description.
    if DESCRIPTION_CHARS_MAX < size <= records.DESCRIPTION_CHARS_MAX:
        yield (
            f"The description has {size:,} characters. Agents read "
            f"{DESCRIPTION_CHARS_MAX:,}, and the hub cuts the rest from the skill. Shorten it."
        )
    lost = [key for key in front if key in KEYS and key != "name"]
    without = f" without {', '.join(lost)}" if lost else ""
    is_skill = looks_like_skill(front)
    if is_skill and own == name and "variables" in front and lost:
        yield (
            f"The front matter declares variables, so the hub writes the skill: agents get it"
            f"{without}. Remove `variables` to have agents read the text as it is."
        )
    # Other names are titles, as prompty has.
    elif is_skill and own != name and _skill_name.fullmatch(own):
        yield (
            f"The front matter's name is {own[:64]!r}, and the prompt is {name!r}: agents get it "
            f"as {name!r}{without}. Publish it as OWNER/{own[:64]}, or write `name: {name}`."
        )
    faults: dict[str, list[str]] = {}
    for path, data, executable in files:
        if fault := _fault(data, executable):
            faults.setdefault(fault, []).append(path)
    for fault, paths in faults.items():
        yield f"{some_of(paths, PATHS_MAX)}: {fault}"


def _fault(data: bytes, executable: bool) -> str:
    """Why a file does not run; empty if it may."""
    start = data.removeprefix(_BOM)
    line = start.split(b"\n", 1)[0]
    if line.startswith(b"#!") and start is not data:
        return (
            "a byte order mark stands before “#!”, so systems do not find the program. Save it as "
            "UTF-8 without one."
        )
    if line.startswith(b"#!") and line.endswith(b"\r"):
        return (
            "the first line ends with CR LF, so systems look for a program whose name ends with "
            "CR. Save it with line ends of LF."
        )
    if executable and data and not line.startswith((b"#!", *_PROGRAMS)):
        return (
            "executable, but its first line names no program. Begin it with one, such as "
            "“#!/bin/sh”, or make it not executable."
        )
    return ""
