"""Folders of a prompt, the files that belong to a version of them, and what is left out and why.

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


class Case(NamedTuple):
    """``files`` beside the text, of a byte each, and ``links``; the text of ``.hubignore``; the
    files that belong to the version, and what is left out, beside that text.
    """

    files: tuple[str, ...]
    rules: str
    kept: set[str]
    left: dict[str, str]
    links: tuple[str, ...] = ()

    @property
    def whole(self) -> dict[str, str]:
        """What is left out, with the rules themselves."""
        return self.left | ({".hubignore": "hidden"} if self.rules else {})

    def write(self, folder: Path) -> None:
        for path in (*self.files, "SKILL.md", *([".hubignore"] if self.rules else ())):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(self.rules if path == ".hubignore" else "x")
        for path in self.links:
            (folder / path).symlink_to("SKILL.md")

    def pack(self, top: str = "") -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as file:
            for path in (*self.files, "SKILL.md"):
                file.writestr(top + path, "x")
            if self.rules:
                file.writestr(f"{top}.hubignore", self.rules)
            for path in self.links:
                info = zipfile.ZipInfo(top + path)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                file.writestr(info, "SKILL.md")
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
