"""Files of a version: listed by ``get_prompt``, read as resources."""

from base64 import b64decode
from typing import Any

import pytest

from builder.model.caching import max_age_seconds
from builder.model.version_files import media_type
from tests.mcp.catalogue import FILES, MARK, OLD_FILES, Hub, Refused
from tests.mcp.test_resources import (
    RESOURCE_NOT_FOUND,
    read,
)
from tests.mcp.wire import STATELESS

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
        "../1.0.0/files/gone.md",
        "scripts/../empty",
        "scripts%2Frun.sh",
        "%2e%2e/%2e%2e/1.0.0.json",
        "scripts//run.sh",
        "/etc/passwd",
        "scripts/",
        "scripts\\run.sh",
        "con/a",
        "x" * 201,
        "empty?x",
        "empty#x",
        MARK[:4],
        ".",
        "..",
    ],
}
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
