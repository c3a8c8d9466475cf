"""The table of the content tree: no other module spells a path of the content."""

import ast
import re

import pytest

from builder.model import content_tree
from builder.model.content_tree import (
    FILE,
    KINDS,
    LABEL,
    PROFILE,
    RECORD,
    TEXT,
    WITHDRAWAL,
    Kind,
    in_repo,
)
from tests.test_packages import modules

# The names of the table's files and folders, alone or at the start or end of a longer path, and the
# ends of names after a value.
_FIXED = [kind.path for kind in KINDS if "{" not in kind.path] + [PROFILE.file()]
_NAMES = re.compile(
    rf"(.*[/'])?({'|'.join(map(re.escape, [*_FIXED, '.restoring']))})('.*)?", re.DOTALL
)
_FOLDERS = re.compile(r"/?(labels|withdrawn)/(%s\.json)?")
_ENDS = re.compile(r"\.(md|json|files)\b.*")
# These name files of other trees: of clients, exports, downloads, and repositories of CI jobs.
_OTHERS = (
    "builder.render.client.",
    "moving.export.",
    "moving.vendors.",
    "publisher.web.editor.origin",
    "publisher.web.pages.snippets",
)


def spelled(source: str) -> list[str]:
    """The parts of string literals that are a path of the content."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for before, part in zip(node.values, node.values[1:], strict=False):
                if isinstance(before, ast.FormattedValue) and isinstance(part, ast.Constant):
                    found += [part.value] * bool(_ENDS.fullmatch(part.value))
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and (_NAMES.fullmatch(text) or _FOLDERS.fullmatch(text)):
            found.append(text)
    return found


def test_only_the_table_spells_paths_of_the_content() -> None:
    found = {
        name: parts
        for name, (_, source) in modules().items()
        if not name.startswith(_OTHERS) and (parts := spelled(source))
    }
    assert found.keys() == {content_tree.__name__}, found


@pytest.mark.parametrize(
    ("file", "kind", "value"),
    [
        ("1.0.0.md", TEXT, "1.0.0"),
        ("1.0.0.json", RECORD, "1.0.0"),
        ("1.0.0.files", FILE, "1.0.0"),
        ("1.0.0.files/scripts/run.py", FILE, "1.0.0"),
        ("labels/12.json", LABEL, "12"),
        ("withdrawn/1.0.0.json", WITHDRAWAL, "1.0.0"),
        ("withdrawn/all.json", WITHDRAWAL, "all"),
        *((other, None, None) for other in (
            "", "1.0.md", "01.0.0.json", "1.0.0.md\n", "1.0.0.JSON", "x/1.0.0.md", "labels/0.json",
            "labels/1.md", "withdrawn/none.json", "1.0.0.files/", "1.0.0.files/../x", "home.md",
        )),
    ],
)  # fmt: skip
def test_the_kind_of_a_file_in_a_repo(file: str, kind: Kind | None, value: str | None) -> None:
    assert in_repo(file) == (kind and (kind, value))
    if kind is FILE and "/" not in file:
        assert kind.entry(value) == file
    elif kind:
        path = file.partition("/")[2]
        assert kind.file(*[value, path][: 1 + (kind is FILE)]) == file


@pytest.mark.parametrize(
    ("source", "is_path"),
    [
        ('f"{a}/{v}.json"', True),
        ('f"{a}/{v}.files/{p}"', True),
        ('f"{a}/labels/{n}.json"', True),
        ('f"{root}/owner.json"', True),
        ('"home.md"', True),
        ('"labels"', False),
        ('f"{root}/meta.json"', False),
    ],
)
def test_what_counts_as_a_path(source: str, is_path: bool) -> None:
    assert bool(spelled(source)) is is_path
