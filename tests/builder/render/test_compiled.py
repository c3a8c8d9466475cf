"""Templates are compiled once for all processes, if what is compiled can be kept."""

import sys
from pathlib import Path

import jinja2
import pytest

from builder.render.pages import CompiledTemplates


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the templates that were compiled, in order, in a process that keeps them."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    names = []
    compile_one = jinja2.Environment.compile

    def counted(self: jinja2.Environment, source: str, name: str, filename: str) -> object:
        names.append(name)
        return compile_one(self, source, name, filename)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    return names


def rendered(folder: Path, kept: Path) -> str:
    """The page that a new process renders from the templates in ``folder``."""
    cache = CompiledTemplates()
    cache.directory = str(kept)
    loader = jinja2.FileSystemLoader(folder)
    return jinja2.Environment(loader=loader, bytecode_cache=cache).get_template("page").render(x=1)


def test_a_template_is_compiled_once_until_it_changes(tmp_path, compiled):
    (tmp_path / "page").write_text("{{ x }}")
    for _ in range(3):
        assert rendered(tmp_path, tmp_path) == "1"
    assert compiled == ["page"]
    (tmp_path / "page").write_text("{{ x + 1 }}")
    for _ in range(3):
        assert rendered(tmp_path, tmp_path) == "2"
    assert compiled == ["page", "page"]


def test_where_nothing_can_be_kept(tmp_path, compiled, monkeypatch):
    (tmp_path / "page").write_text("{{ x }}")
    for _ in range(2):
        assert rendered(tmp_path, tmp_path / "missing") == "1"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(tmp_path, tmp_path) == "1"
    assert compiled == ["page"] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
