"""The imports between packages: no package imports one that imports it."""

import ast
import os
from graphlib import TopologicalSorter

from tests.support.servers import PROJECT

PACKAGES = ("builder", "server", "publisher", "mcp_app", "operate", "moving", "cli")


def modules() -> dict[str, tuple[str, str]]:
    """The package and the source of each module, by its dotted name."""
    found = {}
    for top in PACKAGES:
        for path in (PROJECT / top).rglob("*.py"):
            name = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
            package = name.rpartition(".")[0]
            found[name.removesuffix(".__init__")] = (package, path.read_text(encoding="utf-8"))
    return found


def imported(source: str) -> set[str]:
    """Every dotted name that may be a module in the imports of a source, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def package_imports() -> dict[str, set[str]]:
    """The packages that each package imports."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for package, source in known.values():
        # In "from builder.model import names", the module counts, not the package around it.
        found = {name for name in imported(source) if name in known}
        found = {name for name in found if not any(one.startswith(f"{name}.") for one in found)}
        graph.setdefault(package, set()).update(known[name][0] for name in found)
        graph[package].discard(package)
    return graph


def test_there_is_no_cycle() -> None:
    TopologicalSorter(package_imports()).prepare()  # raises CycleError, which names the packages


def test_who_may_import_whom() -> None:
    tops: dict[str, set[str]] = {}
    for package, others in package_imports().items():
        top = package.partition(".")[0]
        tops.setdefault(top, set()).update(other.partition(".")[0] for other in others)
        tops[top].discard(top)
    assert tops == {
        "builder": set(),
        "server": {"builder"},
        "publisher": {"builder", "server"},
        "mcp_app": {"builder", "server"},
        # The wings: no package of the core imports them, and they do not import each other.
        "operate": {"builder", "publisher"},
        "moving": {"builder", "publisher"},
        "cli": {"builder", "server", "publisher", "mcp_app", "operate", "moving"},
    }


def test_every_package_says_what_it_is_for() -> None:
    for name, (_, source) in modules().items():
        if os.path.isdir(PROJECT / name.replace(".", "/")):
            assert ast.get_docstring(ast.parse(source)), name
