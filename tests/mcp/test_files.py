"""Files of a version: listed by ``get_prompt``, read as resources."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from builder.model.caching import max_age_seconds
from builder.model.matching import version_file
from builder.model.version_files import media_type
from builder.pipeline.build import build
from builder.store.plain_files import remove
from tests.mcp.catalogue import FILES, MARK, OLD_FILES, Hub, Refused, hub_over
from tests.mcp.test_resources import INTERNAL_ERROR, RESOURCE_NOT_FOUND, read
from tests.mcp.wire import STATELESS
from tests.support.catalogues import settings_in, write_version, write_withdrawn

FOLDER = "prompt://eve/folder/1.1.0/files/"
SKILL = "skill://eve/folder/"


def data_of(content: dict[str, Any]) -> bytes:
    return content["text"].encode() if "text" in content else b64decode(content["blob"])


@pytest.mark.parametrize("name", FILES)
def test_get_prompt_lists_the_files_of_the_version(hostile: Hub, name: str):
    found = hostile.get("get_prompt", id=f"eve/{name}")
    assert found["files"] == [
        {
            "path": path,
            "size": len(raw),
            "media_type": media_type(path),
            "executable": path.endswith(".sh"),
            "uri": f"prompt://eve/{name}/1.1.0/files/{path}",
        }
        for path, raw in FILES[name].items()
    ]


def test_a_version_has_its_own_files(hostile: Hub):
    found = hostile.get("get_prompt", id="eve/folder@1.0.0")
    assert {one["path"]: data_of(read(hostile, one["uri"])) for one in found["files"]} == OLD_FILES
    assert "files" not in hostile.get("get_prompt", id="eve/front")


@pytest.mark.parametrize("start", [FOLDER, SKILL])
def test_a_file_is_read_as_text_or_as_bytes(hostile: Hub, start: str):
    binary = {"image.png", "notes/latin.txt", "notes/zero.md"}
    for path, raw in FILES["folder"].items():
        content = read(hostile, start + path)
        assert data_of(content) == raw
        assert content.keys() == {"uri", "mimeType", "blob" if path in binary else "text"}
        assert (content["uri"], content["mimeType"]) == (start + path, media_type(path))


def test_the_largest_file_comes_in_one_answer(hostile: Hub):
    for path, raw in list(FILES["heavy"].items())[:2]:
        for start in ("prompt://eve/heavy/1.1.0/files/", "skill://eve/heavy/"):
            assert data_of(read(hostile, start + path)) == raw


def test_what_is_of_a_version_is_fresh_for_longer_than_what_is_of_the_latest(hostile: Hub):
    for uri, cache in (
        (f"{FOLDER}empty", "immutable"), (f"{SKILL}empty", "repo"),
        ("prompt://eve/folder/1.1.0", "immutable"), ("prompt://eve/folder", "repo"),
    ):  # fmt: skip
        answer = hostile.ask("resources/read", {"uri": uri}, version=STATELESS)
        assert answer["ttlMs"] == max_age_seconds(cache) * 1000


def test_the_list_of_resources_has_no_files(hostile: Hub):
    listed = [one["uri"] for page in hostile.pages("resources/list") for one in page]
    assert "prompt://eve/folder" in listed
    assert not any("/files/" in uri for uri in listed)


WRONG = {
    "Did you mean `scripts/run.sh`": ["scripts/runs.sh", "Scripts/run.sh", "scripts/run.py"],
    "No such file of `eve/folder` 1.1.0. Call get_prompt": ["gone.md", "x" * 200],
    "as it is, without %": [
        "../1.0.0/files/gone.md", "scripts/../empty", "scripts%2Frun.sh",
        "%2e%2e/%2e%2e/1.0.0.json", "scripts//run.sh", "/etc/passwd", "scripts/",
        "scripts\\run.sh", "con/a", "x" * 201, "empty?x", "empty#x", MARK[:4], ".", "..",
    ],
}  # fmt: skip
WRONG_URIS = [
    (says, start + path)
    for says, paths in WRONG.items()
    for path in paths
    for start in (FOLDER, SKILL)
] + [
    ("without %", FOLDER + "SKILL.md"),
    ("No version 9.0.0", "prompt://eve/folder/9.0.0/files/empty"),
    ("x.y.z", "prompt://eve/folder/latest/files/empty"),
    ("Resources are", "prompt://eve/folder/1.1.0/files/"),
    ("Resources are", "prompt://eve/folder/1.1.0/files"),
    ("Resources are", "prompt://eve/folder/1.1.0/empty"),
    ("Resources are", "prompt://eve/folder/files/empty"),
    ("Resources are", "skill://eve/folder/"),
    ("No such file", "prompt://eve/front/1.0.0/files/empty"),
]  # fmt: skip


@pytest.mark.parametrize(("says", "uri"), WRONG_URIS)
def test_what_is_no_file_is_refused(hostile: Hub, says: str, uri: str):
    with pytest.raises(Refused) as refused:
        read(hostile, uri)
    assert refused.value.code == RESOURCE_NOT_FOUND
    assert says in str(refused.value)
    assert "OBEY" not in str(refused.value)


def test_files_follow_versions_and_withdrawals(tmp_path: Path):
    settings = settings_in(tmp_path, queries=True, private=True)
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        files = {"a.sh": version.encode(), "b.bin": b"\0"} if version != "1.2.0" else {}
        write_version(settings.content, "ann", "tool", version, "Use a.sh.\n", files)
    build(settings)
    uris = [f"prompt://ann/tool/1.{minor}.0/files/{path}"
            for minor in (0, 1) for path in ("a.sh", "b.bin")]  # fmt: skip
    with hub_over(settings) as hub:
        answers = [hub.ask("resources/read", {"uri": uri}, version=STATELESS) for uri in uris]
        assert [one["cacheScope"] for one in answers] == ["private"] * 4
        assert [data_of(one["contents"][0]) for one in answers] == [
            b"1.0.0",
            b"\0",
            b"1.1.0",
            b"\0",
        ]
        with pytest.raises(Refused, match=r"No such file of `ann/tool` 1\.2\.0"):
            read(hub, "skill://ann/tool/a.sh")
        write_withdrawn(settings.content, "ann/tool", "1.0.0")
        remove(f"{settings.content}/ann/tool/1.0.0.files")
        build(settings)
        for uri in uris[:2]:
            with pytest.raises(Refused, match=r"1\.0\.0 was withdrawn"):
                read(hub, uri)
        assert data_of(read(hub, uris[2])) == b"1.1.0"


@pytest.mark.parametrize("content", [None, b"", b"echo"])
def test_a_file_that_is_being_copied_is_not_denied(hostile: Hub, content: bytes | None):
    match = version_file("eve", "folder", "1.1.0", "scripts/walk.sh")
    path = Path(hostile.settings.out, match.file)
    whole = path.read_bytes()
    path.unlink() if content is None else path.write_bytes(content)
    try:
        for start in (FOLDER, SKILL):
            with pytest.raises(Refused, match="ry again in a moment") as refused:
                read(hostile, start + "scripts/walk.sh")
            assert refused.value.code == INTERNAL_ERROR
    finally:
        path.write_bytes(whole)


def test_the_list_of_files_is_bounded(hostile: Hub):
    answer = json.dumps(hostile.call("get_prompt", {"id": "eve/heavy"}))
    assert len(answer) < 500_000
