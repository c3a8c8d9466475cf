"""An export becomes documents, each with its place, whatever strangers have put into it."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from moving.importers.items import Document, Rejection
from moving.vendors import documents
from moving.vendors.documents import load_json, read_documents
from tests.moving.importers.test_sizes import held_at_most


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
    "c/d.prompt": "Hi {{name}}\r\n",
    "README.md": "About this.",
    ".github/workflow.yml": "a: b",
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
    Document("c/d.prompt", "Hi {{name}}\r\n"),
    Document("c.yml", "name: c\n"),
]


def test_a_folder_and_an_archive_of_it(tmp_path):
    folder = write(tmp_path / "export", EXPORT)
    assert read(folder) == DOCUMENTS
    with zipfile.ZipFile(tmp_path / "export.ZIP", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("b")
        for name, text in EXPORT.items():
            archive.writestr(name, text)
        archive.writestr("__MACOSX/a.json", "{}")
    in_archive = read(tmp_path / "export.ZIP")
    assert sorted(in_archive, key=repr) == sorted(DOCUMENTS, key=repr)


def test_one_file(tmp_path):
    write(tmp_path, EXPORT)
    assert read(tmp_path / "b/lines.jsonl")[1] == Document("lines.jsonl, line 3", {"n": 2})
    assert read(tmp_path / "README.md") == [Document("README.md", "About this.")]


def test_nothing_to_read(tmp_path):
    assert read(tmp_path) == []
    write(tmp_path, {"a.docx": "x", "a.zip": "no archive", "empty.jsonl": ""})
    assert read(tmp_path / "empty.jsonl") == []
    for name, message in (
        ("a.docx", r"ends in \.json"), ("a.zip", "no ZIP archive"), ("none.json", "Cannot read"),
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
        "latin.yml": b"\xe9",
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
        "latin.yml": "not UTF-8 at byte 0",
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


def test_an_archive_of_a_stranger(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../up.json", "/etc/root.json", "C:/x.json", "a\\b.json", "NAMELESS"):
            archive.writestr(name, "1")
        link = zipfile.ZipInfo("link.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("lzma.json", "1", zipfile.ZIP_LZMA)
        archive.writestr("good.json", "1")
        archive.writestr("spoilt.json", '"MARKED"')
    raw = path.read_bytes().replace(b"MARKED", b"marked").replace(b"NAMELESS", bytes(8))
    path.write_bytes(raw)
    found = read(path)
    assert [one for one in found if isinstance(one, Document)] == [Document("good.json", 1)]
    faults = reasons(found)
    outside = [where for where, reason in faults.items() if "outside the archive" in reason]
    assert sorted(outside) == ["../up.json", "/etc/root.json", "C:/x.json", "a\\b.json"]
    assert "not followed" in faults["link.json"]
    assert "another method" in faults["lzma.json"]
    assert "Bad CRC-32" in faults["spoilt.json"]
    assert len(faults) == 7


def test_an_encrypted_archive(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", "1")
    raw = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + flags] |= 1
    path.write_bytes(raw)
    assert reasons(read(path)) == {"a.json": "encrypted. Unpack the archive, and pass the folder"}


def test_a_bomb_is_measured_by_what_it_unpacks_to(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "FILE_BYTES_MAX", 1_000)
    size = 8 * 1024 * 1024
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.json", f'"{"0" * size}"')
    # The sizes that the archive declares are false.
    declared, lie = ((number).to_bytes(4, "little") for number in (size + 2, 9))
    path.write_bytes(path.read_bytes().replace(declared, lie))
    with held_at_most(size // 2):
        read(path)


def test_limits(tmp_path, monkeypatch):
    files = {f"{number}.json": json.dumps([0] * 10) for number in range(5)}
    folder = write(tmp_path, files | {"large.md": "x" * 31, "small.md": "x"})
    for limit, value, expected in (
        ("TEXT_BYTES_MAX", 30, {"large.md": "larger than 30 bytes"}),
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
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", "1")
    monkeypatch.setattr(documents, "ZIP_BYTES_MAX", 10)
    with pytest.raises(OperatorError, match=r"larger than 10 bytes\. Unpack it"):
        read(path)
