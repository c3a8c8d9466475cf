"""Readers of sources measure what is too large before they work on it."""

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from moving.importers import files, lines, tables
from moving.importers.items import Columns, Item, Rejection
from moving.vendors import documents

LARGE = 24 * 1024 * 1024
# A reader holds a row or a line, and the pieces that it is joined from.
HELD_MAX = 16 * 1024 * 1024


@contextmanager
def held_at_most(size: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= size
    finally:
        tracemalloc.stop()


CELLS = {
    "quoted": b'"' + b"x" * LARGE + b'"',
    "plain": b"x" * LARGE,
    "lines": b'"' + (b'a ""quoted"" line,' * 500 + b"\r\n") * (LARGE // 9_000) + b'"',
    "quotes": b'"' * LARGE,
    "empty lines": b'"' + b"\n" * 2_200_000 + b'"',
    "not UTF-8": b'"' + b"\xff" * LARGE + b'"',
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_that_is_too_large_costs_its_row_alone(tmp_path, cell):
    path = tmp_path / "some.csv"
    path.write_bytes(b"title,prompt\na,One\nb," + cell + b"\nc,Two\n")
    with held_at_most(HELD_MAX):
        first, large, last = tables.read_table(str(path), Columns())
    assert (first.text, last.text, last.where) == ("One", "Two", "row 4")
    assert large == Rejection("row 3", "larger than 2,097,152 characters")


def test_a_header_that_is_too_large(tmp_path):
    path = tmp_path / "some.csv"
    path.write_bytes(b'title,prompt,"' + b"x" * LARGE + b'"\na,b,c\n')
    with held_at_most(HELD_MAX), pytest.raises(Exception, match="larger than 2,097,152"):
        next(tables.read_table(str(path), Columns()))


def test_a_quote_that_is_never_closed(tmp_path):
    path = tmp_path / "some.tsv"
    path.write_bytes(b'title\tprompt\na\tOne\nb\t"' + (b"x" * 1_000 + b"\n") * (LARGE // 1_000))
    with held_at_most(HELD_MAX):
        found = list(tables.read_table(str(path), Columns()))
    assert [one.where for one in found] == ["row 2", "row 3"]


def test_a_line_that_is_too_large(tmp_path):
    path = tmp_path / "some.jsonl"
    good = b'{"title": "a", "prompt": "One"}\n'
    path.write_bytes(good + b'{"title": "b", "prompt": "' + b"x" * LARGE + b'"}\n' + good)
    with held_at_most(HELD_MAX):
        first, large, last = lines.read_lines(str(path), Columns())
    assert isinstance(first, Item) and isinstance(last, Item) and last.where == "line 3"
    assert large == Rejection("line 2", "larger than 2,097,152 bytes")


@pytest.mark.parametrize("read", [tables.read_table, lines.read_lines])
def test_a_text_that_is_too_large_is_not_parsed(tmp_path, read, yaml_work):
    text = "---\\ntitle: x\\n---\\n" + "x" * CONTENT_BYTES_MAX
    row = f'{{"title": "a", "prompt": "{text}"}}\n'
    if read is tables.read_table:
        row = 'title,prompt\na,"' + text.replace("\\n", "\n") + '"\n'
    (tmp_path / "some").write_text(row)
    (found,) = read(str(tmp_path / "some"), Columns())
    assert found.reason == "its 'prompt' is larger than 262,144 bytes"
    assert yaml_work.loaded == []


@pytest.mark.parametrize("name", ["a.md", "a.prompt", "a.prompty", "a.prompt.yml", "SKILL.md"])
def test_a_file_is_read_up_to_its_limit(tmp_path, name):
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, LARGE)
    with held_at_most(4 * CONTENT_BYTES_MAX):
        (found,) = files.read_files(str(tmp_path))
    assert found == Rejection(name, "larger than 262,144 bytes")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv"])
def test_a_file_of_an_export_that_is_too_large_is_not_read(tmp_path, name):
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / name).touch()
    os.truncate(folder / name, documents.FILE_BYTES_MAX + 1)
    for source in (folder, folder / name):
        with held_at_most(HELD_MAX):
            (found,) = documents.read_documents(str(source))
        assert found.where == name and found.reason.startswith("larger than ")
