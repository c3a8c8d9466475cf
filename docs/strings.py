"""Lists every string that a person reads, for a review.

Run it in the root of the project:

    python docs/strings.py                     all packages
    python docs/strings.py cli builder/store   only these files and folders
    python docs/strings.py | grep 'error:'     only one kind

Prints one line for each string: ``file:line: kind: text``. The kinds:

    error   arguments of exceptions, faults and raise statements
    log     arguments of log calls
    help    help of commands and options: docstrings of commands, help=, epilog=, description=
    print   arguments of print(), click.echo() and say()
    text    any other string of two or more words, which may become a part of the above
    page    what a template shows, and its labels (aria-label, title, alt, placeholder)

An expression in an f-string is shown as its source, in braces. SQL, regular expressions and
docstrings that only developers read are left out.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PATHS = ["builder", "cli", "mcp_app", "moving", "operate", "publisher", "server"]
HELP_ARGUMENTS = {"help", "short_help", "epilog", "description", "summary", "metavar"}
LOG_CALLS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
PRINT_CALLS = {"echo", "print", "say"}
ERROR_NAME = re.compile(r"(Error|Exception|BadParameter|Exit|Fault|Detail|Reason|_failed)$")
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|REPLACE|ALTER|PRAGMA|WITH|BEGIN|ATTACH|WHERE)\b"
)
WORDS = re.compile(r"[A-Za-z]{2,}[^\sA-Za-z]* [^\sA-Za-z]*[A-Za-z]")
PATTERN = re.compile(r"\\[.wsdbS(]|\(\?|\[\^")

# The invisible parts of a template: statements, comments, scripts. Then labels, then other tags.
HIDDEN = re.compile(r"\{#.*?#\}|<!--.*?-->|<(script|style)\b[^>]*>.*?</\1>|\{%.*?%\}", re.DOTALL)
LABEL = re.compile(r'\b(?:aria-label|title|alt|placeholder)="([^"]*[A-Za-z][^"]*)"')
TAG = re.compile(r"<[^>]*>")

Found = tuple[int, str, str]


def text_of(node: ast.AST) -> str | None:
    """The text of a string, with the source of each expression in braces; None for others."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(
        f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else part.value
        for part in node.values
    )


def kind_of_call(call: ast.Call) -> str | None:
    """Returns the kind of the strings in the arguments of a call; None for other calls."""
    name = ast.unparse(call.func).rpartition(".")[2]
    if ERROR_NAME.search(name):
        return "error"
    if isinstance(call.func, ast.Attribute) and name in LOG_CALLS:
        return "log"
    return "print" if name in PRINT_CALLS else None


def strings(node: ast.AST, kind: str = "text") -> Iterator[Found]:
    """Yields every string below a node that a person may read, of ``kind`` if the node has none."""
    text = text_of(node)
    if text is not None:
        if WORDS.search(text) and not SQL.match(text) and not PATTERN.search(text):
            yield node.lineno, kind, text
        return
    if isinstance(node, ast.Raise):
        kind = "error"
    elif isinstance(node, ast.Call):
        kind = kind_of_call(node) or kind
    elif isinstance(node, ast.keyword) and node.arg in HELP_ARGUMENTS:
        kind = "help"
    elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield from described(node)
    for child in ast.iter_child_nodes(node):
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not is_docstring:
            yield from strings(child, kind)


def described(node: ast.AST) -> Iterator[Found]:
    """Yields the lines of a command's docstring, which is its help."""
    decorators = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
    if re.search(r"\b(command|group)\(", decorators):
        for number, line in enumerate((ast.get_docstring(node) or "").splitlines()):
            if line.strip():
                yield node.body[0].lineno + number, "help", line


def shown(template: str) -> Iterator[Found]:
    """Yields the visible lines and labels of a template."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    visible = HIDDEN.sub(blank, template)
    for found in LABEL.finditer(visible):
        yield visible.count("\n", 0, found.start()) + 1, "page", found[1]
    for number, line in enumerate(TAG.sub(blank, visible).splitlines(), 1):
        if re.search(r"[A-Za-z]", re.sub(r"\{\{.*?\}\}", "", line)):
            yield number, "page", line


def main() -> None:
    for each in sys.argv[1:] or PATHS:
        path = Path(each)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix == ".py":
                found = strings(ast.parse(file.read_text(encoding="utf-8")))
            elif file.suffix == ".html" and "templates" in file.parts:
                found = shown(file.read_text(encoding="utf-8"))
            else:
                continue
            for line, kind, text in sorted(found, key=lambda each: each[0]):
                words = " ".join(text.split())
                print(f"{file}:{line}: {kind}: {words if words.isprintable() else repr(words)}")


if __name__ == "__main__":
    main()
