"""An export becomes documents, each with its place, whatever strangers have put into it."""

import json
import os
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from moving.importers.items import Document, Rejection
from moving.vendors import documents
from moving.vendors.documents import load_json, read_documents


def write(folder: Path, files: dict[str, str | bytes]) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(folder)


def read(path: str | Path) -> list[Document | Rejection]:
    return list(read_documents(str(path)))


def reasons(found: list[Document | Rejection]) -> dict[str, str]:
    return {one.where: one.reason for one in found if isinstance(one, Rejection)}


EXPORT = {
    "b/list.json": '\ufeff[{"n": 1}, [2], "three"]',
    "a.json": '{"data": [1]}',
    "b/lines.jsonl": '{"n": 1}\n\n{"n": 2}\n',
    "b/table.csv": "name;text\nx;a\ny\n",
    "c.yml": "name: c\n",
    "README.md": "About this.",
    "picture.png": b"\x89PNG",
    ".state.json": "{}",
    ".git/x.json": "{}",
}
DOCUMENTS = [
    Document("a.json", {"data": [1]}),
    Document("b/lines.jsonl, line 1", {"n": 1}),
    Document("b/lines.jsonl, line 3", {"n": 2}),
    Document("b/list.json, entry 1", {"n": 1}),
    Document("b/list.json, entry 2", [2]),
    Document("b/list.json, entry 3", "three"),
    Document("b/table.csv, row 2", {"name": "x", "text": "a"}),
    Document("b/table.csv, row 3", {"name": "y", "text": ""}),
]


def test_a_folder(tmp_path):
    folder = write(tmp_path / "export", EXPORT)
    assert read(folder) == DOCUMENTS


def test_one_file(tmp_path):
    write(tmp_path, EXPORT)
    assert read(tmp_path / "b/lines.jsonl")[1] == Document("lines.jsonl, line 3", {"n": 2})


def test_nothing_to_read(tmp_path):
    assert read(tmp_path) == []
    write(tmp_path, {"a.docx": "x", "empty.jsonl": ""})
    assert read(tmp_path / "empty.jsonl") == []
    for name, message in (
        ("a.docx", r"ends in \.json"), ("none.json", "Cannot read"),
    ):  # fmt: skip
        with pytest.raises(OperatorError, match=message):
            read(tmp_path / name)


def test_what_is_broken_is_reported_with_its_place_and_the_rest_is_read(tmp_path):
    deep = "[" * 102 + "]" * 102
    files = {
        "cut.json": '{"data": [1, 2',
        "deep.json": deep,
        "deeper.json": "[" * 1_000_000,
        "empty.json": "",
        "good.json": "{}",
        "latin.json": b'{"a": "\xe9"}',
        "lines.jsonl": f'{{"a": 1}}\n{{"a": \nNaN\n{deep}\n{{"a": 2}}',
        "table.csv": b"name,text\nx,\xe9\ny,a,b\nz,fine\n",
        "header.csv": b"\xe9,text\nx,y\n",
        "utf16.json": "{}".encode("utf-16"),
    }
    found = read(write(tmp_path, files))
    assert [one for one in found if isinstance(one, Document)] == [
        Document("good.json", {}),
        Document("lines.jsonl, line 1", {"a": 1}),
        Document("lines.jsonl, line 5", {"a": 2}),
        Document("table.csv, row 4", {"name": "z", "text": "fine"}),
    ]
    faults = reasons(found)
    expected = {
        "cut.json": "not JSON: Input data was truncated",
        "deep.json": "nested deeper than 100 levels",
        "deeper.json": "nested deeper than 100 levels",
        "empty.json": "not JSON",
        "latin.json": "not UTF-8 at byte",
        "lines.jsonl, line 2": "not JSON",
        "lines.jsonl, line 3": "not JSON",
        "lines.jsonl, line 4": "nested deeper",
        "table.csv, row 2": "it is not UTF-8. Save the table as UTF-8",
        "table.csv, row 3": "it has 3 cells under 2 columns",
        "header.csv": "its header cannot be read: it is not UTF-8",
        "utf16.json": "UTF-16",
    }
    assert faults.keys() == expected.keys()
    for where, reason in expected.items():
        assert reason in faults[where], where


def test_100_levels_are_read():
    assert load_json("[" * 100 + "]" * 100)
    assert load_json(b'{"a": {"b": []}}') == {"a": {"b": []}}


def test_links_and_other_things_in_a_folder(tmp_path):
    write(tmp_path, {"export/a.json": "1", "secret.json": "2"})
    folder = tmp_path / "export"
    (folder / "again.json").symlink_to("a.json")
    (folder / "circle.json").symlink_to("circle.json")
    (folder / "out.json").symlink_to("../secret.json")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe.json")
    (folder / os.fsdecode(b"\xff\n.json")).write_text("3")
    found = read(folder)
    assert [one for one in found if isinstance(one, Document)] == [
        Document("a.json", 1), Document("\ufffd .json", 3),
    ]  # fmt: skip
    faults = reasons(found)
    assert faults["out.json"] == faults["up"] == "a link that leads outside the folder"
    assert faults.keys() <= {"out.json", "up", "circle.json"}


def test_folders_in_folders_end_nothing(tmp_path):
    path = tmp_path
    for _ in range(600):
        path /= "d"
    os.makedirs(path)
    (path / "a.json").write_text("1")
    ((where, value),) = read(tmp_path)
    assert (where[:4], where[-1], value) == ("d/d/", "…", 1)


def test_limits(tmp_path, monkeypatch):
    files = {f"{number}.json": json.dumps([0] * 10) for number in range(5)}
    folder = write(tmp_path, files)
    for limit, value, expected in (
        ("FILE_BYTES_MAX", 29, {f"{n}.json": "larger than 29 bytes" for n in range(5)}),
        ("FILES_MAX", 3, {"3.json": "more than 3 files; the rest is not read"}),
        ("TOTAL_BYTES_MAX", 70, {"2.json": "more than 70 bytes in all; the rest is not read"}),
        (
            "DOCUMENTS_MAX", 15,
            {"1.json, entry 6": "more than 15 entries in all; the rest is not read"},
        ),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(documents, limit, value)
            assert reasons(read(folder)) == expected
