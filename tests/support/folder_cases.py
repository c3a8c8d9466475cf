"""Folders of a prompt, the files that belong to a version of them, and what is left out and why;
and folders that are refused.

The shell client and the hub have a reader each. Each way into the hub passes this table: `hub
push`, `hub check`, a ZIP, `hubctl publish` and imports.
"""

import io
import re
import stat
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from builder.model.version_files import BYTES_MAX, FILES_MAX
from publisher.write.folders import LFS_POINTER
from publisher.write.left_out import IGNORE_BYTES_MAX


class Case(NamedTuple):
    """``files`` beside the text, of a byte each, and ``links``; the text of ``.hubignore``; the
    files that belong to the version, and what is left out, beside that text.
    """

    files: tuple[str, ...]
    rules: str
    kept: set[str]
    left: dict[str, str]
    links: tuple[str, ...] = ()
    text: str = "SKILL.md"

    @property
    def whole(self) -> dict[str, str]:
        """What is left out, with the rules themselves."""
        return self.left | ({".hubignore": "hidden"} if self.rules else {})

    def write(self, folder: Path) -> None:
        for path in (*self.files, self.text, *([".hubignore"] if self.rules else ())):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(self.rules if path == ".hubignore" else "x")
        for path in self.links:
            (folder / path).symlink_to(self.text)

    def pack(self, top: str = "") -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as file:
            for path in (*self.files, self.text):
                file.writestr(top + path, "x")
            if self.rules:
                file.writestr(f"{top}.hubignore", self.rules)
            for path in self.links:
                info = zipfile.ZipInfo(top + path)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                file.writestr(info, self.text)
        return packed.getvalue()


def told(warnings: Iterable[str]) -> dict[str, str]:
    """What warnings such as ``Left out a, b: hidden.`` name."""
    found = (re.search(r"Left out (.*): ([^:]*)\.$", one) for one in warnings)
    return {path: one[2] for one in found if one for path in one[1].split(", ")}


_NAMES = ("a.txt", "d/a.txt", "d/e/b.pyc", "d/e/f.txt", "b+c.md")
_TOOL, _RULES = "made by a tool", ".hubignore"


def _ruled(rules: str, kept: set[str], *left: str) -> Case:
    return Case(_NAMES, rules, kept, dict.fromkeys(left, _RULES))


CASES = {
    "small letters": Case(("a", "d/prompt.md"), "", {"a", "d/prompt.md"}, {}, text="skill.md"),
    "no environments": Case(
        ("pyvenv.cfg", "a", "d/pyvenv.cfg/b"), "", {"pyvenv.cfg", "a", "d/pyvenv.cfg/b"}, {}
    ),
    "line breaks in caches": Case(
        ("node_modules/a\nb", ".h/a\nb", "a"), "", {"a"}, {"node_modules/": _TOOL, ".h/": "hidden"}
    ),
    "plain": Case(("a/b/c/d", "a.md"), "", {"a/b/c/d", "a.md"}, {}),
    "hidden": Case(
        (".env", ".git/config", "d/.x/y", "d/e.x"), "", {"d/e.x"},
        dict.fromkeys((".env", ".git/", "d/.x/"), "hidden"),
    ),
    "caches": Case(
        ("__pycache__/a.pyc", "d/node_modules/e/f.js", "d/node_modules/.g", "node_modules.md"), "",
        {"node_modules.md"}, {"__pycache__/": _TOOL, "d/node_modules/": _TOOL},
    ),
    "environments": Case(
        ("env/pyvenv.cfg", "env/bin/a", "env/.b", "envs/x", "e/f/pyvenv.cfg"), "", {"envs/x"},
        {"env/": _TOOL, "e/f/": _TOOL},
    ),
    "systems": Case(
        ("Thumbs.db", "d/desktop.ini", "__MACOSX/._a", "d/thumbs.dbx", "desktop.ini.md"), "",
        {"d/thumbs.dbx", "desktop.ini.md"},
        {"Thumbs.db": _TOOL, "d/desktop.ini": _TOOL, "__MACOSX/": _TOOL},
    ),
    "links": Case(("a",), "", {"a"}, {"b": "a symbolic link"}, links=("b",)),
    "tools win": Case(("a", "node_modules/b"), "!*\n", {"a"}, {"node_modules/": _TOOL}),
    "comment": _ruled(
        "# comment\n\n*.pyc\r\nb+c.md  \n", {"a.txt", "d/a.txt", "d/e/f.txt"}, "d/e/b.pyc", "b+c.md"
    ),
    "top": _ruled("/a.txt\n", {"d/a.txt", "d/e/b.pyc", "d/e/f.txt", "b+c.md"}, "a.txt"),
    "folders": _ruled("a.txt/\ne/\n", {"a.txt", "d/a.txt", "b+c.md"}, "d/e/"),
    "below": _ruled("d/*.txt\n", {"a.txt", "d/e/b.pyc", "d/e/f.txt", "b+c.md"}, "d/a.txt"),
    "one sign": _ruled("?.txt", {"d/e/b.pyc", "b+c.md"}, "a.txt", "d/a.txt", "d/e/f.txt"),
    "exceptions": _ruled("*\n!d\n!*.txt\n", {"a.txt", "d/a.txt"}, "b+c.md", "d/e/"),
    "no exception below": _ruled("d\n!d/a.txt\n", {"a.txt", "b+c.md"}, "d/"),
    "all": _ruled("*\n", set(), "a.txt", "b+c.md", "d/"),
    "stars": _ruled("*.*x*t", {"d/e/b.pyc", "b+c.md"}, "a.txt", "d/a.txt", "d/e/f.txt"),
    "levels": _ruled("/*/*/*.*y*", {"a.txt", "d/a.txt", "d/e/f.txt", "b+c.md"}, "d/e/b.pyc"),
}  # fmt: skip


