"""Counts the code: lines of Python by package, and functions that are hard to maintain.

A line counts if it holds code: blank lines, comments and docstrings do not. Run it from any folder:

    .venv/bin/python bench/size.py
"""

import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from report import print_table

PROJECT = Path(__file__).parent.parent
CORE = ("builder", "publisher", "server", "mcp_app")
PRODUCT = (*CORE, "operate", "moving", "cli", "clients")
SHELL_CLIENT = "builder/render/client/hub"
FUNCTION_LINES_MAX = 50

# Tokens that are no code.
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


class Function(NamedTuple):
    """A function: its place, its lines from ``def`` to its last one, and its parameters."""

    place: str
    lines: int
    parameters: int


def tracked(*patterns: str) -> list[str]:
    """The files that git tracks, without links, by patterns of paths."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns],
        cwd=PROJECT,
        capture_output=True,
        check=True,
        text=True,
    )
    names = listed.stdout.split("\0")
    return [name for name in names if name and not (PROJECT / name).is_symlink()]


def code_lines(source: str) -> int:
    """The lines of a Python source that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of all docstrings below a module."""
    found: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            found.update(range(first.lineno, first.end_lineno + 1))
    return found


def functions(place: str, source: str) -> list[Function]:
    """All functions of a source, including methods and nested ones."""
    return [
        Function(
            f"{place}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1, width(node)
        )
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def width(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of parameters for callers."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def main() -> None:
    sources = {name: (PROJECT / name).read_text(encoding="utf-8") for name in tracked("*.py")}
    sizes = Counter()
    for name, source in sources.items():
        sizes[name.partition("/")[0]] += code_lines(source)
    rows = [(name, f"{sizes[name]:,}") for name in (*PRODUCT, "tests", "bench", "docs")]
    shell = (PROJECT / SHELL_CLIENT).read_text(encoding="utf-8").splitlines()
    written = [line for line in shell if line.strip() and not line.lstrip().startswith("#")]
    ours = {name: source for name, source in sources.items() if name.startswith(PRODUCT)}
    every = [one for name, source in ours.items() for one in functions(name, source)]
    long = [one for one in every if one.lines > FUNCTION_LINES_MAX]
    widest = max(every, key=lambda one: one.parameters)
    rows += [
        ("all product Python", f"{sum(sizes[name] for name in PRODUCT):,}"),
        ("core", f"{sum(sizes[name] for name in CORE):,}"),
        ("shell client", f"{len(written):,}"),
        (f"functions over {FUNCTION_LINES_MAX} lines", str(len(long))),
        ("`# fmt: skip` in the product", str(sum(s.count("# fmt: skip") for s in ours.values()))),
        ("parameters of the widest function", f"{widest.parameters} ({widest.place})"),
    ]
    print_table("Size", ("what", "count"), rows)
    for one in sorted(long, key=lambda one: -one.lines):
        print(f"{one.lines} lines: {one.place}")


if __name__ == "__main__":
    main()
