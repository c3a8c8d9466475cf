"""Prompts as resources: their addresses, and what they lead to."""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.model.routes import BY_NAME, PAGE_SIZE
from mcp_app.reader import TOP_MAX
from tests.mcp.catalogue import MARK, TEXTS, VERSIONS, Hub, Refused

LATEST = "prompt://{owner}/{name}"
SKILL = "skill://{owner}/{name}/SKILL.md"
SKILL_FILE = "skill://{owner}/{name}/{+path}"
INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002
INTERNAL_ERROR = -32603


def read(hub: Hub, uri: str) -> dict[str, Any]:
    """The one content of a resource."""
    (content,) = hub.ask("resources/read", {"uri": uri})["contents"]
    return content


@pytest.mark.parametrize("name", TEXTS)
def test_a_resource_is_the_published_text(hostile: Hub, name: str):
    for uri in (f"prompt://eve/{name}", f"prompt://eve/{name}/1.0.0"):
        assert read(hostile, uri) == {
            "uri": uri, "mimeType": "text/markdown", "text": TEXTS[name],
        }  # fmt: skip


def test_one_version_and_the_latest(hostile: Hub):
    assert read(hostile, "prompt://eve/often/1.3.7")["text"] == "Version 1.3.7 of {{what}}.\n"
    assert (
        read(hostile, "prompt://eve/often")["text"] == f"Version {VERSIONS[-1]} of {{{{what}}}}.\n"
    )


WRONG = {
    "eve/often": ["prompt://eve/oftn"],
    VERSIONS[-1]: ["prompt://eve/often/7.0.0"],
    "x.y.z": ["prompt://eve/often/latest"],
    LATEST: [
        "prompt://eve/often/1.0.0/", "prompt://eve/", "prompt://eve", "prompt:eve/often",
        "https://eve/often", MARK, "",
    ],
    "prompt name": [
        "prompt://eve/often?x",
        "prompt://eve/%6Fften",
        "prompt://eve/..",
        f"prompt://eve/{MARK[:3]}",
    ],
    "'eve'": ["prompt://Eve/often"],
}  # fmt: skip


@pytest.mark.parametrize(("says", "uri"), [(says, uri) for says in WRONG for uri in WRONG[says]])
def test_what_there_is_not_says_how_to_go_on(hostile: Hub, says: str, uri: str):
    with pytest.raises(Refused) as refused:
        read(hostile, uri)
    assert refused.value.code == RESOURCE_NOT_FOUND
    assert says in str(refused.value)
    assert "OBEY" not in str(refused.value)


def test_the_list_is_the_top_of_the_catalogue(hostile: Hub):
    pages = list(hostile.pages("resources/list"))
    assert [len(page) for page in pages] == [PAGE_SIZE] * (TOP_MAX // PAGE_SIZE)
    for number, page in enumerate(pages, 1):
        site = Path(hostile.settings.out, BY_NAME["list"].file_for(sort="top", page=number))
        rows = json.loads(site.read_text())["data"]
        assert page == [
            {
                "uri": f"prompt://{row['owner']}/{row['name']}",
                "name": f"{row['owner']}/{row['name']}",
                "title": row["title"],
                "description": row["description"] or row["title"],
                "mimeType": "text/markdown",
                "annotations": {"lastModified": row["updated_at"]},
            }
            for row in rows
        ]


@pytest.mark.parametrize("kind", ["resources", "prompts", "tools", "skills"])
def test_a_cursor_of_another_list_is_refused(hostile: Hub, kind: str):
    method = f"{kind}/list"
    others = hostile.get("search_prompts")["next_cursor"]
    for cursor in (others, MARK, ""):
        with pytest.raises(Refused, match="without cursor") as refused:
            hostile.ask(method, {"cursor": cursor})
        assert refused.value.code == INVALID_PARAMS
