"""Publishing a version with files: as JSON, and as a ZIP of a folder."""

import io
import json
import stat
import struct
import zipfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from werkzeug.datastructures import FileStorage
from werkzeug.test import TestResponse, encode_multipart

from builder.model.records import CONTENT_BYTES_MAX
from builder.model.request_bodies import publication_bytes_max
from builder.model.version_files import BYTES_HARD_MAX, BYTES_MAX, FILES_MAX
from operate.content_check import check
from publisher.accounts.token import make_token
from tests.support.folder_cases import CASES, REFUSED, told
from tests.support.hubs import URL, Hub, code_of, fields_of

RUN = {"path": "scripts/run.sh", "content": "#!/bin/sh\necho hi\n", "executable": True}
IMAGE = {"path": "image.png", "base64": b64encode(b"\x89PNG\0").decode()}


def pack(files: dict[str, bytes | str], method: int = zipfile.ZIP_DEFLATED, **more: Any) -> bytes:
    """A ZIP of these files, in this order; ``more`` are attributes of each entry."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            for key, value in more.items():
                setattr(info, key, value)
            file.writestr(info, data)
    return packed.getvalue()


def send(hub: Hub, packed: bytes, draft: dict | None = None, **options: str) -> TestResponse:
    parts = {"files": FileStorage(io.BytesIO(packed), "skill.zip")}
    if draft is not None:
        parts["draft"] = json.dumps(draft)
    return send_parts(hub, parts, **options)


def send_parts(hub: Hub, parts: dict[str, Any], **headers: str) -> TestResponse:
    boundary, body = encode_multipart(parts)
    headers["Authorization"] = f"Bearer {hub.token}"
    headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
    return hub.app.test_client().post(URL, data=body, headers=headers)


def stored(hub: Hub, version: str = "1.0.0") -> dict[str, bytes]:
    folder = Path(hub.settings.content, f"ann/story/{version}.files")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_files_are_published_with_their_text(hub: Hub):
    answer = hub.post({"files": [RUN, IMAGE]})
    assert answer.status_code == 201
    image, run = answer.json["data"]["files"]
    assert (run["path"], run["size"], run["executable"]) == ("scripts/run.sh", 18, True)
    assert (image["media_type"], image["executable"]) == ("image/png", False)
    assert stored(hub) == {"scripts/run.sh": RUN["content"].encode(), "image.png": b"\x89PNG\0"}
    assert list(check(hub.settings.content)) == []


def test_files_stay_until_others_or_none_are_sent(hub: Hub):
    hub.post({"files": [RUN]})
    kept = hub.post({"content": "Two."}).json["data"]
    assert "Kept 1 file" in kept["warnings"][0] and [one["path"] for one in kept["files"]]
    assert stored(hub, "1.0.1") == stored(hub)
    assert hub.post({"content": "Two.", "files": [RUN]}).json["data"]["unchanged"]
    changed = hub.post({"content": "Two.", "files": [RUN | {"executable": False}]}).json["data"]
    assert changed["version"] == "1.0.2" and changed["warnings"] == []
    gone = hub.post({"content": "Two.", "files": []}).json["data"]
    assert gone["version"] == "1.0.3" and "files" not in gone and not stored(hub, "1.0.3")
    assert "files" not in hub.post({"content": "Three."}).json["data"]


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        ("x", ["files"]),
        ([1], ["files[0]"]),
        ([{"content": "x"}], ["files[0]"]),
        ([{"path": 1, "content": "x"}], ["files[0]"]),
        ([{"path": "a"}], ["files[a]"]),
        ([{"path": "a", "content": "x", "base64": ""}], ["files[a]"]),
        ([{"path": "a", "content": None}], ["files[a]"]),
        ([{"path": "a", "content": "x", "mode": 7}], ["files[a]"]),
        ([{"path": "a", "content": "x", "executable": 1}], ["files[a]"]),
        ([{"path": "a", "base64": "=="}, {"path": "b", "base64": "é"}], ["files[a]", "files[b]"]),
        ([{"path": "a", "content": "\ud800"}], ["files[a]"]),
        ([{"path": "../a", "content": "x"}], ["files[../a]"]),
        ([{"path": "/etc/x", "content": "x"}], ["files[/etc/x]"]),
        ([{"path": "c:\\x", "content": "x"}], ["files[c:\\x]"]),
        ([{"path": "", "content": "x"}], ["files"]),
        ([{"path": ".git/config", "content": "x"}], ["files[.git/config]"]),
        ([{"path": "a b", "content": "x"}], ["files[a b]"]),
        ([{"path": "x/NUL.txt", "content": "x"}], ["files[x/NUL.txt]"]),
        ([{"path": "Skill.md", "content": "x"}], ["files[Skill.md]"]),
        ([{"path": "a", "content": "x"}, {"path": "A", "content": "y"}], ["files[A]"]),
        ([{"path": "a", "content": "x"}, {"path": "a/b", "content": "y"}], ["files[a/b]"]),
        ([{"path": "a.md", "content": "x"}, {"path": "a.md.txt/b", "content": ""}],
         ["files[a.md.txt/b]"]),
        ([{"path": "D/a", "content": "x"}, {"path": "d/b", "content": "y"}], ["files[d/b]"]),
        ([{"path": f"f{n}", "content": "x"} for n in range(FILES_MAX + 1)], ["files"]),
    ],
    ids=lambda one: str(one)[:50],
)  # fmt: skip
def test_wrong_files_are_named_by_their_paths(hub: Hub, files: object, fields: list[str]):
    answer = hub.post({"files": files})
    assert (code_of(answer), fields_of(answer)) == ("validation_failed", fields)
    assert hub.versions() == []


def test_the_limits_themselves_are_allowed(hub: Hub):
    full = [{"path": f"d{n}/{'x' * 190}", "content": "y" * 25_000} for n in range(FILES_MAX)]
    assert hub.post({"files": full}).status_code == 201
    assert sum(map(len, stored(hub).values())) == BYTES_MAX
    full[7]["content"] += "z"
    answer = hub.post({"files": full})
    assert code_of(answer) == "content_too_large" and full[7]["path"] in answer.text


@pytest.mark.parametrize("limit", [100, BYTES_HARD_MAX - 1])
def test_an_operator_sets_the_limit(hub: Hub, limit: int):
    """It binds what is sent. Versions that were larger before keep their files."""
    hub.settings = hub.settings._replace(file_bytes=limit + 1)
    hub.restart()
    large = [{"path": "a", "content": "x" * (limit + 1)}]
    assert hub.post({"files": large}).status_code == 201
    hub.settings = hub.settings._replace(file_bytes=limit)
    hub.restart()
    says = f"{limit + 1:,} bytes, {limit:,} at most"
    packed = pack({"SKILL.md": "x", "a": "x" * (limit + 1)}, zipfile.ZIP_STORED)
    path = URL.replace("versions", "check")
    for answer in (hub.post({"files": large}), hub.post({"files": large}, path), send(hub, packed)):
        assert code_of(answer) == "content_too_large" and says in answer.text
    answer = hub.post({"files": [*large, {"path": "a b", "content": ""}]})
    assert fields_of(answer) == ["files[a b]"]
    assert hub.post({"content": "Two."}).status_code == 201
    fits = [{"path": "a", "base64": b64encode(bytes(limit)).decode()}]
    assert hub.post({"files": fits, "content": "Three."}).status_code == 201
    too_long = b"x" * (publication_bytes_max(limit) + 1)
    assert f"{publication_bytes_max(limit):,} bytes" in hub.post(too_long).text
    assert list(check(hub.settings.content)) == []


def test_a_token_in_a_file_or_its_path_is_refused(hub: Hub):
    token = make_token()
    text = f"key = {token}"
    for said, named in (
        ({"path": "conf/key.ini", "content": text}, "conf/key.ini"),
        ({"path": "conf/key.ini", "base64": b64encode(text.encode()).decode()}, "conf/key.ini"),
        ({"path": f"keys/{token}.txt", "content": "x"}, "files[0]"),
    ):
        answer = hub.post({"files": [said]})
        assert code_of(answer) == "secret_detected" and named in answer.text
        assert token not in answer.text


def test_a_zip_of_a_folder(hub: Hub):
    packed = pack({
        "skill/SKILL.md": "Do {{it}}.", "skill/a/b.py": "1", "__MACOSX/skill/._SKILL.md": "x",
        "skill/.DS_Store": "y",
    }, external_attr=0o755 << 16)  # fmt: skip
    answer = send(hub, packed, {"changelog": "A folder.", "title": "It"})
    assert answer.status_code == 201, answer.text
    data = answer.json["data"]
    assert [(one["path"], one["executable"]) for one in data["files"]] == [("a/b.py", True)]
    assert Path(hub.settings.content, "ann/story/1.0.0.md").read_text() == "Do {{it}}."
    as_json = {"content": "Do {{it}}.", "title": "It"} | {
        "files": [{"path": "a/b.py", "content": "1", "executable": True}]
    }
    assert hub.post(as_json).json["data"]["unchanged"]


def test_a_zip_sent_again_gets_its_first_answer(hub: Hub):
    packed = pack({"PROMPT.md": "One.", "a.txt": "1"})
    headers = {"Idempotency-Key": "once"}
    first, again = (send(hub, packed, {"bump": "minor"}, **headers) for _ in range(2))
    assert first.json["data"]["version"] == again.json["data"]["version"]
    for files, draft in (({"a.txt": "2"}, {"bump": "minor"}), ({"a.txt": "1"}, {})):
        other = send(hub, pack({"PROMPT.md": "One."} | files), draft, **headers)
        assert code_of(other) == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("draft", "files", "field"),
    [
        ({"content": "x"}, {"SKILL.md": "y"}, "content"),
        ({"files": []}, {"SKILL.md": "y"}, "files"),
        ({"content": "x"}, {"a": "y"}, "content"),
        ({}, {"a": "y"}, "content"),
        ({}, {"SKILL.md": b"\xff"}, "content"),
        ({}, {"SKILL.md": "x", "PROMPT.md": "y"}, "content"),
        ({"typo": 1}, {"SKILL.md": "x"}, "typo"),
    ],
)
def test_what_a_zip_and_a_draft_do_not_say_together(hub: Hub, draft: dict, files: dict, field: str):
    assert fields_of(send(hub, pack(files), draft)) == [field]


@pytest.mark.parametrize("top", ["", "x/"])
@pytest.mark.parametrize("case", CASES)
def test_what_of_a_zip_is_taken_and_left_out(hub: Hub, case: str, top: str):
    one = CASES[case]
    answer = send(hub, one.pack(top), {})
    assert answer.status_code == 201, answer.text
    assert {*stored(hub)} == one.kept
    assert told(answer.json["data"]["warnings"]) == one.whole


@pytest.mark.parametrize("case", REFUSED)
def test_a_zip_is_refused_with_all_its_faults(hub: Hub, case: str):
    one = REFUSED[case]
    answer = send(hub, one.pack())
    assert answer.status_code in (413, 422) and one.not_told(answer.json["error"]["message"]) == []
    assert hub.versions() == []


def test_a_zip_of_windows_is_read(hub: Hub):
    packed = pack({"x\\": "", "x\\SKILL.md": "One.", "x\\a\\b.txt": "1", "x\\Thumbs.db": ""})
    answer = send(hub, packed, {})
    assert {*stored(hub)} == {"a/b.txt"}
    assert told(answer.json["data"]["warnings"]) == {"Thumbs.db": "made by a tool"}


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["a.txt"], "has none"),
        (["a/b/SKILL.md", "a/c"], "has a/b/SKILL.md"),
        (["a/SKILL.md", "b/SKILL.md", "b/c"], "has a/SKILL.md, b/SKILL.md"),
        (["a/SKILL.md", "README.md"], "has a/SKILL.md"),
        (["SKILL.md", "PROMPT.md"], "has SKILL.md, PROMPT.md"),
        (["x/SKILL.md", "x/PROMPT.md"], "has x/SKILL.md, x/PROMPT.md"),
        ([".x/SKILL.md"], "has none"),
    ],
)
def test_a_zip_without_one_text_says_where_they_lie(hub: Hub, names: list[str], shown: str):
    answer = send(hub, pack(dict.fromkeys(names, "x")))
    assert fields_of(answer) == ["content"] and f"the ZIP {shown}: send" in answer.text


def with_flag(packed: bytes, flag: int) -> bytes:
    """A ZIP of one entry, with these flags in the list of its end and before the entry."""
    at = packed.index(b"PK\1\2")
    changed = bytearray(packed)
    for place in (6, at + 8):
        changed[place : place + 2] = struct.pack("<H", flag)
    return bytes(changed)


def with_size(packed: bytes, size: int) -> bytes:
    """A ZIP of one entry that says another size than it has."""
    at = packed.index(b"PK\1\2")
    changed = bytearray(packed)
    for place in (22, at + 24):
        changed[place : place + 4] = struct.pack("<I", size)
    return bytes(changed)


HOSTILE = {
    "slip": (pack({"SKILL.md": "x", "../../etc/passwd": "y"}), "files[../../etc/passwd]"),
    "absolute": (pack({"SKILL.md": "x", "/etc/passwd": "y"}), "files[/etc/passwd]"),
    "backslash": (pack({"SKILL.md": "x", "..\\x": "y"}), "files[../x]"),
    "link": (
        pack({"SKILL.md": "/etc/x"}, external_attr=(stat.S_IFLNK | 0o777) << 16), "content"
    ),
    "encrypted": (with_flag(pack({"SKILL.md": "y"}), 1), "files[SKILL.md]"),
    "method": (pack({"SKILL.md": "y"}, zipfile.ZIP_LZMA), "files[SKILL.md]"),
    "shorter": (with_size(pack({"SKILL.md": "y" * 1000}), 10), "files"),
    "longer": (with_size(pack({"SKILL.md": "y" * 10}), 1000), "files"),
    "cut": (pack({"SKILL.md": "x", "a": "y"})[:-30], "files"),
    "no ZIP": (b"text", "files"),
    "empty": (b"", "files"),
    "entries": (pack({f"f{n}": "" for n in range(10_000)}), "files"),
    "rules": (pack({".hubignore": "a", "SKILL.md": "x"}, zipfile.ZIP_LZMA), "files"),
    "twice": (pack({"SKILL.md": "x", "aX": "y", "aY": "z"}).replace(b"aY", b"aX"), "files[aX]"),
    "NUL": (pack({"SKILL.md": "x", "aXb": "y"}).replace(b"aXb", b"a\0b"), "files[a]"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_zip_is_refused_before_anything_is_extracted(
    hub: Hub, name: str, monkeypatch: pytest.MonkeyPatch
):
    packed, field = HOSTILE[name]
    opened = []
    real = zipfile.ZipFile.open
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *one: opened.append(one) or real(*one))
    answer = send(hub, packed)
    assert (code_of(answer), fields_of(answer)) == ("validation_failed", [field])
    assert name in ("shorter", "longer") or not opened
    assert hub.versions() == [] and not stored(hub)


@pytest.mark.parametrize("name", ["a", "SKILL.md"])
def test_a_bomb_is_refused_by_what_it_says(hub: Hub, name: str, monkeypatch: pytest.MonkeyPatch):
    size = BYTES_MAX + 1 if name == "a" else CONTENT_BYTES_MAX + 1
    packed = pack({"SKILL.md": "x"} | {name: bytes(size)})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("extracted"))
    answer = send(hub, packed)
    assert code_of(answer) == "content_too_large"


def with_long_end(packed: bytes) -> bytes:
    """A ZIP whose list has the size in its record for ZIP64, and none in the other one."""
    at = packed.rindex(b"PK\5\6")
    count, size, start = struct.unpack("<HII", packed[at + 10 : at + 20])
    end = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at, 1)
    return packed[:at] + end + locator + packed[at : at + 12] + bytes(8) + packed[at + 20 :]


@pytest.mark.parametrize("is_long", [False, True])
def test_many_entries_are_never_listed(hub: Hub, monkeypatch: pytest.MonkeyPatch, is_long: bool):
    made: list[str] = []

    class Counted(zipfile.ZipInfo):
        def __init__(self, *args: Any, **more: Any) -> None:
            made.append("entry")
            super().__init__(*args, **more)

    packed = pack({f"folder/{n:05}": "" for n in range(10_000)})
    packed = with_long_end(packed) if is_long else packed
    assert len(zipfile.ZipFile(io.BytesIO(packed)).namelist()) == 10_000
    monkeypatch.setattr(zipfile, "ZipInfo", Counted)
    assert code_of(send(hub, packed)) == "validation_failed" and made == []


@pytest.mark.parametrize(
    "parts",
    [
        {}, {"files": "text"}, {"draft": "{}"},
        {"files": FileStorage(io.BytesIO(pack({"SKILL.md": "x"})), "x"), "more": "x"},
        {"files": [FileStorage(io.BytesIO(pack({"SKILL.md": t})), "x") for t in "xy"]},
    ],
)  # fmt: skip
def test_a_form_with_other_parts_is_refused(hub: Hub, parts: dict[str, Any]):
    answer = send_parts(hub, parts)
    assert (code_of(answer), fields_of(answer)) == ("validation_failed", ["files"])


def test_a_form_that_is_none_is_refused(hub: Hub):
    for kind in ("multipart/form-data", "multipart/form-data; boundary=x"):
        headers = {"Content-Type": kind}
        assert code_of(hub.post(b"no form", headers=headers)) == "validation_failed"
    headers |= {"Content-Encoding": "gzip"}
    assert code_of(hub.post(b"no form", headers=headers)) == "unsupported_media_type"
