"""Prompts as skills, by the Skills extension (SEP-2640): the checks of the Inspector, and what a
client is given.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.model.caching import max_age_seconds
from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.text.core_yaml import core_values
from builder.text.prompts import parse_document
from mcp_app.reader import TOP_MAX
from tests.mcp.catalogue import FILES, MARK, Hub, Refused, hub_over
from tests.mcp.conftest import Run
from tests.mcp.wire import HANDSHAKE, STATELESS
from tests.support.catalogues import (
    settings_in,
    write_small_catalogue,
    write_version,
    write_withdrawn,
)
from tests.support.servers import serving

FRONT = "skill://eve/front/SKILL.md"
REVIEW = {"uri": "skill://ann/review/SKILL.md"}


@pytest.fixture(scope="module")
def hostile_url(hostile_site: Settings) -> Iterator[str]:
    with serving(hostile_site) as server:
        yield f"{server.url}/mcp"


def file_of(hub: Hub, uri: str) -> bytes:
    """The skill as the site has it."""
    owner, name = uri.split("/")[2:4]
    return Path(hub.settings.out, BY_NAME["skill"].file_for(owner=owner, name=name)).read_bytes()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_verifies_every_skill(run: Run, hostile_url: str, mcp_url: str, era: str):
    """Its checks read each file, and compare digest, size and front matter with the entry."""
    for url in (mcp_url, hostile_url):
        options = ("--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json")
        done = run("mcp-inspector", *options, "--method", "skills/list", "--verify")
        assert done.returncode == 0, done.stderr
        assert done.stderr.endswith("no conformance errors.\n"), done.stderr
        # It reports schemas that are not portable, and bad practice, on stderr.
        done = run("mcp-inspector", *options, "--method", "tools/list", "--strict")
        assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_all_prompts_are_listed(hostile: Hub):
    pages = [*hostile.pages("skills/list")]
    assert all(len(page) == PAGE_SIZE for page in pages[:-1])
    prompts = [row["id"] for page in hostile.walk("search_prompts", limit=50) for row in page]
    assert len(prompts) > TOP_MAX
    skills = [skill for page in pages for skill in page]
    assert [skill["uri"] for skill in skills] == [f"skill://{id}/SKILL.md" for id in prompts]
    for skill in skills:
        data = file_of(hostile, skill["uri"])
        assert skill["frontmatter"] == core_values(parse_document(data.decode()).front)
        assert skill["frontmatter"]["name"] == skill["uri"].split("/")[3]
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        file = {"uri": skill["uri"], "digest": digest, "size": len(data)}
        assert skill["resources"][0] == file
        files = FILES.get(skill["frontmatter"]["name"], {})
        assert skill["resources"][1:] == [
            {
                "uri": skill["uri"].removesuffix("SKILL.md") + path,
                "digest": f"sha256:{hashlib.sha256(raw).hexdigest()}",
                "size": len(raw),
            }
            for path, raw in files.items()
        ]


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
def test_a_skill_is_the_same_in_the_list_by_its_uri_and_as_a_resource(hostile: Hub, version: str):
    listed = [
        skill for page in hostile.pages("skills/list") for skill in page if skill["uri"] == FRONT
    ]
    found = hostile.ask("skills/get", {"uri": FRONT}, version=version)
    assert [found["skill"]] == listed
    read = hostile.ask("resources/read", {"uri": FRONT}, version=version)
    assert read["contents"] == [
        {"uri": FRONT, "mimeType": "text/markdown", "text": file_of(hostile, FRONT).decode()}
    ]


def test_results_say_how_long_they_hold_where_the_revision_knows_that(hostile: Hub):
    asked = (("skills/list", {}, "list"), ("skills/get", {"uri": FRONT}, "repo"))
    for method, params, cache in asked:
        new = hostile.ask(method, params, version=STATELESS)
        assert (new["ttlMs"], new["cacheScope"]) == (max_age_seconds(cache) * 1000, "public")
        assert new["resultType"] == "complete"
        old = hostile.ask(method, params, version=HANDSHAKE)
        assert not old.keys() & {"ttlMs", "cacheScope", "resultType"}


WRONG: dict[str, list[Any]] = {
    "eve/often": ["skill://eve/oftn/SKILL.md"],
    "Resources are": ["skill://eve/front", "skill://eve/front/", "skill://SKILL.md", MARK, ""],
    "The URI of a skill is": [
        "skill://eve/front/skill.md",
        "skill://eve/front/1.0.0/SKILL.md",
        "skill://eve/front/SKILL.md/",
        "skill://eve/folder/scripts/run.sh",
        FRONT + "?x",
    ],
    "prompt name": [f"skill://eve/{MARK[:3]}/SKILL.md", "skill://eve/../SKILL.md"],
    "Invalid request parameters": [None, 1, [FRONT]],
}


@pytest.mark.parametrize(("says", "uri"), [(says, uri) for says in WRONG for uri in WRONG[says]])
@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
def test_what_is_no_skill_here_is_reported(hostile: Hub, says: str, uri: Any, version: str):
    with pytest.raises(Refused, match=says) as refused:
        hostile.ask("skills/get", {"uri": uri}, version)
    assert refused.value.code == -32602
    assert "OBEY" not in str(refused.value)


def test_skills_follow_versions_and_withdrawals(tmp_path: Path):
    settings = settings_in(tmp_path, queries=True, private=True)
    write_small_catalogue(settings.content)
    build(settings)
    with hub_over(settings) as hub:
        before = hub.ask("skills/get", REVIEW, version=STATELESS)
        assert before["cacheScope"] == "private"
        write_version(settings.content, "ann", "review", "1.2.0", "Review it again.\n")
        build(settings)
        after = hub.ask("skills/get", REVIEW)["skill"]
        assert after["resources"] != before["skill"]["resources"]
        assert after["frontmatter"]["metadata"]["version"] == "1.2.0"
        write_withdrawn(settings.content, "ann/review")
        build(settings)
        for method in ("skills/get", "resources/read"):
            with pytest.raises(Refused, match="was withdrawn"):
                hub.ask(method, REVIEW)
        listed = hub.ask("skills/list")["skills"]
        assert "skill://ann/story/SKILL.md" in [skill["uri"] for skill in listed]
        assert REVIEW["uri"] not in [skill["uri"] for skill in listed]


@pytest.mark.parametrize("content", [None, b"", b"---\nname: fr", b"\xff"])
def test_a_skill_that_is_being_copied_is_not_denied(hostile: Hub, content: bytes | None):
    path = Path(hostile.settings.out, BY_NAME["skill"].file_for(owner="eve", name="front"))
    whole = path.read_bytes()
    path.unlink() if content is None else path.write_bytes(content)
    try:
        with pytest.raises(Refused, match="ry again in a moment") as refused:
            hostile.ask("skills/get", {"uri": FRONT})
        assert refused.value.code == -32603
    finally:
        path.write_bytes(whole)