class Refused(NamedTuple):
    """A folder that no version can have: the bytes of its ``files``, and patterns of the faults,
    each of which an error names. Numbers in these have no commas.
    """

    files: dict[str, bytes]
    faults: tuple[str, ...]
    link: str = ""

    def write(self, folder: Path) -> None:
        for path, data in ({"SKILL.md": b"x"} | self.files).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        if self.link:
            (folder / "elsewhere").write_text("x")
            (folder / self.link).unlink(missing_ok=True)
            (folder / self.link).symlink_to("elsewhere")

    def pack(self) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
            for path, data in ({"SKILL.md": b"x"} | self.files).items():
                info = zipfile.ZipInfo(path)
                info.compress_type = zipfile.ZIP_DEFLATED
                if path == self.link:
                    info.external_attr = (stat.S_IFLNK | 0o777) << 16
                file.writestr(info, data)
        return packed.getvalue()

    def not_told(self, said: str) -> list[str]:
        """The faults that a message does not name."""
        plain = re.sub(r"(?<=\d),(?=\d)", "", said)
        return [one for one in self.faults if not re.search(one, plain)]


def _of(*paths: str, faults: tuple[str, ...]) -> Refused:
    return Refused(dict.fromkeys(paths, b""), faults)


_POINTER = LFS_POINTER + b"oid sha256:0\nsize 1\n"
_many = [f"f{number}" for number in range(FILES_MAX + 14)]
_MANY, _LARGE = f"{len(_many)} files, {FILES_MAX} at most", f"{BYTES_MAX} at most.* largest is "

REFUSED = {
    "files": _of(*_many, faults=(_MANY,)),
    "bytes": Refused(
        {"a": b"x", "d/b": bytes(BYTES_MAX)}, (f"{BYTES_MAX + 1} bytes, {_LARGE}d/b",)
    ),
    "everything": Refused(
        dict.fromkeys(_many, b"") | {"big": bytes(6_100_000), "a b": b"", "d/nul": b"", "é": b""},
        (
            f"{len(_many) + 4} files, 200 at most",
            f"6100000 bytes, {_LARGE}big",
            "a b",
            "d/nul",
            "é",
        ),
    ),
    "long": _of(f"{'d' * 100}/{'x' * 100}", faults=("has 201 characters, 200 at most",)),
    "space": _of("a b.txt", faults=(r"a b\.txt.* path",)),
    "accent": _of("é.txt", faults=("é.txt.* path",)),
    "hyphen": _of("d/-x", faults=("d/-x.* path",)),
    "dot at the end": _of("x./y", faults=("x./y.* path",)),
    "control": _of("a\x01[31m", faults=("31m.* path",)),
    "device": _of("d/Nul.txt", faults=("d/Nul.txt.* Windows",)),
    "text": _of("PROMPT.md", faults=("PROMPT.md",)),
    "folder like a text": _of("Prompt.MD/x", faults=("Prompt.MD/x",)),
    "case": _of("a/x", "a/X", faults=("a/[xX].* (case|capitals)",)),
    "case of a folder": _of("D/x", "d/y", faults=("d/.* (case|capitals)",)),
    "tab": _of("a\tb", faults=("a[ ?\t]b.* (tab|path)",)),
    "line break": _of("a\nb", faults=("a[ ?\n]b", "line break|path")),
    "backslash": _of("d/a\\b", faults=(r"d/a\\+b.* path",)),
    "rules": Refused({".hubignore": b"ok\n**/x"}, (".hubignore, line 2",)),
    "large rules": Refused(
        {".hubignore": b"#\n" * (IGNORE_BYTES_MAX // 2) + b"d"}, (".hubignore",)
    ),
    "rules in a folder": _of(".hubignore/x", faults=(".hubignore must be a plain file",)),
    "rules behind a link": Refused(
        {".hubignore": b"x", "elsewhere": b"x"}, (".hubignore must be a plain file",), ".hubignore"
    ),
    # The hub refuses these two, whoever sends them.
    "pointer": Refused({"SKILL.md": _POINTER}, ("pointer of Git LFS",)),
    "pointer of a file": Refused({"d/a.bin": _POINTER}, ("d/a.bin.* pointer of Git LFS",)),
    "text behind a link": Refused({"SKILL.md": b"a"}, ("SKILL.md",), "SKILL.md"),
}
