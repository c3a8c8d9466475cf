"""The documents and the docstrings use plain words of the field, and begin with their subject."""

import ast
import re
from collections.abc import Iterator

from tests.support.servers import PROJECT

WORDS = re.compile(
    r"\b(?:told(?! apart| from)|mend(?:s|ed|ing)?|somebody|nobody|whoever|anew|of which)\b"
    r"|\b(?:goes|going|went) on\b"
    r"|(?-i:(?:^[-* |]*|[.!?|] )Of\b)",
    re.IGNORECASE | re.MULTILINE,
)
FIRST_WORDS = ("What", "Whether", "Where", "Who", "Whom", "How", "Of", "When")
PACKAGES = "builder cli clients docs mcp_app moving operate publisher server".split()


def texts_of_documents() -> Iterator[tuple[str, str]]:
    """The name and the prose of each document: its text without code."""
    for path in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")):
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "``", path.read_text(), flags=re.M | re.S)
        yield str(path.relative_to(PROJECT)), prose


def docstrings() -> Iterator[tuple[str, str]]:
    """The file and the text of each docstring in the packages."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in (path for package in PACKAGES for path in (PROJECT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield str(path.relative_to(PROJECT)), text


def faults() -> Iterator[tuple[str, str]]:
    """Each file with a line that has one of the words, or a docstring with a wrong beginning."""
    for name, text in (*texts_of_documents(), *docstrings()):
        for line in text.splitlines():
            if WORDS.search(line):
                yield name, line.strip()
    for name, text in docstrings():
        if text.split(maxsplit=1)[0] in FIRST_WORDS:
            yield name, text.splitlines()[0]


def test_no_document_and_no_docstring_has_words_of_the_list() -> None:
    assert [f"{file}: {line}" for file, line in faults()] == []
